"""What is said of public copies."""

from __future__ import annotations

from pathlib import Path

from builder import Story
from money_stories import money_story
from plants import flip
from plants_edges import NOBODY
from plants_withheld import withhold, withhold_one_blob
from steps import Step
from verdicts import case, spoiled

spoiled("a public copy")(withhold)
spoiled("a public copy that leaves out little")(withhold_one_blob)


@case("a public copy of a run that spent money", story=money_story, spoil=withhold)
def _(s: Story) -> None:
    pass


@case("little left out of a run that spent money", story=money_story, spoil=withhold_one_blob)
def _(s: Story) -> None:
    pass


@case("an end of nobody's attempt, in a public copy", "attempts.admitted", spoil=withhold)
def _(s: Story) -> None:
    ended = s.find("attempt.ended").body
    s.insert_after(s.find("block.ended"), Step("attempt.ended", {**ended, "attempt": NOBODY}))


def _not_zeros(folder: Path) -> None:
    withhold(folder)
    flip(folder / "packs/0001.pack", -1)


def _last_frame_of(s: Story, length: int) -> None:
    s.repack()
    refs = [ref for step in s.entries() for ref in step.body.values() if isinstance(ref, dict) and "pack" in ref]
    last = max(ref["offset"] for ref in refs)
    s.packs["0001.pack"][last:] = bytes(length)
    for ref in refs:
        if ref["offset"] == last:
            ref.update(length=length, encoding="gzip")


@case("the longest frame that may be, in a public copy that has the end of it", "withheld.named", spoil=_not_zeros)
def _(s: Story) -> None:
    _last_frame_of(s, 2 << 20)


@case("a frame that is longer, in a public copy that has the end of it", "packs.frames", spoil=_not_zeros)
def _(s: Story) -> None:
    _last_frame_of(s, (2 << 20) + 1)
