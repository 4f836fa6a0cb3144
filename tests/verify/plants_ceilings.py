"""Money at the edges of its rules: on the line, in the third opening, of one model and not of another."""

from __future__ import annotations

from builder import Story
from expected import spent
from money_stories import bare_story, money_design, money_story
from plants import Plants
from plants_spent import free_story, interrupted_before_it_was_said
from primitives import Signer, money, picodollars
from steps import Step

NOTHING = money(0)


def refused_story(signer: Signer | None = None) -> Story:
    """Opening 1 says that the ceiling is reached. 2 says nothing of it; 3 ends what is left, and says it again."""
    s = Story(money_design(), signer=signer or Signer())
    s.admit()
    s.block(0)
    for number, arm in enumerate(s.arms(0)):
        attempt = s.start(0, arm)
        if not number:
            s.reached("ceiling", "0.200000000000")
        s.refuse(attempt, "ceiling_reached", "0.200000000000")
        s.run_out(attempt, "ceiling_reached")
        s.end(attempt, exception="ceiling_reached")
        s.final(attempt)
    s.add("run.draining", cause="ceiling_reached")
    s.stop(4, "ceiling_reached")
    s.checkpoint(named=False)
    for _ in range(2):
        s.resume(previous_ended=True)
        s.add("checkpoint.made")
        s.add("run.draining", cause="SIGINT")
        s.stop(130, "interrupted")
        s.checkpoint(named=False)
    length = len(s.steps)
    s.block(0)
    s.find("block.admitted", -1).body["reserve"] = NOTHING
    s.add("block.ended", block=0)
    s.reached("ceiling", "0.000000000001")
    added = s.steps[length:]
    del s.steps[length:]
    s.insert_before(s.find("run.draining", -1), *added)
    return s


PLANTS = Plants(money_story)
plant = PLANTS.before_sealing
REFUSED = Plants(refused_story)
FREE = Plants(free_story)
BARE = Plants(bare_story)

for _opening in (1, 2):

    @REFUSED.before_sealing("budget.blocks", f"after an opening said that none is admitted, {_opening} before this")
    def _(s: Story, nth: int = _opening) -> None:
        s.block(1)
        s.insert_before(s.find("run.draining", nth), s.steps.pop())


# Blocks.


@plant("budget.blocks", "a reserve for a block of which nothing is left to run")
def _(s: Story) -> None:
    end = s.find("block.ended", block=0)
    s.drop(end)
    again = Step("block.admitted", dict(s.find("block.admitted").body))
    s.insert_before(s.find("block.admitted", 1, block=1), again, end)


def _reached(s: Story, before: Step, scope: str, wanted: str, model: str | None = None) -> None:
    """It is said before a step that a limit is reached."""
    s.reached(scope, wanted, model)
    s.insert_before(before, s.steps.pop())


def _cap(s: Story, model: int, picos: int) -> None:
    """A model's cap is that, in steps of a dollar."""
    s.design["budget"]["cap_quantum"] = "1.000000000000"
    s.design["budget"]["models"][model]["cap"] = money(picos)


def _cap_at_the_last_block(s: Story, off: int) -> None:
    last = s.find("block.admitted", block=2)
    _cap(s, 0, picodollars(spent(s, last, "model-0")) + picodollars(last.body["reserve"]) + off)


def up_to_the_cap_of_its_model(s: Story) -> None:
    """No fault: the last block takes all that its model's cap leaves."""
    _cap_at_the_last_block(s, 0)


@plant("budget.blocks", "a picodollar past the cap of its model")
def _(s: Story) -> None:
    _cap_at_the_last_block(s, -1)


@plant("budget.blocks", "of a model of which it was said that no more fits")
def _(s: Story) -> None:
    """It did not as long as the block before had not given back what it did not use."""
    _cap_at_the_last_block(s, 0)
    _reached(s, s.find("block.ended", block=1), "model_cap", "0.020000000000", "model-0")


