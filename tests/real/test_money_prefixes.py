"""Any prefix of the journal of a run that spends can be gone on from: as after a kill at any moment of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fake_worlds import bodies, entries
from launching import Place, check_run
from money_runs import Plan, check_money, dear, sums, write_study
from proctor.core.exits import Exit
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.gateway import failures

# a block is two exchanges of a dollar each, for each of which 100 are held: what is lost in flight costs as much
STORIES = {
    "done": (Plan({"luna": "4"}, allocation="204", margin="400"), "luna", Exit.DONE),
    "cap": (Plan({"luna": "4"}, allocation="2", margin="400"), "luna", Exit.STOPPED),
    "ceiling": (Plan({"luna": "4"}, allocation="4", margin="96.5"), "luna", Exit.STOPPED),
    "overrun": (Plan({"luna": "4"}, allocation="4", margin="9000000"), "practice-overrun", Exit.STOPPED),
    "a provider that is down": (
        Plan({"luna": "4"}, allocation="204", margin="400"),
        "practice-down",
        Exit.DOES_NOT_HOLD,
    ),
    "overrun past the ceiling": (Plan({"luna": "4"}, allocation="4", margin="400"), "practice-overrun", Exit.STOPPED),
}


@pytest.mark.parametrize("story", STORIES)
def test_any_prefix_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, story: str) -> None:
    money, name, exit_status = STORIES[story]
    place, whole = Place(tmp_path, monkeypatch), tmp_path / "whole"
    monkeypatch.setattr(failures, "FIRST_WAIT_SEC", 0.0)
    study = write_study(
        tmp_path / "study",
        rows=sums(1 if name == "practice-down" else 2),
        models={"luna": dear("luna", name)},
        money=money,
        arms='[arms.plain]\n[arms.skilled]\nskills = "skills"\n',
        stage="lanes = 1\nreplacements = 1\n",
    )
    (finished,) = place.launch(study=study, out=whole)
    assert finished.exit is exit_status
    check_run(whole)
    lines = (whole / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for size in range(1, len(lines)):
        run = _cut(whole, tmp_path / f"run{size}", lines[:size])
        past = RunState.of(entries(run))
        held = sum(amount for attempt in past.open.values() for _, amount in attempt.exchanges.values())
        spent = past.charged["luna"] + held
        finished = place.resume(run)
        check_run(run)
        counted = check_money(run)
        assert counted.outcomes.get("unknown", 0) == bool(held)
        assert counted.total.pico >= spent
        if exit_status is not Exit.STOPPED:
            assert (finished.exit, finished.totals) == (exit_status, place_totals(whole))
            assert counted.total == check_money(whole).total + counted.superseded
            replaced = [body for body in bodies(run, Kind.ATTEMPT_ADMITTED) if body["replaces"]]
            assert len(replaced) == (2 if name == "practice-down" else 0)
        else:
            # what was charged when the process died may end it sooner, and for another reason of the kind
            assert finished.exit is Exit.STOPPED, size
            assert finished.reason is not None
            assert bodies(run, Kind.CEILING_REACHED)
        said = [body["attempt"] for body in bodies(run, Kind.TRIAL_FINAL)]
        assert set(_graded_and_over(past)) <= set(said), "what was graded has its final, whatever is used up"
        shutil.rmtree(run)


def test_any_prefix_of_what_was_gone_on_from_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a process that dies while it mends what another left."""
    place, whole = Place(tmp_path, monkeypatch), tmp_path / "whole"
    study = write_study(
        tmp_path / "study",
        rows=sums(1),
        models={"luna": dear("luna", "luna")},
        money=Plan({"luna": "4"}, allocation="404", margin="400"),
        stage="lanes = 1\n",
    )
    assert place.launch(study=study, out=whole)[0].exit is Exit.DONE
    lines = (whole / "journal.jsonl").read_bytes().splitlines(keepends=True)
    sent = next(number for number, entry in enumerate(entries(whole)) if entry.kind is Kind.EXCHANGE_ADMITTED)
    mended = _cut(whole, tmp_path / "mended", lines[: sent + 1])
    assert place.resume(mended).exit is Exit.DONE
    check_run(mended)
    lines = (mended / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for size in range(sent + 2, len(lines)):
        run = _cut(mended, tmp_path / f"run{size}", lines[:size])
        finished = place.resume(run)
        check_run(run)
        counted = check_money(run)
        assert (finished.exit, finished.totals) == (Exit.DONE, place_totals(whole)), size
        assert counted.total == check_money(whole).total + counted.superseded
        shutil.rmtree(run)


def place_totals(run: Path) -> dict[str, int]:
    return dict(bodies(run, Kind.RUN_ENDED)[-1]["totals"])


def _graded_and_over(past: RunState) -> list[str]:
    return [f"{trial}/{final.number}" for trial, final in past.due.items()]


def _cut(whole: Path, run: Path, lines: list[bytes]) -> Path:
    shutil.copytree(whole, run)
    (run / "journal.jsonl").write_bytes(b"".join(lines))
    for note in (run / "checkpoints").iterdir():
        if int(note.name[:12]) > len(lines):
            note.unlink()
    return run
