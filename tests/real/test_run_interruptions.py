"""Every way to interrupt a run from outside: what is in flight, the exit status, the record, and what resume does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from real_runs import (
    ENOUGH_SEC,
    WORD,
    Held,
    Leftovers,
    Proctor,
    bodies,
    ended,
    has_entry,
    is_live,
    outcomes,
    proctor,
    until,
    write_study,
)

from proctor.evidence.kinds import Kind

__all__ = ["proctor"]
pytestmark = pytest.mark.real

RIGHT = "echo right > /app/answer"
ALIKE = {f"t{number}": WORD for number in range(4)}


@pytest.fixture
def held() -> Held:
    return Held()


def long(proctor: Proctor, held: Held, stage: str = "") -> Path:
    """A study whose agents are at work until they are let go."""
    return short(proctor, f"{RIGHT}; {held.command}", stage)


def short(proctor: Proctor, command: str = RIGHT, stage: str = "") -> Path:
    return write_study(proctor.home / "study", command=command, tasks=ALIKE, stage=f"lanes = 2\n{stage}")


def begun(proctor: Proctor, study: Path, run: Path, *words: object) -> subprocess.Popen[str]:
    """A run with two agents at work."""
    process = proctor.start("run", study, "--out", run, "--waive", "git_dirty", "--quiet", *words)
    until("two agents work", lambda: process.poll() is not None or has_entry(run, Kind.AGENT_STARTED, 2)())
    assert process.poll() is None, process.communicate()[0]
    return process


def over(process: subprocess.Popen[str]) -> tuple[int, str]:
    with process:
        said = process.communicate(timeout=ENOUGH_SEC)[0]
    return process.returncode, said


def resumed(proctor: Proctor, run: Path, left: Leftovers, held: Held | None = None) -> None:
    with held.going() if held else nullcontext():
        status, said = proctor("resume", run, "--waive", "git_dirty", "--quiet")
    assert status == 0, said
    proctor.check(run)
    left.check(run)
    assert ended(run)["totals"] == {"trials": 4, "finals": 4, "pass": 4, "fail": 0, "ungraded": 0}
    assert [body for body in bodies(run, Kind.ATTEMPT_ADMITTED) if body["replaces"]] == []


def test_one_ctrl_c_drains(proctor: Proctor, tmp_path: Path, held: Held) -> None:
    left, run = Leftovers(), tmp_path / "run"
    process = begun(proctor, long(proctor, held), run)
    process.send_signal(signal.SIGINT)
    until("it is heard", has_entry(run, Kind.RUN_DRAINING))
    with held.going():
        status, said = over(process)
    assert (status, ended(run)["exit_status"], ended(run)["complete"]) == (130, 130, False), said
    assert outcomes(run) == {"completed": 2}
    assert len(bodies(run, Kind.TRIAL_FINAL)) == 2
    assert bodies(run, Kind.RUN_DRAINING) == [{"cause": "SIGINT"}]
    proctor.check(run)
    resumed(proctor, run, left, held)


@pytest.mark.parametrize(
    ("signals", "status"),
    [((signal.SIGINT, signal.SIGINT), 130), ((signal.SIGTERM,), 143), ((signal.SIGHUP,), 129)],
    ids=["two Ctrl-C", "SIGTERM", "SIGHUP"],
)
def test_an_abort_ends_what_is_in_flight(
    proctor: Proctor, tmp_path: Path, held: Held, signals: tuple[signal.Signals, ...], status: int
) -> None:
    left, run = Leftovers(), tmp_path / "run"
    process = begun(proctor, long(proctor, held), run)
    for number in signals:
        process.send_signal(number)
        until("it is heard", lambda: process.poll() is not None or has_entry(run, Kind.RUN_DRAINING)())
    code, said = over(process)
    assert (code, ended(run)["exit_status"], ended(run)["reason"]) == (status, status, "interrupted"), said
    assert outcomes(run) == {"interrupted": 2}
    assert bodies(run, Kind.TRIAL_FINAL) == []
    proctor.check(run)
    left.check(run)
    resumed(proctor, run, left, held)


def test_a_killed_run_is_seen_as_dead_and_its_worlds_end(proctor: Proctor, tmp_path: Path, held: Held) -> None:
    left, run = Leftovers(), tmp_path / "run"
    process = begun(proctor, long(proctor, held), run)
    assert json.loads(proctor("status", run, "--json")[1])["live"] is True
    process.kill()
    assert over(process)[0] == -signal.SIGKILL
    assert not is_live(run)
    said = json.loads(proctor("status", run, "--json")[1])
    assert said["live"] is False
    resumed(proctor, run, left, held)
    assert outcomes(run) == {"lost": 2, "completed": 4}


def test_a_pause_starts_nothing_until_resume(proctor: Proctor, tmp_path: Path, held: Held) -> None:
    left, run = Leftovers(), tmp_path / "run"
    process = begun(proctor, long(proctor, held), run)
    assert proctor("pause", run)[0] == 0
    with held.going():
        until("what was in flight is final", has_entry(run, Kind.TRIAL_FINAL, 2))
    assert len(bodies(run, Kind.ATTEMPT_ADMITTED)) == 2
    assert json.loads(proctor("status", run, "--json")[1])["live"] is True
    assert process.poll() is None
    assert proctor("resume", run)[0] == 0
    with held.going():
        status, said = over(process)
    assert status == 0, said
    proctor.check(run)
    left.check(run)
    assert (bodies(run, Kind.RUN_PAUSED), bodies(run, Kind.RUN_UNPAUSED)) == ([{}], [{}])


def test_a_paused_run_can_be_ended(proctor: Proctor, tmp_path: Path, held: Held) -> None:
    left, run = Leftovers(), tmp_path / "run"
    process = begun(proctor, long(proctor, held), run)
    assert proctor("pause", run)[0] == 0
    process.send_signal(signal.SIGINT)
    with held.going():
        assert over(process)[0] == 130
    proctor.check(run)
    resumed(proctor, run, left, held)


def test_the_stage_deadline_stops_and_resume_goes_on(proctor: Proctor, tmp_path: Path, held: Held) -> None:
    left, run = Leftovers(), tmp_path / "run"
    # time enough for two agents to begin
    process = begun(proctor, long(proctor, held, 'deadline = "8s"\n'), run)
    until("the deadline comes", has_entry(run, Kind.RUN_DRAINING))
    with held.going():
        status, said = over(process)
    assert (status, ended(run)["reason"], outcomes(run)) == (4, "stage_deadline", {"completed": 2}), said
    proctor.check(run)
    # each opening of the run has the deadline anew
    with proctor.start("resume", run, "--waive", "git_dirty", "--quiet") as process:
        until("it comes again", lambda: process.poll() is not None or has_entry(run, Kind.RUN_DRAINING, 2)())
        with held.going():
            assert over(process)[0] == 4
    proctor.check(run)
    left.check(run)
    assert ended(run)["complete"]


def test_prepare_only_runs_nothing_until_resume(proctor: Proctor, tmp_path: Path) -> None:
    left, run = Leftovers(), tmp_path / "run"
    study = short(proctor)
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--prepare-only")
    assert (status, ended(run)["reason"], bodies(run, Kind.ATTEMPT_ADMITTED)) == (0, "prepared_only", []), said
    proctor.check(run)
    left.check(run)
    resumed(proctor, run, left)


def test_a_second_writer_is_refused_and_changes_nothing(proctor: Proctor, tmp_path: Path, held: Held) -> None:
    run = tmp_path / "run"
    study = long(proctor, held)
    process = begun(proctor, study, run)
    for words in (["resume", run], ["run", study, "--out", run]):
        status, said = proctor(*words, "--waive", "git_dirty", "--json")
        assert status == 3, said
        assert "run_locked" in said
    assert {_verdict(run, number) for number in (2, 3)} == {"refused"}
    with held.going():
        assert over(process)[0] == 0
    proctor.check(run)
    for words, reason in ((["resume", run], "run_complete"), (["run", study, "--out", run], "run_exists")):
        status, said = proctor(*words, "--waive", "git_dirty", "--json")
        assert (status, reason in said) == (3, True), said
    proctor.check(run)


def _verdict(run: Path, number: int) -> str:
    return str(json.loads((run / f"manifests/{number:04d}.json").read_bytes())["verdict"])


def test_resume_refuses_what_changed_and_names_it(proctor: Proctor, tmp_path: Path) -> None:
    left, run = Leftovers(), tmp_path / "run"
    study = short(proctor)
    assert proctor("run", study, "--out", run, "--waive", "git_dirty", "--prepare-only")[0] == 0
    before = (run / "journal.jsonl").read_bytes()

    script = study.parent / "tasks/t1/tests/test.sh"
    own = script.read_bytes()
    script.write_bytes(own + b"# changed\n")
    status, said = proctor("resume", run, "--waive", "git_dirty", "--json")
    assert (status, "task_changed" in said, "t1" in said) == (3, True, True), said
    script.write_bytes(own)

    text = study.read_text()
    study.write_text(text.replace("seed = 20261130", "seed = 20261201"))
    status, said = proctor("resume", run, "--waive", "git_dirty", "--json")
    assert (status, "design_changed" in said, "draw.seed" in said) == (3, True, True), said
    study.write_text(text)

    assert (run / "journal.jsonl").read_bytes() == before
    proctor.check(run)
    resumed(proctor, run, left)


def test_a_damaged_journal_is_refused_and_left_alone(proctor: Proctor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    study = short(proctor)
    assert proctor("run", study, "--out", run, "--waive", "git_dirty", "--prepare-only")[0] == 0
    journal = run / "journal.jsonl"
    damaged = journal.read_bytes().replace(b'"seq":1,', b'"seq":7,')
    journal.write_bytes(damaged)
    status, said = proctor("resume", run, "--waive", "git_dirty", "--json")
    assert (status, "evidence_damaged" in said) == (3, True), said
    assert journal.read_bytes() == damaged


def test_a_moved_run_resumes_and_verifies(proctor: Proctor, tmp_path: Path, held: Held) -> None:
    left, run = Leftovers(), tmp_path / "run"
    study = long(proctor, held)
    process = begun(proctor, study, run)
    process.send_signal(signal.SIGTERM)
    assert over(process)[0] == 143
    moved = tmp_path / "elsewhere" / "deeper" / "run"
    moved.parent.mkdir(parents=True)
    shutil.move(run, moved)
    with held.going():
        status, said = proctor("resume", moved, "--study", study, "--waive", "git_dirty", "--quiet")
    assert status == 0, said
    proctor.check(moved)
    left.check(moved)


def test_an_unknown_waiver_is_refused(proctor: Proctor, tmp_path: Path) -> None:
    status, said = proctor("run", short(proctor), "--out", tmp_path / "run", "--waive", "git_dirtty")
    assert (status, "unknown_waiver" in said) == (3, True), said
    assert not (tmp_path / "run/journal.jsonl").exists()


def test_a_dirty_repository_is_refused_then_waived_on_the_record(proctor: Proctor, tmp_path: Path) -> None:
    study, run = short(proctor), tmp_path / "run"
    _git(study.parent, "init", "-q")
    status, said = proctor("run", study, "--out", run)
    assert (status, "git_dirty" in said) == (3, True), said
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--quiet")
    assert status == 0, said
    proctor.check(run)
    assert json.loads((run / "manifests/0002.json").read_bytes())["waivers"] == {
        "requested": ["git_dirty"],
        "used": ["git_dirty"],
    }
    _git(study.parent, "add", ".")
    _git(study.parent, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "x")
    clean = tmp_path / "clean"
    status, said = proctor("run", study, "--out", clean, "--waive", "git_dirty", "--quiet")
    assert status == 0, said
    assert json.loads((clean / "manifests/0001.json").read_bytes())["waivers"]["used"] == []


def test_a_broken_repository_is_refused(proctor: Proctor, tmp_path: Path) -> None:
    study = short(proctor)
    _git(study.parent, "init", "-q")
    (study.parent / ".git/HEAD").write_bytes(b"\xff\xfe nothing\n")
    status, said = proctor("run", study, "--out", tmp_path / "run", "--waive", "git_dirty")
    assert (status, "git_broken" in said) == (3, True), said


def test_nobody_reads_the_progress(proctor: Proctor, tmp_path: Path) -> None:
    """Both streams are pipes whose reader has gone: the run ends as ever."""
    left, run = Leftovers(), tmp_path / "run"
    study = short(proctor)
    reader, writer = os.pipe()
    process = proctor.start("run", study, "--out", run, "--waive", "git_dirty", stdout=writer, stderr=writer)
    os.close(writer)
    os.close(reader)
    assert process.wait(ENOUGH_SEC) == ended(run)["exit_status"] == 0
    proctor.check(run)
    left.check(run)


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, timeout=600)
