"""How often Python looks for garbage that refers to itself: for processes that are ours, never for who imports us."""

from __future__ import annotations

import gc

# With the usual 700, an eighth of a busy gateway's CPU went into looking at exchanges that were still under way.
_NEW_OBJECTS = 5_000


def collect_seldom() -> None:
    """From here on after so many new objects, in this process."""
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
