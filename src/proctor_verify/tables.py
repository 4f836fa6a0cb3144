"""The grades of a run by model and arm, as its journal adds up to: figures, and a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proctor_verify.vocabulary import GRADES

MOST_ROWS = 30
# two names and five figures make 80 columns
_LONGEST_NAME = 15
_COLUMNS = ("planned", *GRADES, "no final")


@dataclass(frozen=True, slots=True)
class Group:
    """What the trials of one model and arm came to; `counts` has, of each column of the table, how many."""

    model: str | None
    arm: str
    counts: tuple[int, ...]

    @classmethod
    def of(cls, model: str | None, arm: str, planned: int, grades: Sequence[int]) -> Group:
        """From how many trials are planned, and how many finals have each grade, in the order of `GRADES`."""
        return cls(model, arm, (planned, *grades, planned - sum(grades)))

    def to_json(self) -> dict[str, Any]:
        """The same, as JSON values."""
        named = {name.replace(" ", "_"): count for name, count in zip(_COLUMNS, self.counts, strict=True)}
        return {"model": self.model, "arm": self.arm, **named}


def table(groups: Sequence[Group]) -> list[str]:
    """A line for each group, the first of them where there are many; of a run without models none are named."""
    shown = groups[:MOST_ROWS]
    with_model = any(group.model is not None for group in shown)
    names = [(*([group.model or "none"] if with_model else []), group.arm) for group in shown]
    rows = [([_cut(name) for name in named], group.counts) for named, group in zip(names, shown, strict=True)]
    heads = ["model", "arm"] if with_model else ["arm"]
    rooms = [max(len(head), *(len(row[i]) for row, _ in rows)) for i, head in enumerate(heads)]
    lines = [_line(heads, _COLUMNS, rooms)]
    lines += [_line(row, [f"{count:,}" for count in counts], rooms) for row, counts in rows]
    return [*lines, f"  and {len(groups) - len(shown):,} more"] if len(groups) > len(shown) else lines


def _line(names: Sequence[str], figures: Sequence[str], rooms: Sequence[int]) -> str:
    left = "  ".join(f"{name:<{room}}" for name, room in zip(names, rooms, strict=True))
    right = "  ".join(f"{figure:>{max(6, len(head))}}" for head, figure in zip(_COLUMNS, figures, strict=True))
    return f"  {left}  {right}"


def _cut(name: str) -> str:
    plain = "".join(c if c.isprintable() else "?" for c in name)
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"