def the_caps_of_two_models(s: Story) -> None:
    """No fault: what is said of one model's cap keeps no block of another back, and then it is said of that."""
    _cap(s, 1, 11_200_000_000)
    _reached(s, s.find("block.admitted", block=2), "model_cap", "0.010000000000", "sham")
    _reached(s, s.find("run.draining"), "model_cap", "0.020000000000", "model-0")


@plant("budget.whole", "a model that has no share, and blocks of it that set nothing aside")
def _(s: Story) -> None:
    s.design["budget"]["models"].pop()
    for step in s.entries():
        if step.kind == "block.admitted" and step.body["model"] == "sham":
            step.body["reserve"] = NOTHING


@BARE.before_sealing("budget.there", "no budget, and a model whose requests cost money, whatever is in them")
def _(s: Story) -> None:
    del s.design["budget"]
    for model in s.design["models"]:
        for row in model["price"]["rows"]:
            row["usd_per_million"] = NOTHING
    s.design["models"][0]["price"]["per_request"] = money(1)


# What is said of limits.


@plant("ceiling.disclosed", "a model's cap twice")
def _(s: Story) -> None:
    for _ in range(2):
        _reached(s, s.find("run.draining"), "model_cap", "0.020000000000", "model-0")


@plant("ceiling.disclosed", "a model's cap, of no model")
def _(s: Story) -> None:
    _reached(s, s.find("run.draining"), "model_cap", "0.020000000000")


@plant("ceiling.disclosed", "a model's cap, reached by the reserve of another")
def _(s: Story) -> None:
    _reached(s, s.find("run.draining"), "model_cap", "0.010000000000", "model-0")


@plant("ceiling.disclosed", "the cap of all, of one model")
def _(s: Story) -> None:
    _reached(s, s.find("run.draining"), "cap", "0.020000000000", "model-0")


@plant("ceiling.disclosed", "the cap of a model that there is not")
def _(s: Story) -> None:
    _reached(s, s.find("run.draining"), "model_cap", "0.020000000000", "model-0")
    s.find("ceiling.reached", scope="model_cap").body.update(model="another", spent=NOTHING, limit=NOTHING)


@BARE.before_sealing("ceiling.disclosed", "a ceiling that is not reached, and nothing was asked for")
def _(s: Story) -> None:
    _reached(s, s.find("run.ended"), "ceiling", NOTHING)


@REFUSED.before_sealing("ceiling.disclosed", "a cap that is not reached, after an opening said so of the ceiling")
def _(s: Story) -> None:
    _reached(s, s.find("run.draining", -1), "cap", "0.010000000000")


@REFUSED.before_sealing("ceiling.disclosed", "a cap under which one more reserve just fits")
def _(s: Story) -> None:
    s.design["budget"]["spent_before"] = "0.090000000000"
    _reached(s, s.find("run.draining", -1), "cap", "0.020000000000")


@REFUSED.before_sealing("ceiling.disclosed", "the cap of a model that is expected to cost nothing")
def _(s: Story) -> None:
    costly, free = s.design["budget"]["models"]
    costly["cap"] = s.design["budget"]["allocation"]
    free.update(dict.fromkeys(("expected", "cap", "reserve"), NOTHING))
    _reached(s, s.find("run.draining", -1), "model_cap", NOTHING, "sham")


# Refusals.


def _also_refused(s: Story, **body: object) -> None:
    """One more exchange of the attempt that was stopped is refused."""
    there = s.find("exchange.refused")
    s.insert_after(there, Step(there.kind, {**there.body, **body}))


@plant("ceiling.disclosed", "refused for want of a budget that there is")
def _(s: Story) -> None:
    _also_refused(s, reason="budget_absent")


@FREE.before_sealing("ceiling.disclosed", "refused for a ceiling, and no budget")
def _(s: Story) -> None:
    _also_refused(s, reason="ceiling_reached")


