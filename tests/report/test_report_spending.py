"""Money for people and for programs: exact in records, short and never misleading in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.money import Usd
from proctor.evidence.spent import Spent
from proctor.report.progress import Progress, Tally
from proctor.report.spending import Spend, spend
from proctor.report.text import dollars
from run_parts import design


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0", "$0.00"),
        ("0.5", "$0.50"),
        ("0.001234", "$0.001234"),
        ("0.0012345678", "$0.001235"),
        ("0.000000000001", "$0.000000000001"),
        ("0.99999", "$1.00"),
        ("12.345", "$12.35"),
        ("1234567.8", "$1,234,567.80"),
        ("-0.25", "-$0.25"),
    ],
)
def test_dollars(amount: str, shown: str) -> None:
    assert dollars(Usd.parse(amount)) == shown


@given(st.integers(0, 10**18))
def test_dollars_are_within_a_thousandth(pico: int) -> None:
    told = float(dollars(Usd(pico)).removeprefix("$").replace(",", ""))
    assert told == pytest.approx(pico / 10**12, rel=6e-3 if pico >= 10**12 else 6e-4)
    assert (told == 0) == (pico == 0), "what costs anything never reads as free"


def test_a_share_of_a_cost_is_rounded_up() -> None:
    spent = Spent(10, 1, 0, 0, {"input": 7, "output": 1})
    assert spent.per(3) == (Usd(4), 3) and spent.per(0) is None
    assert (spent.tokens_in, spent.tokens_out) == (7, 1)


MONEY = st.integers(0, 10**15).map(Usd)


@given(MONEY, MONEY)
def test_a_spend_comes_back_from_its_record(charged: Usd, held: Usd) -> None:
    found = spend(design(models=("sun", "moon")), {"sun": charged}, {"moon": held})
    assert found is not None and found.charged == charged and found.held == held
    assert Spend.of_record(found.as_record()) == found
    assert all("SYNTHETIC" in line for line in [found.line(), *found.lines()])


def test_without_models_there_is_no_money() -> None:
    assert spend(design(), {}, {}) is None
    assert Tally(1).spend() is None


def test_progress_shows_the_money_that_there_is_now() -> None:
    frozen = design(models=("sun",))
    frozen = replace(frozen, models=(replace(frozen.models[0], synthetic=False),))
    charged = {"sun": Usd.parse("0.25")}
    tally = Tally(2, money=lambda: spend(frozen, charged, {}))
    assert "· $0.25" in tally.line()
    charged["sun"] = Usd.parse("0.5")
    assert "· $0.50" in tally.line() and "SYNTHETIC" not in tally.line()


def test_progress_keeps_its_money_when_the_plan_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    progress = Progress(sys.stderr)
    progress.tally.money = lambda: spend(design(models=("sun",)), {}, {})
    progress.begins(3, 0, {})
    assert "SYNTHETIC" in progress.tally.line()
