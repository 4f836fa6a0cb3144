"""Parts of bodies that have rules of their own: at the edges of each, and with one thing wrong."""

from __future__ import annotations

from typing import Any

import pytest

from proctor_verify.schema import BLOB_FIELDS, KINDS, body_fault, envelope_fault

_EXITED: dict[str, Any] = {
    "exit_code": 0,
    "signal": None,
    "timed_out": False,
    "output_bytes": 0,
    "output_dropped": 0,
    "leftovers": 0,
    "limit_hit": None,
    "start_error": None,
}
_COUNTED: dict[str, int] = {
    "rows": 10,
    "identities": 6,
    "all_pass": 1,
    "all_fail": 1,
    "all_skip": 1,
    "all_other": 1,
    "mixed": 2,
    "last_row_fails": 2,
    "duplicates": 3,
}


def _exited(**otherwise: Any) -> dict[str, Any]:
    return {**_EXITED, **otherwise}


def _counted(**otherwise: int) -> dict[str, int]:
    return {**_COUNTED, **otherwise}


def _version(available: object, value: object, reason: object) -> dict[str, object]:
    return {"available": available, "value": value, "reason": reason}


_BLOB = {"blob": "0" * 64, "size": 0}
_FRAME = {**_BLOB, "pack": "", "offset": 0, "length": 0, "encoding": "raw", "stored_sha256": "0" * 64}

FIELDS: list[tuple[str, str, list[Any], list[Any]]] = [
    ("run.admitted", "format", [1], [0, 2, True, 1.0, "1", None]),
    ("run.ended", "exit_status", [0, 1, 5, 130], [2, 3, -1, True, 0.0, None]),
    ("exchange.ended", "usage", [None, {}, {"input": 1}, {"input": 2, "output": 1}], [[], "", 1]),
    ("exchange.ended", "usage", [], [{"input": 0}, {"another": 1}, {"input": 1, "output": 0}, {"input": 1.0}]),
    ("attempt.graded", "rewards", [{}, {"a": 1}, {"a": 1, "b": 0.5}], [{"a": "1"}, {"a": 1, "b": True}, [], None]),
    ("attempt.ended", "timing", [{}, {"a": 0}, {"a": 1, "b": 2}], [{"a": -1}, {"a": 1, "b": 0.5}, [], None]),
    ("agent.ended", "ended", [_exited(), _exited(exit_code=None, signal=9)], [{}, None]),
    ("agent.ended", "ended", [], [_exited(signal=9), _exited(exit_code=None)]),
    ("agent.ended", "ended", [_exited(exit_code=None, start_error="no"), _exited(start_error="no")], []),
    ("agent.ended", "ended", [_exited(exit_code=255)], [_exited(exit_code=256), _exited(exit_code=-1)]),
    ("sandbox.started", "facts", [{"kind": "k", "network": "none"}, {"kind": "k", "network": "none", "more": 1}], []),
    ("sandbox.started", "facts", [], [{"kind": "k"}, {"network": "none"}, {"kind": "k", "network": "another"}]),
    ("sandbox.started", "facts", [], [{"kind": "k", "network": []}, {"kind": 1, "network": "none"}, [], None]),
    ("agent.started", "version", [_version(True, "1", None), _version(False, None, "why")], []),
    ("agent.started", "version", [_version(False, None, None)], [_version(True, None, None)]),
    ("agent.started", "version", [], [_version(False, "1", None), _version(True, "1", "why"), None]),
    ("attempt.graded", "tests", [None, _counted(), _counted(rows=9)], [_counted(rows=8), _counted(identities=7)]),
    ("attempt.graded", "tests", [], [_counted(all_pass=0), _counted(identities=5), {}]),
    ("attempt.graded", "tests", [_counted(last_row_fails=1), _counted(last_row_fails=3)], []),
    ("attempt.graded", "tests", [], [_counted(last_row_fails=0), _counted(last_row_fails=4)]),
    ("attempt.graded", "tests", [_counted(duplicates=2), _counted(duplicates=6, rows=12)], []),
    ("attempt.graded", "tests", [], [_counted(duplicates=1), _counted(duplicates=7, rows=13)]),
    ("agent.started", "instruction", [_FRAME, {**_BLOB, "path": ""}], [_BLOB, {**_FRAME, "path": ""}, None, {}]),
]


@pytest.mark.parametrize(("kind", "field", "those", "others"), FIELDS)
def test_what_a_field_may_hold_and_what_it_may_not(kind: str, field: str, those: list[Any], others: list[Any]) -> None:
    shape = KINDS[kind][field]
    for value in those:
        assert shape.holds(value), value
    for value in others:
        assert not shape.holds(value), value


def test_fields_with_a_blob_are_known() -> None:
    assert BLOB_FIELDS == {
        "agent.started": ("instruction",),
        "answer.scored": ("answer",),
        "exchange.admitted": ("request",),
        "exchange.ended": ("chunks", "response"),
        "exchange.refused": ("request",),
    }


def test_what_is_wrong_with_a_body_is_said_by_its_field() -> None:
    assert body_fault("block.ended", {"block": 0}) is None
    assert body_fault("run.paused", {}) is None
    assert body_fault("block.ended", {}) == "block.ended lacks block"
    assert body_fault("block.ended", {"block": 0, "more": 1}) == "block.ended has more, which is no field of it"
    assert body_fault("block.ended", {"bloc": 0}) == "block.ended lacks block"
    assert body_fault("block.ended", {"block": -1}) == "block of block.ended is not an integer of 0 or more"
    assert envelope_fault({}) == "the entry lacks body, kind, mono, prev, seq, time"
