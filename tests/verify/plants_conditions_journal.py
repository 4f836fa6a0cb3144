"""Journals that look odd and are sound: clocks that stand still, or begin anew."""

from __future__ import annotations

from builder import Story
from plants import Plants

PLANTS = Plants()


def a_clock_that_stands_still(s: Story) -> None:
    """No fault: two entries come at one moment."""
    s.find("run.unpaused").after = lambda entry: entry.update(mono=entry["mono"] - 10)


def a_clock_that_begins_anew(s: Story) -> None:
    """No fault: the machine was started anew between two openings."""
    s.find("run.resumed").mono = 0


SOUND = (a_clock_that_stands_still, a_clock_that_begins_anew)
