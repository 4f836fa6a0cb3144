"""Exchanges at the edges of their rules: what they say of their outcome and cost, one word too much or less."""

from __future__ import annotations

from typing import Any

from builder import Story
from money_stories import money_story
from plants import Plants
from primitives import Body, cost, money, picodollars, worst_case
from steps import Step
from stories import full_story

PLANTS = Plants(money_story)
plant = PLANTS.before_sealing
FULL = Plants(full_story)
NOTHING = money(0)


def _ended(s: Story, **body: Any) -> Body:
    return s.find("exchange.ended", **body).body


def _admitted(s: Story, ended: Body) -> Body:
    return s.find("exchange.admitted", exchange=ended["exchange"]).body


def _answered(s: Story, model: str = "model-0") -> Body:
    """An exchange that was answered and paid for."""
    asked = {step.body["exchange"] for step in s.entries() if step.kind == "exchange.admitted"}
    of_model = {exchange for exchange in asked if s.find("exchange.admitted", exchange=exchange).body["model"] == model}
    ended = [step.body for step in s.entries() if step.kind == "exchange.ended" and step.body["usage"]]
    return next(body for body in ended if body["exchange"] in of_model)


def _refused(s: Story) -> Body:
    """The one that its provider refused."""
    return _ended(s, error="rate_limited")


def _counted(s: Story) -> Body:
    return _ended(s, outcome="released", error=None)


def _unheard(s: Story) -> Body:
    return _ended(s, outcome="unknown")


def _broken(s: Story) -> Body:
    """The one of which the reply could not be read."""
    return _ended(s, error="reply_unreadable")


# Admissions.


def as_many_tokens_as_bytes(s: Story) -> None:
    """No fault: an exchange is bounded by the bytes of its request."""
    admitted = _admitted(s, _answered(s))
    size = admitted["request"]["size"]
    admitted.update(input_bound=size, held=worst_case(s.rows_of("model-0"), size, admitted["output_bound"]))


def as_much_output_as_allowed(s: Story) -> None:
    """No fault: by the model in one arm, by the arm in the other."""
    arms = {step.body["attempt"]: step.body["arm"] for step in s.entries() if step.kind == "attempt.admitted"}
    admitted = [step.body for step in s.entries() if step.kind == "exchange.admitted" and step.body["model"] == "sham"]
    for body in admitted:
        most = 600 if arms[body["attempt"]] == "arm-1" else 1000
        body.update(output_bound=most, held=worst_case(s.rows_of("sham"), body["input_bound"], most))


@plant("exchanges.admitted", "sends one of another attempt again, where one of its own has no answer")
def _(s: Story) -> None:
    again = s.find("exchange.admitted", retries=_refused(s)["exchange"]).body
    again["retries"] = s.find("exchange.admitted").body["exchange"]


@plant("exchanges.admitted", "tokens counted in a format that cannot")
def _(s: Story) -> None:
    """Of a model that is made up."""
    ended = _answered(s, "sham")
    _admitted(s, ended).update(route="POST /v1/messages/count_tokens", output_bound=0, held=NOTHING)
    ended.update(outcome="released", usage=None, finish=None, charged=NOTHING)


@FULL.before_sealing("exchanges.admitted", "of an attempt of no model")
def _(s: Story) -> None:
    attempt = s.find("attempt.admitted").body["attempt"]
    started = s.find("agent.started", attempt=attempt)
    like = next(step.body for step in money_story().entries() if step.kind == "exchange.admitted")
    own = {"attempt": attempt, "exchange": f"{attempt}/0", "request": started.body["instruction"]}
    s.insert_after(started, Step("exchange.admitted", {**like, **own}))


# Ends.


def a_count_that_nobody_heard(s: Story) -> None:
    """No fault: it was free, and its process died."""
    ended = _unheard(s)
    _admitted(s, ended).update(route="POST /v1/messages/count_tokens", output_bound=0, held=NOTHING)
    ended["charged"] = NOTHING


def a_count_that_was_refused(s: Story) -> None:
    """No fault: its provider said so."""
    _counted(s).update(http_status=404, error="request_rejected")


def never_sent(s: Story) -> None:
    """No fault: nobody was reached, so that there is no status."""
    _refused(s).update(http_status=None, error="provider_unreachable", response=None)
    s.repack()


