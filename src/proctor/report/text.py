"""Text for a terminal or a pipe: aligned columns, amounts in words, and names that cannot steer a terminal."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

# C0, DEL and C1 steer terminals; bidi overrides reorder what is read; a lone surrogate cannot be written at all
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_OUTPUT = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_ZERO_WIDTH = frozenset({"Mn", "Me", "Cf"})
_NS = 1_000_000_000


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


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Collection[int] = ()) -> list[str]:
    """Lines of aligned columns; None is a dash; columns whose index is in `right` are flush right."""
    cells = [list(head), *([_cell(value) for value in row] for row in rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(head))]
    lines = []
    for row in cells:
        padded = []
        for column, text in enumerate(row):
            gap = " " * (widths[column] - width(text))
            padded.append(gap + text if column in right else text + gap)
        lines.append("  ".join(padded).rstrip())
    return lines


def _cell(value: Any) -> str:
    return "-" if value is None else safe(str(value))


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
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def short_path(path: Path) -> str:
    """Relative to the current folder where it lies below it."""
    try:
        whole, here = path.absolute(), Path.cwd()
    except FileNotFoundError:
        return str(path)  # the current folder is gone
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)


def command(*words: str) -> str:
    """A command line that can be pasted."""
    return shlex.join(words)
