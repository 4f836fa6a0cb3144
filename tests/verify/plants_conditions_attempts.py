"""Attempts at the edges of their rules: how their folders are called, and what may be graded and not completed."""

from __future__ import annotations

from builder import Story
from money_stories import money_story
from plants import Plants
from plants_conditions_files import unplanned
from plants_spent import interrupted_before_it_was_said
from steps import Step
from stories import full_story

PLANTS = Plants(money_story)
plant = PLANTS.before_sealing
FULL = Plants(full_story)

# Of an attempt at a row, in whose folder nothing stands.
for _what, _folder in {
    "too short": "trials/{0}",
    "too long": "trials/{0}/0/more",
    "elsewhere": "runs/{0}/0",
    "another number": "trials/{0}/1",
    "a name with a NUL": "trials/\0{0}/0",
}.items():

    @plant("attempts.joined", f"a folder that is {_what}")
    def _(s: Story, folder: str = _folder) -> None:
        body = s.find("attempt.admitted", task="row-0").body
        body["folder"] = folder.format(body["folder"].split("/")[1])


def _graded_and_interrupted(s: Story, exception: str) -> None:
    """The attempt that was refused its money is cut off when that was said of it, and before it ended."""
    refused, graded = s.find("exchange.refused"), s.find("attempt.graded", reason="ceiling_reached")
    interrupted_before_it_was_said(s, exception)
    s.insert_after(s.find("agent.started", attempt=graded.body["attempt"]), refused, graded)
    end = s.find("run.ended").body
    end["totals"]["finals"] -= 1
    end["totals"]["ungraded"] -= 1


@plant("attempts.graded", "and interrupted")
def _(s: Story) -> None:
    _graded_and_interrupted(s, "interrupted")


def graded_and_cut_off_by_a_full_disk(s: Story) -> None:
    """No fault: nothing more could be said."""
    _graded_and_interrupted(s, "disk_full")


@FULL.before_sealing("worlds.planned", "an agent's world starts when all is over")
def _(s: Story) -> None:
    ended = s.find("verifier.ended")
    world = s.find("sandbox.started", attempt=ended.body["attempt"], role="agent")
    s.drop(world)
    s.insert_after(ended, world)


@FULL.before_sealing("attempts.joined", "an agent and a world that no design plans, of a trial that none plans")
def _(s: Story) -> None:
    unplanned(s, "trials/task-00000000/0")
    ended = s.find("attempt.ended")
    own = {"attempt": ended.body["attempt"]}
    world, agent = s.find("sandbox.started", role="agent").body, s.find("agent.started").body
    facts = {**world["facts"], "kind": "docker", "network": "public"}
    s.insert_before(
        ended,
        Step("sandbox.started", {**world, **own, "facts": facts}),
        Step("agent.started", {**agent, **own, "agent": "nop"}),
    )


@FULL.before_sealing("blocks.ended", "one that is not planned, when the last that is planned is about to end")
def _(s: Story) -> None:
    last = s.drawn().index(max(s.drawn(), key=lambda place: (place[0], place[2])))
    s.insert_before(s.find("block.ended", block=last), Step("block.ended", {"block": 99}))


SOUND = (graded_and_cut_off_by_a_full_disk,)
PLANTS += FULL
