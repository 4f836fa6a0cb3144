"""A run is gone on with from anywhere: by any path to it, from any folder, and after it was moved."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_worlds import write_study
from launching import Place, check_run, manifests, refusals_of
from proctor.core.exits import Exit
from proctor.core.reasons import Reason
from proctor_verify import verify


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@pytest.fixture
def study(place: Place) -> Path:
    return write_study(place.folder / "here/study")


def relative(run: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    (place.folder / "else/where").mkdir(parents=True)
    monkeypatch.chdir(place.folder / "else/where")
    return Path("../..") / run.relative_to(place.folder)


def inside(run: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(run)
    return Path()


def absolute(run: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir("/")
    return run


def linked(run: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    link = place.folder / "some/other/depth/link"
    link.parent.mkdir(parents=True)
    link.symlink_to(run)
    return link


def linked_above(run: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    link = place.folder / "some/other/depth/link"
    link.parent.mkdir(parents=True)
    link.symlink_to(run.parent, target_is_directory=True)
    return link / run.name


def by_detour(run: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    link = linked(run, place, monkeypatch)
    return link.parent / ".." / link.parent.name / link.name


WAYS = [relative, inside, absolute, linked, linked_above, by_detour]
Way = Callable[[Path, Place, pytest.MonkeyPatch], Path]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("of", ["study", "folder", "task"])
def test_by_any_path(place: Place, study: Path, way: Way, of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    what = {"study": {"study": study}, "folder": {"study": study.parent}}
    words = what.get(of, {"task": study.parent / "tasks/t0", "agent": "nop"})
    run = place.folder / "runs/of/it"
    (prepared,) = place.launch(**words, out=run, prepare_only=True)
    assert prepared.totals is not None and prepared.totals["finals"] == 0
    end = place.resume(way(run, place, monkeypatch))
    assert (end.exit, end.refusals) == (Exit.DONE, ())
    check_run(run)


@pytest.mark.parametrize("link_of", ["study", "run"])
def test_a_run_that_began_through_a_link(
    place: Place, study: Path, link_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.folder / "far/away/from").mkdir(parents=True)
    link = place.folder / "far/away/from/link"
    if link_of == "study":
        link.symlink_to(study.parent, target_is_directory=True)
        words, run = {"study": link / "study.toml"}, place.folder / "run"
    else:
        (place.folder / "runs").mkdir()
        link.symlink_to(place.folder / "runs", target_is_directory=True)
        words, run = {"study": study}, link / "run"
    (prepared,) = place.launch(**words, out=run, prepare_only=True)
    assert prepared.totals is not None and prepared.totals["finals"] == 0
    monkeypatch.chdir("/")
    end = place.resume(run.resolve())
    assert (end.exit, end.refusals) == (Exit.DONE, ())
    check_run(run)


def test_a_study_named_relatively_is_found_from_elsewhere(
    place: Place, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study.parent)
    (prepared,) = place.launch(study=Path("study.toml"), prepare_only=True)
    assert (prepared.refusals, prepared.run) == ((), Path("runs/s/main"))
    monkeypatch.chdir("/")
    end = place.resume(study.parent / "runs/s/main")
    assert (end.exit, end.refusals) == (Exit.DONE, ())
    check_run(study.parent / "runs/s/main")


def test_a_run_that_was_moved_says_that_its_study_is_gone_until_it_is_named(place: Place, study: Path) -> None:
    place.launch(study=study, out=place.folder / "run", prepare_only=True)
    (place.folder / "archive/of").mkdir(parents=True)
    moved = (place.folder / "run").rename(place.folder / "archive/of/run")
    end = place.resume(moved)
    assert (end.exit, [refusal.reason for refusal in end.refusals]) == (Exit.REFUSED, [Reason.STUDY_NOT_FOUND])
    assert "--study" in end.refusals[0].remedy
    end = place.resume(moved, study)
    assert (end.exit, end.refusals) == (Exit.DONE, ())
    check_run(moved)
    assert [manifest["verdict"] for manifest in manifests(moved)] == ["admitted", "refused", "admitted"]


def test_a_run_and_its_study_that_moved_together_need_no_word(place: Place, study: Path) -> None:
    place.launch(study=study, prepare_only=True)
    moved = (place.folder / "here").rename(place.folder / "there")
    end = place.resume(moved / "study/runs/s/main")
    assert (end.exit, end.refusals) == (Exit.DONE, ())
    check_run(moved / "study/runs/s/main")


def test_another_study_is_not_gone_on_with(place: Place, study: Path) -> None:
    run = place.folder / "run"
    place.launch(study=study, out=run, prepare_only=True)
    other = write_study(place.folder / "other", epochs=2)
    end = place.resume(run, other)
    assert end.exit is Exit.REFUSED
    assert [(refusal.reason, refusal.path) for refusal in end.refusals] == [(Reason.DESIGN_CHANGED, "stage.epochs")]


def test_what_is_no_run_is_refused_and_not_made(place: Place) -> None:
    end = place.resume(place.folder / "nowhere")
    assert (end.exit, [refusal.reason for refusal in end.refusals]) == (Exit.REFUSED, [Reason.RUN_NOT_FOUND])
    assert not (place.folder / "nowhere").exists()


def gone(manifest: Path) -> None:
    manifest.unlink()


def a_pipe(manifest: Path) -> None:
    manifest.unlink()
    os.mkfifo(manifest)


def altered(manifest: Path) -> None:
    manifest.write_bytes(manifest.read_bytes().replace(b'"command"', b'"Command"', 1))


@pytest.mark.parametrize("spoil", [gone, a_pipe, altered], ids=lambda spoil: spoil.__name__)
def test_a_run_that_lacks_a_manifest_spends_nothing_and_can_be_mended(
    place: Place, study: Path, spoil: Callable[[Path], None]
) -> None:
    run = place.folder / "run"
    place.launch(study=study, out=run, prepare_only=True)
    manifest, journal = run / "manifests/0001.json", (run / "journal.jsonl").read_bytes()
    kept = manifest.read_bytes()
    spoil(manifest)
    end = place.resume(run)
    assert [(refusal.reason, refusal.path) for refusal in end.refusals] == [
        (Reason.EVIDENCE_DAMAGED, "manifests/0001.json")
    ]
    assert (run / "journal.jsonl").read_bytes() == journal
    # the record of the refusal is in nobody's place
    assert "evidence_damaged" in (run / "manifests/0002.json").read_text()
    manifest.unlink(missing_ok=True)
    manifest.write_bytes(kept)
    assert place.resume(run).exit is Exit.DONE
    check_run(run)


def test_a_complete_run_is_closed(place: Place, study: Path) -> None:
    run = place.folder / "run"
    assert place.launch(study=study, out=run)[0].exit is Exit.DONE
    end = place.resume(run)
    assert (end.exit, [refusal.reason for refusal in end.refusals]) == (Exit.REFUSED, [Reason.RUN_COMPLETE])
    check_run(run)
    assert [refusals_of(manifest) for manifest in manifests(run)] == [[], ["run_complete"]]


def test_a_complete_run_whose_last_checkpoint_was_never_made_is_gone_on_with(place: Place, study: Path) -> None:
    run = place.folder / "run"
    assert place.launch(study=study, out=run)[0].exit is Exit.DONE
    max((run / "checkpoints").glob("*.note")).unlink()
    assert "checkpoints.last" in verify(run).failed()
    assert place.resume(run).exit is Exit.DONE
    check_run(run)
    assert [refusal.reason for refusal in place.resume(run).refusals] == [Reason.RUN_COMPLETE]
