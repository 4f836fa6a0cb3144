"""Faults that a rule alone finds, where those that are planted elsewhere break a second rule of the same check."""

from __future__ import annotations

import os
from pathlib import Path

from anchored import anchored, anchored_story, moment
from builder import Story
from plants import Plant, Plants

PLANTS = Plants()


@PLANTS.afterwards("journal.lines", "a tail that no newline ends, longer than what is read of a line")
def _(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    os.truncate(journal, journal.stat().st_size + (17 << 20))


def _ended_too_early(s: Story) -> None:
    """No push to that place came before, so that there is none that this one ended before."""
    anchored(s).made_at("drop")[0].receipt = lambda body: body.update(ended=moment(0))


PLANTS.append(Plant("anchors.chronology", "the first ended before it started", _ended_too_early, story=anchored_story))
