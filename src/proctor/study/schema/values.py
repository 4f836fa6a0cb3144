"""Values of a study file that are more than a string: each has one written form, read exactly or refused.

A validator here raises with a reason's id as pydantic error type, so that `problems` classifies by type and one
`Form` says in words what is wanted, for refusals and for the reference page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from proctor.core.canonical import MAX_SAFE_INTEGER
from proctor.core.money import ZERO, Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.anchors.places import BadAddress, check_drop, check_git
from proctor.grading.solved import parse_solved

T = TypeVar("T")


class Table(BaseModel):
    """A table of the study file: closed, strict, frozen."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())


@dataclass(frozen=True)
class Form:
    """What a value looks like: `words` say it in full, `brief` in the reference page where that explains it once.

    `unit` is what a default that was read into a number is written with.
    """

    words: str
    brief: str | None = None
    unit: str = ""


class Later:
    """Marks a key, or some values of it, that the schema has and this version cannot do yet."""

    def __init__(self, *values: str) -> None:
        self.values = frozenset(values)


# Strict mode takes no list for a tuple, and a TOML array is a list; what is inside stays strict.
Many = Annotated[tuple[T, ...], Field(strict=False)]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_DURATION = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?", re.ASCII)
_SECONDS = (86_400, 3_600, 60, 1)
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(B|KiB|MiB|GiB|TiB)", re.ASCII)
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SLICE = re.compile(r"[0-9]{0,15}:[0-9]{0,15}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_ENDPOINT = re.compile(r"solved|reward|cost|tokens|reward:.{1,200}|test:.{1,1000}")


def problem(reason: Reason, message: str, required: Any = None, *, secret: bool = False) -> PydanticCustomError:
    """A validator's "no"; with `secret` the value that was seen is not repeated anywhere."""
    return PydanticCustomError(reason.id, "{message}", {"message": message, "required": required, "secret": secret})


def _text(value: object, form: Form) -> str:
    if not isinstance(value, str):
        raise problem(Reason.WRONG_TYPE, f"must be {form.words}", form.words)
    if "\0" in value:
        raise problem(Reason.INVALID_VALUE, "holds a NUL character, which no program can be handed", form.words)
    return value


def _matching(pattern: re.Pattern[str], form: Form, *, secret: bool = False) -> PlainValidator:
    def check(value: object) -> str:
        text = _text(value, form)
        if not pattern.fullmatch(text):
            raise problem(Reason.INVALID_VALUE, f"must be {form.words}", form.words, secret=secret)
        return text

    return PlainValidator(check)


_NAME_FORM = Form("a name: letters, digits, `.`, `_`, `-`, at most 64, starting with a letter or digit", "a name")
Name = Annotated[str, _matching(NAME, _NAME_FORM), _NAME_FORM]

# what every wire format takes: others would fail at the first request
_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_TOOL_FORM = Form("the name of a tool: letters, digits, `_`, `-`, at most 64, starting with a letter", "a name")
ToolName = Annotated[str, _matching(_TOOL, _TOOL_FORM), _TOOL_FORM]

_TEXT_FORM = Form("a string that is not empty", "text")


def _filled(value: object) -> str:
    text = _text(value, _TEXT_FORM)
    if not text.strip():
        raise problem(Reason.INVALID_VALUE, "must not be empty", _TEXT_FORM.words)
    return text


Text = Annotated[str, PlainValidator(_filled), _TEXT_FORM]

_ANY_TEXT_FORM = Form("a string")
AnyText = Annotated[str, PlainValidator(lambda value: _text(value, _ANY_TEXT_FORM)), _ANY_TEXT_FORM]

_VARIABLE_FORM = Form("the name of an environment variable")
Variable = Annotated[str, _matching(_VARIABLE, _VARIABLE_FORM), _VARIABLE_FORM]
# Somebody will paste the key itself here: it must not end in a manifest.
KeyVariable = Annotated[str, _matching(_VARIABLE, _VARIABLE_FORM, secret=True), _VARIABLE_FORM]

_SHA256_FORM = Form("a SHA-256 digest, 64 lower-case hex digits")
Sha256 = Annotated[str, _matching(_SHA256, _SHA256_FORM), _SHA256_FORM]

_SLICE_FORM = Form('a slice such as "0:20" (either side may be empty)')
Slice = Annotated[str, _matching(_SLICE, _SLICE_FORM), _SLICE_FORM]

_ENDPOINT_FORM = Form("solved, reward, reward:<name>, test:<full name>, cost or tokens")
Endpoint = Annotated[str, _matching(_ENDPOINT, _ENDPOINT_FORM), _ENDPOINT_FORM]

_DURATION_FORM = Form('a duration such as "180s", "10m" or "1h30m"', "a duration", unit="s")


def duration(value: object) -> int:
    """Seconds of `"1h30m"`; whole, above zero, at most ten years. Raises PydanticCustomError."""
    text = _text(value, _DURATION_FORM)
    match = _DURATION.fullmatch(text) if len(text) <= 40 else None
    if match is None:
        raise problem(Reason.INVALID_VALUE, f"must be {_DURATION_FORM.words}", _DURATION_FORM.words)
    seconds = sum(int(n) * unit for n, unit in zip(match.groups(), _SECONDS, strict=True) if n is not None)
    if not 0 < seconds <= 3_650 * 86_400:
        raise problem(Reason.INVALID_VALUE, "must be above zero and at most ten years", _DURATION_FORM.words)
    return seconds


Duration = Annotated[int, PlainValidator(duration), _DURATION_FORM]

_SIZE_FORM = Form('a size such as "4 GiB" or "512 MiB"', "a size")


def size(value: object) -> int:
    """Bytes of `"4 GiB"`; whole, above zero, below 2^53. Raises PydanticCustomError."""
    text = _text(value, _SIZE_FORM)
    match = _SIZE.fullmatch(text) if len(text) <= 40 else None
    if match is None:
        raise problem(Reason.INVALID_VALUE, f"must be {_SIZE_FORM.words}", _SIZE_FORM.words)
    amount = Decimal(match.group(1)) * _UNITS[match.group(2)]
    if amount != int(amount) or not 0 < amount <= MAX_SAFE_INTEGER:
        raise problem(Reason.INVALID_VALUE, "must be a whole number of bytes above zero", _SIZE_FORM.words)
    return int(amount)


Size = Annotated[int, PlainValidator(size), _SIZE_FORM]

_MONEY_FORM = Form('US dollars as a decimal string such as "145.00", not negative', "money")


def money(value: object) -> Usd:
    """An exact amount that is not negative. Raises PydanticCustomError."""
    try:
        amount = Usd.parse(value)
    except Refusal as refusal:
        raise problem(refusal.reason, refusal.message, _MONEY_FORM.words) from refusal
    if amount < ZERO:
        raise problem(Reason.MONEY_INVALID, "an amount of money is negative", _MONEY_FORM.words)
    return amount


Money = Annotated[Usd, PlainValidator(money), _MONEY_FORM]

_SOLVED_FORM = Form('a rule such as "reward >= 1.0" (a key, one of >= > ==, a number), or "tests"')


def _solved(value: object) -> str:
    try:
        return str(parse_solved(_text(value, _SOLVED_FORM)))
    except Refusal as refusal:
        raise problem(refusal.reason, f"must be {_SOLVED_FORM.words}", _SOLVED_FORM.words) from refusal


Solved = Annotated[str, PlainValidator(_solved), _SOLVED_FORM]

_COMMAND_FORM = Form("a list of words, or one string for `sh -c`")


def _command(value: object) -> str | tuple[str, ...]:
    words = tuple(_text(word, _COMMAND_FORM) for word in (value if isinstance(value, list) else [value]))
    if not words or not words[0].strip():
        raise problem(Reason.INVALID_VALUE, "must name a program", _COMMAND_FORM.words)
    return words if isinstance(value, list) else words[0]


Command = Annotated[str | tuple[str, ...], PlainValidator(_command), _COMMAND_FORM]

_SCALAR_FORM = Form("a string, number or boolean")
_FREE_FORM = Form("any values but dates, NaN, infinities and integers beyond 2^53", "a free table")


def _scalar(value: object) -> str | int | float | bool:
    if not isinstance(value, str | int | float | bool):
        raise problem(Reason.WRONG_TYPE, f"must be {_SCALAR_FORM.words}", _SCALAR_FORM.words)
    _refuse_unjsonable(value)
    return value


def _free(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise problem(Reason.WRONG_TYPE, "must be a table", _FREE_FORM.words)
    pending: list[object] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)
        else:
            _refuse_unjsonable(each)
    return value


def _refuse_unjsonable(value: object) -> None:
    fits = isinstance(value, str) or (
        abs(value) <= MAX_SAFE_INTEGER if isinstance(value, int) else isinstance(value, float) and math.isfinite(value)
    )
    if not fits:
        raise problem(Reason.INVALID_VALUE, "has a value that JSON cannot hold exactly", _FREE_FORM.words)


Scalar = Annotated[str | int | float | bool, PlainValidator(_scalar), _SCALAR_FORM]
Free = Annotated[dict[str, Any], PlainValidator(_free), _FREE_FORM]


def _share(value: float) -> float:
    if not 0 < value < 1:
        raise problem(Reason.INVALID_VALUE, "must lie between 0 and 1, both left out", "0 < value < 1")
    return value


def _positive(value: float) -> float:
    if not 0 < value <= MAX_SAFE_INTEGER:
        raise problem(Reason.INVALID_VALUE, "must be a finite number above zero", "above zero")
    return value


Share = Annotated[float, AfterValidator(_share), Form("a number between 0 and 1")]
PositiveNumber = Annotated[float, AfterValidator(_positive), Form("a number above zero")]
Count = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER), Form("a whole number, from 0")]
PositiveCount = Annotated[int, Field(ge=1, le=1_000_000), Form("a whole number, from 1")]


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    for place, value in enumerate(values):
        if value in values[:place]:
            raise problem(Reason.DUPLICATE_NAME, f"{value!r} stands twice", "each once")
    return values


Names = Annotated[Many[Name], AfterValidator(_unique)]


def _pair(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) != 2 or len(values) != 2:
        raise problem(Reason.INVALID_VALUE, "must name two different arms", "treatment and baseline")
    return values


Pair = Annotated[Many[Name], AfterValidator(_pair)]

_GIT_FORM = Form("the address of a git repository", "a git address")
_FOLDER_FORM = Form("a path of a folder")


def _address(check: Callable[[str], str], form: Form) -> PlainValidator:
    def checked(value: object) -> str:
        try:
            return check(_text(value, form))
        except BadAddress as error:
            raise problem(Reason.INVALID_VALUE, str(error), form.words, secret=error.secret) from error

    return PlainValidator(checked)


GitAddress = Annotated[str, _address(check_git, _GIT_FORM), _GIT_FORM]
FolderPath = Annotated[str, _address(check_drop, _FOLDER_FORM), _FOLDER_FORM]


def _prompt(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


PromptShorthand = BeforeValidator(_prompt)
