"""Every kind of entry and the shape of its body, taken from section 5 of the evidence format, never from the runner."""

from __future__ import annotations

from typing import Any

from proctor_verify import patterns
from proctor_verify.shapes import (
    COUNT,
    FLAG,
    FROM_ONE,
    MONEY,
    NUMBER,
    OBJECT,
    SHA256,
    TEXT,
    TIME,
    Holds,
    Shape,
    among,
    either,
    integer,
    list_of,
    matches,
    one_of,
    or_null,
    record,
    where,
)
from proctor_verify.vocabulary import (
    ANCHORS,
    BOUNDARIES,
    BUCKETS,
    CAUSES,
    EXITS,
    MUTATIONS,
    NETWORKS,
    REASONS,
    SCOPES,
    SCORERS,
)

RUN_ID = matches(r"[0-9A-Za-z_-]{1,64}", "an id")
TRIAL = matches(r"[0-9a-f]{16}", "a trial id")
ATTEMPT = matches(r"[0-9a-f]{16}/(?:0|[1-9][0-9]{0,8})", "an attempt id")
EXCHANGE = matches(r"[0-9a-f]{16}/(?:0|[1-9][0-9]{0,8})/(?:0|[1-9][0-9]{0,8})", "an exchange id")
GRADE = one_of("pass", "fail", "ungraded")
ASSURANCE = one_of("isolated", "shared", "live")
REASON = among("a reason id of format 1", REASONS)
CAUSE = among("a cause of a drain", CAUSES | REASONS)
ANCHOR = among("an anchor", ANCHORS)
EXIT = Shape("an exit status of a run", lambda v: type(v) is int and v in EXITS)

# Phases are named as whoever takes the times likes; these are the usual ones.
_PHASES = ("sent", "first_byte", "last_byte", "start", "agent", "score", "close", *BOUNDARIES)
_FILE_REF = record(path=TEXT, sha256=SHA256)
_SIZED_FILE = record(path=TEXT, sha256=SHA256, size=COUNT)
_KEY = record(vkey=TEXT, fingerprint=matches(r"sha256:[0-9a-f]{64}", "sha256: and 64 hex digits"))
_OPENING = record(boot_id=or_null(TEXT), host=TEXT, pid=FROM_ONE, version=TEXT)
_BLOB = either(
    record(
        blob=SHA256,
        size=COUNT,
        pack=TEXT,
        offset=COUNT,
        length=COUNT,
        encoding=one_of("raw", "gzip"),
        stored_sha256=SHA256,
    ),
    record(blob=SHA256, size=COUNT, path=TEXT),
)
_BLOB_OR_NULL = or_null(_BLOB)
_BLOBS = (_BLOB, _BLOB_OR_NULL)
_USAGE = Shape(
    "an object of counts from 1 by token bucket",
    lambda v: type(v) is dict and all(bucket in BUCKETS and FROM_ONE.holds(count) for bucket, count in v.items()),
    patterns.some_of(dict.fromkeys(BUCKETS, patterns.FROM_ONE)),
)
_NUMBERS = Shape(
    "an object of numbers",
    lambda v: type(v) is dict and all(map(NUMBER.holds, v.values())),
    patterns.at_most_one(patterns.NUMBER),
)
_TIMING = Shape(
    "an object of nanoseconds",
    lambda v: type(v) is dict and all(map(COUNT.holds, v.values())),
    patterns.some_of(dict.fromkeys(_PHASES, patterns.COUNT)),
)
_TEXTS = list_of(TEXT)
_END: dict[str, Shape] = {
    "exit_code": or_null(integer(0, 255)),
    "signal": or_null(integer(1, 64)),
    "timed_out": FLAG,
    "output_bytes": COUNT,
    "output_dropped": COUNT,
    "leftovers": COUNT,
    "limit_hit": or_null(TEXT),
    "start_error": or_null(TEXT),
}
_EXITED = {"exit_code": patterns.integer(0, 255), "signal": patterns.NULL, "start_error": patterns.NULL}
_ENDED = where(
    record(**_END),
    "one of exit_code and signal null and the other not, unless there is a start_error",
    lambda v: v["start_error"] is not None or (v["exit_code"] is None) != (v["signal"] is None),
    patterns.record({name: shape.text for name, shape in _END.items()} | _EXITED),
)
_LIMITS = list_of(
    record(name=TEXT, wanted=or_null(NUMBER), enforced=or_null(NUMBER), how=or_null(TEXT), why_not=or_null(TEXT))
)
_FACTS = Shape(
    "an object with text kind and a network that there is",
    lambda v: (
        type(v) is dict and type(v.get("kind")) is str and type(v.get("network")) is str and v["network"] in NETWORKS
    ),
)
_STAND_IN = record(
    image=TEXT, root=TEXT, explicit=FLAG, skipped_installs=_TEXTS, version_notes=_TEXTS, ignored_lines=_TEXTS
)
_VERSION = where(
    record(available=FLAG, value=or_null(TEXT), reason=or_null(TEXT)),
    "a value exactly where it is available, and no reason there",
    lambda v: v["available"] == (v["value"] is not None) and not (v["available"] and v["reason"] is not None),
    patterns.record({"available": "true", "value": patterns.STRING, "reason": patterns.NULL}),
)
_TESTS = where(
    record(
        rows=COUNT,
        identities=COUNT,
        all_pass=COUNT,
        all_fail=COUNT,
        all_skip=COUNT,
        all_other=COUNT,
        mixed=COUNT,
        last_row_fails=COUNT,
        duplicates=COUNT,
    ),
    "counts that add up",
    lambda v: (
        v["identities"] == v["all_pass"] + v["all_fail"] + v["all_skip"] + v["all_other"] + v["mixed"]
        and v["identities"] + v["duplicates"] <= v["rows"]
        and v["all_fail"] <= v["last_row_fails"] <= v["all_fail"] + v["mixed"]
        and v["mixed"] <= v["duplicates"] <= v["identities"]
    ),
)

