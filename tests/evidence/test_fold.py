"""The fold: what resume, status and the runner read off a journal."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_parts import EMPTY, admitted, attempt_admitted, attempt_ended, ended, resumed
from proctor.core.ids import trial_id
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.fold import Cell, Final, NextAttempt, Numbers, RunState
from proctor.evidence.kinds import Kind

TRIAL = trial_id("task", None, "base", 1)
BASE = Cell(None, "base")


def _graded(attempt: str, grade: str = "pass") -> dict[str, Any]:
    return {"attempt": attempt, "grade": grade, "reason": None, "reward": 1, "rewards": {}, "assurance": "isolated"}


def _final(trial: str = TRIAL, attempt: str = f"{TRIAL}/0", grade: str = "pass", **changes: Any) -> dict[str, Any]:
    return {"trial": trial, "attempt": attempt, "grade": grade, "reason": None, "reward": 1.0, **changes}


def _started() -> RunState:
    state = RunState()
    state.apply(Kind.RUN_ADMITTED, admitted(planned=3))
    return state


def _attempt(state: RunState, outcome: str, exception: str | None = None) -> None:
    following = state.trial(TRIAL).next_attempt(TRIAL)
    body = attempt_admitted(number=following.number, supersedes=following.supersedes, replaces=following.replaces)
    state.apply(Kind.ATTEMPT_ADMITTED, body)
    state.apply(Kind.ATTEMPT_ENDED, attempt_ended(body["attempt"], outcome, exception))


def _next(state: RunState) -> tuple[NextAttempt, int]:
    """How the next attempt is admitted, and how many replaced one before it."""
    return state.trial(TRIAL).next_attempt(TRIAL), state.trial(TRIAL).replaced


def test_a_trial_that_was_never_tried_starts_with_attempt_0() -> None:
    assert _next(_started()) == (NextAttempt(0, None, None), 0)


def test_lost_and_interrupted_attempts_are_superseded_and_use_up_no_replacement() -> None:
    state = _started()
    _attempt(state, "lost", "lost")
    assert _next(state) == (NextAttempt(1, f"{TRIAL}/0", None), 0)
    _attempt(state, "interrupted", "interrupted")
    assert _next(state) == (NextAttempt(2, f"{TRIAL}/1", None), 0)
    assert (state.counts[BASE].superseded, state.counts[BASE].replaced) == (2, 0)


def test_an_attempt_that_ended_by_infrastructure_is_replaced_and_counted() -> None:
    state = _started()
    _attempt(state, "infrastructure", "sandbox_lost")
    assert _next(state) == (NextAttempt(1, None, f"{TRIAL}/0"), 0)
    _attempt(state, "lost", "lost")
    assert _next(state) == (NextAttempt(2, f"{TRIAL}/1", None), 1)
    _attempt(state, "infrastructure", "sandbox_lost")
    assert _next(state) == (NextAttempt(3, None, f"{TRIAL}/2"), 1)
    assert state.counts[BASE].exceptions == {"sandbox_lost": 2, "lost": 1}


def test_a_final_stands_and_the_trial_is_done() -> None:
    state = _started()
    _attempt(state, "completed")
    state.apply(Kind.TRIAL_FINAL, _final(attempt=f"{TRIAL}/0"))
    assert state.final(TRIAL) == Final(0, "pass", None, 1.0)
    assert state.totals(planned=3) == {"trials": 3, "finals": 1, "pass": 1, "fail": 0, "ungraded": 0}
    with pytest.raises(ValueError, match="final"):
        state.trial(TRIAL).next_attempt(TRIAL)


def test_finals_are_counted_by_model_and_arm() -> None:
    state = _started()
    _attempt(state, "infrastructure", "sandbox_lost")
    state.apply(Kind.TRIAL_FINAL, _final(grade="ungraded", reason="sandbox_lost", reward=None))
    assert state.counts[BASE].grades == {"ungraded": 1}
    assert state.counts[BASE].reasons == {"sandbox_lost": 1}


def test_what_is_in_flight_is_known_with_its_folder_and_grade() -> None:
    state = _started()
    body = attempt_admitted()
    state.apply(Kind.ATTEMPT_ADMITTED, body)
    assert (state.open[body["attempt"]].folder, state.open[body["attempt"]].graded) == (body["folder"], False)
    state.apply(Kind.ATTEMPT_GRADED, _graded(body["attempt"]))
    assert state.open[body["attempt"]].graded
    with pytest.raises(ValueError, match="in flight"):
        state.trial(TRIAL).next_attempt(TRIAL)


def test_blocks_pause_drain_and_end() -> None:
    state = _started()
    state.apply(Kind.BLOCK_ADMITTED, {"block": 0, "task": "task", "model": None, "epoch": 1})
    state.apply(Kind.BLOCK_ADMITTED, {"block": 1, "task": "task", "model": None, "epoch": 2})
    state.apply(Kind.BLOCK_ENDED, {"block": 0})
    assert (state.blocks_open, 0 in state.blocks_ended, 1 in state.blocks_ended) == ({1}, True, False)
    state.apply(Kind.RUN_PAUSED, {})
    assert state.paused
    state.apply(Kind.RUN_UNPAUSED, {})
    assert not state.paused
    state.apply(Kind.RUN_DRAINING, {"cause": "SIGINT"})
    state.apply(Kind.RUN_ENDED, ended())
    assert (state.draining, state.ended) == ("SIGINT", ended())
    state.apply(Kind.RUN_RESUMED, {**resumed(), "previous_ended": True})
    assert (state.draining, state.ended, state.blocks_open, 0 in state.blocks_ended) == (None, None, set(), True)
    assert len(state.openings) == 2
    assert state.bound == {"manifests/0001.json": EMPTY}


_TRIED = [(Kind.ATTEMPT_ADMITTED, attempt_admitted()), (Kind.ATTEMPT_ENDED, attempt_ended(f"{TRIAL}/0"))]


@pytest.mark.parametrize(
    "entries",
    [
        [(Kind.RUN_ADMITTED, admitted())],
        [(Kind.ATTEMPT_ENDED, attempt_ended("none/0"))],
        [(Kind.ATTEMPT_GRADED, _graded("none/0"))],
        [(Kind.ATTEMPT_ADMITTED, attempt_admitted(number=1))],
        [(Kind.ATTEMPT_ADMITTED, attempt_admitted(attempt="other/0"))],
        [(Kind.ATTEMPT_ADMITTED, attempt_admitted())] * 2,
        [(Kind.ATTEMPT_ADMITTED, attempt_admitted()), (Kind.TRIAL_FINAL, _final())],
        [(Kind.TRIAL_FINAL, _final())],
        [*_TRIED, (Kind.TRIAL_FINAL, _final()), (Kind.TRIAL_FINAL, _final())],
        [*_TRIED, (Kind.TRIAL_FINAL, _final(attempt=f"{TRIAL}/1"))],
        [*_TRIED, (Kind.TRIAL_FINAL, {**_final(), "attempt": None})],
        [(Kind.TRIAL_FINAL, _final(trial="no hex"))],
        [*_TRIED, (Kind.TRIAL_FINAL, _final(reward=[]))],
        [(Kind.TRIAL_FINAL, {})],
        [(Kind.BLOCK_ADMITTED, {"block": []})],
    ],
)
def test_an_entry_that_makes_no_sense_refuses_and_names_its_line(entries: list[tuple[Kind, dict[str, Any]]]) -> None:
    state = _started()
    with pytest.raises(Refusal) as refused:
        for kind, body in entries:
            state.apply(kind, body)
    assert (refused.value.reason, refused.value.path) == (Reason.EVIDENCE_DAMAGED, f"journal.jsonl:{len(entries) + 1}")


@given(st.lists(st.sampled_from(["completed", "infrastructure", "interrupted", "lost"]), max_size=12))
def test_numbers_have_no_gap_and_each_attempt_names_the_one_it_follows(outcomes: list[str]) -> None:
    state = _started()
    for number, outcome in enumerate(outcomes):
        following = state.trial(TRIAL).next_attempt(TRIAL)
        before = outcomes[number - 1] if number else None
        assert following.number == number
        assert (following.supersedes is not None) == (before in ("interrupted", "lost"))
        assert (following.replaces is not None) == (before == "infrastructure")
        assert state.trial(TRIAL).replaced == outcomes[: max(0, number - 1)].count("infrastructure")
        _attempt(state, outcome)
    assert state.open == {}


def test_a_trial_costs_about_a_hundred_bytes() -> None:
    trials = 20_000
    state = _started()
    gc.collect()
    tracemalloc.start()
    for number in range(trials):
        trial = f"{number:016x}"
        body = attempt_admitted(number=0, trial=trial, attempt=f"{trial}/0")
        state.apply(Kind.ATTEMPT_ADMITTED, body)
        state.apply(Kind.ATTEMPT_ENDED, attempt_ended(f"{trial}/0"))
        state.apply(Kind.TRIAL_FINAL, _final(trial, f"{trial}/0"))
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / trials < 130


@given(st.lists(st.integers(0, 20_000) | st.integers(0, 2**53 - 1)))
def test_numbers_are_a_set(numbers: list[int]) -> None:
    kept = Numbers()
    for number in numbers:
        kept.add(number)
    assert all(number in kept for number in numbers)
    assert not any(number + 1 in kept for number in numbers if number + 1 not in numbers)
