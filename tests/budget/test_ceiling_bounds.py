"""Each rule of the ceiling on both sides of its boundary, one picodollar apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from proctor.budget.ceiling import Ceiling, Denial, Limits, ModelLimits, Scope
from proctor.core.money import ZERO, Usd

PICO = Usd(1)
DOLLAR = Usd.parse("1")


def limits(cap: Usd = DOLLAR, margin: Usd = ZERO, before: Usd = ZERO, **models: tuple[Usd, Usd]) -> Limits:
    known = models or {"m": (cap, ZERO)}
    return Limits(before, cap, margin, {name: ModelLimits(*each) for name, each in known.items()})


def admitted(ceiling: Ceiling, index: int = 0, model: str = "m") -> Ceiling:
    assert ceiling.admit_block(index, model) is None
    return ceiling


@pytest.mark.parametrize("before", [ZERO, DOLLAR])
def test_a_block_is_admitted_up_to_the_cap_exactly(before: Usd) -> None:
    reserve = DOLLAR
    fits = limits(before + reserve, before=before, m=(reserve, reserve))
    assert Ceiling(fits).admit_block(0, "m") is None
    short = limits(before + reserve - PICO, margin=DOLLAR, before=before, m=(reserve, reserve))
    assert Ceiling(short).admit_block(0, "m") == Denial(Scope.CAP, before, reserve, before + reserve - PICO)


def test_a_block_is_admitted_up_to_its_models_cap_exactly() -> None:
    roomy = Usd.parse("10")
    assert Ceiling(limits(roomy, m=(DOLLAR, DOLLAR))).admit_block(0, "m") is None
    short = Ceiling(limits(roomy, m=(DOLLAR - PICO, DOLLAR)))
    assert short.admit_block(0, "m") == Denial(Scope.MODEL_CAP, ZERO, DOLLAR, DOLLAR - PICO, "m")


def test_one_models_cap_is_no_others() -> None:
    ceiling = Ceiling(limits(Usd.parse("10"), a=(ZERO, DOLLAR), b=(DOLLAR, DOLLAR)))
    denial = ceiling.admit_block(0, "a")
    assert denial is not None and (denial.scope, denial.model) == (Scope.MODEL_CAP, "a")
    assert ceiling.admit_block(1, "b") is None


def test_a_hold_is_taken_up_to_the_hard_ceiling_exactly() -> None:
    margin = Usd.parse("0.5")
    ceiling = admitted(Ceiling(limits(DOLLAR, margin)))
    assert ceiling.hold("a/0", 0, DOLLAR + margin) is None
    assert ceiling.hold("a/1", 0, PICO) == Denial(Scope.CEILING, DOLLAR + margin, PICO, DOLLAR + margin)
    over = admitted(Ceiling(limits(DOLLAR, margin)))
    assert over.hold("a/0", 0, DOLLAR + margin + PICO) == Denial(
        Scope.CEILING, ZERO, DOLLAR + margin + PICO, DOLLAR + margin
    )


def test_holds_draw_on_the_reserve_first_and_top_up_after() -> None:
    ceiling = admitted(Ceiling(limits(Usd.parse("3"), m=(Usd.parse("3"), DOLLAR))))
    assert ceiling.hold("a/0", 0, DOLLAR) is None
    assert ceiling.total == DOLLAR
    assert ceiling.hold("a/1", 0, PICO) is None
    assert ceiling.total == DOLLAR + PICO
    assert not ceiling.settle("a/0", DOLLAR)
    assert ceiling.total == DOLLAR + PICO
    assert not ceiling.settle("a/1", ZERO)
    assert (ceiling.total, ceiling.held) == (DOLLAR, ZERO)


def test_a_reserve_is_free_again_at_the_end_of_its_block() -> None:
    ceiling = admitted(Ceiling(limits(DOLLAR, m=(DOLLAR, DOLLAR))))
    waiting = ceiling.admit_block(1, "m")
    assert waiting is not None and not waiting.final
    assert ceiling.hold("a/0", 0, DOLLAR) is None
    with pytest.raises(ValueError, match="in flight"):
        ceiling.end_block(0)
    ceiling.settle("a/0", ZERO)
    ceiling.end_block(0)
    assert ceiling.admit_block(1, "m") is None


def test_what_was_charged_is_never_free_again() -> None:
    ceiling = admitted(Ceiling(limits(DOLLAR, m=(DOLLAR, DOLLAR), n=(DOLLAR, PICO))))
    ceiling.hold("a/0", 0, PICO)
    ceiling.settle("a/0", PICO)
    ceiling.end_block(0)
    denial = ceiling.admit_block(1, "m")
    assert denial is not None and denial.final and denial.scope is Scope.MODEL_CAP
    assert ceiling.admit_block(2, "n") is None, "what fits below the stage's cap is admitted"


def test_a_no_for_good_stays_one_whatever_would_fit() -> None:
    roomy = Usd.parse("10")
    ceiling = Ceiling(limits(DOLLAR, a=(roomy, DOLLAR + PICO), b=(roomy, PICO)))
    refused = ceiling.admit_block(0, "a")
    assert refused is not None and refused.final
    assert ceiling.admit_block(1, "b") is refused


def test_after_a_refused_hold_no_block_is_admitted_and_what_fits_is_held() -> None:
    ceiling = admitted(Ceiling(limits(DOLLAR)))
    refused = ceiling.hold("a/0", 0, DOLLAR + PICO)
    assert ceiling.admit_block(1, "m") is refused
    assert ceiling.hold("a/1", 0, DOLLAR) is None


def test_an_overrun_is_charged_in_full_and_no_block_follows() -> None:
    ceiling = admitted(Ceiling(limits(DOLLAR, DOLLAR)))
    ceiling.hold("a/0", 0, PICO)
    assert ceiling.settle("a/0", PICO + PICO)
    assert ceiling.settled == Usd(2)
    assert ceiling.admit_block(1, "m") == Denial(Scope.OVERRUN, Usd(2), ZERO, DOLLAR)
    assert ceiling.hold("a/1", 0, PICO) is None


def test_charged_exactly_what_was_held_is_no_overrun() -> None:
    ceiling = admitted(Ceiling(limits()))
    ceiling.hold("a/0", 0, DOLLAR)
    assert not ceiling.settle("a/0", DOLLAR)
    assert ceiling.overrun() is None


@pytest.mark.parametrize(("past_it", "crosses"), [(ZERO, False), (PICO, True)])
def test_an_overrun_past_the_hard_ceiling_crosses_it(past_it: Usd, crosses: bool) -> None:
    ceiling = admitted(Ceiling(limits(DOLLAR)))
    ceiling.hold("a/0", 0, ZERO)
    ceiling.settle("a/0", DOLLAR + past_it)
    assert (ceiling.passed() is not None) == crosses
    assert (ceiling.hold("a/1", 0, ZERO) is not None) == crosses


def test_a_crossing_is_for_good_even_where_the_total_falls_again() -> None:
    ceiling = admitted(Ceiling(limits(DOLLAR)))
    ceiling.hold("a/0", 0, DOLLAR - PICO)
    ceiling.hold("a/1", 0, PICO)
    ceiling.settle("a/1", PICO + PICO)
    assert ceiling.passed() == Denial(Scope.CEILING, DOLLAR + PICO, ZERO, DOLLAR)
    ceiling.settle("a/0", ZERO)
    assert ceiling.total == Usd(2)
    denial = ceiling.hold("a/2", 0, PICO)
    assert denial is not None and denial.scope is Scope.OVERRUN


@pytest.mark.parametrize(("spent", "at_it"), [(DOLLAR - PICO, False), (DOLLAR, True), (DOLLAR + PICO, True)])
def test_built_at_its_limit_it_says_so_and_admits_nothing(spent: Usd, at_it: bool) -> None:
    for ceiling in (
        Ceiling(limits(DOLLAR, before=spent, m=(DOLLAR, ZERO))),
        Ceiling(limits(DOLLAR, m=(DOLLAR + DOLLAR, ZERO)), {"m": spent.pico}),
    ):
        assert (ceiling.passed() == Denial(Scope.CEILING, spent, ZERO, DOLLAR)) == at_it
        assert (ceiling.admit_block(0, "m") is not None) == at_it


def test_what_earlier_openings_overran_is_remembered() -> None:
    overran = Ceiling(limits(DOLLAR), {"m": 1}, overran=True)
    denial = overran.admit_block(0, "m")
    assert denial is not None and denial.scope is Scope.OVERRUN
    crossed = Ceiling(limits(DOLLAR), {"m": 1}, overran=True, crossed=True)
    assert crossed.passed() is None
    assert crossed.admit_block(0, "m") is not None


def test_a_crossing_of_an_earlier_opening_lets_no_hold_follow() -> None:
    crossed = Ceiling(limits(DOLLAR), {"m": 1}, overran=True, crossed=True)
    assert crossed.admit_block(0, "m", empty=True) is None
    assert crossed.hold("a/0", 0, ZERO) == Denial(Scope.OVERRUN, PICO, ZERO, DOLLAR)


def test_a_hold_that_an_earlier_opening_refused_lets_no_block_follow() -> None:
    ceiling = Ceiling(limits(DOLLAR), refused=PICO)
    refused = Denial(Scope.CEILING, ZERO, PICO, DOLLAR)
    assert ceiling.closed() == refused
    assert ceiling.admit_block(0, "m") == refused


def test_of_two_refused_holds_the_first_is_why_no_block_is_admitted() -> None:
    ceiling = admitted(Ceiling(limits(DOLLAR)))
    first = ceiling.hold("a/0", 0, DOLLAR + PICO)
    assert ceiling.hold("a/1", 0, DOLLAR + DOLLAR) != first
    assert first is not None and ceiling.closed() is first


@pytest.mark.parametrize("wanted", [ZERO, PICO])
def test_at_its_limit_every_hold_is_told_that_it_is_passed(wanted: Usd) -> None:
    ceiling = Ceiling(limits(DOLLAR, before=DOLLAR))
    passed = Denial(Scope.CEILING, DOLLAR, ZERO, DOLLAR)
    assert ceiling.closed() == passed
    assert ceiling.admit_block(0, "m", empty=True) is None
    assert ceiling.hold("a/0", 0, wanted) == passed


def test_a_second_overrun_does_not_undo_a_crossing() -> None:
    ceiling = admitted(Ceiling(limits(DOLLAR)))
    ceiling.hold("a/0", 0, DOLLAR - PICO - PICO)
    ceiling.hold("a/1", 0, PICO)
    ceiling.hold("a/2", 0, PICO)
    assert ceiling.settle("a/1", Usd(3)), "past the hard ceiling"
    ceiling.settle("a/0", ZERO)
    assert ceiling.settle("a/2", Usd(2)), "far below it"
    assert ceiling.hold("a/3", 0, ZERO) == Denial(Scope.OVERRUN, Usd(5), ZERO, DOLLAR)


def test_a_models_no_for_good_is_said_with_the_numbers_that_it_had() -> None:
    ceiling = admitted(Ceiling(limits(Usd.parse("10"), m=(DOLLAR + PICO, DOLLAR))))
    for exchange, amount in (("a/0", DOLLAR), ("a/1", PICO)):
        ceiling.hold(exchange, 0, amount)
        ceiling.settle(exchange, amount)
        assert ceiling.admit_block(1, "m") == Denial(Scope.MODEL_CAP, DOLLAR, DOLLAR, DOLLAR + PICO, "m")


def test_of_two_rules_the_one_that_no_end_of_a_block_changes_is_said() -> None:
    """The model's own cap has room again once its block has ended; the stage's never has."""
    ceiling = Ceiling(limits(DOLLAR, DOLLAR, m=(DOLLAR, DOLLAR), n=(DOLLAR, ZERO)), {"n": 1})
    ceiling.admit_block(0, "m", empty=True)
    ceiling.hold("a/0", 0, PICO)
    assert ceiling.admit_block(1, "m") == Denial(Scope.CAP, Usd(2), DOLLAR, DOLLAR)


def test_of_two_rules_that_a_blocks_end_may_change_the_models_is_said() -> None:
    ceiling = admitted(Ceiling(limits(DOLLAR, m=(DOLLAR, DOLLAR))))
    assert ceiling.admit_block(1, "m") == Denial(Scope.MODEL_CAP, DOLLAR, DOLLAR, DOLLAR, "m", final=False)


def test_a_block_without_a_model_sets_nothing_aside_and_has_no_cap_but_the_stages() -> None:
    ceiling = Ceiling(limits(DOLLAR, m=(ZERO, DOLLAR)))
    assert ceiling.reserve_of(None) == ZERO
    assert ceiling.admit_block(0, None) is None
    assert ceiling.hold("a/0", 0, DOLLAR) is None


def test_what_an_earlier_opening_charged_counts_against_its_models_cap() -> None:
    roomy = Usd.parse("10")
    ceiling = Ceiling(limits(roomy, a=(DOLLAR, DOLLAR), b=(DOLLAR, DOLLAR)), {"a": 1})
    denial = ceiling.admit_block(0, "a")
    assert denial == Denial(Scope.MODEL_CAP, PICO, DOLLAR, DOLLAR, "a")
    assert ceiling.admit_block(1, "b") is None


def test_an_empty_block_sets_nothing_aside() -> None:
    ceiling = Ceiling(limits(DOLLAR, m=(DOLLAR, DOLLAR)))
    assert ceiling.admit_block(0, "m", empty=True) is None
    assert ceiling.total == ZERO


def test_where_nothing_is_priced_only_zero_is_held() -> None:
    ceiling = Ceiling(None)
    assert ceiling.admit_block(0, "anything") is None
    assert ceiling.admit_block(1, None) is None
    assert ceiling.hold("a/0", 0, ZERO) is None
    denial = ceiling.hold("a/1", 0, PICO)
    assert denial is not None and denial.scope is Scope.CEILING


WRONG: dict[str, Callable[[Ceiling], object]] = {
    "a block twice": lambda c: c.admit_block(0, "m"),
    "a model that the limits do not have": lambda c: c.admit_block(1, "other"),
    "a hold of a block that is not open": lambda c: c.hold("b/0", 1, ZERO),
    "a hold below zero": lambda c: c.hold("b/0", 0, -PICO),
    "an exchange twice": lambda c: c.hold("a/0", 0, ZERO),
    "a charge below zero": lambda c: c.settle("a/0", -PICO),
    "a settlement of what was never held": lambda c: c.settle("b/0", ZERO),
    "the end of a block that is not open": lambda c: c.end_block(1),
    "the end of a block that holds zero in flight": lambda c: c.end_block(0),
}


@pytest.mark.parametrize("what", WRONG)
def test_misuse_changes_nothing(what: str) -> None:
    ceiling = admitted(Ceiling(limits(DOLLAR, m=(DOLLAR, PICO))))
    ceiling.hold("a/0", 0, ZERO)
    with pytest.raises(ValueError):
        WRONG[what](ceiling)
    assert (ceiling.total, ceiling.held, ceiling.settled) == (PICO, ZERO, ZERO)
    assert not ceiling.settle("a/0", ZERO)
    with pytest.raises(ValueError, match="not in flight"):
        ceiling.settle("a/0", ZERO)
