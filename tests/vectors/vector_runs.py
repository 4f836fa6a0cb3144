"""Small whole runs for the vectors: sound ones, and each with one fault around which everything is made anew."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import Story
from primitives import Signer, money, picodollars, sha256
from steps import Late, Step

from proctor.core.ids import trial_folder
from proctor.study import FrozenTask, Parts, freeze
from proctor.study.design import QuestionsDesign
from proctor.study.load import check_tables

ROW = FrozenTask("row", sha256(b"row"), "question", "units.jsonl")
TASK = FrozenTask("task", sha256(b"task"), "harbor", "tasks/task")
TABLES: dict[str, Any] = {
    "study": {"name": "vectors"},
    "tasks": {"questions": "units.jsonl"},
    "draw": {"seed": 8},
    "agent": {"name": "oracle", "timeout": "60s"},
    "sandbox": {"kind": "namespace", "network": "none"},
    "arms": {"plain": {}},
    "stages": {"main": {"replacements": 1}},
}
MODEL = {
    "provider": "openai",
    "model": "m",
    "max_output_tokens": 100,
    "price": {"input": "2", "output": "10.000000000001", "source": "a page"},
}
# of an exchange within 40 tokens in and 100 out, and of one that used 30 and 7
WORST, USED = "0.001080000001", {"input": 30, "output": 7}
BUDGET: dict[str, Any] = {
    "models": {"luna": MODEL},
    "stages": {
        "main": {
            "budget": {"allocation": "0.01", "cap": "0.01", "margin": "0.001", "reserve_factor": 0.1},
            "expected_costs": {"luna": "0.01"},
            "caps": {"luna": "0.01"},
            "reserves": {"luna": "0.001"},
        }
    },
}


def frozen(tables: dict[str, Any], tasks: list[FrozenTask]) -> dict[str, Any]:
    """A design as the runner freezes it."""
    from tempfile import TemporaryDirectory

    from proctor.admission.models import resolve_models

    with TemporaryDirectory() as folder:
        (Path(folder) / "units.jsonl").write_text("")
        loaded = check_tables(copy.deepcopy({**TABLES, **tables}), Path(folder), None, "0" * 64)
    assert loaded.file is not None and not loaded.refusals, loaded.refusals
    models, _ = resolve_models(loaded.file.models, "2026-01-01")
    design, refusals = freeze(
        loaded, "main", Parts(tasks, models, (), QuestionsDesign("units.jsonl", "0" * 64, "exact", 30))
    )
    assert design is not None, refusals
    return design.to_json()


def _start(s: Story, index: int, arm: str, **links: Any) -> str:
    """As the story does it, in a folder that is called as the runner calls it."""
    attempt = s.start(index, arm, **links)
    body = s.open[attempt]
    folder = trial_folder(body["task"], body["model"], body["arm"], body["epoch"])
    placed = {"folder": f"trials/{folder}/{body['number']}"}
    body.update(placed)
    s.find("attempt.admitted", attempt=attempt).body.update(placed)
    return attempt


def tried(number: int = 2) -> Story:
    """A task and a row without a model. Where `number` is 2, the first attempt at the task is replaced."""
    s = Story(frozen({}, [ROW, TASK]))
    s.admit()
    s.checkpoint()
    for index, (place, arms) in enumerate(s.drawn_order()):
        s.block(index)
        links = {}
        if place[0] == "task" and number == 2:
            broken = _start(s, index, arms[0])
            s.end(broken, "infrastructure", "sandbox_lost")
            links = {"replaces": broken}
        attempt = _start(s, index, arms[0], **links)
        if place[0] == "task":
            s.grade(attempt, "pass", 1)
        else:
            s.grade(attempt, "fail", 0.25, "wrong_answer")
        s.end(attempt)
        s.final(attempt)
        s.add("block.ended", block=index)
    s.stop(0)
    s.checkpoint(named=False)
    return s


def lost() -> Story:
    """Taken up after its process died with an attempt in flight; then the person stopped it."""
    s = Story(frozen({}, [TASK]))
    s.admit()
    s.block(0)
    first = _start(s, 0, "plain")
    s.resume(previous_ended=False)
    s.add("run.recovered", quarantined=[], lost=[first])
    s.end(first, "lost", "lost")
    s.checkpoint()
    s.block(0)
    second = _start(s, 0, "plain", supersedes=first)
    s.add("run.draining", cause="SIGINT")
    s.end(second, "interrupted", "interrupted")
    s.stop(130, "interrupted")
    s.checkpoint(named=False)
    return s


def paid() -> Story:
    """A row, a model with a budget: an answer that is charged, one that was refused, one that is estimated."""
    s = Story(frozen(BUDGET, [ROW]))
    s.admit()
    s.block(0)
    attempt = _start(s, 0, "plain")
    s.answer(s.ask(attempt, 40, 100), dict(USED))
    nothing = {"charged": money(0), "estimated": False}
    s.answer(s.ask(attempt, 40, 100), outcome="released", http_status=429, error="rate_limited", finish=None, **nothing)
    s.answer(s.ask(attempt, 40, 100), flags=["no_usage"])
    s.grade(attempt, "pass", 1)
    s.end(attempt)
    s.final(attempt)
    s.add("block.ended", block=0)
    s.stop(0)
    s.checkpoint(named=False)
    return s


@dataclass(frozen=True)
class Run:
    """A run: which checks fail, and which cannot tell, with the key; `alter` before it is sealed, `spoil` after."""

    name: str
    story: Callable[[], Story]
    failed: tuple[str, ...] = ()
    alter: Callable[[Story], object] = lambda s: None
    spoil: Callable[[Path], object] = lambda folder: None
    cannot_tell: tuple[str, ...] = ()
    key: str | None = None


def _after(kind: str, **entry: Any) -> Callable[[Story], object]:
    return lambda s: setattr(s.find(kind), "after", lambda whole: whole.update(entry))


def _body(kind: str, nth: int = 0, **body: Any) -> Callable[[Story], object]:
    return lambda s: s.find(kind, nth).body.update(body)


def _ended(**body: Any) -> Callable[[Story], object]:
    return lambda s: setattr(s.find("run.ended"), "after", lambda whole: whole["body"].update(body))


def _raw(kind: str, change: Callable[[bytes], bytes]) -> Callable[[Story], object]:
    return lambda s: setattr(s.find(kind), "raw", change)


def _retyped(folder: Path) -> None:
    manifest = folder / "manifests" / "0001.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"command":"run"', b'"command":"ran"'))


def _flip(pattern: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        file = sorted(folder.glob(pattern))[0]
        data = file.read_bytes()
        file.write_bytes(bytes([data[0] ^ 1]) + data[1:])

    return spoil


def _derived(path: str, old: bytes, new: bytes) -> Callable[[Story], object]:
    def alter(s: Story) -> None:
        name = next(name for name in s.files if name.rpartition("/")[2] == path)
        was = s.files[name]
        s.files[name] = Late(lambda s: s.settled(was).replace(old, new))

    return alter


def _other_root(text: str) -> str:
    origin, size, root, *rest = text.split("\n")
    return "\n".join([origin, size, ("A" if root[0] != "A" else "B") + root[1:], *rest])


def _tight(s: Story) -> None:
    """The ceiling is a picodollar below what the last exchange takes the run to."""
    spent = picodollars(s.find("exchange.ended").body["charged"]) + picodollars(WORST)
    s.design["budget"]["margin"] = money(0)
    budget = s.design["budget"]
    budget["cap"] = budget["allocation"] = money(spent - 1)
    budget["models"][0].update(expected=money(spent - 1), cap=money(spent - 1), reserve=money(10**9))
    budget["reserve_factor"], budget["reserve_quantum"] = 1, money(10**12)
    s.find("block.admitted").body["reserve"] = money(10**9)


def _twice(s: Story) -> None:
    final = s.find("trial.final")
    s.insert_after(final, Step("trial.final", dict(final.body)))


STRANGER = "sha256:" + "0" * 64
RUNS = (
    Run("sound: a replacement, a task and a row", tried),
    Run("sound: lost, taken up, interrupted", lost),
    Run("sound: money", paid),
    Run("a line in another form", paid, ("journal.lines",), _raw("run.ended", lambda line: line + b" ")),
    Run("a field too many", tried, ("journal.kinds",), _body("block.ended", more=1)),
    Run("a number too far", tried, ("journal.sequence",), _after("block.ended", seq=99)),
    Run("a link to another line", tried, ("journal.chain",), _after("block.ended", prev="0" * 64)),
    Run("a clock that falls", tried, ("journal.mono",), _after("block.ended", mono=0)),
    Run(
        "a kind of another version",
        tried,
        (),
        lambda s: s.insert_before(s.find("block.ended"), Step("run.dreaming", {})),
        cannot_tell=("journal.kinds",),
    ),
    Run("no end", lost, ("run.ended",), lambda s: _unended(s)),
    Run(
        "a checkpoint of another root",
        tried,
        ("checkpoints.head",),
        lambda s: setattr(s.steps[-1], "text", _other_root),
    ),
    Run(
        "a checkpoint that another key signed",
        tried,
        ("checkpoints.signature",),
        lambda s: setattr(s.steps[-1], "signer", Signer(2)),
    ),
    Run("another key than the one that is trusted", paid, ("key.trust",), key=STRANGER),
    Run("a manifest that was altered", lost, ("manifests.bound",), spoil=_retyped),
    Run("another seed", tried, ("blocks.drawn",), _body("block.admitted", block=1)),
    Run(
        "a cap a picodollar beyond its share",
        paid,
        ("budget.caps-proportional",),
        lambda s: s.design["budget"]["models"][0].update(cap="0.015000000001"),
    ),
    Run("a reserve that is less", paid, ("budget.blocks",), _body("block.admitted", reserve="0.000999999999")),
    Run("a picodollar past the ceiling", paid, ("budget.ceiling",), _tight),
    Run("an exchange that is refused and fits", paid, ("ceiling.disclosed",), lambda s: _refused(s)),
    Run("more output than the design allows", paid, ("exchanges.admitted",), lambda s: _wide(s)),
    Run("an overrun that is none", paid, ("exchanges.ended",), _body("exchange.ended", overrun=True)),
    Run("a picodollar less charged", paid, ("costs.recomputed",), lambda s: _charged(s, -1)),
    Run("a picodollar more held", paid, ("costs.recomputed",), lambda s: _held(s, 1)),
    Run("a replacement that supersedes", tried, ("attempts.numbered",), lambda s: _supersedes(s)),
    Run("an attempt of another block", tried, ("attempts.joined",), _body("attempt.admitted", block=1)),
    Run("two finals", tried, ("finals.one",), _twice),
    Run("a final that says otherwise", paid, ("finals.agree",), lambda s: _final(s)),
    Run(
        "another count of finals",
        tried,
        ("totals.agree",),
        _ended(totals={"trials": 2, "finals": 1, "pass": 1, "fail": 1, "ungraded": 0}),
    ),
    Run("an exit status for ungraded finals", tried, ("status.agrees",), _ended(exit_status=1)),
    Run("a frame with another bit", tried, ("packs.frames",), spoil=_flip("packs/0001.pack")),
    Run("a file that no entry names", tried, ("files.unlisted",), spoil=lambda f: (f / "packs" / "x").write_bytes(b"")),
    Run("a file that was altered", tried, ("files.digests",), spoil=_flip("trials/*/1/agent/stdout.log")),
    Run("a grade that its reward does not give", tried, ("grades.recomputed",), lambda s: _regraded(s)),
    Run(
        "an attempt.json that is not derived",
        tried,
        ("attempts.derived",),
        _derived("attempt.json", b'"boundaries":[', b'"boundaries":["x",'),
    ),
    Run(
        "a summary that does not add up",
        paid,
        ("summary.recomputed",),
        _derived("summary.json", b'"format":1', b'"format":2'),
    ),
)


def _unended(s: Story) -> None:
    s.drop(s.find("run.ended"))
    for name in ("summary.json", "grade_summary.json"):
        del s.files[name]


def _refused(s: Story) -> None:
    attempt = s.find("attempt.admitted").body["attempt"]
    said = {
        "model": "luna",
        "reason": "ceiling_reached",
        "held": WORST,
        "message": "no",
        "route": None,
        "request": None,
    }
    s.insert_before(s.find("agent.ended"), Step("exchange.refused", {"attempt": attempt, **said}))


def _wide(s: Story) -> None:
    s.find("exchange.admitted", 1).body.update(output_bound=101, held="0.001090000001")


def _charged(s: Story, by: int) -> None:
    body = s.find("exchange.ended").body
    body["charged"] = money(picodollars(body["charged"]) + by)


def _held(s: Story, by: int) -> None:
    body = s.find("exchange.admitted").body
    body["held"] = money(picodollars(body["held"]) + by)


def _supersedes(s: Story) -> None:
    body = s.find("attempt.admitted", number=1).body
    body.update(supersedes=body["replaces"], replaces=None)


def _final(s: Story) -> None:
    body = s.find("trial.final").body
    body.update(grade="fail", reason="below_threshold")
    s.finals[body["trial"]].update(grade="fail", reason="below_threshold")
    s.find("run.ended").body["totals"].update({"pass": 0, "fail": 1})


def _regraded(s: Story) -> None:
    said = {"grade": "fail", "reason": "below_threshold"}
    step = next(step for step in s.entries() if step.kind == "attempt.graded" and step.body["grade"] == "pass")
    step.body.update(said)
    trial = step.body["attempt"].partition("/")[0]
    s.find("trial.final", trial=trial).body.update(said)
    s.finals[trial].update(said)
    s.find("run.ended").body["totals"].update({"pass": 0, "fail": 2})
