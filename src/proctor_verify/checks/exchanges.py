"""Checks of exchanges with models: each admitted before it is sent, ended once, and charged what its tokens cost."""

from __future__ import annotations

from typing import Any

from proctor_verify.check import Check
from proctor_verify.design import NO_TRIAL
from proctor_verify.design_parts import Model
from proctor_verify.facts import SUPERSEDED, OpenAttempt
from proctor_verify.journal import Entry
from proctor_verify.money import Flight
from proctor_verify.prices import pico, usd
from proctor_verify.vocabulary import COUNTS, COUNTS_OF

# HTTP: from here on the provider says no, and nothing is owed.
REFUSED_FROM = 300
# Without a status, what was not sent at all.
_UNSENT = ("provider_unreachable", "interrupted")
# What an exchange lacks that nobody lived to hear the end of.
_UNHEARD = ("http_status", "error", "resolved_model", "finish", "response", "usage")


class ExchangesAdmitted(Check):
    id = "exchanges.admitted"
    doc = (
        "an exchange is admitted between the start and the end of its attempt's agent, in its order 0, 1, 2 …, of the "
        "trial's model, with no more output than the design allows, and no fewer tokens in than its request's bytes, "
        "changed only as the design admits it, and counting tokens only where the model's format can; "
        "`retries` names one of the attempt that ended without an answer"
    )
    noun = "exchanges"
    kinds = ("exchange.admitted",)
    needs_design = True

    def entry(self, entry: Entry) -> None:
        attempt = self.run.open.get(entry.body["attempt"])
        if attempt is None or attempt.trial == NO_TRIAL:
            return  # said by attempts.admitted, attempts.ended, attempts.joined
        self.looked += 1
        fault = self._fault(entry.body, attempt)
        if fault is not None:
            self.fail_at(entry, fault)

    def _fault(self, body: dict[str, Any], attempt: OpenAttempt) -> str | None:
        exchange, model = body["exchange"], body["model"]
        if exchange != f"{attempt.id}/{attempt.next_exchange}":
            return f"admits {exchange}, where {attempt.next_exchange} is next of {attempt.id}"
        if model != attempt.model:
            return f"admits {exchange} with model {model}, and the trial's is {attempt.model}"
        if not attempt.agent_started or attempt.agent_ended is not None:
            return f"admits {exchange} while no agent of {attempt.id} runs"
        if attempt.unknown:
            return f"admits {exchange} after an exchange whose end nobody heard"
        if body["retries"] is not None and not _has_no_answer(body["retries"], attempt):
            return f"sends {body['retries']} again, which is no exchange of the attempt that ended without an answer"
        if body["input_bound"] < body["request"]["size"]:
            return f"bounds what goes in by {body['input_bound']}, for a request of {body['request']['size']} bytes"
        parts = self.design.parts
        if not parts.models[model].mutations.issuperset(body["mutations"]):
            return f"changes the request of {exchange} in a way that the design does not admit"
        most = parts.max_output.get(attempt.arm, parts.models[model].max_output)
        if body["output_bound"] > most:
            return f"bounds the output by {body['output_bound']}, where the design allows {most}"
        if body["route"].endswith(COUNTS):
            return _counting(body, parts.models[model])
        return None


class ExchangesEnded(Check):
    id = "exchanges.ended"
    doc = (
        "an exchange ends once, after its admission and before its attempt does; what it says of its outcome, its "
        "answer and its charge fits together"
    )
    noun = "exchanges"
    kinds = ("exchange.ended", "attempt.ended")
    needs_design = True

    def entry(self, entry: Entry) -> None:
        body = entry.body
        attempt = self.run.open.get(body["attempt"])
        if attempt is None or attempt.trial == NO_TRIAL:
            return  # said by attempts.admitted, attempts.ended, attempts.joined
        if entry.kind == "attempt.ended":
            if attempt.flying:
                self.fail_at(entry, f"ends {attempt.id}, and {min(attempt.flying)} is in flight")
            elif attempt.unknown and body["outcome"] not in SUPERSEDED:
                self.fail_at(entry, f"is {body['outcome']}, and the end of an exchange of it was not heard")
            return
        self.looked += 1
        flight = attempt.flying.get(body["exchange"])
        if flight is None:
            self.fail_at(entry, f"ends {body['exchange']}, which is not in flight")
            return
        if body["outcome"] != "unknown" and flight.opening != self.run.opening:
            fault: str | None = f"as {body['outcome']}, and the process that sent it died before"
        else:
            fault = _inconsistent(body, pico(body["charged"]), flight)
        if fault is not None:
            self.fail_at(entry, f"ends {body['exchange']} {fault}")


