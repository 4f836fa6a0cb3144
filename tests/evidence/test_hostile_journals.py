"""Journals that say nonsense, chained anew as if it were true: what resumes a run refuses them by type."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.admission.admit import _look
from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.entries import Entry
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.runner.derived import derived_files
from proctor.study import plan
from run_parts import Story, Try, design, make_run

Said = list[tuple[str, dict[str, Any]]]
FEW = settings(max_examples=60, deadline=None)
SCALARS = [None, True, False, 7, 0, -1, 1.5, "", "x", "a/b", "0" * 16, "0" * 16 + "/0", "trials/x\0/0", "pass", "lost"]
VALUES = st.sampled_from([*SCALARS, [], {}, [[1, 2]], [{}], {"path": 1}, {"path": "x", "sha256": None}])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that has met most, and died with an attempt in flight."""
    broken = Try(outcome="infrastructure", exception="sandbox_lost")
    tries = {("alpha", "plain"): (broken, Try()), ("beta", "skilled"): (Try(left_open=True),)}
    story = Story(tries=tries)
    return asyncio.run(make_run(tmp_path_factory.mktemp("made") / "run", design(), story, end=None))


@pytest.fixture(scope="module")
def said(run: RunFolder) -> Said:
    kinds = [(entry.kind, entry.body) for entry in read_entries(run.journal_path)]
    return [(kind if isinstance(kind, str) else kind.id, body) for kind, body in kinds]


def _write(run: RunFolder, said: Said) -> None:
    prev, lines = "0" * 64, b""
    for seq, (kind, body) in enumerate(said):
        entry = {"seq": seq, "prev": prev, "time": "2026-11-30T00:00:00.000000Z", "mono": seq, "kind": kind}
        line = encode({**entry, "body": body})
        prev = hashlib.sha256(line).hexdigest()
        lines += line + b"\n"
    # Nothing stands in the way of a journal made anew but its checkpoints.
    for note in run.checkpoints.iterdir():
        note.unlink()
    run.journal_path.write_bytes(lines)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from _places(below, (*path, key))


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


def _altered(data: st.DataObject, said: Said) -> Said:
    altered = [entry for entry in said if entry[0] != "checkpoint.made"]
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(altered) - 1))
        kind, body = altered[at]
        match data.draw(st.sampled_from(["value", "value", "value", "drop", "double", "move"])):
            case "value" if body:
                place = data.draw(st.sampled_from(sorted(_places(body), key=str)))
                altered[at] = (kind, _with(body, place, data.draw(VALUES)))
            case "drop" if len(altered) > 1:
                del altered[at]
            case "double":
                altered.insert(at, altered[at])
            case "move":
                altered.insert(data.draw(st.integers(0, len(altered) - 1)), altered.pop(at))
    return altered


def _entries(said: Said) -> Iterator[Entry]:
    for seq, (kind, body) in enumerate(said):
        yield Entry(seq, "", "", seq, Kind.by_id(kind) or kind, body)


@FEW
@given(data=st.data())
def test_a_fold_over_nonsense_refuses_or_gives_a_state_that_can_be_used(
    run: RunFolder, said: Said, data: st.DataObject
) -> None:
    frozen = design()
    try:
        state = RunState.of(_entries(_altered(data, said)))
    except Refusal as refusal:
        assert refusal.reason is Reason.EVIDENCE_DAMAGED
        return
    drawn = plan(frozen)
    for trial in drawn.trials():
        if not state.trial(trial.id).in_flight and state.final(trial.id) is None:
            state.trial(trial.id).next_attempt(trial.id)
    derived_files(frozen, drawn, state)


@FEW
@given(data=st.data())
def test_a_resume_looks_at_nonsense_and_refuses_it_by_type(run: RunFolder, said: Said, data: st.DataObject) -> None:
    _write(run, _altered(data, said))
    facts, _, past = _look(run, True, None)
    if facts.evidence is not None:
        assert facts.evidence.reason in (Reason.EVIDENCE_DAMAGED, Reason.FORMAT_UNKNOWN, Reason.RUN_NOT_FOUND)
    else:
        assert past is not None


@pytest.mark.parametrize("attempt", [None, 7, [], {}, True, "x", "0" * 16 + "/0", "/1"])
def test_a_final_of_what_is_no_attempt_of_its_trial_is_damage(said: Said, attempt: Any) -> None:
    at = next(index for index, (kind, _) in enumerate(said) if kind == "trial.final")
    altered = [*said[:at], ("trial.final", {**said[at][1], "attempt": attempt})]
    with pytest.raises(Refusal) as refused:
        RunState.of(_entries(altered))
    assert (refused.value.reason, refused.value.path) == (Reason.EVIDENCE_DAMAGED, f"journal.jsonl:{at + 1}")
