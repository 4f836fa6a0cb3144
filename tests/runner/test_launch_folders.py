"""Which run folders are chosen, in which order stages run, and what of a refused one is left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_worlds import FakeKind, write_study
from launching import Place, check_run, manifests, refusals_of
from proctor.core.exits import Exit
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.runner.launch import Launch, free_folder, requests


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Three stages: first, second, third."""
    path = write_study(tmp_path / "study")
    text = path.read_text().replace("[stages.main]", "[stages.first]")
    stages = "".join(f'[stages.{name}]\ntype = "standard"\narms = ["arm0"]\n' for name in ("second", "third"))
    path.write_text(text + stages)
    return path


def outs(**words: Any) -> list[tuple[str | None, Path]]:
    return [(request.stage, request.out) for request in requests(Launch(command="run", **words))]


def test_runs_stand_beside_the_study_by_its_name_and_stage(place: Place, study: Path) -> None:
    here = study.parent / "runs/s"
    wanted = [(name, here / name) for name in ("first", "second", "third")]
    assert outs(study=study) == wanted
    assert outs(study=study.parent) == wanted
    assert outs(study=study, stage="second") == [("second", here / "second")]


def test_runs_go_where_the_environment_says(place: Place, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_RUNS", str(place.folder / "elsewhere"))
    assert outs(study=study, stage="first") == [("first", place.folder / "elsewhere/s/first")]
    (end,) = place.launch(task=study.parent / "tasks/t0", agent="nop")
    assert end.run == place.folder / "elsewhere/t0-nop/001"


def test_a_named_folder_is_the_run_s_own_or_holds_one_for_each_stage(place: Place, study: Path) -> None:
    out = place.folder / "out"
    assert outs(study=study, out=out, stage="third") == [("third", out)]
    assert outs(study=study, out=out) == [(name, out / name) for name in ("first", "second", "third")]
    (end,) = place.launch(task=study.parent / "tasks/t0", agent="nop", out=place.folder / "own")
    assert (end.exit, end.run) == (Exit.DONE, place.folder / "own")


def test_a_task_tried_again_takes_the_next_number(place: Place, study: Path) -> None:
    task = study.parent / "tasks/t0"
    ends = [place.launch(task=task, agent="nop")[0] for _ in range(3)]
    assert [end.run.relative_to(place.folder).as_posix() for end in ends] == [f"runs/t0-nop/00{n}" for n in (1, 2, 3)]
    for end in ends:
        assert end.exit is Exit.DONE
        check_run(end.run)
    assert place.launch(task=task, agent="command", program="true")[0].run.parent.name == "t0-command"


def test_a_task_that_is_not_there_is_named_as_it_was_typed_and_makes_no_folder(place: Place) -> None:
    with pytest.raises(Refusal) as refused:
        place.launch(task=Path("path/to/nothing"), agent="nop")
    assert (refused.value.reason, refused.value.path) == (Reason.TASK_NOT_FOUND, "path/to/nothing")
    assert not (place.folder / "runs").exists()


def test_of_several_starts_at_once_each_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    starts, taken = threading.Barrier(16), []

    def start() -> None:
        starts.wait(600)
        taken.append(free_folder(tmp_path / "new/base"))

    threads = [threading.Thread(target=start) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert sorted(path.name for path in taken) == [f"{number:03d}" for number in range(1, 17)]


def test_where_no_folder_can_be_made_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal) as refused:
        free_folder(tmp_path / "file/base")
    assert refused.value.reason is Reason.OUT_UNUSABLE


def test_stages_run_in_the_order_of_the_study(place: Place, study: Path) -> None:
    ends = place.launch(study=study)
    assert [(end.exit, end.run.name) for end in ends] == [(Exit.DONE, name) for name in ("first", "second", "third")]
    for end in ends:
        check_run(end.run)
    assert len(place.said) == 1 and "signing key" in place.said[0]


def test_a_stage_that_breaks_is_the_last(place: Place, study: Path) -> None:
    def second_breaks(kind: FakeKind) -> None:
        if len(place.kinds) == 1:
            kind.refusal = Reason.SANDBOX_UNAVAILABLE

    place.prepare = second_breaks
    ends = place.launch(study=study)
    assert [(end.exit, end.run.name) for end in ends] == [(Exit.DONE, "first"), (Exit.INFRASTRUCTURE, "second")]
    assert not (study.parent / "runs/s/third").exists()
    check_run(ends[1].run)


def test_a_refused_stage_is_the_last(place: Place, study: Path) -> None:
    (study.parent / "runs/s").mkdir(parents=True)
    ends = place.launch(study=study, waive=("nonsense",))
    assert [end.exit for end in ends] == [Exit.REFUSED]
    (manifest,) = manifests(ends[0].run)
    assert (refusals_of(manifest), manifest["exit_status"]) == (["unknown_waiver"], 3)
    assert [path.name for path in (study.parent / "runs/s").iterdir()] == ["first"]


def test_a_stage_with_something_ungraded_is_followed_by_the_next(place: Place, study: Path) -> None:
    place.prepare = lambda kind: setattr(kind, "reward", b"nonsense")
    assert [end.exit for end in place.launch(study=study)] == [Exit.DOES_NOT_HOLD] * 3


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.unlink(), "study_not_found"),
        (lambda path: path.write_text("[study"), "study_unreadable"),
        (lambda path: path.write_text("[nonsense]\n"), "unknown_key"),
        (lambda path: path.write_bytes(b"\xff"), "study_unreadable"),
    ],
    ids=["missing", "no TOML", "unknown table", "no text"],
)
@pytest.mark.parametrize("folder", [True, False], ids=["folder", "file"])
def test_a_study_that_cannot_be_read_leaves_its_refusal(
    place: Place, study: Path, spoil: Callable[[Path], object], reason: str, folder: bool
) -> None:
    spoil(study)
    (end,) = place.launch(study=study.parent if folder else study)
    assert (end.exit, end.run) == (Exit.REFUSED, study.parent / "runs/study/main")
    (manifest,) = manifests(end.run)
    assert reason in refusals_of(manifest)
    assert (manifest["verdict"], manifest["exit_status"]) == ("refused", 3)
    assert sorted(path.name for path in end.run.iterdir()) == ["lock", "manifests"]


def test_an_unknown_stage_is_refused_with_its_record(place: Place, study: Path) -> None:
    (end,) = place.launch(study=study, stage="fourth")
    assert (end.exit, [refusal.reason for refusal in end.refusals]) == (Exit.REFUSED, [Reason.UNKNOWN_NAME])
    assert refusals_of(manifests(end.run)[0]) == ["unknown_name"]