class CostsRecomputed(Check):
    id = "costs.recomputed"
    doc = (
        "an exchange holds the worst case within its bounds, and is charged what its usage costs, by the design's "
        "prices and to the picodollar; an estimate is what was held, or what its usage costs where that is more"
    )
    noun = "amounts"
    kinds = ("exchange.admitted", "exchange.ended")
    needs_design = True

    def entry(self, entry: Entry) -> None:
        body = entry.body
        attempt = self.run.open.get(body["attempt"])
        if attempt is None or attempt.model is None:
            return  # said by attempts.admitted, attempts.ended, exchanges.admitted
        model = self.design.parts.models[attempt.model]
        if entry.kind == "exchange.admitted":
            fault = _held(body, model)
        elif (flight := attempt.flying.get(body["exchange"])) is not None:
            fault = _charged(body, model, flight)
        else:
            return  # said by exchanges.ended
        self.looked += 1
        if fault is not None:
            self.fail_at(entry, fault)


def _counting(body: dict[str, Any], model: Model) -> str | None:
    """What speaks against an exchange that says of itself that it only counts tokens."""
    path = COUNTS_OF.get(model.api)
    if path is None or not body["route"].endswith(path):
        return f"counts tokens by {body['exchange']}, which the format {model.api} does not know"
    if body["output_bound"] or body["mutations"]:
        return f"counts tokens by {body['exchange']}, and has an output, or a change, of its own"
    return None


def _has_no_answer(exchange: str, attempt: OpenAttempt) -> bool:
    of, _, index = exchange.rpartition("/")
    return of == attempt.id and int(index) < len(attempt.unanswered) and attempt.unanswered[int(index)] == 1


def _inconsistent(body: dict[str, Any], charged: int, flight: Flight) -> str | None:
    """What of an exchange's end contradicts itself; what its usage costs is another check's."""
    outcome, estimated, status, error = body["outcome"], body["estimated"], body["http_status"], body["error"]
    if body["overrun"] != (charged > flight.held):
        return f"with overrun {body['overrun']}, charged {body['charged']} of {usd(flight.held)} held"
    if error is not None and body["finish"] is not None:
        return f"with error {error}, and an answer that finished"
    if body["chunks"] is not None and body["response"] is None:
        return "with a map of chunks, and without a response"
    if flight.free and outcome != "unknown":
        return _free(body, charged)
    if outcome == "released":
        if charged or estimated or (status is None and error not in _UNSENT) or (status or REFUSED_FROM) < REFUSED_FROM:
            return f"as released, charged {body['charged']}, with status {status} and error {error}"
        return None if error is not None else "as released, without a reason"
    if outcome == "unknown":
        if not estimated or any(body[name] is not None for name in _UNHEARD) or body["flags"] or body["timing"]:
            return "as unknown, and tells of an answer"
        return None
    if status is not None and status >= REFUSED_FROM:
        return f"as settled, with status {status}"
    if body["usage"] is None and not estimated:
        return "without a usage, and its charge is no estimate"
    if estimated and body["usage"] is not None and not body["flags"]:
        return "with an estimate beside a usage of which no flag says what is wrong"
    if error is None and (status is None or body["response"] is None or body["finish"] is None):
        return "without an error, and without a whole answer"
    return None


def _free(body: dict[str, Any], charged: int) -> str | None:
    """What contradicts itself of the end of an exchange that only counts tokens."""
    if body["outcome"] != "released" or charged or body["estimated"]:
        return f"as {body['outcome']}, charged {body['charged']}, and tokens are counted for nothing"
    if any(body[name] is not None for name in ("finish", "usage", "chunks")):
        return "with a finish, a usage or chunks, and tokens were counted"
    if body["error"] is None and not (
        body["response"] is not None and (body["http_status"] or REFUSED_FROM) < REFUSED_FROM
    ):
        return "without an error, and without a whole answer"
    return None


def _held(body: dict[str, Any], model: Model) -> str | None:
    if body["route"].endswith(COUNTS):
        return f"holds {body['held']} for {body['exchange']}, which counts tokens" if pico(body["held"]) else None
    worst = model.prices.worst_case(body["input_bound"], body["output_bound"])
    if worst is None:
        return f"admits {body['exchange']}, and the design has no price for it"
    if pico(body["held"]) != worst:
        return f"holds {body['held']} for {body['exchange']}, where the worst case within its bounds is {usd(worst)}"
    return None


def _charged(body: dict[str, Any], model: Model, flight: Flight) -> str | None:
    charged = pico(body["charged"])
    if body["outcome"] == "released" or (body["usage"] is None and not body["estimated"]):
        return None  # said by exchanges.ended
    cost = model.prices.cost(body["usage"] or {})
    if body["estimated"]:
        # what used more than tokens is charged no less than these cost
        if charged not in (flight.held, max(flight.held, cost or 0)):
            return f"charges an estimate of {body['charged']} for {body['exchange']}, and {usd(flight.held)} was held"
        return None
    if cost is None:
        return f"charges {body['exchange']} by tokens that the design has no price for"
    if charged != cost:
        return f"charges {body['charged']} for {body['exchange']}, whose tokens cost {usd(cost)}"
    return None
