"""Pushes at the edges of their rules: what is as early, or as late, as may be."""

from __future__ import annotations

from anchored import START, anchored, anchored_story
from builder import Story
from plants import Plants
from primitives import Body
from steps import Step

PLANTS = Plants(anchored_story)
plant = PLANTS.before_sealing


@plant("anchors.chronology", "a commit, and ended before it started")
def _(s: Story) -> None:
    def swap(body: Body) -> None:
        body.update(started=body["ended"], ended=body["started"])

    anchored(s).made_at("git")[0].receipt = swap


def at_once(s: Story) -> None:
    """No fault: two pushes start and end as one, and the clock that the commits are written by is coarse."""
    first, second = anchored(s).made_at("git")[:2]
    second.started, second.ended = first.started, first.ended


def as_late_as_may_be(s: Story) -> None:
    """No fault: a commit is made in the second in which its push ends, one in that in which it starts."""
    for push, second in zip(anchored(s).made_at("git"), (0, 2), strict=False):
        was = b"%d +0000" % (START + push.started + 1)
        now = b"%d +0000" % (START + push.started + second)
        push.commit = lambda data, was=was, now=now: data.replace(was, now)


def failed_and_was_there_again(s: Story) -> None:
    """No fault: one anchor takes a checkpoint, the other fails and takes it all the same, and a block is admitted."""
    drop, git = (s.find("checkpoint.anchored", 2, anchor=anchor) for anchor in ("drop", "git"))
    s.drop(git)
    s.insert_after(drop, Step("anchor.failed", dict(s.find("anchor.failed").body)), git)


SOUND = [at_once, as_late_as_may_be, failed_and_was_there_again]
