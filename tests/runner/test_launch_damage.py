"""A resume spends nothing on a run whose ended attempts were altered, or that holds more than a dead process leaves."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_worlds import write_study
from launching import Place, check_run, manifests, refusals_of
from proctor.admission.admitted import MAX_ABANDONED
from proctor.core.exits import Exit
from proctor.core.reasons import Reason


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@pytest.fixture
def run(place: Place) -> Path:
    """A run with one attempt, which is over; its last checkpoint was never made, so that there is something left."""
    run = place.folder / "run"
    assert place.launch(study=write_study(place.folder / "study"), out=run)[0].exit is Exit.DONE
    max((run / "checkpoints").glob("*.note")).unlink()
    return run


def gone(file: Path) -> None:
    file.unlink()


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def a_link(file: Path) -> None:
    file.rename(file.with_name(".kept"))
    file.symlink_to(".kept")


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def longer(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\n")


def altered(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def hollow(file: Path) -> None:
    os.truncate(file, 1 << 40)


SPOILS = [gone, a_pipe, a_link, a_folder, longer, altered, hollow]


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("name", ["attempt.json", "verifier/reward.txt"])
def test_a_file_that_an_attempt_left_is_held(place: Place, run: Path, name: str, spoil: Callable[[Path], None]) -> None:
    (file,), journal = list(run.glob(f"trials/*/0/{name}")), (run / "journal.jsonl").read_bytes()
    spoil(file)
    end = place.resume(run)
    assert [(refusal.reason, refusal.path) for refusal in end.refusals] == [
        (Reason.EVIDENCE_DAMAGED, file.relative_to(run).as_posix())
    ]
    assert (run / "journal.jsonl").read_bytes() == journal
    assert refusals_of(manifests(run)[-1]) == ["evidence_damaged"]


def test_what_was_not_altered_is_gone_on_with(place: Place, run: Path) -> None:
    assert place.resume(run).exit is Exit.DONE
    check_run(run)


def _stray(run: Path, count: int) -> None:
    for number in range(count):
        (run / "packs" / f"stray-{number:06d}.pack").write_bytes(b"x")


def test_more_than_a_dead_process_leaves_is_refused_before_anything_is_moved(place: Place, run: Path) -> None:
    _stray(run, 2000)
    before = sorted(path.name for path in run.rglob("*"))
    end = place.resume(run)
    assert [(refusal.reason, refusal.observed) for refusal in end.refusals] == [(Reason.EVIDENCE_DAMAGED, 2000)]
    assert (run / "packs/stray-000000.pack").read_bytes() == b"x"
    assert sorted(path.name for path in run.rglob("*")) == sorted([*before, "0002.json"])
    for path in (run / "packs").glob("stray-*"):
        path.unlink()
    assert place.resume(run).exit is Exit.DONE
    check_run(run)


def test_what_one_entry_can_tell_of_is_set_aside(place: Place, run: Path) -> None:
    _stray(run, 150)
    assert place.resume(run).exit is Exit.DONE
    assert len(list(run.glob("quarantine/*/packs/stray-*"))) == 150
    check_run(run)


@pytest.mark.parametrize(("count", "gone_on_with"), [(MAX_ABANDONED, True), (MAX_ABANDONED + 1, False)])
def test_manifests_of_more_invocations_than_one_entry_can_name(
    place: Place, run: Path, count: int, gone_on_with: bool
) -> None:
    journal = (run / "journal.jsonl").read_bytes()
    for number in range(2, count + 2):
        (run / f"manifests/{number:04d}.json").write_bytes(b"torn")
    end = place.resume(run)
    assert (end.exit is Exit.DONE) == gone_on_with
    if gone_on_with:
        check_run(run)
    else:
        assert [(refusal.reason, refusal.observed) for refusal in end.refusals] == [(Reason.EVIDENCE_DAMAGED, count)]
        assert (run / "journal.jsonl").read_bytes() == journal


def test_lines_of_which_blocks_never_reached_the_disk_are_set_aside(place: Place, run: Path) -> None:
    journal = run / "journal.jsonl"
    whole = journal.stat().st_size
    with journal.open("ab") as file:
        # zeros up to the end of a block, and then the rest of a group that was written together
        file.write(bytes(512 - whole % 512) + b'"}\n')
    assert place.resume(run).exit is Exit.DONE
    check_run(run)
    assert [file.name for file in run.glob("quarantine/*/*")] == ["journal.jsonl"]
