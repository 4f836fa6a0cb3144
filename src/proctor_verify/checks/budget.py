"""Checks of money at every entry: what blocks set aside, what exchanges hold, and what is said to be used up."""

from __future__ import annotations

from typing import Any

from proctor_verify.check import Check
from proctor_verify.design import NO_TRIAL
from proctor_verify.design_parts import Budget
from proctor_verify.journal import Entry
from proctor_verify.prices import pico, usd
from proctor_verify.vocabulary import CUT_SHORT, NOT_PASSED, REFUSED_FOR

# A run that stops for one of these reasons has said so in one of these scopes.
_SCOPES_OF = {"ceiling_reached": {"ceiling"}, "overrun": {"overrun"}, "cap_reached": {"cap", "model_cap"}}


class BudgetBlocks(Check):
    id = "budget.blocks"
    doc = (
        "a block sets its model's reserve aside, nothing where nothing of it is left to run; it is admitted only "
        "where that fits under the cap and its model's cap, no overrun came before, and nothing said that it is not"
    )
    noun = "blocks"
    kinds = ("block.admitted",)
    needs_design = True

    def entry(self, entry: Entry) -> None:
        body = entry.body
        block = self.trials.locate_block(body["task"], body["model"], body["epoch"])
        if block == NO_TRIAL:
            return  # said by blocks.admitted
        self.looked += 1
        budget = self.design.parts.budget
        if budget is None or body["reserve"] is None:
            if budget is not None or body["reserve"] is not None:
                said = f"sets {body['reserve']} aside"
                self.fail_at(entry, f"{said}, and the design has {'no budget' if budget is None else 'one'}")
            return
        fault = self._reserve(block, budget, body)
        # of a block of which nothing is left to run nothing is asked: it is opened to be ended
        if fault is None and not self.run.is_settled(block):
            fault = self._room(budget, body)
        if fault is not None:
            self.fail_at(entry, fault)

    def _reserve(self, block: int, budget: Budget, body: dict[str, Any]) -> str | None:
        share = budget.shares.get(body["model"])
        wanted = share.reserve if share is not None else 0
        said, finals = pico(body["reserve"]), self.run.blocks.finals[block]
        if said == wanted and finals < len(self.design.arms):
            return None
        if said == 0 and self.run.is_settled(block):
            return None
        return f"sets {body['reserve']} aside for a block with {finals} finals, whose model's reserve is {usd(wanted)}"

    def _room(self, budget: Budget, body: dict[str, Any]) -> str | None:
        money, model, reserve = self.run.money, body["model"], pico(body["reserve"])
        if money.overran:
            return "admits a block after an overrun"
        share = budget.shares.get(model)
        if money.refused or money.closed - {"model_cap"} or model in money.closed_models:
            return "admits a block, where an entry says that none is admitted any more"
        if money.total + reserve > budget.cap:
            return f"sets {usd(reserve)} aside on top of {usd(money.total)}, past the cap of {usd(budget.cap)}"
        of_model = money.charged_of[model] + money.open_of[model]
        if share is not None and of_model + reserve > share.cap:
            return f"sets {usd(reserve)} aside on top of {usd(of_model)} of {model}, past its cap of {usd(share.cap)}"
        return None


class BudgetCeiling(Check):
    id = "budget.ceiling"
    doc = (
        "at every entry, what was spent before, settled and open is at most cap plus margin, but for overruns; past "
        "it, no exchange is admitted"
    )
    noun = "holds"
    kinds = ("exchange.admitted",)
    needs_design = True

    def entry(self, entry: Entry) -> None:
        attempt = self.run.open.get(entry.body["attempt"])
        if attempt is None or attempt.trial == NO_TRIAL:
            return  # said by attempts.admitted, attempts.ended, attempts.joined
        self.looked += 1
        budget, money, held = self.design.parts.budget, self.run.money, pico(entry.body["held"])
        if budget is None:
            return  # said by budget.there where a model costs anything, else by costs.recomputed
        if money.crossed:
            self.fail_at(entry, f"admits {entry.body['exchange']} after an overrun took the run past its ceiling")
        elif (total := money.total + money.more(attempt.block, held)) > budget.ceiling:
            self.fail_at(entry, f"takes the run to {usd(total)}, past its ceiling of {usd(budget.ceiling)}")


