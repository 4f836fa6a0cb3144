"""Where a run says to be anchored: in its status, its overview and its log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from anchor_parts import AT, repository
from fake_worlds import Bench, entries, write_study
from proctor.cli.main import cli
from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.runfolder import RunFolder
from proctor.report.anchored import anchored, anchored_lines
from proctor.report.page import page
from proctor.report.reading import read_run
from proctor.report.telling import Teller


@pytest.fixture
async def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with one anchor that took all of it, and one that was never there."""
    repository(tmp_path / "a.git")
    study = write_study(tmp_path / "study")
    study.write_text(study.read_text() + '[anchor]\ngit = "../a.git"\ndrop = "../nowhere"\n')
    await Bench(study, monkeypatch).run(tmp_path / "run")
    return tmp_path / "run"


def said(*words: object) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.output


def test_each_place_is_told_of_with_what_it_holds(run: Path) -> None:
    size = len(entries(run))
    held = anchored(read_run(RunFolder(run)))
    assert [(each["anchor"], each["location"], each["size"]) for each in held] == [
        ("git", "../a.git", size),
        ("drop", "../nowhere", None),
    ]
    first, second = anchored_lines(held, size)
    assert first.startswith(f"git ../a.git: {size} of {size} entries, 20")
    assert second == "drop ../nowhere: nothing yet"
    for command in ("status", "show"):
        told = said(command, run)
        assert f"anchored   {first}" in told and second in told
        record: dict[str, Any] = json.loads(said(command, run, "--json"))
        assert record["anchors"] == held


async def test_the_page_says_where_to_look(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = page(read_run(RunFolder(run)))
    size = len(entries(run))
    assert "<code>--anchor WHERE</code>" in told and "anchored nowhere" not in told
    assert f"git ../a.git: {size} of {size} entries" in told and "drop ../nowhere: nothing yet" in told
    await Bench(write_study(tmp_path / "plain"), monkeypatch).run(tmp_path / "other")
    assert "it was anchored nowhere" in page(read_run(RunFolder(tmp_path / "other")))


def test_of_a_live_run_it_is_told_what_fails_and_what_is_waited_for() -> None:
    place = {"anchor": "git", "location": "a.git", "size": None, "time": None}
    held = [{**place, "failing": "anchor_rejected", "waited_for": True}, {**place, "failing": None, "waited_for": True}]
    assert anchored_lines(held, 4) == [
        "git a.git: nothing yet; its last push failed (anchor_rejected); nothing starts until it takes a checkpoint",
        "git a.git: nothing yet; nothing starts until it takes a checkpoint",
    ]


def test_the_log_tells_what_was_pushed_and_what_was_not() -> None:
    anchored = {"anchor": "git", "path": "checkpoints/000000000001.git.json", "sha256": "0" * 64, "size": 1}
    failed = {"anchor": "drop", "size": 9, "attempts": 5, "return_code": None, "reason": "anchor_unreachable"}
    told = [(Kind.CHECKPOINT_ANCHORED, anchored), (Kind.ANCHOR_FAILED, {**failed, "message": "it is gone"})]
    lines = [Teller().line(Entry(3, "0" * 64, AT, 0, kind, body)) for kind, body in told]
    assert lines[0].endswith("  1 entry anchored at git")
    assert lines[1].endswith("  anchor drop failed 5 times (anchor_unreachable): it is gone")


async def test_a_run_without_anchors_says_nothing_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await Bench(write_study(tmp_path / "study"), monkeypatch).run(tmp_path / "run")
    assert "anchored" not in said("status", tmp_path / "run") + said("show", tmp_path / "run")
