"""Faults of money where no other rule would notice: without a budget, after an overrun, without a price."""

from __future__ import annotations

from typing import Any

from builder import Story
from designs import make_design
from money_stories import money_story
from plants import Plants
from primitives import cost, money, picodollars
from steps import Step
from stories import full_story

NOTHING = "0.000000000000"
PLANTS = Plants(money_story)
plant = PLANTS.before_sealing
FULL = Plants(full_story)


def free_story() -> Story:
    """A run of a model that costs nothing, and that has no budget."""
    s = Story(make_design(models=1))
    s.admit()
    s.checkpoint()
    s.block(0)
    first, second = s.arms(0)
    attempt = s.start(0, first)
    s.answer(s.ask(attempt), {"input": 500, "output": 100})
    s.grade(attempt, "pass", 1)
    s.end(attempt)
    s.final(attempt)
    stopped = s.start(0, second)
    s.refuse(stopped, "budget_absent", "0.000000000001")
    s.run_out(stopped, "budget_absent")
    s.end(stopped, exception="budget_absent")
    s.final(stopped)
    s.add("block.ended", block=0)
    s.add("run.draining", cause="SIGINT")
    s.stop(130, "interrupted")
    s.checkpoint(named=False)
    return s


FREE = Plants(free_story)


def no_price_for_what_was_asked(s: Story) -> None:
    """No fault: a request is refused for want of a price that the design does not have."""
    s.design["models"][0]["price"]["rows"] = [
        row for row in s.design["models"][0]["price"]["rows"] if row["bucket"] == "input"
    ]
    for kind in ("exchange.admitted", "exchange.ended"):
        s.drop(s.find(kind))
    s.repack()
    attempt = s.find("exchange.refused").body["attempt"]
    s.find("exchange.refused").body.update(reason="price_unknown", held=NOTHING)
    for step in s.entries():
        if step.body.get("attempt") == attempt and step.body.get("reason") == "budget_absent":
            step.body["reason"] = "price_unknown"
        if step.body.get("attempt") == attempt and step.body.get("exception") == "budget_absent":
            step.body["exception"] = "price_unknown"
    s.finals[attempt[:16]] = s.find("trial.final", attempt=attempt).body


@FREE.before_sealing("ceiling.disclosed", "refused for want of a budget, and nothing would have been held")
def _(s: Story) -> None:
    s.find("exchange.refused").body["held"] = NOTHING


@FREE.before_sealing("ceiling.disclosed", "refused for want of a price that there is")
def _(s: Story) -> None:
    no_price_for_what_was_asked(s)
    s.design["models"][0]["price"]["rows"].append({"bucket": "output", "above_inputs": 0, "usd_per_million": NOTHING})


@FREE.before_sealing("ceiling.disclosed", "refused for want of a price, and something held")
def _(s: Story) -> None:
    no_price_for_what_was_asked(s)
    s.find("exchange.refused").body["held"] = "0.000000000001"


@FREE.before_sealing("budget.blocks", "a reserve, and no budget")
def _(s: Story) -> None:
    s.find("block.admitted").body["reserve"] = NOTHING


@FULL.before_sealing("ceiling.disclosed", "a ceiling, and no budget")
def _(s: Story) -> None:
    body = {"scope": "ceiling", "model": None, "spent": NOTHING, "wanted": NOTHING, "limit": NOTHING}
    s.insert_after(s.find("run.paused"), Step("ceiling.reached", body))


def _ended(s: Story, **body: Any) -> Step:
    return s.find("exchange.ended", **body)


@plant("exchanges.admitted", "after one whose end nobody heard")
def _(s: Story) -> None:
    unheard = _ended(s, outcome="unknown").body
    first = _ended(s, attempt=unheard["attempt"]).body
    nothing = dict.fromkeys(("http_status", "resolved_model", "finish", "response", "usage", "chunks"))
    first.update(nothing, outcome="unknown", estimated=True, flags=[], timing={}, charged=s.bounds[first["exchange"]])
    s.repack()


@plant("costs.recomputed", "a bound for which there is no price")
def _(s: Story) -> None:
    model = next(each for each in s.design["models"] if each["name"] == "sham")
    model["price"]["rows"] = [row for row in model["price"]["rows"] if row["bucket"] == "input"]
    sham = {
        step.body["exchange"]
        for step in s.entries()
        if step.kind == "exchange.admitted" and step.body["model"] == "sham"
    }
    for step in s.entries():
        if step.kind == "exchange.ended" and step.body["exchange"] in sham and step.body["outcome"] == "settled":
            step.body.update(usage=None, estimated=True, charged=s.bounds[step.body["exchange"]])


def _overran_before(s: Story) -> None:
    """The first exchange of the attempt that was lost is charged a little more than it held."""
    lost = s.find("run.recovered").body["lost"][0]
    ended = _ended(s, attempt=lost)
    usage = {"input": 10, "output": 660}
    charged = cost(s.rows_of("model-0"), usage)
    assert picodollars(charged) > picodollars(s.bounds[ended.body["exchange"]]) and money(0)
    ended.body.update(usage=usage, charged=charged, overrun=True)
    last = s.steps[-1]
    step = s.reached("overrun")
    s.drop(step)
    assert s.steps[-1] is last
    s.insert_after(ended, step)


@plant("budget.blocks", "after an overrun in an earlier opening")
def _(s: Story) -> None:
    _overran_before(s)


@plant("ceiling.disclosed", "a refusal before there was a word of the ceiling")
def _(s: Story) -> None:
    s.move_after(s.find("exchange.refused", reason="ceiling_reached"), s.find("ceiling.reached", scope="ceiling"))


def interrupted_before_it_was_said(s: Story, exception: str) -> None:
    """The attempt whose exchange was refused is cut off before that is said of it; its block has no end."""
    attempt = s.find("exchange.refused").body["attempt"]
    for step in s.entries():
        if step.body.get("attempt") == attempt and step.kind in ("exchange.refused", "attempt.graded", "trial.final"):
            s.drop(step)
    del s.finals[attempt[:16]]
    s.repack()
    s.find("attempt.ended", attempt=attempt).body.update(outcome="interrupted", exception=exception)
    s.drop(s.find("block.ended", -1))


@plant("ceiling.disclosed", "a ceiling that was passed, and the run was stopped by hand before that was said")
def _(s: Story) -> None:
    s.drop(s.find("ceiling.reached", scope="ceiling"))
    interrupted_before_it_was_said(s, "interrupted")
    s.find("run.draining").body["cause"] = "SIGINT"
    end = s.find("run.ended").body
    end.update(exit_status=130, reason="interrupted")
    end["totals"]["finals"] -= 1
    end["totals"]["ungraded"] -= 1


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


SOUND = (graded_and_cut_off_by_a_full_disk,)
PLANTS += FULL
PLANTS += FREE
