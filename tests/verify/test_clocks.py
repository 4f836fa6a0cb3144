"""What a report says of times that do not fit: of entries against `mono`, of receipts and witnesses against entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from anchored import anchored_story, write_anchors
from primitives import canonical
from stories import full_story

from proctor_verify import Report, verify


def told(report: Report) -> list[str]:
    assert report.failed() == []
    return [caveat for caveat in report.caveats if caveat.startswith("times: ")]


@pytest.mark.parametrize(("seconds", "said"), [(60, []), (62, ["off `mono`"]), (1800, ["off `mono`"])])
def test_a_clock_that_is_set_ahead_is_said(seconds: int, said: list[str], tmp_path: Path) -> None:
    story = full_story()
    time = f"2031-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}.000000Z"
    story.find("run.ended", -1).after = lambda entry: entry.update(time=time)
    found = told(verify(story.write(tmp_path)))
    assert [words in each for words, each in zip(said, found, strict=True)] == [True] * len(said)


def test_a_number_beyond_all_clocks_is_off_them(tmp_path: Path) -> None:
    story = full_story()
    story.find("run.ended", -1).mono = 2**53 - 1
    (said,) = told(verify(story.write(tmp_path)))
    assert "off `mono`" in said


def anchored(tmp_path: Path, which: int | None, **dates: str) -> list[str]:
    """What is said of times, with one receipt dated so."""
    story, run = anchored_story(), tmp_path / "run"
    story.write(run)
    write_anchors(story, run)
    if which is not None:
        path = sorted((run / "checkpoints").glob("*.drop.json"))[which]
        path.write_bytes(canonical({**json.loads(path.read_bytes()), **dates}))
    return [each for each in verify(run).caveats if each.startswith("times: ")]


def test_receipts_that_are_dated_after_the_entries_that_name_them(tmp_path: Path) -> None:
    """Those of the story are, by up to five minutes."""
    (said,) = anchored(tmp_path, None)
    assert "receipts are dated after the entry that names them" in said


@pytest.mark.parametrize(("ended", "said"), [("2030-12-31T23:59:01", False), ("2030-12-31T23:58:59", True)])
def test_a_receipt_that_is_older_than_what_it_covers(tmp_path: Path, ended: str, said: bool) -> None:
    found = anchored(tmp_path, -1, started="2030-12-31T23:00:00.000000Z", ended=f"{ended}.000000Z")
    assert any("receipts are dated before an entry that their checkpoint covers" in each for each in found) == said
