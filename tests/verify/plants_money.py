"""Faults of budgets, reserves, ceilings and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from builder import Story
from expected import spent
from money_stories import bare_story, money_story
from plants import Plants
from primitives import Body, money, picodollars
from steps import Late, Step
from stories import full_story

PLANTS = Plants(money_story)
plant = PLANTS.before_sealing
BARE = Plants(bare_story)
FULL = Plants(full_story)

# Designs.


def rule(check: str, what: str) -> Callable[[Callable[[Body], None]], None]:
    """Declare a fault of a budget's amounts, in a run in which nothing was begun."""

    def declare(alter: Callable[[Body], None]) -> None:
        BARE.before_sealing(f"budget.{check}", what)(lambda s: alter(s.design["budget"]))

    return declare


def _off(amount: str, picos: int = 1) -> str:
    return money(picodollars(amount) + picos)


@rule("caps-proportional", "a cap that is no share of the allocation")
def _(budget: Body) -> None:
    budget["models"][1]["cap"] = _off(budget["models"][1]["cap"], -1)


@rule("caps-proportional", "a cap half a quantum and a picodollar off")
def _(budget: Body) -> None:
    budget["cap_quantum"] = "0.010000000000"
    budget["models"][0]["cap"] = "0.054999999999"


@rule("caps-proportional", "a cap for a model that is expected to cost nothing")
def _(budget: Body) -> None:
    budget["models"][0]["cap"] = budget["allocation"]
    budget["models"][1].update(expected=money(0), cap=money(1), reserve=money(0))


@rule("reserves-proportional", "a reserve that is not that of its cost")
def _(budget: Body) -> None:
    budget["models"][0]["reserve"] = _off(budget["models"][0]["reserve"])


@rule("reserves-proportional", "a reserve half a quantum and a picodollar off")
def _(budget: Body) -> None:
    budget["reserve_quantum"] = "0.010000000000"
    budget["models"][1]["reserve"] = "0.015000000001"


@rule("reserves-proportional", "a reserve of another factor")
def _(budget: Body) -> None:
    budget["reserve_factor"] = 1.0000001


@rule("reserves-in-caps", "a reserve above its cap")
def _(budget: Body) -> None:
    for share in budget["models"]:
        share["reserve"] = _off("0.000000000000", 4 * picodollars(share["reserve"]))
    budget["reserve_factor"] = 4


@rule("reserves-in-caps", "a reserve a picodollar above its cap")
def _(budget: Body) -> None:
    budget["reserve_factor"] = 3
    budget["reserve_quantum"] = "0.000000000002"
    for share in budget["models"]:
        share["reserve"] = _off(share["cap"])


@rule("allocation-in-cap", "an allocation above the cap")
def _(budget: Body) -> None:
    budget["cap"] = "0.089999999999"


@rule("prior-spend-counted", "prior spend that is not counted")
def _(budget: Body) -> None:
    budget["prior_spend"]["amount"] = "0.010000000001"


@rule("ceiling-free", "all spent before")
def _(budget: Body) -> None:
    budget["spent_before"] = "0.115000000000"


@rule("expected-positive", "no cost expected")
def _(budget: Body) -> None:
    for share in budget["models"]:
        share.update(dict.fromkeys(("expected", "cap", "reserve"), "0.000000000000"))


@rule("whole", "blocks that are not planned")
def _(budget: Body) -> None:
    for share in budget["models"]:
        share["blocks"] = 6
    budget["reserve_factor"] = 2


@rule("whole", "a model that the stage does not have")
def _(budget: Body) -> None:
    budget["models"].append({**budget["models"][0], "name": "another"})


@rule("whole", "a model that has no share")
def _(budget: Body) -> None:
    budget["models"].pop()


@BARE.before_sealing("budget.whole", "fewer blocks than are planned, under a selection")
def _(s: Story) -> None:
    s.design["selection"] = {"limit": 3}
    s.design["budget"]["models"][0]["blocks"] = 2


