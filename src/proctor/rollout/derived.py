"""attempt.json: an attempt as people open it, made of its journal entries alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.evidence.kinds import Kind
from proctor.evidence.spent import Spent

_NO_MODEL = {"available": False, "reason": "no model is called through proctor in this run"}
_NOT_CAPTURED = {"available": False, "reason": "no snapshot is part of the evidence in this version"}

Said = Mapping[Kind, Sequence[Mapping[str, Any]]]


def attempt_record(said: Said, ended: Mapping[str, Any]) -> dict[str, Any]:
    """The content of attempt.json: `said` are the bodies of the attempt's entries, `ended` that of its end.

    Deterministic in the entries; a field that does not exist is an object that says why.
    """
    admitted = _last(said, Kind.ATTEMPT_ADMITTED)
    calls_model = admitted is not None and admitted["model"] is not None
    spent = Spent()
    for body in said.get(Kind.EXCHANGE_ENDED, ()):
        spent.take(body)
    cost = {"charged": str(spent.cost), "exchanges": spent.exchanges, "estimated": spent.estimated}
    return {
        "format": 1,
        "identity": _without(admitted, ()),
        "agent": _without(_last(said, Kind.AGENT_STARTED), ("attempt",)),
        "agent_ended": _without(_last(said, Kind.AGENT_ENDED), ("attempt",)),
        "verifier_ended": _without(_last(said, Kind.VERIFIER_ENDED), ("attempt",)),
        "grade": _without(_last(said, Kind.ATTEMPT_GRADED), ("attempt",)),
        "boundaries": [body["boundary"] for body in said.get(Kind.ATTEMPT_BOUNDARY, ())],
        "sandboxes": [_without(body, ("attempt",)) for body in said.get(Kind.SANDBOX_STARTED, ())],
        "ended": dict(ended),
        "tokens": spent.tokens if calls_model else _NO_MODEL,
        "cost": cost if calls_model else _NO_MODEL,
        "snapshots": _NOT_CAPTURED,
    }


def _last(said: Said, kind: Kind) -> Mapping[str, Any] | None:
    bodies = said.get(kind, ())
    return bodies[-1] if bodies else None


def _without(body: Mapping[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any] | None:
    return None if body is None else {name: value for name, value in body.items() if name not in names}