KINDS: dict[str, dict[str, Shape]] = {
    "run.admitted": {
        "format": Shape("1", lambda v: type(v) is int and v == 1),
        "run_id": RUN_ID,
        "study": TEXT,
        "stage": TEXT,
        "manifest": _FILE_REF,
        "design_sha256": SHA256,
        "abandoned": list_of(_FILE_REF),
        "opening": _OPENING,
        "key": _KEY,
        "planned": record(trials=COUNT, blocks=COUNT),
    },
    "run.resumed": {
        "manifest": _FILE_REF,
        "abandoned": list_of(_FILE_REF),
        "opening": _OPENING,
        "key": _KEY,
        "previous_ended": FLAG,
    },
    "run.recovered": {
        "quarantined": list_of(record(path=TEXT, sha256=SHA256, size=COUNT, source=TEXT)),
        "lost": list_of(ATTEMPT),
    },
    "checkpoint.made": {"path": TEXT, "sha256": SHA256, "size": FROM_ONE, "root": SHA256},
    "checkpoint.anchored": {"anchor": ANCHOR, "path": TEXT, "sha256": SHA256, "size": FROM_ONE},
    "anchor.failed": {
        "anchor": ANCHOR,
        "size": FROM_ONE,
        "attempts": FROM_ONE,
        "return_code": or_null(integer(-255, 255)),
        "reason": REASON,
        "message": TEXT,
    },
    "block.admitted": {
        "block": COUNT,
        "task": TEXT,
        "model": or_null(TEXT),
        "epoch": FROM_ONE,
        "reserve": or_null(MONEY),
    },
    "attempt.admitted": {
        "attempt": ATTEMPT,
        "trial": TRIAL,
        "number": COUNT,
        "block": COUNT,
        "task": TEXT,
        "model": or_null(TEXT),
        "arm": TEXT,
        "epoch": FROM_ONE,
        "folder": TEXT,
        "supersedes": or_null(ATTEMPT),
        "replaces": or_null(ATTEMPT),
    },
    "sandbox.started": {
        "attempt": ATTEMPT,
        "role": one_of("agent", "verifier"),
        "from_snapshot": FLAG,
        "facts": _FACTS,
        "limits": _LIMITS,
        "base_substituted": or_null(_STAND_IN),
    },
    "attempt.boundary": {"attempt": ATTEMPT, "boundary": one_of(*BOUNDARIES)},
    "agent.started": {
        "attempt": ATTEMPT,
        "agent": TEXT,
        "version": _VERSION,
        "settings": OBJECT,
        "instruction": _BLOB,
        "skills": list_of(record(name=TEXT, sha256=SHA256)),
        "timeout_sec": or_null(NUMBER),
    },
    "exchange.admitted": {
        "attempt": ATTEMPT,
        "exchange": EXCHANGE,
        "model": TEXT,
        "route": TEXT,
        "request": _BLOB,
        "request_digest": SHA256,
        "input_bound": COUNT,
        "output_bound": COUNT,
        "held": MONEY,
        "retries": or_null(EXCHANGE),
        "mutations": list_of(among("a mutation", MUTATIONS)),
    },
    "exchange.ended": {
        "attempt": ATTEMPT,
        "exchange": EXCHANGE,
        "outcome": one_of("settled", "released", "unknown"),
        "http_status": or_null(integer(100, 999)),
        "error": or_null(REASON),
        "resolved_model": or_null(TEXT),
        "finish": or_null(one_of("stop", "tools", "length", "refused", "other")),
        "response": _BLOB_OR_NULL,
        "chunks": _BLOB_OR_NULL,
        "usage": or_null(_USAGE),
        "charged": MONEY,
        "estimated": FLAG,
        "overrun": FLAG,
        "flags": _TEXTS,
        "timing": _TIMING,
    },
    "exchange.refused": {
        "attempt": ATTEMPT,
        "model": TEXT,
        "reason": REASON,
        "held": MONEY,
        "message": TEXT,
        "route": or_null(TEXT),
        "request": _BLOB_OR_NULL,
    },
    "agent.ended": {"attempt": ATTEMPT, "exception": or_null(REASON), "ended": _ENDED, "duration_ns": COUNT},
    "verifier.ended": {"attempt": ATTEMPT, "assurance": ASSURANCE, "ended": _ENDED, "duration_ns": COUNT},
    "answer.scored": {"attempt": ATTEMPT, "answer": _BLOB, "scorer": among("a scorer", SCORERS), "detail": TEXT},
    "attempt.files": {
        "attempt": ATTEMPT,
        "files": list_of(record(path=TEXT, sha256=SHA256, size=COUNT, role=one_of("source", "derived", "partial"))),
    },
    "attempt.graded": {
        "attempt": ATTEMPT,
        "grade": GRADE,
        "reason": or_null(REASON),
        "reward": or_null(NUMBER),
        "rewards": _NUMBERS,
        "assurance": or_null(ASSURANCE),
        "tests": or_null(_TESTS),
        "disclosures": _TEXTS,
    },
    "attempt.ended": {
        "attempt": ATTEMPT,
        "outcome": one_of("completed", "infrastructure", "interrupted", "lost"),
        "exception": or_null(REASON),
        "message": or_null(TEXT),
        "timing": _TIMING,
    },
    "trial.final": {
        "trial": TRIAL,
        "attempt": ATTEMPT,
        "grade": GRADE,
        "reason": or_null(REASON),
        "reward": or_null(NUMBER),
    },
    "block.ended": {"block": COUNT},
    "ceiling.reached": {
        "scope": among("a scope of money", SCOPES),
        "model": or_null(TEXT),
        "spent": MONEY,
        "wanted": MONEY,
        "limit": MONEY,
    },
    "run.paused": {},
    "run.unpaused": {},
    "run.draining": {"cause": CAUSE},
    "run.ended": {
        "exit_status": EXIT,
        "reason": or_null(REASON),
        "complete": FLAG,
        "totals": record(**{"trials": COUNT, "finals": COUNT, "pass": COUNT, "fail": COUNT, "ungraded": COUNT}),
        "files": list_of(_SIZED_FILE),
    },
}

BLOB_FIELDS: dict[str, tuple[str, ...]] = {
    kind: tuple(sorted(name for name, shape in fields.items() if shape in _BLOBS))
    for kind, fields in KINDS.items()
    if any(shape in _BLOBS for shape in fields.values())
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
_BODY_TESTS: dict[str, _Tests] = {
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
    return _fault(kind, body, KINDS[kind], _BODY_TESTS[kind])


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