@BARE.before_sealing("budget.there", "no budget, and a model that costs money")
def _(s: Story) -> None:
    del s.design["budget"]


def _many_rows() -> list[Body]:
    return [{"bucket": "input", "above_inputs": n, "usd_per_million": "1.000000000000"} for n in range(257)]


def _shape(what: str, alter: Callable[[Body], None]) -> None:
    BARE.before_sealing("design.plan", what)(lambda s: alter(s.design))


_shape("more parts than a design may have", lambda d: d["study"].update(question="," * 1_000_000))
_shape("a selection of another form", lambda d: d.update(selection={"limit": 3, "tasks": []}))
_shape("a selection that is none", lambda d: d.update(selection=None))
_shape("a selection of no tasks", lambda d: d.update(selection={"limit": 0}))
_shape("a model of another form", lambda d: d["models"][0].update(max_output_tokens=1.0))
_shape("a bucket that there is not", lambda d: d["models"][0]["price"]["rows"][0].update(bucket="magic"))
_shape("a bucket without a price for short input", lambda d: d["models"][0]["price"]["rows"][0].update(above_inputs=1))
_shape("more prices than a model has", lambda d: d["models"][0]["price"].update(rows=_many_rows()))
_shape("money with fewer decimals", lambda d: d["budget"].update(margin="0.005"))
_shape("money below zero", lambda d: d["budget"].update(margin="-0.005000000000"))
_shape("two shares of one model", lambda d: d["budget"]["models"].append(d["budget"]["models"][0]))
_shape("a tool that is not there", lambda d: d["arms"][0].update(tools=["nothing"]))
_shape("an arm's model of another form", lambda d: d["arms"][1].update(model={"effort": None}))
_shape("a row of another question set", lambda d: d["questions"].update(path="others.jsonl"))
_shape("rows without a question set", lambda d: d.pop("questions"))
_shape("a task without a format", lambda d: d["tasks"][0].pop("format"))
_shape("a scorer that there is not", lambda d: d["questions"].update(scorer="magic"))
_shape("synthetic said to be false", lambda d: d["models"][1].update(synthetic=False))


@plant("design.plan", "an amount of another form, and the run went on")
def _(s: Story) -> None:
    s.design["budget"]["reserve_factor"] = -1


# Reserves.


@plant("budget.blocks", "less than the reserve")
def _(s: Story) -> None:
    body = s.find("block.admitted").body
    body["reserve"] = _off(body["reserve"], -1)


@plant("budget.blocks", "nothing, and there is something to run")
def _(s: Story) -> None:
    s.find("block.admitted").body["reserve"] = "0.000000000000"


@plant("budget.blocks", "null, and there is a budget")
def _(s: Story) -> None:
    step = s.find("block.admitted")
    step.after = lambda entry: entry["body"].update(reserve=None)


@FULL.before_sealing("budget.blocks", "a reserve without a budget")
def _(s: Story) -> None:
    s.find("block.admitted").body["reserve"] = "0.000000000000"


@plant("budget.blocks", "a picodollar past the cap")
def _(s: Story) -> None:
    _fill(s, 1)


def up_to_the_cap(s: Story) -> None:
    """No fault: the last block takes all that the cap leaves."""
    _fill(s, 0)


def _fill(s: Story, picos: int) -> None:
    budget, last = s.design["budget"], s.find("block.admitted", block=2)
    room = picodollars(budget["cap"]) - picodollars(spent(s, last, None)) - picodollars(last.body["reserve"])
    budget["spent_before"] = _off(budget["spent_before"], room + picos)


@plant("budget.blocks", "past the model's cap")
def _(s: Story) -> None:
    _asked(s, s.find("agent.ended", attempt=_first_of(s, 1)), {"input": 6000}, inputs=6000)


@plant("budget.blocks", "after an overrun")
def _(s: Story) -> None:
    added = len(s.steps)
    s.block(5)
    step = s.steps.pop(added)
    s.insert_before(s.find("run.draining"), step)


