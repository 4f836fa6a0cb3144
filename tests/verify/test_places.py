"""Folders that are no run, not yet one, or one somewhere else: verifying says what each is."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from journal_parts import KEY
from proctor.evidence.runfolder import RunFolder
from proctor_verify import Report, verify
from proctor_verify.report import Status
from run_parts import Story, Try, design, make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return asyncio.run(make_run(tmp_path_factory.mktemp("made") / "run", design()))


@pytest.fixture
def run(made: RunFolder, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.path, tmp_path / "elsewhere" / "another name"))


def _holds(report: Report) -> None:
    said = [
        (result.check, result.seen) for result in report.results if result.status in (Status.FAIL, Status.CANNOT_TELL)
    ]
    assert (said, report.exit_status) == ([], 0)


def test_a_run_that_was_moved_holds_and_its_report_is_the_same(made: RunFolder, run: Path) -> None:
    _holds(verify(run, KEY.fingerprint))
    assert verify(run, KEY.fingerprint).to_json() == verify(made.path, KEY.fingerprint).to_json()


def test_attempts_of_a_real_writer_follow_from_their_entries(run: Path) -> None:
    results = {result.check: result for result in verify(run, KEY.fingerprint).results}
    assert results["attempts.derived"].seen == "attempts: 4"
    assert results["trials.ordered"].seen == "beginnings: 4"


def test_a_copy_without_the_lock_holds(run: Path) -> None:
    (run / "lock").unlink(missing_ok=True)
    _holds(verify(run, KEY.fingerprint))


def test_a_run_whose_worlds_are_kept_holds(run: Path) -> None:
    (run / "scratch/attempt/upper").mkdir(parents=True)
    (run / "scratch/attempt/upper/pipe").symlink_to("/dev/zero")
    _holds(verify(run, KEY.fingerprint))


async def test_a_run_that_is_live_is_said_to_go_on(tmp_path: Path) -> None:
    in_flight = Story(tries={("beta", "skilled"): (Try(left_open=True),)})
    run = await make_run(tmp_path / "run", design(), in_flight, end=None)
    report = verify(run.path, KEY.fingerprint)
    assert set(report.failed()) == {"run.ended", "flight.empty"}
    assert report.exit_status == 1
    [ended] = [result for result in report.results if result.check == "run.ended"]
    assert "goes on, or died" in ended.findings[0].seen


def test_an_empty_folder_is_no_run_folder(tmp_path: Path) -> None:
    report = verify(tmp_path, KEY.fingerprint)
    assert (report.exit_status, "no run folder" in str(report.unreadable)) == (2, True)


def test_a_run_that_was_refused_was_never_admitted(run: Path, tmp_path: Path) -> None:
    refused = tmp_path / "refused"
    (refused / "manifests").mkdir(parents=True)
    told = (run / "manifests/0001.json").read_bytes()
    told = told.replace(b'"verdict":"admitted"', b'"verdict":"refused"').replace(
        b'"exit_status":null', b'"exit_status":3'
    )
    (refused / "manifests/0001.json").write_bytes(told)
    (refused / "lock").touch()
    report = verify(refused, KEY.fingerprint)
    assert (report.exit_status, "nothing was admitted" in str(report.unreadable)) == (2, True)
