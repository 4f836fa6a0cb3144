"""Every kind of entry and the shape of its body, taken from section 5 of the evidence format, never from the runner."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

Holds = Callable[[Any], bool]


class Shape(NamedTuple):
    """What a value must be: in words, and as a test."""

    words: str
    holds: Holds


def _matches(pattern: str, words: str) -> Shape:
    fullmatch = re.compile(pattern, re.ASCII).fullmatch
    return Shape(words, lambda v: type(v) is str and fullmatch(v) is not None)


def _one_of(*words: str) -> Shape:
    allowed = frozenset(words)
    return Shape(" | ".join(words), lambda v: type(v) is str and v in allowed)


def _or_null(shape: Shape) -> Shape:
    holds = shape.holds
    return Shape(f"{shape.words}, or null", lambda v: v is None or holds(v))


def _list_of(shape: Shape) -> Shape:
    holds = shape.holds
    return Shape(f"a list, each {shape.words}", lambda v: type(v) is list and all(map(holds, v)))


def _record(**fields: Shape) -> Shape:
    keys = fields.keys()
    tests = [(name, shape.holds) for name, shape in fields.items()]
    words = f"an object with exactly {', '.join(fields)}"
    return Shape(words, lambda v: type(v) is dict and v.keys() == keys and all(holds(v[name]) for name, holds in tests))


def _either(first: Shape, second: Shape) -> Shape:
    return Shape(f"{first.words}; or {second.words}", lambda v: first.holds(v) or second.holds(v))


TEXT = Shape("text", lambda v: type(v) is str)
COUNT = Shape("an integer of 0 or more", lambda v: type(v) is int and v >= 0)
FROM_ONE = Shape("an integer of 1 or more", lambda v: type(v) is int and v >= 1)
INTEGER = Shape("an integer", lambda v: type(v) is int)
NUMBER = Shape("a number", lambda v: type(v) is int or type(v) is float)
FLAG = Shape("true or false", lambda v: type(v) is bool)
OBJECT = Shape("an object", lambda v: type(v) is dict)
OBJECTS = _list_of(OBJECT)
SHA256 = _matches(r"[0-9a-f]{64}", "64 lower-case hex digits")
TRIAL = _matches(r"[0-9a-f]{16}", "a trial id")
ATTEMPT = _matches(r"[0-9a-f]{16}/(?:0|[1-9][0-9]{0,8})", "an attempt id")
GRADE = _one_of("pass", "fail", "ungraded")
ASSURANCE = _one_of("isolated", "shared", "live")
TIME = _matches(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z",
    "a UTC time with 6 decimals and Z",
)

_FILE_REF = _record(path=TEXT, sha256=SHA256)
_SIZED_FILE = _record(path=TEXT, sha256=SHA256, size=COUNT)
_KEY = _record(vkey=TEXT, fingerprint=_matches(r"sha256:[0-9a-f]{64}", "sha256: and 64 hex digits"))
_OPENING = _record(boot_id=TEXT, host=TEXT, pid=COUNT, version=TEXT)
_BLOB = _either(
    _record(
        blob=SHA256,
        size=COUNT,
        pack=TEXT,
        offset=COUNT,
        length=COUNT,
        encoding=_one_of("raw", "gzip"),
        stored_sha256=SHA256,
    ),
    _record(blob=SHA256, size=COUNT, path=TEXT),
)
_NUMBERS = Shape("an object of numbers", lambda v: type(v) is dict and all(map(NUMBER.holds, v.values())))
_TIMING = Shape("an object of nanoseconds", lambda v: type(v) is dict and all(map(COUNT.holds, v.values())))
_TEXTS = _list_of(TEXT)

KINDS: dict[str, dict[str, Shape]] = {
    "run.admitted": {
        "format": Shape("1", lambda v: type(v) is int and v == 1),
        "run_id": _matches(r"[0-9A-Za-z_-]{1,64}", "an id"),
        "study": TEXT,
        "stage": TEXT,
        "manifest": _FILE_REF,
        "design_sha256": SHA256,
        "abandoned": _list_of(_FILE_REF),
        "opening": _OPENING,
        "key": _KEY,
        "planned": _record(trials=COUNT, blocks=COUNT),
    },
    "run.resumed": {
        "manifest": _FILE_REF,
        "abandoned": _list_of(_FILE_REF),
        "opening": _OPENING,
        "key": _KEY,
        "previous_ended": FLAG,
    },
    "run.recovered": {
        "quarantined": _list_of(_record(path=TEXT, sha256=SHA256, size=COUNT, source=TEXT)),
        "lost": _list_of(ATTEMPT),
    },
    "checkpoint.made": {"path": TEXT, "sha256": SHA256, "size": FROM_ONE, "root": SHA256},
    "block.admitted": {"block": COUNT, "task": TEXT, "model": _or_null(TEXT), "epoch": FROM_ONE},
    "attempt.admitted": {
        "attempt": ATTEMPT,
        "trial": TRIAL,
        "number": COUNT,
        "block": COUNT,
        "task": TEXT,
        "model": _or_null(TEXT),
        "arm": TEXT,
        "epoch": FROM_ONE,
        "folder": TEXT,
        "supersedes": _or_null(ATTEMPT),
        "replaces": _or_null(ATTEMPT),
    },
    "sandbox.started": {
        "attempt": ATTEMPT,
        "role": _one_of("agent", "verifier"),
        "from_snapshot": FLAG,
        "facts": OBJECT,
        "limits": OBJECTS,
        "base_substituted": _or_null(OBJECT),
    },
    "attempt.boundary": {"attempt": ATTEMPT, "boundary": _one_of("env-ready", "pre-verify", "post-verify")},
    "agent.started": {
        "attempt": ATTEMPT,
        "agent": TEXT,
        "version": OBJECT,
        "settings": OBJECT,
        "instruction": _BLOB,
        "skills": _list_of(_record(name=TEXT, sha256=SHA256)),
        "timeout_sec": _or_null(NUMBER),
    },
    "agent.ended": {"attempt": ATTEMPT, "exception": _or_null(TEXT), "ended": OBJECT, "duration_ns": COUNT},
    "verifier.ended": {"attempt": ATTEMPT, "assurance": ASSURANCE, "ended": OBJECT, "duration_ns": COUNT},
    "attempt.files": {
        "attempt": ATTEMPT,
        "files": _list_of(_record(path=TEXT, sha256=SHA256, size=COUNT, role=_one_of("source", "derived", "partial"))),
    },
    "attempt.graded": {
        "attempt": ATTEMPT,
        "grade": GRADE,
        "reason": _or_null(TEXT),
        "reward": _or_null(NUMBER),
        "rewards": _NUMBERS,
        "assurance": _or_null(ASSURANCE),
        "tests": _or_null(OBJECT),
        "disclosures": _TEXTS,
    },
    "attempt.ended": {
        "attempt": ATTEMPT,
        "outcome": _one_of("completed", "infrastructure", "interrupted", "lost"),
        "exception": _or_null(TEXT),
        "message": _or_null(TEXT),
        "timing": _TIMING,
    },
    "trial.final": {
        "trial": TRIAL,
        "attempt": _or_null(ATTEMPT),
        "grade": GRADE,
        "reason": _or_null(TEXT),
        "reward": _or_null(NUMBER),
    },
    "block.ended": {"block": COUNT},
    "run.paused": {},
    "run.unpaused": {},
    "run.draining": {"cause": TEXT},
    "run.ended": {
        "exit_status": INTEGER,
        "reason": _or_null(TEXT),
        "complete": FLAG,
        "totals": _record(**{"trials": COUNT, "finals": COUNT, "pass": COUNT, "fail": COUNT, "ungraded": COUNT}),
        "files": _list_of(_SIZED_FILE),
    },
}

BLOB_FIELDS: dict[str, tuple[str, ...]] = {
    kind: tuple(name for name, shape in fields.items() if shape is _BLOB)
    for kind, fields in KINDS.items()
    if any(shape is _BLOB for shape in fields.values())
}

ENVELOPE: dict[str, Shape] = {
    "seq": COUNT,
    "prev": SHA256,
    "time": TIME,
    "mono": COUNT,
    "kind": TEXT,
    "body": OBJECT,
}

_Tests = list[tuple[str, Holds]]
_TESTS: dict[str, _Tests] = {
    kind: [(name, shape.holds) for name, shape in fields.items()] for kind, fields in KINDS.items()
}
_ENVELOPE_TESTS: _Tests = [(name, shape.holds) for name, shape in ENVELOPE.items()]


def envelope_fault(value: Any) -> str | None:
    """What is wrong with a line's value as an entry, its body left aside."""
    if type(value) is not dict:
        return "is not an object"
    return _fault("the entry", value, ENVELOPE, _ENVELOPE_TESTS)


def body_fault(kind: str, body: dict[str, Any]) -> str | None:
    """What is wrong with a body of a known kind."""
    return _fault(kind, body, KINDS[kind], _TESTS[kind])


def _fault(what: str, value: dict[str, Any], fields: dict[str, Shape], tests: _Tests) -> str | None:
    if value.keys() != fields.keys():
        missing, extra = sorted(fields.keys() - value.keys()), sorted(value.keys() - fields.keys())
        if missing:
            return f"{what} lacks {', '.join(missing)}"
        return f"{what} has {', '.join(extra)}, which is no field of it"
    for name, holds in tests:
        if not holds(value[name]):
            return f"{name} of {what} is not {fields[name].words}"
    return None