@plant("budget.blocks", "after it was said that none is admitted")
def _(s: Story) -> None:
    _refused(s, s.find("agent.ended", attempt=_first_of(s, 1)), "0.200000000000")
    s.drop(s.find("ceiling.reached", -1))


def _first_of(s: Story, block: int) -> str:
    """The first attempt of a block that got a grade."""
    attempts = {step.body["attempt"] for step in s.entries() if step.body.get("block") == block and "arm" in step.body}
    graded = [step.body["attempt"] for step in s.entries() if step.kind == "attempt.graded"]
    return str(next(attempt for attempt in graded if attempt in attempts))


def _added(s: Story, attempt: str, before: Step, make: Callable[[], object]) -> None:
    """What the story goes on with in the name of an attempt that ended comes before a step."""
    s.open[attempt] = s.find("attempt.admitted", attempt=attempt).body
    length = len(s.steps)
    make()
    added = s.steps[length:]
    del s.steps[length:]
    s.insert_before(before, *added)
    s.repack()


def _asked(s: Story, before: Step, usage: Body, **bounds: Any) -> None:
    attempt = before.body["attempt"]
    _added(s, attempt, before, lambda: s.answer(s.ask(attempt, **bounds), usage))


def _refused(s: Story, before: Step, held: str, wanted: str | None = None) -> None:
    def make() -> None:
        s.reached("ceiling", wanted or held)
        s.refuse(attempt, "ceiling_reached", held)

    attempt = before.body["attempt"]
    _added(s, attempt, before, make)


# The ceiling.


@plant("budget.ceiling", "a picodollar past it")
def _(s: Story) -> None:
    _hold_much(s, -1)


def up_to_the_ceiling(s: Story) -> None:
    """No fault: an exchange holds all that the ceiling leaves, far more than its block's reserve."""
    _hold_much(s, 0)


def _hold_much(s: Story, picos: int) -> None:
    """The run comes to its ceiling, and so many picodollars less than it needs."""
    step = s.find("agent.ended", attempt=_first_of(s, 1))
    _asked(s, step, {"input": 10}, inputs=25_000)
    answered = s.steps[s.at(step) - 1]
    assert isinstance(answered, Step)
    s.design["budget"]["margin"] = "1.000000000000"
    need = picodollars(spent(s, answered, None)) + picos
    s.design["budget"]["margin"] = money(need - picodollars(s.design["budget"]["cap"]))


@plant("budget.ceiling", "after an overrun went past it")
def _(s: Story) -> None:
    attempt = s.find("exchange.ended", overrun=True).body["attempt"]
    _asked(s, s.find("agent.ended", attempt=attempt), {"input": 10})


# What is said of them.


@plant("ceiling.disclosed", "a picodollar less spent")
def _(s: Story) -> None:
    step = s.find("ceiling.reached")
    step.body["spent"] = Late(lambda s: _off(spent(s, step, None), -1))


@plant("ceiling.disclosed", "another limit")
def _(s: Story) -> None:
    s.find("ceiling.reached", -1).body["limit"] = s.design["budget"]["cap"]


@plant("ceiling.disclosed", "a model where all are meant")
def _(s: Story) -> None:
    step = s.find("ceiling.reached", -1)
    step.after = lambda entry: entry["body"].update(model="model-0")


@plant("ceiling.disclosed", "twice")
def _(s: Story) -> None:
    s.reached("overrun")
    s.insert_before(s.find("run.draining"), s.steps.pop())


@plant("ceiling.disclosed", "an overrun before there was one")
def _(s: Story) -> None:
    s.reached("overrun")
    s.insert_before(s.find("attempt.admitted", block=2), s.steps.pop())
    s.drop(s.find("ceiling.reached", 1, scope="overrun"))


@plant("ceiling.disclosed", "a cap that is not reached")
def _(s: Story) -> None:
    s.reached("cap", "0.000000000001")
    s.insert_before(s.find("attempt.admitted", block=2), s.steps.pop())


