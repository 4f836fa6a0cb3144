"""proctor show: a run, a trial, and derived files made anew."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from proctor.core.ids import trial_id
from proctor.evidence.disk import Disk
from proctor.evidence.lock import Lock
from proctor.evidence.runfolder import RunFolder
from proctor.report import overview
from run_parts import Story, Try, design, make_run


def test_a_run_at_a_glance(proctor, run: Path) -> None:
    said = proctor("show", run)
    told = proctor("show", run, "--json").json()
    assert said.status == 0
    for fact in (told["run_id"], told["design_sha256"], told["key"]["fingerprint"]):
        assert fact in said.out
    assert told["design_sha256"] == design().sha256
    opening = told["openings"][-1]
    assert opening["pid"] == os.getpid() and opening["ended"]["exit_status"] == 1
    assert told["totals"] == {"trials": 4, "finals": 4, "pass": 2, "fail": 1, "ungraded": 1}
    assert all(trial["trial"] in said.out for trial in told["trials"])


def test_each_way_to_name_a_trial(proctor, run: Path) -> None:
    wanted = trial_id("alpha", None, "plain", 1)
    folder = next(path.name for path in (run / "trials").iterdir() if path.name.endswith(wanted[:8]))
    ways = [wanted, wanted[:6], wanted[:6].upper(), folder, f"trials/{folder}/1/", f"{wanted}/0"]
    for way in [*ways, "alpha/plain", "alpha/plain/1", "alpha · plain · 1"]:
        assert proctor("show", run, way, "--json").json()["trial"] == wanted, way


def test_a_name_of_several_trials_lists_them(proctor, run: Path) -> None:
    said = proctor("show", run, "alpha")
    assert said.status == 2 and "alpha · plain · 1" in said.err and "alpha · skilled · 1" in said.err
    assert "beta" not in said.err
    said = proctor("show", run, "gamma")
    assert said.status == 2 and "no trial 'gamma'; it has" in said.err and "beta · plain · 1" in said.err
    for near in ("bta/plain/1", "beta/plain/9"):
        said = proctor("show", run, near)
        assert said.status == 2 and "; the nearest are:" in said.err
        assert "beta · plain · 1" in said.err and "alpha" not in said.err


async def test_the_end_of_a_task_s_name_is_enough(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run", design(("mine/sort", "yours/sort", "mine/fast/count")))
    wanted = trial_id("mine/fast/count", None, "plain", 1)
    for way in ("count/plain/1", "fast/count/plain", "count · plain · 1", "mine/fast/count/plain"):
        assert proctor("show", tmp_path / "run", way, "--json").json()["trial"] == wanted, way
    said = proctor("show", tmp_path / "run", "sort/plain/1")
    assert said.status == 2 and "mine/sort · plain · 1" in said.err and "yours/sort · plain · 1" in said.err
    assert "means 2 trials" in said.err
    assert proctor("show", tmp_path / "run", "ort/plain/1").status == 2, "a part of a name is none of its parts"


def test_a_trial_with_all_its_attempts(proctor, run: Path) -> None:
    said = proctor("show", run, "alpha/plain")
    assert said.status == 0
    first, second = said.out.split("\nattempt ")[1:]
    assert "infrastructure (sandbox_lost)" in first
    assert "which infrastructure ended" in second
    for fact in ("command, version 7, deadline 60 s", "exit code 0 after 2.00 s", "isolated", "reward 0.5"):
        assert fact in second
    assert "gateway" not in second and "not isolated" not in second, "what a world does not say is left out"
    for fact in ("512.0 MiB", "cgroup memory.max", "a::b[1 + 1]", "verifier/ctrf.json", "start 0.50 s · agent 2.00 s"):
        assert fact in second
    told = proctor("show", run, "alpha/plain", "--json").json()
    assert [test["name"] for test in told["tries"][1]["tests"]["tests"]] == ["a::b[1 + 1]", "c"]
    assert told["tries"][1]["files"][0]["path"] == "agent/stdout.txt"
    assert told["tries"][0]["tests"] is None


async def test_a_run_whose_process_died_is_shown(proctor, tmp_path: Path) -> None:
    story = Story(tries={("alpha", "plain"): (Try(left_open=True),)})
    await make_run(tmp_path / "run", story=story, end=None)
    with (tmp_path / "run/journal.jsonl").open("ab") as journal:
        journal.write(b'{"body":{"att')
    said = proctor("show", tmp_path / "run")
    assert said.status == 0 and "in flight" in said.out and "no end on the record" in said.out
    said = proctor("show", tmp_path / "run", "alpha/plain")
    assert said.status == 0 and "in flight, or its process died" in said.out


async def test_names_cannot_steer_a_terminal(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run", design(("al\x1b[2Jpha\n",)))
    for words in ((), (trial_id("al\x1b[2Jpha\n", None, "plain", 1),)):
        said = proctor("show", tmp_path / "run", *words)
        assert said.status == 0 and "\x1b" not in said.out and "al\\x1b[2Jpha\\n" in said.out


def test_what_is_derived_follows_from_the_evidence(proctor, run: Path) -> None:
    said = proctor("show", run, "--rebuild", "--json")
    copies = said.json()
    assert said.status == 0 and {copy["copy"] for copy in copies} == {"same"}
    names = sorted(Path(copy["path"]).name for copy in copies)
    assert names == ["attempt.json"] * 6 + ["grade_summary.json", "summary.json"] + ["tests.json"] * 4


def test_a_copy_that_differs_is_a_finding_and_made_anew(proctor, run: Path) -> None:
    attempt = next((run / "trials").rglob("attempt.json"))
    kept = {path: path.read_bytes() for path in (attempt, run / "summary.json", run / "grade_summary.json")}
    attempt.write_bytes(b"{}")
    (run / "grade_summary.json").write_bytes(kept[run / "grade_summary.json"].replace(b'"pass":2', b'"pass":4'))
    (run / "summary.json").unlink()
    said = proctor("show", run, "--rebuild")
    assert said.status == 1
    assert "grade_summary.json: differed, made anew" in said.out and "summary.json: was missing, made anew" in said.out
    assert {path: path.read_bytes() for path in kept} == kept
    assert proctor("show", run, "--rebuild").status == 0
    assert proctor("verify", run).status == 0


def test_what_does_not_follow_from_other_evidence_is_left_as_it_is(proctor, run: Path) -> None:
    report = next((run / "trials").rglob("ctrf.json"))
    tests = report.parents[1] / "tests.json"
    before = tests.read_bytes()
    report.write_bytes(report.read_bytes().replace(b'"failed"', b'"passed"'))
    said = proctor("show", run, "--rebuild")
    assert said.status == 1 and "the journal names it so: left as it is" in said.out
    assert tests.read_bytes() == before
    tests.write_bytes(b"{}")
    said = proctor("show", run, "--rebuild", "--json")
    assert said.status == 1 and [copy["copy"] for copy in said.json() if copy["copy"] != "same"] == ["gone_wrong"]
    assert tests.read_bytes() == b"{}"


async def test_a_run_without_an_end_has_no_summary_yet(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run", story=Story(stop_after=1), end=None)
    said = proctor("show", tmp_path / "run", "--rebuild", "--json")
    assert said.status == 0 and [Path(copy["path"]).name for copy in said.json()] == ["tests.json", "attempt.json"]
    assert not (tmp_path / "run/summary.json").exists()


def test_a_live_run_makes_its_own_files(proctor, run: Path) -> None:
    lock = Lock.acquire(RunFolder(run), extra={})
    try:
        said = proctor("show", run, "--rebuild")
    finally:
        lock.release()
    assert said.status == 3 and "run_locked" in said.err


def test_no_link_leads_out_of_the_run(proctor, run: Path, tmp_path: Path) -> None:
    attempt = next((run / "trials").rglob("verifier")).parent
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/reward.txt").write_text("1")
    (attempt / "verifier").rename(attempt / "old")
    (attempt / "verifier").symlink_to(tmp_path / "elsewhere")
    told = json.loads((attempt / "attempt.json").read_bytes())["identity"]
    said = proctor("show", run, f"{told['task']}/{told['arm']}")
    assert said.status == 3 and "leads out of the run folder" in said.err


async def test_trials_on_a_terminal_stand_in_a_line_each_whatever_is_spared(
    proctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_run(tmp_path / "run", design(models=("sun",), epochs=2))
    wide = proctor("show", tmp_path / "run").out
    assert "no room here" not in wide and "tokens" in wide
    monkeypatch.setattr(overview, "screen", lambda: 60)
    said = proctor("show", tmp_path / "run").out
    lines = said[said.index("grade  ") :].splitlines()
    rows = [line for line in lines if line.startswith("pass")]
    assert len(rows) == 8 == len({tuple(row.split()[:-1]) for row in rows}), "told apart"
    assert all(len(line) <= 60 for line in rows) and "(no room here for tokens, time, " in said
    for row in rows:
        assert proctor("show", tmp_path / "run", row.split()[-1]).status == 0


def test_a_full_disk_is_no_reason_to_resume_what_is_over(proctor, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run / "summary.json").unlink()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(Disk, "put", full)
    said = proctor("show", run, "--rebuild")
    assert said.status == 3 and "refused: disk_full" in said.err
    assert "with space left, and rebuild it again" in said.err and "resume" not in said.err


def test_rebuild_is_for_the_whole_run(proctor, run: Path) -> None:
    assert proctor("show", run, "alpha/plain", "--rebuild").status == 2