@FREE.before_sealing("ceiling.disclosed", "a ceiling, and refused for it, and no budget")
def _(s: Story) -> None:
    body = {"scope": "ceiling", "model": None, "spent": NOTHING, "wanted": NOTHING, "limit": NOTHING}
    s.insert_before(s.find("exchange.refused"), Step("ceiling.reached", body))
    _also_refused(s, reason="ceiling_reached")


@REFUSED.before_sealing("ceiling.disclosed", "a refusal of what would just have fitted")
def _(s: Story) -> None:
    s.find("exchange.refused").body["held"] = "0.105000000000"


def refused_for_the_overrun(s: Story) -> None:
    """No fault: the ceiling was passed by it."""
    _also_refused(s, reason="overrun")


def _overrun_to_the_ceiling(s: Story) -> None:
    """What was charged more than it held takes the run to its ceiling, and not past it."""
    _margin(s, picodollars(spent(s, s.find("ceiling.reached"), None)))


def _margin(s: Story, ceiling: int) -> None:
    s.design["budget"]["margin"] = money(ceiling - picodollars(s.design["budget"]["cap"]))


def just_to_the_ceiling(s: Story) -> None:
    """No fault: then one that holds nothing is admitted."""
    _overrun_to_the_ceiling(s)
    _count_after_the_overrun(s)


def _count_after_the_overrun(s: Story) -> None:
    """The attempt goes on with an exchange that holds nothing."""
    attempt = s.find("exchange.ended", overrun=True).body["attempt"]
    s.open[attempt] = s.find("attempt.admitted", attempt=attempt).body
    length = len(s.steps)
    s.count(attempt)
    added = s.steps[length:]
    del s.steps[length:]
    s.insert_before(s.find("agent.ended", attempt=attempt), *added)
    s.repack()


@plant("ceiling.disclosed", "a refusal for an overrun that took the run to its ceiling, and not past it")
def _(s: Story) -> None:
    _overrun_to_the_ceiling(s)
    _also_refused(s, reason="overrun")


@plant("ceiling.disclosed", "a refusal of what holds nothing, at the ceiling")
def _(s: Story) -> None:
    _overrun_to_the_ceiling(s)
    _also_refused(s, held=NOTHING)


def _passed_for_a_while(s: Story, room: int) -> None:
    """A block that ends late has the run pass its ceiling, which is so many picodollars above what then is left."""
    _margin(s, picodollars(spent(s, s.find("ceiling.reached"), None)) + room)
    s.move_after(s.find("ceiling.reached", scope="ceiling"), s.find("block.ended", block=4))


def passed_for_a_while(s: Story) -> None:
    """No fault: the ceiling was passed, and is reached: then nothing is admitted that holds nothing either."""
    _passed_for_a_while(s, 0)
    _also_refused(s, held=NOTHING)


@plant("ceiling.disclosed", "a refusal of what fits again below a ceiling that was passed")
def _(s: Story) -> None:
    _passed_for_a_while(s, 1)
    _also_refused(s, held=money(1))


@plant("budget.ceiling", "one that holds nothing, below a ceiling that was passed")
def _(s: Story) -> None:
    _passed_for_a_while(s, 1)
    _count_after_the_overrun(s)


# Ends.


def cut_short_before_it_was_said(s: Story) -> None:
    """No fault: the disk was full, and nobody could say that the ceiling was passed."""
    for step in s.entries():
        if step.kind == "ceiling.reached":
            s.drop(step)
    interrupted_before_it_was_said(s, "disk_full")
    s.drop(s.find("run.draining"))
    end = s.find("run.ended").body
    end.update(exit_status=5, reason="disk_full")
    end["totals"]["finals"] -= 1
    end["totals"]["ungraded"] -= 1


SOUND = (
    up_to_the_cap_of_its_model,
    the_caps_of_two_models,
    refused_for_the_overrun,
    just_to_the_ceiling,
    passed_for_a_while,
    cut_short_before_it_was_said,
)
PLANTS += REFUSED + FREE + BARE