@plant("ceiling.disclosed", "a model's cap that is not reached")
def _(s: Story) -> None:
    s.reached("model_cap", "0.010000000000", "sham")
    s.insert_before(s.find("run.draining"), s.steps.pop())


def a_cap_of_a_model(s: Story) -> None:
    """No fault: one more reserve does not fit under the model's cap."""
    s.reached("model_cap", "0.020000000000", "model-0")
    s.insert_before(s.find("run.draining"), s.steps.pop())


@plant("ceiling.disclosed", "a model's cap that is reached by more than a reserve")
def _(s: Story) -> None:
    s.reached("model_cap", "0.030000000000", "model-0")
    s.insert_before(s.find("run.draining"), s.steps.pop())


@plant("ceiling.disclosed", "an overrun that something was asked for on top of")
def _(s: Story) -> None:
    s.find("ceiling.reached", scope="overrun").body["wanted"] = "0.000000000001"


@plant("status.agrees", "another reason than that of the drain")
def _(s: Story) -> None:
    s.find("run.ended").body["reason"] = "stage_deadline"


@plant("status.agrees", "a drain that nothing speaks of")
def _(s: Story) -> None:
    s.drop(s.find("run.draining"))


@plant("ceiling.disclosed", "an overrun that is kept quiet")
def _(s: Story) -> None:
    s.drop(s.find("ceiling.reached", scope="overrun"))


@plant("ceiling.disclosed", "a refusal without a word of the ceiling")
def _(s: Story) -> None:
    s.drop(s.find("ceiling.reached", scope="ceiling"))


@plant("ceiling.disclosed", "a refusal of what would have fitted")
def _(s: Story) -> None:
    _refuse_in_the_last_block(s, "0.000000000001")


def refused_without_an_overrun(s: Story) -> None:
    """No fault: an exchange that would pass the ceiling is refused, and the attempt goes on with smaller ones."""
    _refuse_in_the_last_block(s, "0.200000000000")


def _refuse_in_the_last_block(s: Story, held: str) -> None:
    attempt = s.find("exchange.ended", overrun=True).body["attempt"]
    _refused(s, s.find("exchange.admitted", attempt=attempt), held, "0.200000000000")
    s.drop(s.find("ceiling.reached", 1, scope="ceiling"))


@plant("ceiling.disclosed", "a refusal for something else than money")
def _(s: Story) -> None:
    attempt = _first_of(s, 0)
    _added(s, attempt, s.find("agent.ended", attempt=attempt), lambda: s.refuse(attempt, "rate_limited", "0" * 13))
    s.find("exchange.refused").body["held"] = "0.000000000001"


@plant("ceiling.disclosed", "a refusal of another model")
def _(s: Story) -> None:
    s.find("exchange.refused").body["model"] = "sham"


@plant("ceiling.disclosed", "ends for a cap that nothing speaks of")
def _(s: Story) -> None:
    s.find("run.ended").body["reason"] = s.find("run.draining").body["cause"] = "cap_reached"


def a_stage_of_which_a_part_runs(s: Story) -> None:
    """No fault: under a selection, the budget is of more models and blocks than the design."""
    s.design["selection"] = {"limit": 3}
    for share in s.design["budget"]["models"]:
        share["blocks"] = 6
    s.design["budget"]["reserve_factor"] = 2


def nothing_left_in_a_block(s: Story) -> None:
    """No fault: a block whose finals are all there is taken up again, and sets nothing aside."""
    end = s.find("block.ended", block=0)
    s.drop(end)
    again = Step("block.admitted", {**s.find("block.admitted").body, "reserve": "0.000000000000"})
    s.insert_before(s.find("block.admitted", 1, block=1), again, end)


PLANTS += BARE + FULL
SOUND = (
    up_to_the_cap,
    up_to_the_ceiling,
    a_cap_of_a_model,
    refused_without_an_overrun,
    a_stage_of_which_a_part_runs,
    nothing_left_in_a_block,
)
