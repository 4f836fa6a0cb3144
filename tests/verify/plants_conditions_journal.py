"""Journals at the edges of their rules: clocks that stand still or begin anew, an attempt that lives on."""

from __future__ import annotations

from builder import Story
from plants import Plants

PLANTS = Plants()
plant = PLANTS.before_sealing


@plant("journal.recovered", "an attempt in flight is not named, and goes on")
def _(s: Story) -> None:
    going_on = s.find("agent.ended", -1)
    length = len(s.steps)
    s.resume(previous_ended=False)
    s.add("run.recovered", quarantined=[], lost=[])
    added = s.steps[length:]
    del s.steps[length:]
    s.insert_before(going_on, *added)


def a_clock_that_stands_still(s: Story) -> None:
    """No fault: two entries come at one moment."""
    s.find("run.unpaused").after = lambda entry: entry.update(mono=entry["mono"] - 10)


def a_clock_that_begins_anew(s: Story) -> None:
    """No fault: the machine was started anew between two openings."""
    s.find("run.resumed").mono = 0


SOUND = (a_clock_that_stands_still, a_clock_that_begins_anew)
