"""Runner and verifier agree on generated runs: whatever deviates breaks the same rules for both."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from builder import Story
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judges import JUDGES, NO_JUDGE, Recorded, row_of
from run_designs import designs
from runs import DEVIATIONS, Maker

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.scan import scan
from proctor_verify import verify
from proctor_verify.checks import CHECKS

ALL = bool(os.environ.get("PROCTOR_DIFFERENTIAL"))
EXAMPLES = 1_000 if ALL else 50


@st.composite
def stories(draw: st.DrawFn, folder: Path, may: Sequence[str] = DEVIATIONS) -> tuple[Story, list[str]]:
    """A run, and what deviates in it, of what may."""
    design = draw(designs(folder))
    # some need what seldom comes about
    weighed = (*may, *(name for name in ("hold", "hold", "block", "silent", "spent", "limit") if name in may))
    names = draw(st.lists(st.sampled_from(weighed), min_size=1, max_size=4, unique=True)) if may else []
    passes, steps = st.sampled_from((0, 0, 0, 0, 1, 3)), st.sampled_from((-1, 1))
    deviations = {name: [draw(passes), draw(steps)] for name in names}

    async def make() -> tuple[Story, list[str]]:
        # the authority waits for room on the loop that runs
        maker = Maker(draw, design, deviations)
        return maker.make(), maker.taken

    return asyncio.run(make())


def test_runs_agree(folder: Path) -> None:
    said: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=not ALL, suppress_health_check=list(HealthCheck))
    @given(stories(folder))
    def agree(made: tuple[Story, list[str]]) -> None:
        story, taken = made
        out = folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        story.write(out)
        theirs = verify(out, story.signer.fingerprint)
        run = Recorded(out)
        ours = {check for check, judge in JUDGES.items() if not judge(run)}
        assert set(theirs.failed()) == ours, taken
        assert theirs.exit_status == bool(ours)
        said.update(ours or ["nothing"])

    agree()
    # a thousand that are drawn anew reach nearly all of them, fifty that are always the same most
    assert len(said) > (len(JUDGES) - 2 if ALL else len(JUDGES) // 2), said
    print(f"runs: {dict(said)}")


def test_every_check_has_a_judge_or_a_reason() -> None:
    without = [check.id for check in CHECKS if not row_of(check.id)]
    assert without == []
    assert [row for row in (*JUDGES, *NO_JUDGE) if not any(row in row_of(check.id) for check in CHECKS)] == []


Spoil = Callable[[Path, st.DrawFn], None]


def _lines(change: Callable[[list[bytes], int], object]) -> Spoil:
    """Alters the journal's lines around one of them; the last one stands for the rest of the run."""

    def spoil(run: Path, draw: st.DrawFn) -> None:
        journal = run / "journal.jsonl"
        lines = journal.read_bytes().split(b"\n")
        change(lines, draw(st.integers(0, len(lines) - 3)))
        journal.write_bytes(b"\n".join(lines))

    return spoil


def _flip(lines: list[bytes], at: int) -> None:
    middle = len(lines[at]) // 2
    lines[at] = lines[at][:middle] + bytes([lines[at][middle] ^ 1]) + lines[at][middle + 1 :]


def _root(run: Path, draw: st.DrawFn) -> None:
    note = sorted((run / "checkpoints").iterdir())[-1]
    first, size, root, *rest = note.read_text().split("\n")
    note.write_text("\n".join([first, size, ("A" if root[0] != "A" else "B") + root[1:], *rest]))


def _pack(run: Path, draw: st.DrawFn) -> None:
    pack = run / "packs" / "0001.pack"
    if pack.exists():
        os.truncate(pack, pack.stat().st_size - 1)
    else:
        _root(run, draw)


SPOILS: dict[str, Spoil] = {
    "a bit of a line": _lines(_flip),
    "a line that is gone": _lines(lambda lines, at: lines.pop(at)),
    "a line twice": _lines(lambda lines, at: lines.insert(at, lines[at])),
    "two lines the other way round": _lines(lambda lines, at: lines.insert(at, lines.pop(at + 1))),
    "a line in another form": _lines(lambda lines, at: lines.__setitem__(at, b" " + lines[at])),
    "another root": _root,
    "the end of a pack": _pack,
    "a folder of no trial": lambda run, draw: (run / "trials" / "t-00000000").mkdir(parents=True),
    "nothing": lambda run, draw: None,
}


def test_damage_is_damage_to_both(folder: Path) -> None:
    @settings(max_examples=EXAMPLES // 2, deadline=None, derandomize=not ALL, suppress_health_check=list(HealthCheck))
    @given(stories(folder, DEVIATIONS[:0]), st.sampled_from(sorted(SPOILS)), st.data())
    def agree(made: tuple[Story, list[str]], spoil: str, data: st.DataObject) -> None:
        out = folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        key = made[0].signer.fingerprint
        SPOILS[spoil](made[0].write(out), data.draw)
        assert bool(verify(out, key).failed()) == (spoil != "nothing")
        try:
            scan(RunFolder(out))
        except Refusal as refusal:
            # a kind of which a bit was flipped may be one of a later version
            assert refusal.reason in (Reason.EVIDENCE_DAMAGED, Reason.FORMAT_UNKNOWN) and spoil != "nothing"
        else:
            assert spoil == "nothing"

    agree()
