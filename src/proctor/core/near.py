"""Names that are nearly right: the known one that somebody may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is nearest; None where none is as near as `cutoff`, from 0 (any) to 1 (the same)."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)), None)


def closest_hint(name: str, known: Iterable[str]) -> str:
    """What a message about an unknown name ends with: the one that is near, or nothing."""
    near = closest(name, known)
    return "" if near is None else f"; the closest is {near!r}"
