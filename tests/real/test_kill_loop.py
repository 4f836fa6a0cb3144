"""A study is killed (-9) again and again, resumed to its end, and equals one that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from real_runs import (
    ENOUGH_SEC,
    WORD,
    Leftovers,
    Proctor,
    bodies,
    ended,
    entries,
    finals,
    is_live,
    is_over,
    proctor,
    stop_before,
    until,
    write_study,
)

from proctor.core.outcomes import SUPERSEDED
from proctor.evidence.kinds import Kind

__all__ = ["proctor"]
pytestmark = pytest.mark.real

KILLS = int(os.environ.get("PROCTOR_KILLS", "20"))
TASKS, EPOCHS = 10, 10
# entries of one undisturbed trial, about
ENTRIES = 15
# odd tasks are solved with the hint only, t7 never, and leaves a process behind; t8's agent ends with an error
AGENT = """
said=$(cat); n=$(echo "$said" | sed -n 's/.*(t\\([0-9]\\)).*/\\1/p')
if [ "$n" = 7 ]; then setsid sleep 1000 & exit 0; fi
if [ $((n % 2)) = 0 ] || [ -d /skills/hint ]; then echo right > /app/answer; fi
if [ "$n" = 8 ]; then exit 3; fi
"""


def make_study(folder: Path) -> Path:
    (folder / "skills/hint").mkdir(parents=True)
    (folder / "skills/hint/SKILL.md").write_text("---\nname: hint\ndescription: says it\n---\nSay right.\n")
    return write_study(
        folder,
        command=AGENT,
        tasks={f"t{number}": WORD for number in range(TASKS)},
        arms=("plain", "hinted"),
        arm_text='[arms.plain]\n[arms.hinted]\nskills = "skills"\n',
        stage=f"epochs = {EPOCHS}\nlanes = 3\nreplacements = 1\n",
    )


def test_a_study_that_is_killed_again_and_again_equals_one_that_is_not(proctor: Proctor, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    study, run, whole = make_study(tmp_path / "study"), tmp_path / "run", tmp_path / "whole"
    left = Leftovers()
    known, kills = b"", 0
    for opening in range(KILLS):
        words = ["resume", run] if (run / "journal.jsonl").exists() else ["run", study, "--out", run]
        process = proctor.start(*words, "--waive", "git_dirty", "--quiet", start_new_session=True)
        before = _lines(run).count(b"\n")
        far = max(5, stop_before(2 * TASKS * EPOCHS * ENTRIES, opening, KILLS) - before)
        # once at least attempts are in flight
        soon = [] if opening == 0 else [0, 1, 3]
        lines = before + chance.choice([*soon, *[chance.randint(min(far, 100), far)] * 5])
        known = _kill_at(process, run, known, lines, whole_group=chance.random() < 0.5)
        assert not is_live(run), opening
        if is_over(run):
            break
        kills += 1
    # a busy machine may let it end sooner, or kill it when nothing was left to do
    assert kills > 0, "it ended before it was killed once"
    if not is_over(run):
        status, said = proctor("resume", run, "--waive", "git_dirty", "--quiet")
        assert status == 0, said
    assert (run / "journal.jsonl").read_bytes().startswith(known)
    assert proctor("run", study, "--out", whole, "--waive", "git_dirty", "--quiet")[0] == 0

    proctor.check(run)
    left.check(run)
    assert finals(run) == finals(whole)
    assert Counter(grade for grade, _, _ in finals(run).values()) == {"pass": 140, "fail": 60}
    assert ended(run)["totals"] == ended(whole)["totals"]
    _check_disclosed(proctor, run)


def _lines(run: Path) -> bytes:
    """Those of the journal that are whole."""
    path = run / "journal.jsonl"
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1]


def _kill_at(process: subprocess.Popen[str], run: Path, known: bytes, lines: int, *, whole_group: bool) -> bytes:
    """Kill it once the journal has so many lines; returns the lines that were whole on the disk before that."""
    with process:
        until("the journal grows", lambda: process.poll() is not None or _lines(run).count(b"\n") >= lines)
        durable = _lines(run)
        if whole_group and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        said = process.communicate(timeout=ENOUGH_SEC)[0]
    assert process.returncode == -signal.SIGKILL or (process.returncode == 0 and is_over(run)), said
    assert durable.startswith(known)
    return durable


def _check_disclosed(proctor: Proctor, run: Path) -> None:
    superseded = [body for body in bodies(run, Kind.ATTEMPT_ENDED) if body["outcome"] in SUPERSEDED]
    assert superseded, "no attempt was in flight at any of the kills"
    assert {body["outcome"] for body in superseded} == {"lost"}
    admitted = bodies(run, Kind.ATTEMPT_ADMITTED)
    assert [body for body in admitted if body["replaces"] is not None] == []
    assert {body["supersedes"] for body in admitted} - {None} == {body["attempt"] for body in superseded}
    summary = json.loads((run / "summary.json").read_bytes())
    assert sum(group["superseded"] for group in summary["groups"]) == len(superseded)
    assert sum(group["replaced"] for group in summary["groups"]) == 0
    openings = sum(entry.kind in (Kind.RUN_ADMITTED, Kind.RUN_RESUMED) for entry in entries(run))
    assert summary["openings"] == openings > 1
    assert "superseded" in proctor("results", run)[1]
