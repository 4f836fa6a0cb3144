"""The mutation run over both registries: `python tests/mutation/run.py [--sample N --seed S] [--module M]`.

Each mutant is one small change of a check, of a guard, or of what these lean on. It is judged in a process of its own:
by the likeliest of the stories whose reading reaches the changed line, by the tests of the module, by all other such
stories. One that all of them take for the real thing is a survivor, and the run fails, unless `equivalent.py` says why
nothing can tell it apart.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = [str(HERE), str(TESTS / "verify"), str(TESTS), str(TESTS.parent / "src")]

from equivalent import EQUIVALENT  # noqa: E402
from judging import Judge, Verdict  # noqa: E402
from loading import Tree  # noqa: E402
from mutants import mutants  # noqa: E402
from targets import GUARDS, IN_THE_RUN, RULES  # noqa: E402

PAGE = """# The mutation run

No check of the second program and no guard of admission is dead: each is disabled in turn, each place where one says no
is dropped in turn, each condition is forced either way, turned, moved by one and has its parts dropped in turn, and
some test must see it (`tests/mutation/run.py`). What the last whole run came to:

```
{table}
```

An equivalent mutant is one that no input can tell from the real thing; `tests/mutation/equivalent.py` says why of each.
"""
# From here on it pays to know which story reaches which line.
_MANY = 600


def check_modules(tree: Tree) -> list[str]:
    """The modules of the registry of checks, and those beside them."""
    registry = importlib.import_module("proctor_verify.checks")
    beside = [name for name in tree.sources if name.startswith("proctor_verify.checks.")]
    return sorted({check.__module__ for check in registry.CHECKS} | set(beside))


def guard_modules() -> list[str]:
    """The modules that hold the guards of both registries of admission."""
    run = importlib.import_module("proctor.admission.guards").REGISTRY
    gateway = importlib.import_module("proctor.admission.standalone").GATEWAY
    return sorted({guard.check.__module__ for registry in (run, gateway) for guard in registry})


def main() -> int:
    options = _options()
    started = time.monotonic()
    tree = Tree.of(TESTS.parent / "src", ("proctor", "proctor_verify"))
    checks = check_modules(tree)
    wanted = [name for name in (*checks, *RULES, *guard_modules(), *GUARDS) if name in tree.sources]
    if options.module:
        wanted = [name for name in wanted if any(part in name for part in options.module)]
    all_mutants = [mutant for name in dict.fromkeys(wanted) for mutant in mutants(name, tree.sources[name])]
    if options.kind:
        all_mutants = [mutant for mutant in all_mutants if any(part in mutant.kind for part in options.kind)]
    else:
        all_mutants = [mutant for mutant in all_mutants if mutant.kind in IN_THE_RUN]
    chosen = all_mutants
    if options.sample is not None and options.sample < len(all_mutants):
        chosen = random.Random(options.seed).sample(all_mutants, options.sample)
        print(f"a sample of {len(chosen)} of {len(all_mutants)} mutants, seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="proctor-mutation-", dir=_in_memory()) as place:
        judge = Judge(tree, Path(place), options.jobs, stories=any("verify" in mutant.module for mutant in chosen))
        judge.tests, judge.quick = not options.stories_only, options.quick
        if len(chosen) > _MANY:
            judge.trace()
        ready = time.monotonic()
        verdicts = judge.judge(chosen, _say if options.tell else lambda _: None)
        judge.check_killers(verdicts)
    print(f"{len(judge.shown):,} stories made in {ready - started:.0f} s")
    whole = chosen is all_mutants and not (options.stories_only or options.quick or options.kind)
    return _summary(verdicts, checks, time.monotonic() - ready, whole=whole, page=options.page)


def _say(verdict: Verdict) -> None:
    print(f"{verdict.seconds:6.2f} s  {verdict.killer}  <=  {verdict.mutant}", flush=True)


def _summary(verdicts: list[Verdict], checks: list[str], seconds: float, *, whole: bool, page: Path | None) -> int:
    excused = {each.key: each for each in EQUIVALENT}
    survivors = [v.mutant for v in verdicts if v.killer is None and v.mutant.key not in excused]
    alive = {v.mutant.key for v in verdicts if v.killer is None}
    killed_all_the_same = {v.mutant.key for v in verdicts if v.killer is not None} & excused.keys() - alive
    looked = {v.mutant.module for v in verdicts}
    here = {v.mutant.key for v in verdicts}
    stale = [key for key in excused if key[0] in looked and key not in here] if whole else []
    for mutant in sorted(survivors, key=lambda each: (each.module, each.line)):
        print(f"survivor  {mutant}")
    for key in sorted(killed_all_the_same):
        print(f"not equivalent, it is killed  {key}")
    for key in sorted(stale):
        print(f"equivalent to nothing  {key}")
    table = "\n".join(_table(verdicts, checks, excused.keys(), seconds))
    print(f"\n{table}")
    if page is not None and whole:
        page.write_text(PAGE.format(table=table))
    return 1 if survivors or killed_all_the_same or stale or not verdicts else 0


def _table(verdicts: list[Verdict], checks: list[str], excused: Collection[object], seconds: float) -> Iterator[str]:
    yield f"{'':24}{'mutants':>9}{'killed':>9}{'equivalent':>12}{'survivors':>11}{'seconds':>9}"
    registries: dict[str, Callable[[str], bool]] = {
        "checks": lambda name: name in checks,
        "what checks lean on": lambda name: name in RULES,
        "guards": lambda name: name.startswith("proctor.admission"),
        "what guards lean on": lambda name: name.startswith("proctor.budget"),
    }
    for registry, holds in registries.items():
        own = [v for v in verdicts if holds(v.mutant.module)]
        killed = sum(v.killer is not None for v in own)
        excuses = sum(v.killer is None and v.mutant.key in excused for v in own)
        spent = sum(v.seconds for v in own)
        if own:
            yield f"{registry:24}{len(own):9,}{killed:9,}{excuses:12,}{len(own) - killed - excuses:11,}{spent:9,.0f}"
    kinds = Counter(v.mutant.kind for v in verdicts)
    yield from (f"  {kind:22}{count:9,}" for kind, count in sorted(kinds.items()))
    yield f"{seconds:,.0f} s in all"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="so many mutants, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", action="append", help="modules whose name holds this")
    parser.add_argument("--kind", action="append", help="changes whose kind holds this, part of the run or not")
    parser.add_argument("--page", type=Path, help="where the summary of a whole run is kept")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--stories-only", action="store_true", help="leave the tests out: quick, and not the verdict")
    parser.add_argument("--quick", action="store_true", help="few plants of other modules: not the verdict either")
    parser.add_argument("--tell", action="store_true", help="say of each mutant what told it apart")
    return parser.parse_args()


def _in_memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None


if __name__ == "__main__":
    sys.exit(main())
