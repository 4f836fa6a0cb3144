"""Text for a terminal or a pipe: aligned columns, amounts in words, and names that cannot steer a terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.core.money import PICO_PER_USD, Usd

# C0, DEL and C1 steer terminals; bidi overrides reorder what is read; a lone surrogate cannot be written at all
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_OUTPUT = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_ZERO_WIDTH = frozenset({"Mn", "Me", "Cf"})
_NS = 1_000_000_000
_GAP = "  "
# a column that is narrower than this is harder to read than a line that goes on beyond the edge
_NARROWEST = 8


def safe(text: str) -> str:
    """A name or message on one line, with every character that a terminal would act on written as an escape."""
    return _UNSAFE.sub(_escaped, text)


def safe_output(text: str) -> str:
    """As `safe`, for text of several lines: newlines and tabs stay."""
    return _UNSAFE_IN_OUTPUT.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def width(text: str) -> int:
    """Columns that a terminal gives to the text."""
    return sum(
        2 if unicodedata.east_asian_width(c) in "WF" else unicodedata.category(c) not in _ZERO_WIDTH for c in text
    )


def screen() -> int | None:
    """Columns of the terminal that standard output is; None where it is none, and lines may be of any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Collection[int] = ()) -> list[str]:
    """Lines of aligned columns; None is a dash; columns whose index is in `right` are flush right.

    On a terminal, cells go on in further lines, broken between words, where the columns would not fit beside each
    other.
    """
    cells = [list(head), *([_cell(value) for value in row] for row in rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(head))]
    limit = screen()
    if limit is not None:
        widths = _fitted(cells, widths, limit - len(_GAP) * (len(head) - 1))
    return [line for row in cells for line in _row(row, widths, right)]


def _row(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> list[str]:
    wrapped = [_wrapped(text, widths[column]) for column, text in enumerate(row)]
    lines = []
    for number in range(max(map(len, wrapped))):
        padded = []
        for column, parts in enumerate(wrapped):
            text = parts[number] if number < len(parts) else ""
            gap = " " * (widths[column] - width(text))
            padded.append(gap + text if column in right else text + gap)
        lines.append(_GAP.join(padded).rstrip())
    return lines


def _fitted(cells: Sequence[Sequence[str]], widths: Sequence[int], room: int) -> list[int]:
    """Widths that fit into the room, taken from the widest columns; none below its longest word."""
    fitted = list(widths)
    least = [
        max(_NARROWEST, *(width(word) for row in cells for word in row[column].split(" ")))
        for column in range(len(fitted))
    ]
    while sum(fitted) > room:
        widest = max(range(len(fitted)), key=lambda column: (fitted[column] > least[column], fitted[column]))
        if fitted[widest] <= least[widest]:
            break
        fitted[widest] -= 1
    return fitted


def _wrapped(text: str, columns: int) -> list[str]:
    if width(text) <= columns:
        return [text]
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if not lines[-1] or width(longer) <= columns:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def fitted(line: str, indent: int) -> list[str]:
    """On a terminal, a line as parts that fit beside `indent` columns, broken between words; elsewhere the line."""
    limit = screen()
    if limit is None:
        return [line]
    text = line.lstrip(" ")
    lead = line[: len(line) - len(text)]
    return [lead + part for part in _wrapped(text, max(limit - indent - len(lead), _NARROWEST))]


def needed(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    """Columns that a terminal must have for `table` to go on in no further lines."""
    cells = [list(head), *([_cell(value) for value in row] for row in rows)]
    return sum(max(width(row[column]) for row in cells) for column in range(len(head))) + len(_GAP) * (len(head) - 1)


def field(name: str, text: str, indent: int = 11) -> list[str]:
    """`name       text`; on a terminal, a text that is too long goes on below itself, broken between words."""
    limit = screen()
    parts = [text] if limit is None else _wrapped(text, max(limit - indent, _NARROWEST))
    return [f"{'' if number else name:{indent}}{part}".rstrip() for number, part in enumerate(parts)]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else safe(str(value))


def plain(value: Any) -> str:
    """A JSON value in words: texts as they are, lists divided by commas, tables as `name: value`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {plain(held)}" for name, held in value.items() if held is not None)
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value)) or "none"
    return "none" if value is None else json.dumps(value, default=str)


def with_model(model: str | None, what: str) -> str:
    """An arm, or a pair of them, with the model that it ran with, where there is one."""
    return what if model is None else f"{model} · {what}"


def count(number: int, one: str, several: str | None = None) -> str:
    """`1 trial`, `2,000 trials`; `several` is the plural where it is not made by an s."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def moment(time: str) -> str:
    """A time of the journal without what is below a second."""
    return f"{time.partition('.')[0]}Z" if "." in time else time


def seconds(ns: int | None) -> str | None:
    """`1234567890` → `1.23 s`, longer times in minutes and hours; None stays None."""
    if ns is None:
        return None
    if ns < 60 * _NS:
        return f"{ns / _NS:.2f} s"
    minutes, rest = divmod(round(ns / _NS), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m{rest:02d}s" if hours else f"{minutes}m{rest:02d}s"


def amount(size: int | float) -> str:
    """Bytes with a binary unit: `1536` → `1.5 KiB`."""
    value = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return count(round(value), "byte") if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def dollars(amount: Usd) -> str:
    """Money for people: `$12.35`, and below a dollar four digits that say something: `$0.001234`, `$0.50`."""
    pico, decimals = abs(amount.pico), 2
    if 0 < pico < PICO_PER_USD:
        decimals = max(2, 12 - len(str(pico)) + 4)
    unit = 10 ** max(0, 12 - decimals)
    whole, part = divmod((pico + unit // 2) // unit, PICO_PER_USD // unit)
    shown = f"{part:0{min(12, decimals)}d}"
    shown = shown[:2] + shown[2:].rstrip("0")
    return f"{'-' if amount.pico < 0 else ''}${whole:,}.{shown}"


def short_path(path: Path) -> str:
    """Relative to the current folder where it lies below it."""
    try:
        whole, here = path.absolute(), Path.cwd()
    except FileNotFoundError:
        return str(path)  # the current folder is gone
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)


def command(*words: str) -> str:
    """A command line that can be pasted. Where its first word is `proctor`, it starts the one that runs now."""
    if words[0] == "proctor":
        return f"{program()} {shlex.join(words[1:])}"
    return shlex.join(words)


def program() -> str:
    """How the command that runs now is typed: `proctor` where the shell would find this one, else as it was started."""
    started = Path(sys.argv[0]) if sys.argv else Path()
    found = shutil.which("proctor")
    if started.name == "__main__.py" and started.parent.name == "proctor":
        beside = Path(sys.executable).with_name("proctor")
        if found is None or not _same(Path(found), beside):
            return shlex.join([short_path(Path(sys.executable)), "-m", "proctor"])
    elif started.name == "proctor" and started.is_file() and (found is None or not _same(Path(found), started)):
        path = short_path(started)
        return shlex.quote(path if os.sep in path else f".{os.sep}{path}")
    return "proctor"


def typable(text: str) -> str:
    """Prose in which each `` `proctor …` `` names the command that runs now."""
    return text.replace("`proctor ", f"`{program()} ")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
