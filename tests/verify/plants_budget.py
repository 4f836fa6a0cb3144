"""The rules of a budget at their edges, in a run in which nothing was begun: on the line, and one side of an `or`."""

from __future__ import annotations

from builder import Story
from money_stories import bare_story
from plants import Plants
from primitives import Body, money

PLANTS = Plants(bare_story)
plant = PLANTS.before_sealing


def _shares(s: Story) -> list[Body]:
    shares: list[Body] = s.design["budget"]["models"]
    return shares


@plant("budget.whole", "a model that has no share, under a selection")
def _(s: Story) -> None:
    s.design["selection"] = {"limit": 3}
    _shares(s).pop()


@plant("budget.whole", "blocks that are not planned, and amounts that follow from nothing")
def _(s: Story) -> None:
    for share in _shares(s):
        share["blocks"] = 6
    _shares(s)[0]["cap"] = money(0)


def _no_models(s: Story) -> None:
    s.design["models"] = []
    s.design["budget"]["models"] = []
    s.find("run.ended").body["totals"]["trials"] = len(s.planned())


def half_a_quantum_off(s: Story) -> None:
    """No fault: a cap and a reserve are rounded to their quanta, and just at the middle."""
    s.design["budget"].update(cap_quantum="0.010000000000", reserve_quantum="0.010000000000")
    _shares(s)[0]["cap"] = "0.055000000000"
    _shares(s)[1]["reserve"] = "0.015000000000"


def a_reserve_that_is_its_cap(s: Story) -> None:
    """No fault: a single block takes up all that a model has."""
    s.design["budget"]["reserve_factor"] = 3
    for share in _shares(s):
        share["reserve"] = share["cap"]


def all_is_allocated(s: Story) -> None:
    """No fault: the allocation is the cap."""
    s.design["budget"]["cap"] = s.design["budget"]["allocation"]


def a_budget_of_nothing(s: Story) -> None:
    """No fault: there is no model to pay for, and more was spent before than the ceiling."""
    _no_models(s)
    s.design["budget"]["spent_before"] = "1.000000000000"


def a_stage_of_fewer_models(s: Story) -> None:
    """No fault: under a selection, the budget is of a model more than the design."""
    s.design["selection"] = {"limit": 3}
    _shares(s).append({**_shares(s)[0], "name": "another", **dict.fromkeys(("expected", "cap", "reserve"), money(0))})


SOUND = (half_a_quantum_off, a_reserve_that_is_its_cap, all_is_allocated, a_budget_of_nothing, a_stage_of_fewer_models)
