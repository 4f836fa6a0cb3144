"""What the launcher and keepers may answer, exactly.

They do their work beside programs that nobody trusts. So an answer is taken only where it has these keys, with values
of these types in these ranges; all else is the answer of something that is no launcher any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proctor.core.reasons import Reason
from proctor.sandbox.namespace.launcher.wire import MOST_SAID, Message

# Why a keeper refuses a request, and what that is to the runner.
REFUSED = {
    "unsafe": Reason.PATH_UNSAFE,
    "no_user": Reason.INVALID_VALUE,
    "unreadable": Reason.FILE_UNREADABLE,
    "place": Reason.PATH_UNSAFE,
    "unopened": Reason.OUT_UNUSABLE,
    "output": Reason.OUT_UNUSABLE,
    "fault": Reason.SANDBOX_LOST,
}
LONGEST_PATH = 4095

_ORDINARY_BYTES = 1 << 16
# a path of JSON in which every byte is escaped
_BYTES_FOR_FILE = 6 * LONGEST_PATH + 1024
_MOST = 2**62

Check = Callable[[Any], bool]


def _whole(low: int, high: int) -> Check:
    return lambda value: type(value) is int and low <= value <= high


def _text(most: int) -> Check:
    return lambda value: type(value) is str and len(value) <= most and _is_encodable(value)


def _one_of(*choices: Any) -> Check:
    return lambda value: any(type(value) is type(choice) and value == choice for choice in choices)


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_fetched(rows: Any) -> bool:
    return type(rows) is list and all(type(row) is list and len(row) == 3 and _is_row(*row) for row in rows)


def _is_row(path: Any, size: Any, skipped: Any) -> bool:
    # what is skipped may have a name that is no UTF-8
    named = type(path) is str and len(path) <= LONGEST_PATH and (skipped is not None or _is_encodable(path))
    return named and _whole(0, _MOST)(size) and _or_none(_text(MOST_SAID))(skipped)


_ERRNO = _whole(0, 4095)
_SAID = _text(MOST_SAID)
_PID = _whole(1, 2**31)
_COUNT = _or_none(_whole(0, 2**31))
_REFUSAL: dict[str, Check] = {"refused": _one_of(*REFUSED), "text": _SAID, "errno": _ERRNO}
_ENDED: dict[str, Check] = {
    "exit_code": _or_none(_whole(0, 255)),
    "signal": _or_none(_whole(1, 64)),
    "timed_out": _one_of(True, False),
    "duration_ns": _whole(0, _MOST),
    "output_bytes": _whole(0, _MOST),
    "output_dropped": _whole(0, _MOST),
    "leftovers": _COUNT,
    "limit_hit": _one_of(None, "memory", "pids", "storage"),
    "start_error": _or_none(_text(2 * MOST_SAID)),
}
_SHAPES: dict[str, tuple[dict[str, Check], ...]] = {
    "start": ({"pid": _PID}, {"failed": _text(100), "errno": _ERRNO, "text": _text(5_000)}),
    "probe": ({"stage": _or_none(_text(100)), "errno": _ERRNO},),
    "mounted": ({"pid": _PID, "errno": _ERRNO, "text": _SAID},),
    "exec": (_ENDED, _REFUSAL),
    "signal": ({"count": _COUNT}, _REFUSAL),
    "put": ({"done": _one_of(True)}, _REFUSAL),
    "get": ({"fetched": _is_fetched}, _REFUSAL),
    "listen": ({"port": _whole(1, 65_535)}, _REFUSAL),
}
_BROKE: dict[str, Check] = {"broke": _text(500)}


def most_bytes(request: Message) -> int:
    """How long the answer to a request may be."""
    if request["op"] != "get":
        return _ORDINARY_BYTES
    return int(_ORDINARY_BYTES + _BYTES_FOR_FILE * (request["cap_files"] + len(request["paths"]) + 1))


def what_is_wrong(request: Message, answer: Message) -> str | None:
    """Why an answer cannot be taken, in words; None where it can."""
    if _fits(answer, _BROKE):
        return f"a fault of its own: {answer['broke']}"
    if not any(_fits(answer, shape) for shape in _SHAPES[request["op"]]):
        return "its answer has another form than answers have"
    if "exit_code" in answer and not _is_one_end(answer):
        return "its answer contradicts itself"
    if "fetched" in answer and not _is_wanted(answer["fetched"], request["paths"]):
        return "it names files that nobody asked for"
    return None


def _fits(answer: Message, shape: Mapping[str, Check]) -> bool:
    return answer.keys() == shape.keys() and all(check(answer[key]) for key, check in shape.items())


def _is_one_end(answer: Message) -> bool:
    ends = (answer["exit_code"], answer["signal"], answer["start_error"])
    return sum(end is not None for end in ends) == 1


def _is_wanted(rows: list[list[Any]], wanted: list[str]) -> bool:
    """Whether each path is one that was asked for or lies below one, by its words alone."""
    tops = [path.strip("/").split("/") if path.strip("/") else [] for path in wanted]
    for path, _, _ in rows:
        parts = path.strip("/").split("/") if path.strip("/") else []
        if not path.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in path:
            return False
        if not any(parts[: len(top)] == top for top in tops):
            return False
    return True
