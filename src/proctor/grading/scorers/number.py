"""`number`: the last number in the answer is the target, exactly or within a tolerance.

A number: an optional sign (`-`, `−`, `+`, not right after a letter or digit), ASCII digits with a decimal point and
commas between groups of three, an exponent as `e5`, `× 10^5` or `\\times 10^{5}`, or a fraction `3/4` of two whole
numbers. Digits that follow a letter, a digit or `_` (`H2O`) begin none. Numbers are compared as exact fractions.

Units: where the target has none, whatever follows the answer's number is not looked at, a `%` neither. A target with
a unit (`5 km`) wants the same unit after the number, white space between or not, case included; a currency sign may
stand before the number. A target with `%` takes `%` or `percent`, and a number without a unit as the hundredth part:
`25%` is `0.25`. Nothing is converted.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from proctor.core.questions import Tolerance
from proctor.grading.scorers.base import Scored, is_number, right, shown, wrong

MAX_DIGITS = 400
MAX_EXPONENT = 400

_CURRENCY = "$€£¥"
# Possessive throughout, so that hostile digits cost linear time.
_NUMBER = re.compile(
    rf"(?P<before>[{_CURRENCY}]\s?)?"
    r"(?P<sign>(?<![\w.)\]])[-+−])?(?P<between>[" + _CURRENCY + r"]\s?)?"
    r"(?<![\w.])(?P<digits>[0-9]{1,3}+(?:,[0-9]{3}(?![0-9]))++(?:\.[0-9]++)?+|[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)"
    r"(?:/(?P<below>[0-9]++)(?![/0-9]|\.[0-9])"
    r"|[eE](?P<exponent>[-+−]?[0-9]++)(?![\w])"
    r"|\s?(?:[×x*·]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?(?P<brace>\{)?(?P<power>[-+−]?[0-9]++)(?(brace)\}))?+"
)
_UNIT_GOES_ON = re.compile(r"[\w/^*·%]")
_PERCENT = re.compile(r"\s*\\?(?:%|percent\b)", re.IGNORECASE)
_WINDOW = 4_096
_LONGEST = 2_048


@dataclass(frozen=True)
class _Found:
    value: Fraction | None
    text: str
    currency: str | None
    after: str


def check(target: Any) -> str | None:
    """What stands against the target."""
    if is_number(target):
        return None if _read_target(repr(target)) is not None else "the target is beyond what is compared"
    if not isinstance(target, str):
        return "the target of `number` is a number, or a string of a number and its unit"
    return None if _read_target(target) is not None else f"the target {shown(target)} is no number with a unit"


def score(target: Any, answer: str, tolerance: Tolerance | None) -> Scored:
    """Find the number, and compare."""
    wanted = _read_target(target if isinstance(target, str) else repr(target))
    if wanted is None:
        raise ValueError("the target was not checked")
    found = _last(answer)
    if found is None:
        return wrong("there is no number in the answer")
    if found.value is None:
        return wrong(f"{shown(found.text)} is beyond what is compared")
    value, unit = found.value, wanted.unit
    if unit == "%":
        value = value / 100 if _PERCENT.match(found.after) else value
    elif unit is not None and not _has_unit(found, unit):
        return wrong(f"{shown(found.text)} is not followed by the unit {unit!r}")
    text = f"{found.text} against {wanted.text}" + ("" if tolerance is None else f", {_within(tolerance)}")
    near = value == wanted.value if tolerance is None else tolerance.allows(value, wanted.value)
    return right(text) if near else wrong(text)


@dataclass(frozen=True)
class _Target:
    value: Fraction
    unit: str | None
    text: str


def _read_target(text: str) -> _Target | None:
    text = text.strip()
    match = _NUMBER.match(text)
    if match is None:
        return None
    found = _found(match, text)
    after = unicodedata.normalize("NFC", found.after.strip())
    if found.value is None or (found.currency and after):
        return None
    if _PERCENT.fullmatch(after):
        return _Target(found.value / 100, "%", text)
    if after and (len(after) > 40 or re.match(r"[\d,.]", after)):
        return None
    return _Target(found.value, after or found.currency, text)


def _last(answer: str) -> _Found | None:
    """The last number, looked for from the end, so that a long answer costs no more than its length."""
    end = 1 + max(answer.rfind(digit) for digit in "0123456789")
    window = _WINDOW
    while end:
        start = max(0, end - window)
        last = None
        for match in _NUMBER.finditer(answer, start, end + 1):
            # what starts near the window's edge may be the rest of a number that was cut
            if start == 0 or match.start() >= start + _LONGEST:
                last = match
        if last is not None or start == 0:
            return None if last is None else _found(last, answer)
        window *= 8
    return None


def _found(match: re.Match[str], text: str) -> _Found:
    mark = match["before"] or match["between"]
    after = text[match.end() : match.end() + 64]
    return _Found(_value(match), match[0][:80], mark.strip() if mark else None, after)


def _value(match: re.Match[str]) -> Fraction | None:
    digits = match["digits"].replace(",", "")
    if len(digits) > MAX_DIGITS:
        return None
    value = Fraction(digits)
    if (exponent := match["exponent"] or match["power"]) is not None:
        exponent = exponent.replace("−", "-")
        if len(exponent) > 8 or abs(int(exponent)) > MAX_EXPONENT:
            return None
        value *= Fraction(10) ** int(exponent)
    if match["below"] is not None:
        below = match["below"]
        if len(below) > MAX_DIGITS or "." in digits or int(below) == 0:
            return None
        value /= int(below)
    return -value if match["sign"] in ("-", "−") else value


def _has_unit(found: _Found, unit: str) -> bool:
    if found.currency == unit:
        return True
    after = unicodedata.normalize("NFC", found.after.lstrip())
    return after.startswith(unit) and not _UNIT_GOES_ON.match(after[len(unit) : len(unit) + 1])


def _within(tolerance: Tolerance) -> str:
    return f"within {float(tolerance.amount):g}" + (" of it" if tolerance.relative else "")