class CeilingDisclosed(Check):
    id = "ceiling.disclosed"
    doc = (
        "what `ceiling.reached` says is so, and is said where an exchange is refused for money, where more was charged "
        "than held, and where a run ends for want of it; an exchange that is refused would not have fitted"
    )
    noun = "disclosures"
    kinds = ("ceiling.reached", "exchange.refused", "run.ended")
    needs_design = True

    def entry(self, entry: Entry) -> None:
        if entry.kind == "ceiling.reached":
            fault = self._reached(entry.body)
        elif entry.kind == "exchange.refused":
            fault = self._refused(entry.body)
        else:
            fault = self._ended(entry.body["reason"])
        if fault is not None:
            self.fail_at(entry, fault)

    def _reached(self, body: dict[str, Any]) -> str | None:
        self.looked += 1
        budget, money = self.design.parts.budget, self.run.money
        scope, model, wanted = body["scope"], body["model"], pico(body["wanted"])
        if budget is None:
            return "says that money ran out, and the design has no budget"
        if model in money.closed_models or (model is None and scope in money.closed):
            return f"says again that {scope} is reached"
        if (scope == "model_cap") != (model is not None) or (model is not None and model not in budget.shares):
            return f"names model {model} for the scope {scope}"
        spent, limit = money.total, budget.ceiling if scope == "ceiling" else budget.cap
        if model is not None:
            spent, limit = money.charged_of[model] + money.open_of[model], budget.shares[model].cap
        if (pico(body["spent"]), pico(body["limit"])) != (spent, limit):
            return f"says {body['spent']} of {body['limit']}, where {usd(spent)} of {usd(limit)} is so"
        if scope == "overrun":
            return None if money.overran and not wanted else "speaks of an overrun as it was not"
        reserves = budget.reserves if model is None else (budget.shares[model].reserve,)
        if scope != "ceiling" and wanted not in reserves:
            return f"says that {scope} is reached, and {body['wanted']} is no reserve"
        if scope == "ceiling" and money.refused:
            return None  # said again: what an earlier opening said of it holds
        # where nothing is asked for, the ceiling alone can be passed already
        if spent + wanted > limit or (scope == "ceiling" and spent >= limit):
            return None
        return f"says that {scope} is reached, and {body['wanted']} on top of {body['spent']} fits"

    def _refused(self, body: dict[str, Any]) -> str | None:
        attempt = self.run.open.get(body["attempt"])
        if attempt is None or attempt.trial == NO_TRIAL:
            return None  # said by attempts.admitted, attempts.ended, attempts.joined
        self.looked += 1
        budget, money, reason, held = self.design.parts.budget, self.run.money, body["reason"], pico(body["held"])
        if reason not in REFUSED_FOR | NOT_PASSED:
            return f"refuses an exchange for {reason}"
        if body["model"] != attempt.model:
            return f"refuses an exchange with model {body['model']}, and the trial's is {attempt.model}"
        if reason in NOT_PASSED:
            return f"refuses a request for {reason}, and holds {body['held']} for it" if held else None
        if reason == "price_unknown":
            unpriced = self.design.parts.models[body["model"]].prices.worst_case(0, 0) is None
            return None if unpriced and not held else "refuses an exchange for want of a price that there is"
        if budget is None or reason == "budget_absent":
            fits = budget is None and reason == "budget_absent" and held
            return None if fits else f"refuses an exchange for {reason}, which is not so"
        if not money.closed & _SCOPES_OF[reason]:
            return f"refuses an exchange for {reason}, and no ceiling.reached of this opening says so"
        fits = money.total + money.more(attempt.block, held) <= budget.ceiling
        if reason == "overrun":
            return None if money.crossed else "refuses an exchange for an overrun that left the run below its ceiling"
        if fits and not (money.crossed and money.total >= budget.ceiling):
            return f"refuses an exchange of {body['held']}, which would have fitted below the ceiling"
        return None

    def _ended(self, reason: str | None) -> str | None:
        money = self.run.money
        said = money.closed
        if reason in _SCOPES_OF:
            self.looked += 1
            if not said & _SCOPES_OF[reason]:
                return f"ends for {reason}, and no ceiling.reached of this opening says so"
        if reason in CUT_SHORT:
            return None
        if money.overran_now and "overrun" not in said:
            return "ends an opening in which more was charged than held, and no ceiling.reached says so"
        if money.crossed_now and "ceiling" not in said:
            return "ends an opening in which the ceiling was passed, and no ceiling.reached says so"
        return None
