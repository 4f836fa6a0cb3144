"""Anchored runs as a user starts them: a repository that vanishes, a process that is killed, disks that are full."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_runs import ENOUGH_SEC, Held, Proctor, bodies, ended, entries, finals, is_over, proctor, until, write_study
from small_disks import fill, mounted

from anchor_parts import commits, contents, git, hook, repository
from proctor.evidence.anchors import receipts
from proctor.evidence.kinds import Kind
from proctor.evidence.runfolder import RunFolder
from proctor_verify.verification import verify

__all__ = ["proctor"]
pytestmark = pytest.mark.real

SOON = "echo right > /app/answer"


def study(folder: Path, *, command: str = SOON, tasks: int = 1, **words: object) -> Path:
    lines = [f"{name} = {json.dumps(value)}" for name, value in words.items()]
    top = "\n".join(["[anchor]", *lines])
    script = 'if [ "$(cat /app/answer)" = right ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n'
    return write_study(folder, command=command, top=top, tasks={f"t{number}": script for number in range(tasks)})


def ref(repository: Path) -> str:
    (found,) = git(repository, "for-each-ref", "--format=%(refname)").decode().split()
    return found


def check_at(proctor: Proctor, run: Path, *where: Path) -> None:
    """The second program finds nothing wrong, there either."""
    proctor.check(run)
    report = verify(run, proctor.key, anchors=[str(each) for each in where])
    assert report.exit_status == 0, [(result.check, result.findings) for result in report.results]


def notes(run: Path) -> dict[int, bytes]:
    return {int(path.stem): path.read_bytes() for path in (run / "checkpoints").glob("*.note")}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path, "128k")


def test_both_anchors_hold_what_the_run_says(proctor: Proctor, tmp_path: Path) -> None:
    remote, run = repository(tmp_path / "a.git"), tmp_path / "run"
    (tmp_path / "out").mkdir()
    made = study(tmp_path / "study", git=f"file://{remote}", drop="../out", every="1s", required=True)
    assert proctor("run", made, "--out", run, "--waive", "git_dirty")[0] == 0
    check_at(proctor, run, remote, tmp_path / "out")
    there = contents(remote, ref(remote))
    assert there[-1] == notes(run)[len(entries(run))] and set(there) <= set(notes(run).values())
    run_id = entries(run)[0].body["run_id"]
    assert (tmp_path / "out" / run_id / f"{len(entries(run)):012d}.note").read_bytes() == there[-1]
    status, said = proctor("anchor", run)
    assert status == 0 and said.count("there already, as was seen just now") == 2
    before = commits(remote, ref(remote))
    (tmp_path / "out").rename(tmp_path / "away")
    status, said = proctor("anchor", run)
    assert status == 5 and said.count("there already") == 1
    assert "not seen there, though checkpoints/" in said and "anchor_unreachable" in said
    (tmp_path / "away").rename(tmp_path / "out")
    assert commits(remote, ref(remote)) == before
    assert f"{len(entries(run))} of {len(entries(run))} entries" in proctor("status", run)[1]


@pytest.mark.parametrize("required", [True, False])
def test_a_repository_that_vanishes_in_the_middle(proctor: Proctor, tmp_path: Path, required: bool) -> None:
    remote, run = repository(tmp_path / "a.git"), tmp_path / "run"
    held = Held()
    made = study(tmp_path / "study", command=f"{held.command}; {SOON}", git="../a.git", every="1s", required=required)
    with proctor.start("run", made, "--out", run, "--waive", "git_dirty", "--quiet") as process:
        until("it is anchored", lambda: (run / "journal.jsonl").exists() and bodies(run, Kind.CHECKPOINT_ANCHORED))
        until("its agent works", lambda: bodies(run, Kind.AGENT_STARTED))
        shutil.move(remote, tmp_path / "away.git")
        if required:
            until("a push failed", lambda: bodies(run, Kind.ANCHOR_FAILED))
            shutil.move(tmp_path / "away.git", remote)
        until("its agent is let go", held.let_go)
        said = process.communicate(timeout=ENOUGH_SEC)[0]
    assert process.returncode == 0, said
    assert ended(run)["complete"]
    if not required:
        assert "push       " in said and "-m proctor anchor " in said
        assert len(entries(run)) not in [each.size for each in receipts.standing(RunFolder(run))]
        status, words = proctor("anchor", run)
        assert status == 5 and "anchor_unreachable" in words
        shutil.move(tmp_path / "away.git", remote)
        assert proctor("anchor", run)[0] == 0
    check_at(proctor, run, remote)
    assert contents(remote, ref(remote))[-1] == notes(run)[len(entries(run))]


def test_killed_between_a_push_and_its_receipt(proctor: Proctor, tmp_path: Path) -> None:
    remote, run = repository(tmp_path / "a.git"), tmp_path / "run"
    made = study(tmp_path / "study", tasks=2, git="../a.git", every="1s", required=True)
    # the push was taken, and git does not come back before its caller is dead
    hang = hook(remote, "post-receive", f"echo $PPID > {tmp_path}/taken", f"cat {tmp_path}/pipe")
    os.mkfifo(tmp_path / "pipe")
    with proctor.start("run", made, "--out", run, "--waive", "git_dirty", "--quiet") as process:
        until("the push was taken", (tmp_path / "taken").exists)
        process.send_signal(signal.SIGKILL)
        (tmp_path / "pipe").write_text("")
        process.communicate(timeout=ENOUGH_SEC)
    hang.unlink()
    assert len(commits(remote, ref(remote))) == 1 and receipts.standing(RunFolder(run)) == []
    status, said = proctor("resume", run, "--waive", "git_dirty", "--quiet")
    assert status == 0, said
    check_at(proctor, run, remote)
    stand = receipts.standing(RunFolder(run))
    first, *there = commits(remote, ref(remote))
    # a push that takes too long is a push again, of what stands by then
    known = [each.commit for each in stand]
    assert known and first not in known and known == [commit for commit in there if commit in known]
    assert known[-1] == there[-1]


def test_killed_again_and_again_while_it_pushes(proctor: Proctor, tmp_path: Path) -> None:
    remote, run = repository(tmp_path / "a.git"), tmp_path / "run"
    (tmp_path / "out").mkdir()
    made = study(tmp_path / "study", tasks=4, git="../a.git", drop="../out", every="1s", required=True)
    for number, lines in enumerate((2, 4, 6, 9, 30, 50)):
        killed_after(proctor, run, made, lines)
        if is_over(run):
            assert number, "it ended before it was killed once"
            break
    status, said = proctor("resume", run, "--waive", "git_dirty", "--quiet")
    # killed at its very end it has nothing left to do but to push
    assert (status, "run_complete" in said) in ((0, False), (3, True)), said
    assert status == 0 or proctor("anchor", run)[0] == 0
    check_at(proctor, run, remote, tmp_path / "out")
    assert len(finals(run)) == 4
    there = contents(remote, ref(remote))
    assert set(there) <= set(notes(run).values()) and there[-1] == notes(run)[len(entries(run))]


def killed_after(proctor: Proctor, run: Path, made: Path, lines: int) -> None:
    """Start the run or go on with it, and kill it once the journal has so many lines more, or it ended before."""
    before = len(entries(run)) if (run / "journal.jsonl").exists() else 0
    words = ["resume", run] if before else ["run", made, "--out", run]
    with proctor.start(*words, "--waive", "git_dirty", "--quiet", start_new_session=True) as process:

        def grown() -> bool:
            there = (run / "journal.jsonl").exists()
            return process.poll() is not None or (there and len(entries(run)) >= before + lines)

        until("the journal grows", grown)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=ENOUGH_SEC)


def test_a_repository_that_tampers_is_named(proctor: Proctor, tmp_path: Path) -> None:
    remote, run = repository(tmp_path / "a.git"), tmp_path / "run"
    hook(
        remote,
        "post-receive",
        "read old new ref; tree=$(git mktree </dev/null); export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x",
        "export GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x",
        'git update-ref "$ref" $(git commit-tree -m x $tree)',
    )
    made = study(tmp_path / "study", git="../a.git", required=True)
    status, said = proctor("run", made, "--out", run, "--waive", "git_dirty", "--quiet")
    assert (status, ended(run)["reason"]) == (4, "anchor_differs"), said
    assert bodies(run, Kind.BLOCK_ADMITTED) == [] and receipts.standing(RunFolder(run)) == []
    assert "anchor_differs" in said


def test_a_full_disk_at_the_drop_is_disclosed(proctor: Proctor, tmp_path: Path, small: Path) -> None:
    run = tmp_path / "run"
    fill(small / "filling")
    made = study(tmp_path / "study", drop=str(small))
    status, said = proctor("run", made, "--out", run, "--waive", "git_dirty")
    assert (status, ended(run)["reason"]) == (0, None)
    assert "anchor_rejected" in said
    assert f"drop {small}: nothing yet" in said and "-m proctor anchor " in said
    (small / "filling").unlink()
    assert proctor("anchor", run)[0] == 0
    check_at(proctor, run, small)
    (file,) = small.glob("*/*.note")
    assert file.read_bytes() == notes(run)[len(entries(run))]


def test_places_that_the_study_does_not_name(proctor: Proctor, tmp_path: Path) -> None:
    first, second, run = repository(tmp_path / "a.git"), repository(tmp_path / "b.git"), tmp_path / "run"
    assert proctor("run", study_without(tmp_path / "study"), "--out", run, "--waive", "git_dirty", "--quiet")[0] == 0
    assert proctor("anchor", run)[0] == 3, "there is none to push to"
    assert proctor("anchor", run, "--git", f"https://me:{'secret'}@example.org/a.git")[0] == 3
    assert proctor("anchor", run, "--git", "a.git")[0] == 0
    check_at(proctor, run, first)
    (receipt,) = receipts.standing(RunFolder(run))
    assert (receipt.location, receipt.size) == (str(first), len(entries(run)))
    status, said = proctor("anchor", run, "--git", str(second))
    assert status == 0 and "no receipt" in said
    assert receipts.standing(RunFolder(run)) == [receipt]
    assert contents(second, ref(second)) == [notes(run)[len(entries(run))]]


def study_without(folder: Path) -> Path:
    return write_study(folder)


def test_a_live_or_dead_run_is_not_anchored_by_hand(proctor: Proctor, tmp_path: Path) -> None:
    remote, run = repository(tmp_path / "a.git"), tmp_path / "run"
    made = write_study(tmp_path / "study", command="sleep 1000")
    with proctor.start("run", made, "--out", run, "--waive", "git_dirty", "--quiet") as process:
        until("an attempt runs", lambda: (run / "journal.jsonl").exists() and bodies(run, Kind.AGENT_STARTED))
        status, said = proctor("anchor", run, "--git", remote)
        assert status == 3 and "run_locked" in said
        process.kill()
        process.communicate(timeout=ENOUGH_SEC)
    status, said = proctor("anchor", run, "--git", remote)
    assert status == 3 and "run_not_live" in said
    assert git(remote, "for-each-ref") == b""
