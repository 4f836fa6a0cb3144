"""Types of the values in entries' bodies that readers rely on: names alone are checked where a line is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core.outcomes import GradeState
from proctor.evidence.kinds import Kind

_NAMES = ("attempt", "trial", "task", "model", "arm", "folder", "supersedes", "replaces")
_TOTALS = ("trials", "finals", *GradeState)


def check_shape(kind: Kind, body: Mapping[str, Any]) -> None:
    """Check the values that are used of such an entry.

    Raises:
        TypeError, KeyError, ValueError: one is not of its type, is not there, or is no word of its vocabulary.
    """
    for name in _NAMES:
        _text_or_none(body.get(name))
    match kind:
        case Kind.RUN_ADMITTED | Kind.RUN_RESUMED:
            opening = body["opening"]
            _are(str, opening["host"], opening["version"], body["manifest"]["path"], body["key"]["fingerprint"])
            _are(int, opening["pid"])
        case Kind.RUN_ENDED:
            _are(int, body["exit_status"], *(body["totals"][name] for name in _TOTALS))
            _text_or_none(body["reason"])
            for file in _are(list, body["files"]):
                _are(str, file["path"], file["sha256"])
        case Kind.RUN_DRAINING:
            _are(str, body["cause"])
        case Kind.EXCHANGE_ADMITTED:
            _are(str, body["exchange"], body["route"], body["held"], *_are(list, body["mutations"]))
            _text_or_none(body["retries"])
        case Kind.EXCHANGE_ENDED:
            _are(str, body["exchange"], body["outcome"], body["charged"], *_are(list, body["flags"]))
            _are(bool, body["estimated"], body["overrun"])
            _are(int, *(body["usage"] or {}).values(), *body["timing"].values())
            for name in ("error", "resolved_model", "finish"):
                _text_or_none(body[name])
        case Kind.EXCHANGE_REFUSED:
            _are(str, body["reason"], body["held"], body["message"])
        case Kind.ANSWER_SCORED:
            _are(str, body["scorer"], body["detail"])
        case Kind.CEILING_REACHED:
            _are(str, body["scope"], body["spent"], body["wanted"], body["limit"])
        case Kind.ATTEMPT_GRADED:
            _text_or_none(body["assurance"])
            for reward in body["rewards"].values():
                if type(reward) is not float:
                    _are(int, reward)
            if body["tests"] is not None:
                _are(int, *body["tests"].values())
        case Kind.ATTEMPT_ENDED:
            _are(str, body["outcome"])
            _text_or_none(body["exception"])
            _text_or_none(body["message"])
            _are(int, *body["timing"].values())
        case Kind.TRIAL_FINAL:
            GradeState(body["grade"])
            _text_or_none(body["reason"])
            if body["reward"] is not None and type(body["reward"]) is not float:
                _are(int, body["reward"])


def _are(wanted: type, *values: Any) -> Any:
    """The first of the values, all of which are of exactly that type; a bool is no int."""
    for value in values:
        if type(value) is not wanted:
            raise TypeError(f"{wanted.__name__} is wanted, not {value!r:.80}")
    return values[0] if values else None


def _text_or_none(value: Any) -> None:
    if value is not None:
        _are(str, value)
