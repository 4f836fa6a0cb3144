"""The rules of a budget: both sides of each boundary, one picodollar apart, and what sizing makes of anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from money_parts import BUDGET, FREE, MONEY, model, one_block, usd, with_amount, with_budget

from proctor.admission.facts import Facts, FolderFacts, MoneyFacts, Request
from proctor.admission.money import key_facts, money_facts
from proctor.admission.money_guards import MONEY as GUARDS
from proctor.budget.rules import Amounts, Share
from proctor.budget.sizing import Kept, Work, scaled, size
from proctor.core.money import MAX_PICO, ZERO, Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study.schema import StudyFile

REQUEST = Request("run", Path("runs/x"))


NO_RUN = FolderFacts()


def said(money: MoneyFacts, folder: FolderFacts = NO_RUN) -> list[str]:
    """Which guards refuse."""
    return [str(refusal.guard) for refusal in GUARDS.run(Facts(REQUEST, folder, money=money))]


STUDY = {
    "study": {"name": "s"},
    "tasks": {"questions": "q.jsonl"},
    "agent": {"name": "toolloop"},
    "models": {"luna": {"provider": "practice", "model": "a"}, "moon": {"provider": "practice", "model": "b"}},
    "stages": {
        "main": {
            "budget": {"allocation": "144", "cap": "150", "reserve_factor": 0.1, "reserve_quantum": "0"},
            "expected_costs": {"luna": "36.00", "moon": "12.00"},
            "caps": {"luna": "108.00", "moon": "36.00"},
        }
    },
}
Case = tuple[Callable[[str], MoneyFacts], str, str, str]
BOUNDARIES: dict[str, Case] = {
    "a cap, above": (
        lambda amount: with_amount(MONEY, "caps", "luna", amount),
        *("108.005", "108.005000000001", "caps-proportional"),
    ),
    "a cap, below": (
        lambda amount: with_amount(MONEY, "caps", "luna", amount),
        *("107.995", "107.994999999999", "caps-proportional"),
    ),
    "a reserve, above": (
        lambda amount: with_amount(MONEY, "reserves", "moon", amount),
        *("0.1005", "0.100500000001", "reserves-proportional"),
    ),
    "a reserve, below": (
        lambda amount: with_amount(MONEY, "reserves", "moon", amount),
        *("0.0995", "0.099499999999", "reserves-proportional"),
    ),
    "the cap of all": (
        lambda amount: with_budget(MONEY, cap=usd(amount)),
        *("144", "143.999999999999", "allocation-in-cap"),
    ),
    "what was spent before": (
        lambda amount: replace(with_budget(MONEY, spent_before=usd(amount)), prior_spend=usd("7")),
        *("7", "6.999999999999", "prior-spend-counted"),
    ),
    "the ceiling": (
        lambda amount: with_budget(MONEY, spent_before=usd(amount)),
        *("174.999999999999", "175", "ceiling-free"),
    ),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_one_picodollar_on_both_sides(name: str) -> None:
    made, holds, breaks, guard = BOUNDARIES[name]
    assert said(made(holds)) == []
    assert said(made(breaks)) == [guard]


@pytest.mark.parametrize("field", ["tasks", "questions"])
def test_amounts_are_not_called_wrong_where_a_task_or_row_was_not_counted(field: str) -> None:
    off = with_amount(MONEY, "reserves", "moon", "9")
    row = Refusal(Reason.QUESTIONS_UNREADABLE, "a row that cannot be read")
    assert GUARDS.run(Facts(REQUEST, NO_RUN, money=off)) != []
    assert GUARDS.run(Facts(REQUEST, NO_RUN, money=off, **{field: (row,)})) == []


def test_a_reserve_may_be_all_of_a_cap() -> None:
    """One block, a cap and a reserve that are equal; then a picodollar less of the cap."""
    whole = replace(
        with_budget(MONEY, allocation=usd("3"), cap_quantum=usd("1")),
        expected_costs={"luna": usd("1"), "moon": ZERO},
        caps={"luna": usd("3"), "moon": ZERO},
        reserves={"luna": usd("3"), "moon": ZERO},
        blocks=1,
    )
    assert said(whole) == []
    assert said(with_amount(whole, "caps", "luna", "2.999999999999")) == ["reserves-in-caps"]


def test_the_allocation_that_is_said_to_be_needed_is_enough() -> None:
    (refusal,) = GUARDS.run(Facts(REQUEST, money=one_block(MONEY)))
    needed = usd("3.01")  # the reserve of 3, and what rounding the cap may take from it
    assert "to 3.01 or more" in refusal.remedy
    expected = {"luna": usd("1"), "moon": ZERO}
    frame = replace(BUDGET, allocation=needed, cap=needed)
    amounts = size(expected, Work(1, 2, 2), Kept(frame, {}, {}), {})
    assert said(facts_of(amounts, Work(1, 2, 2))) == []


def test_a_factor_is_what_its_text_says() -> None:
    """0.1 as a float is a little more than a tenth."""
    file = StudyFile.model_validate(STUDY)
    money = money_facts(file, "main", MONEY.models, 360)
    assert money.budget is not None
    assert money.budget.reserve_factor == Fraction(1, 10)
    tenth = replace(money, reserves={"luna": usd("0.01"), "moon": usd("0.003333333333")})
    assert said(tenth) == ["reserves-proportional"]  # a third has no decimal text: a quantum of zero cannot hold
    assert said(with_budget(tenth, reserve_quantum=usd("0.000000000001"))) == []


@pytest.mark.parametrize("table", ["expected_costs", "caps", "reserves"])
def test_keys_are_the_models_of_the_stage(table: str) -> None:
    amounts = getattr(MONEY, table)
    lacking = {"luna": amounts["luna"]}
    assert said(replace(MONEY, **{table: lacking})) == ["budget-whole"]
    assert said(replace(MONEY, **{table: {**amounts, "sun": usd("1")}})) == ["budget-whole"]
    (refusal,) = GUARDS.run(Facts(REQUEST, money=replace(MONEY, **{table: {**lacking, "sun": usd("1")}})))
    assert "lacks moon" in refusal.message
    assert "has sun too" in refusal.message


def test_no_arithmetic_on_what_is_incomplete() -> None:
    """Amounts that would each be refused are not looked at where a key is missing."""
    assert said(replace(MONEY, caps={"luna": usd("9")}, reserves={"luna": usd("99"), "moon": ZERO})) == ["budget-whole"]
    assert said(replace(MONEY, blocks=0)) == []


def test_where_nothing_costs_anything_no_budget_is_needed() -> None:
    free = (model("luna", FREE), model("moon", FREE))
    assert said(replace(MONEY, models=free, budget=None)) == []
    assert said(replace(MONEY, models=(model("luna"), *free[1:]), budget=None)) == ["budget-there"]
    by_request = replace(FREE, per_request="0.000000000001")
    assert said(replace(MONEY, models=(model("luna", by_request), *free[1:]), budget=None)) == ["budget-there"]
    assert said(replace(MONEY, models=free, budget=None, expected_costs={}, caps={}, reserves={})) == []


def test_where_no_model_is_there_is_no_ceiling_to_reach() -> None:
    """A stage of agents that call no model, in a study whose money is spent."""
    unused = replace(MONEY, names=(), models=(), expected_costs={}, caps={}, reserves={})
    assert said(with_budget(unused, spent_before=usd("175"))) == []


def test_a_model_that_is_expected_to_cost_nothing_may_have_no_reserve_above_its_cap() -> None:
    """No allocation has a share for it that would be large enough."""
    unshared = replace(
        MONEY,
        expected_costs={"luna": usd("48"), "moon": ZERO},
        caps={"luna": usd("144"), "moon": ZERO},
        reserves={"luna": usd("0.4"), "moon": usd("0.0005")},
    )
    (refusal,) = GUARDS.run(Facts(REQUEST, money=unshared))
    assert (refusal.guard, refusal.path) == ("reserves-in-caps", "stages.main.reserves.moon")
    assert "Raise `allocation`" not in refusal.remedy


def test_a_stage_is_short_where_it_is_expected_to_cost_more_than_it_may() -> None:
    """The smaller of the allocation, and what the cap leaves beside what was spent before."""
    for changed, limit in (({}, "144"), ({"spent_before": usd("100")}, "50")):
        frame = replace(BUDGET, **changed)
        for expected, short in ((usd(limit), False), (usd(limit) + Usd(1), True)):
            assert Amounts(frame, {"luna": Share(expected, ZERO, ZERO, 1)}).is_short is short


def test_a_refusal_says_between_what_an_amount_may_be() -> None:
    (refusal,) = GUARDS.run(Facts(REQUEST, money=with_amount(MONEY, "caps", "luna", "100")))
    assert refusal.observed == "100.000000000000"
    assert refusal.required == {"exact": "108", "from": "107.995000000000", "to": "108.005000000000"}
    assert refusal.path == "stages.main.caps.luna"


def test_a_run_that_ended_at_its_ceiling_is_not_resumed() -> None:
    charged = usd("175")
    assert said(MONEY, FolderFacts(admitted=True, charged=charged, ended=True)) == ["ceiling-free"]
    assert said(MONEY, FolderFacts(admitted=True, charged=charged - Usd(1), ended=True)) == []
    # one that was cut short is opened again, so that its evidence gets an end
    assert said(MONEY, FolderFacts(admitted=True, charged=charged)) == []


def test_a_key_is_there_when_its_variable_holds_something() -> None:
    models = [model("a", key="A_KEY"), model("b", key="B_KEY"), model("c")]
    facts = key_facts(models, {"A_KEY": "k", "B_KEY": " \n", "C_KEY": "k"})
    assert [(each.model, each.there) for each in facts] == [("a", True), ("b", False)]


small = st.integers(0, 10**13)
large = st.integers(0, MAX_PICO // 10**6)
costs = st.lists(st.one_of(small, large), min_size=1, max_size=5).filter(any)
works = st.builds(Work, blocks=st.integers(1, 5000), arms=st.integers(1, 4), lanes=st.integers(1, 64))


def facts_of(amounts: Amounts, work: Work) -> MoneyFacts:
    """The study that says these amounts."""
    shares = amounts.shares
    names = tuple(shares)
    return MoneyFacts(
        stage="main",
        names=names,
        models=tuple(model(name) for name in names),
        budget=amounts.frame,
        expected_costs={name: share.expected for name, share in shares.items()},
        caps={name: share.cap for name, share in shares.items()},
        reserves={name: share.reserve for name, share in shares.items()},
        blocks=work.blocks,
        arms=work.arms,
        lanes=work.lanes,
        prior_spend=amounts.frame.spent_before,
    )


@given(pico=costs, work=works, spent=small, exchange=small)
def test_what_is_sized_holds_every_rule(pico: list[int], work: Work, spent: int, exchange: int) -> None:
    expected = {f"m{number}": Usd(cost) for number, cost in enumerate(pico)}
    amounts = size(expected, work, Kept(None, {}, {}, Usd(spent)), {"m0": Usd(exchange)})
    money = facts_of(amounts, work)
    assert said(money) == []
    frame, shares = amounts.frame, amounts.shares.values()
    together = sum(share.cap.pico for share in shares)
    assert 2 * together <= 2 * frame.allocation.pico + len(pico) * frame.cap_quantum.pico
    # a run that costs what was expected is not stopped: its last blocks, all lanes at once, have their reserves
    last = min(work.lanes, work.blocks)
    for share in shares:
        if share.expected.pico >= 10**6:
            settled = Fraction(share.expected.pico * (work.blocks - last), work.blocks)
            assert settled + last * share.reserve.pico <= share.cap.pico
    assert frame.margin.pico >= work.lanes * max(exchange, *(share.reserve.pico for share in shares))


@given(pico=costs, work=works, table=st.sampled_from(["caps", "reserves"]), up=st.booleans(), data=st.data())
def test_a_picodollar_beyond_half_a_quantum_is_refused_by_one_guard(
    pico: list[int], work: Work, table: str, up: bool, data: st.DataObject
) -> None:
    expected = {f"m{number}": Usd(cost) for number, cost in enumerate(pico)}
    amounts = size(expected, work, Kept(None, {}, {}), {})
    name = data.draw(st.sampled_from(sorted(expected)))
    wanted = amounts.cap_range(name) if table == "caps" else amounts.reserve_range(name)
    edge = wanted.highest if up else wanted.lowest
    beyond = edge + Usd(1) if up else edge - Usd(1)
    money = facts_of(amounts, work)
    guard = f"{table}-proportional"
    assert guard not in said(replace(money, **{table: {**getattr(money, table), name: edge}}))
    if beyond >= ZERO:
        assert said(replace(money, **{table: {**getattr(money, table), name: beyond}})).count(guard) == 1


@given(pico=costs, work=works)
def test_what_a_study_gives_is_kept_where_it_holds(pico: list[int], work: Work) -> None:
    expected = {f"m{number}": Usd(cost) for number, cost in enumerate(pico)}
    first = size(expected, work, Kept(None, {}, {}), {})
    caps = {name: first.cap_range(name).lowest for name in expected}
    reserves = {name: first.reserve_range(name).lowest for name in expected}
    again = size(expected, work, Kept(first.frame, caps, reserves), {})
    assert again.frame == first.frame
    assert {name: share.cap for name, share in again.shares.items()} == caps
    assert {name: share.reserve for name, share in again.shares.items()} == reserves


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        size({"luna": ZERO}, Work(1, 1, 1), Kept(None, {}, {}), {})
    assert refused.value.reason is Reason.BUDGET_INCONSISTENT


def test_a_pilot_is_scaled_up_and_never_down() -> None:
    assert scaled(usd("0.10"), 3, 300) == usd("10")
    assert scaled(Usd(1), 3, 3) == usd("0.000001")
    assert scaled(ZERO, 3, 300) == ZERO
