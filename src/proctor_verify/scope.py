"""How much of a stage a run is of: what was selected, and how many of the planned trials came to a final."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Scope:
    """`selection` is what was chosen of the stage, None where all of it is planned; `finals` is None where unknown."""

    selection: Mapping[str, Any] | None
    planned: int
    finals: int | None = None

    @property
    def complete(self) -> bool | None:
        """Whether each planned trial has its final; None where nobody knows."""
        return None if self.finals is None else self.finals == self.planned

    @property
    def marks(self) -> tuple[str, ...]:
        """What stands beside a verdict, so that nobody takes a part for the whole."""
        part = () if self.selection is None else ("PART",)
        if self.finals is None or self.finals == self.planned:
            return part
        return (*part, f"NOT COMPLETE ({self.finals:,} of {self.planned:,})")

    def selected(self) -> str | None:
        """What was selected, in words."""
        if self.selection is None:
            return None
        said = [f"limit {self.selection['limit']:,}"] if "limit" in self.selection else []
        said += [f"{name} {', '.join(self.selection[name])}" for name in ("arms", "models") if name in self.selection]
        return "; ".join(said) or "by nothing that is named"

    def caveats(self) -> Iterator[str]:
        """What stays open for want of the rest."""
        if self.selection is not None:
            yield f"anything of the whole stage: this is a PART of it, selected before it began ({self.selected()})"
        if self.finals is not None and self.finals < self.planned:
            missing = self.planned - self.finals
            easier = "; those that have one may be the easier ones" if self.finals else ""
            yield f"how the rest would have gone: {missing:,} of {self.planned:,} planned trials have no final{easier}"

    def to_json(self) -> dict[str, Any]:
        """The same, as JSON values."""
        return {
            "complete": self.complete,
            "finals": self.finals,
            "planned": self.planned,
            "selection": None if self.selection is None else dict(self.selection),
        }
