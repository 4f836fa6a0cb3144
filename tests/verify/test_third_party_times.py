"""The verifier in another language says of the same runs that receipts and entries contradict each other in time."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from anchored import anchored_story, write_anchors
from primitives import canonical
from stories import full_story

from proctor_verify import verify

PROGRAM = Path(__file__).resolve().parents[2] / "examples/third-party-verifier/verify.mjs"
NODE = shutil.which("node")
EARLY = "before an entry that their checkpoint covers"
HOURS = timedelta(hours=2)
LATE = "after the entry that names them"

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def notes(run: Path) -> list[str]:
    """What the third verifier says beside its checks."""
    done = subprocess.run([str(NODE), str(PROGRAM), str(run), "--json"], capture_output=True, timeout=300, check=False)
    found: list[str] = json.loads(done.stdout)["notes"]
    return found


def both(run: Path, *words: str) -> None:
    """Ours and theirs say exactly these of what contradicts receipts, and agree on the most seconds and on how many."""
    ours = [caveat for caveat in verify(run).caveats if caveat.startswith("times: receipts")]
    theirs = [note for note in notes(run) if "receipts are dated" in note]
    assert [[word in said for word in words] for said in (" ".join(ours), " ".join(theirs))] == [
        [True] * len(words)
    ] * 2
    assert len(ours) == len(theirs) == len(words)
    for mine, other in zip(ours, theirs, strict=True):
        seconds = mine.partition("by up to ")[2].partition(" seconds")[0].replace(",", "")
        count = mine.partition("(")[2].partition(")")[0].replace(",", "")
        assert other.startswith(f"{count} receipts") and other.endswith(f"by up to {seconds} seconds")


def dated(folder: Path, **dates: str) -> Path:
    """A run whose last receipt of a folder, which no entry names, is dated so."""
    story, run = anchored_story(), folder / "run"
    story.write(run)
    write_anchors(story, run)
    path = max((run / "checkpoints").glob("*.drop.json"))
    path.write_bytes(canonical({**json.loads(path.read_bytes()), **dates}))
    return run


def test_as_the_story_has_it(tmp_path: Path) -> None:
    run = anchored_story().write(tmp_path / "run")
    both(run, LATE)


def test_a_run_that_pushed_nowhere_contradicts_nothing(tmp_path: Path) -> None:
    both(full_story().write(tmp_path / "run"))


@pytest.mark.parametrize(
    ("before", "words"),
    [(timedelta(minutes=1), [LATE]), (timedelta(minutes=1, microseconds=1), [EARLY, LATE]), (HOURS, [EARLY, LATE])],
)
def test_a_receipt_that_is_older_than_what_it_covers(before: timedelta, words: list[str], tmp_path: Path) -> None:
    last = json.loads((anchored_story().write(tmp_path / "same") / "journal.jsonl").read_bytes().splitlines()[-1])
    ended = datetime.fromisoformat(last["time"]) - before
    run = dated(tmp_path, started="2030-12-31T01:00:00.000000Z", ended=f"{ended:%Y-%m-%dT%H:%M:%S.%f}Z")
    both(run, *words)


def test_a_clock_that_was_set_is_said_by_both(tmp_path: Path) -> None:
    story = full_story()
    story.find("run.ended", -1).after = lambda entry: entry.update(time="2031-01-01T00:30:00.000000Z")
    run = story.write(tmp_path / "run")
    assert any("off `mono`" in caveat for caveat in verify(run).caveats)
    assert any("goes off mono" in note for note in notes(run))
