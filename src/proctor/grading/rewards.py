"""Rewards: one number in `reward.txt`, or a flat object of numbers in `reward.json`, or both where they agree."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from proctor.core import strictjson
from proctor.core.canonical import MAX_SAFE_INTEGER, encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.files import MAX_REWARD_BYTES, Absent, Content, NotAFile, TooLarge, VerdictFile

Number = int | float

REWARD_KEY = "reward"
# A grade stands in a journal entry, which has 65,535 bytes for everything.
MAX_RECORD_BYTES = 32_768

_SPACE = b" \t\r\n\v\f"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_SHOWN = 60


@dataclass(frozen=True)
class Rewards:
    """What the reward files say: integers stay integers, other numbers are doubles; never NaN, infinite or -0.0."""

    values: Mapping[str, Number]


def read_rewards(reward_txt: VerdictFile, reward_json: VerdictFile) -> Rewards:
    """Read both files; `reward.txt` is the key `reward`, and where both have that key they must be equal.

    Raises:
        Refusal: `reward_missing`, `reward_too_large`, `reward_unreadable` or `verdicts_disagree`. One unusable file
            is enough: the other one may be what a crash left behind.
    """
    text = _content(reward_txt, "reward.txt")
    document = _content(reward_json, "reward.json")
    if text is None and document is None:
        raise Refusal(Reason.REWARD_MISSING, "the verifier wrote neither reward.txt nor reward.json")
    number = None if text is None else parse_reward_text(text)
    values = {} if document is None else parse_reward_json(document)
    if number is not None:
        named = values.get(REWARD_KEY, number)
        if named != number:
            raise Refusal(
                Reason.VERDICTS_DISAGREE,
                f"reward.txt says {number!r}, reward.json says {named!r}",
                observed={"reward.txt": number, "reward.json": named},
                required="one of them, or the same number in both",
            )
        values.setdefault(REWARD_KEY, number)
    if len(encode(values)) > MAX_RECORD_BYTES:
        raise Refusal(
            Reason.REWARD_TOO_LARGE,
            "reward.json names more numbers than a journal entry can hold",
            path="reward.json",
            observed={"keys": len(values)},
            required={"record_bytes": MAX_RECORD_BYTES},
        )
    return Rewards(values)


def parse_reward_text(data: bytes) -> Number:
    """The number of a `reward.txt`: one finite decimal, white space around it allowed.

    Raises:
        Refusal: `reward_unreadable`.
    """
    text = data.strip(_SPACE).decode("ascii", "backslashreplace")
    number = parse_decimal(text)
    if number is None:
        _unreadable("reward.txt", "is not one finite decimal number", text[:_SHOWN])
    return number


def parse_decimal(text: str) -> Number | None:
    """A plain decimal as an integer or a double; None where it is none, or where reading it would change it.

    Changed would be an integer beyond 2^53 - 1, a number that overflows, and one that vanishes into zero.
    """
    if not _DECIMAL.fullmatch(text):
        return None
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("+-").lstrip("0")
        return _recordable(int(text)) if len(digits) <= 16 else None
    number = float(text)
    if number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        return None
    return _recordable(number)


def parse_reward_json(data: bytes) -> dict[str, Number]:
    """The named numbers of a `reward.json`: a flat object of finite numbers, at least one.

    Raises:
        Refusal: `reward_unreadable`.
    """
    try:
        document = strictjson.loads(data, max_bytes=MAX_REWARD_BYTES)
    except Refusal as refusal:
        raise Refusal(
            Reason.REWARD_UNREADABLE, f"reward.json: {refusal.message}", path="reward.json", observed=refusal.observed
        ) from refusal
    if not isinstance(document, dict) or not document:
        _unreadable("reward.json", "is not an object of numbers", type(document).__name__)
    values: dict[str, Number] = {}
    for key, value in document.items():
        # A boolean is an int to Python, and no number to anybody who reads the record.
        number = None if isinstance(value, bool) or not isinstance(value, int | float) else _recordable(value)
        if number is None:
            _unreadable("reward.json", "has a value that is no finite number", key[:_SHOWN])
        values[key] = number
    return values


def _recordable(number: Number) -> Number | None:
    if isinstance(number, int):
        return number if abs(number) <= MAX_SAFE_INTEGER else None
    return number + 0.0 if math.isfinite(number) else None


def _content(file: VerdictFile, name: str) -> bytes | None:
    match file:
        case Absent():
            return None
        case TooLarge(size=size):
            _too_large(name, size)
        case NotAFile(kind=kind):
            _unreadable(name, "is not a regular file", kind)
        case Content(data=data):
            if len(data) > MAX_REWARD_BYTES:
                _too_large(name, len(data))
            return data


def _too_large(name: str, size: int) -> NoReturn:
    raise Refusal(
        Reason.REWARD_TOO_LARGE,
        f"{name} has {size} bytes",
        path=name,
        observed={"bytes": size},
        required={"bytes": MAX_REWARD_BYTES},
    )


def _unreadable(name: str, what: str, seen: str) -> NoReturn:
    raise Refusal(Reason.REWARD_UNREADABLE, f"{name} {what}", path=name, observed=seen)