def no_answer_in_time(s: Story) -> None:
    """No fault: it was sent, and is paid for as if it had come."""
    _broken(s).update(http_status=None, error="provider_timeout", response=None)
    s.repack()


@plant("exchanges.ended", "released, and an estimate of nothing")
def _(s: Story) -> None:
    _refused(s)["estimated"] = True


@plant("exchanges.ended", "released, and answered")
def _(s: Story) -> None:
    _refused(s)["http_status"] = 299


@plant("exchanges.ended", "unheard, and no estimate")
def _(s: Story) -> None:
    _unheard(s)["estimated"] = False


for _name, _value in (("flags", ["odd"]), ("timing", {"sent": 1}), ("error", "interrupted")):

    @plant("exchanges.ended", f"unheard, and {_name} of it")
    def _(s: Story, name: str = _name, value: object = _value) -> None:
        _unheard(s)[name] = value


@plant("exchanges.ended", "settled where the provider sent elsewhere")
def _(s: Story) -> None:
    _broken(s)["http_status"] = 300


@plant("exchanges.ended", "no error, and no status")
def _(s: Story) -> None:
    _answered(s)["http_status"] = None


@plant("exchanges.ended", "no error, and no response")
def _(s: Story) -> None:
    _answered(s)["response"] = None
    s.repack()


@plant("exchanges.ended", "tokens counted, and settled")
def _(s: Story) -> None:
    _counted(s)["outcome"] = "settled"


@plant("exchanges.ended", "tokens counted, and an estimate")
def _(s: Story) -> None:
    _counted(s)["estimated"] = True


@plant("exchanges.ended", "tokens counted for a picodollar")
def _(s: Story) -> None:
    """In the attempt that is said to be charged more than it held."""
    dear = s.find("exchange.ended", overrun=True)
    first = s.find("exchange.admitted", exchange=dear.body["exchange"])
    asked = {**_admitted(s, _counted(s)), "attempt": dear.body["attempt"], "exchange": dear.body["exchange"]}
    told = {**_counted(s), "attempt": dear.body["attempt"], "exchange": dear.body["exchange"]}
    s.insert_before(
        first,
        Step("exchange.admitted", asked),
        Step("exchange.ended", {**told, "charged": money(1), "overrun": True}),
    )
    first.body["exchange"] = dear.body["exchange"] = f"{dear.body['attempt']}/1"
    s.repack()


@plant("exchanges.ended", "tokens counted, and no response")
def _(s: Story) -> None:
    _counted(s)["response"] = None
    s.repack()


for _status in (300, None):

    @plant("exchanges.ended", f"tokens counted, with status {_status}")
    def _(s: Story, status: int | None = _status) -> None:
        _counted(s)["http_status"] = status


# Costs.


def _dear_estimate(s: Story, more: int) -> None:
    """What is charged more than it held is an estimate, and by so many picodollars more than its usage costs."""
    dear = _ended(s, overrun=True)
    charged = money(picodollars(cost(s.rows_of("model-0"), dear["usage"])) + more)
    dear.update(estimated=True, flags=["odd"], charged=charged)


def an_estimate_that_costs_more(s: Story) -> None:
    """No fault: its usage, of which something is odd, costs more than was held."""
    _dear_estimate(s, 0)


def an_estimate_without_a_price(s: Story) -> None:
    """No fault: its usage has tokens that have no price, and what was held is charged."""
    _ended(s, flags=["odd"])["usage"] = {"audio_out": 3}


@plant("costs.recomputed", "an estimate that is more than its usage costs, and than was held")
def _(s: Story) -> None:
    _dear_estimate(s, 1)


@plant("costs.recomputed", "an estimate that is what its usage costs, and less than was held")
def _(s: Story) -> None:
    ended = _ended(s, flags=["odd"])
    ended["charged"] = cost(s.rows_of("model-0"), ended["usage"])


SOUND = (
    as_many_tokens_as_bytes,
    as_much_output_as_allowed,
    a_count_that_nobody_heard,
    a_count_that_was_refused,
    never_sent,
    no_answer_in_time,
    an_estimate_that_costs_more,
    an_estimate_without_a_price,
)
PLANTS += FULL
