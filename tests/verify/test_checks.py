"""One fault, one finding: each check finds its own fault and no other does; without it nobody does."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
from anchored import anchored_story, at_anchors, write_anchors
from builder import Story
from money_stories import money_story
from plants import Alter, Plant, Plants, all_plants, all_sound
from plants_anchors import WITNESS, cosigned_beside, from_kept
from plants_withheld import withhold
from stories import full_story

from proctor_verify import Status, verify
from proctor_verify.checks import CHECKS

PLANTS = all_plants()


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.id for plant in PLANTS])
def test_one_fault_one_finding(plant: Plant, tmp_path: Path) -> None:
    signer = plant.write(tmp_path)
    report = plant.look(tmp_path, signer)
    assert report.failed() == [plant.check]
    assert report.exit_status == 1
    found = next(result for result in report.results if result.check == plant.check)
    assert found.count >= 1 and found.findings[0].path and found.findings[0].seen
    assert plant.look(tmp_path, signer, blind=True).failed() == []


def test_every_check_has_a_fault_of_its_own() -> None:
    assert {plant.check for plant in PLANTS} == {check.id for check in CHECKS}


def test_every_fault_that_is_declared_is_planted() -> None:
    modules = [importlib.import_module(path.stem) for path in Path(__file__).parent.glob("plants_*.py")]
    declared = {
        plant.id for module in modules for each in vars(module).values() if isinstance(each, Plants) for plant in each
    }
    assert declared <= {plant.id for plant in PLANTS}


def test_check_ids_are_unique_and_documented() -> None:
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert all(check.doc and check.noun for check in CHECKS)


def test_a_sound_run_holds(tmp_path: Path) -> None:
    told: set[str] = set()
    for make in (full_story, money_story):
        story = make()
        folder = story.write(tmp_path / make.__name__)
        for key in (story.signer.fingerprint, story.signer.vkey):
            report = verify(folder, key)
            assert report.exit_status == 0
            assert {result.status for result in report.results} <= {Status.PASS, Status.NOT_APPLICABLE}
        told |= {result.check for result in report.results if result.status is Status.PASS}
        withhold(folder)
        report = verify(folder, story.signer.fingerprint)
        assert report.exit_status == 0
        assert {result.status for result in report.results} <= {Status.PASS, Status.NOT_APPLICABLE}
        assert any(caveat.startswith("not shown: ") for caveat in report.caveats)
        told |= {result.check for result in report.results if result.status is Status.PASS}
    told |= passed_with_all_that_can_be_asked(tmp_path / "anchored")
    assert told == {check.id for check in CHECKS}


def passed_with_all_that_can_be_asked(folder: Path) -> set[str]:
    story = anchored_story()
    story.write(folder)
    write_anchors(story, folder)
    cosigned_beside(story, folder)
    told = at_anchors(folder)
    for options in (told, {**told, **from_kept(folder), "witnesses": [WITNESS.vkey]}):
        report = verify(folder, story.signer.fingerprint, **options)
        assert report.exit_status == 0
        assert {result.status for result in report.results} <= {Status.PASS, Status.NOT_APPLICABLE}
    return {result.check for result in report.results if result.status is Status.PASS}


@pytest.mark.parametrize(("make", "alter"), all_sound())
def test_what_looks_odd_and_is_sound(make: Callable[[], Story], alter: Alter, tmp_path: Path) -> None:
    story = make()
    alter(story)
    story.write(tmp_path)
    assert verify(tmp_path, story.signer.fingerprint).failed() == []


@pytest.mark.parametrize(("seconds", "said"), [(60, False), (61, True)])
def test_a_wall_clock_that_falls_is_legal_and_said(seconds: int, said: bool, tmp_path: Path) -> None:
    story = full_story()
    story.find("run.paused").after = lambda entry: entry.update(
        time=f"2031-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}.000000Z"
    )
    story.find("run.unpaused").after = lambda entry: entry.update(time="2031-01-01T00:00:00.000000Z")
    story.write(tmp_path)
    report = verify(tmp_path, story.signer.fingerprint)
    assert report.exit_status == 0
    assert any("wall clock falls by 61 seconds" in caveat for caveat in report.caveats) == said


def test_a_sound_run_without_a_key_holds_with_a_warning(tmp_path: Path) -> None:
    full_story().write(tmp_path)
    report = verify(tmp_path)
    doubts = [result for result in report.results if result.status in (Status.FAIL, Status.CANNOT_TELL)]
    assert [(result.check, result.status) for result in doubts] == [("key.trust", Status.CANNOT_TELL)]
    assert report.exit_status == 0
    assert any("who signed" in caveat for caveat in report.caveats)


def test_a_kind_that_is_not_known_is_never_skipped(tmp_path: Path) -> None:
    story = full_story()
    story.find("run.paused").kind = "run.dreaming"
    story.find("run.unpaused").kind = "run.dreaming"
    story.write(tmp_path)
    for key in (None, story.signer.fingerprint):
        report = verify(tmp_path, key)
        assert report.failed() == []
        kinds = next(result for result in report.results if result.check == "journal.kinds")
        assert kinds.status is Status.CANNOT_TELL and "run.dreaming" in kinds.seen
        assert report.exit_status == 1
