"""A run that can cost real money begins only when somebody agrees, after everything else is found good."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_worlds import FakeKind, Steps, write_study
from journal_parts import KEY
from launching import manifests, refusals_of
from proctor.admission.admit import Admission, Verdict, admit, check
from proctor.admission.facts import MoneyFacts, Request
from proctor.admission.finish import Interrupted, Stop, admit_or_stop
from proctor.admission.gather import Gathered, gather
from proctor.admission.spending import AtMost
from proctor.budget.rules import Frame
from proctor.budget.sizing import RESERVE_FACTOR
from proctor.core.exits import Exit
from proctor.core.money import Usd
from proctor.core.prices import PriceRow, Prices
from proctor.core.reasons import Reason
from proctor.study.actors import ModelDesign
from proctor.study.design import BudgetDesign, ModelMoney

PRICES = Prices("a page", (PriceRow("input", 0, "1.000000000000"), PriceRow("output", 0, "1.000000000000")))
MODEL = ModelDesign("luna", "openai", "luna-1", "chat", None, None, 10, 10, None, None, None, PRICES)


def costing(synthetic: bool = False, prices: Prices = PRICES) -> Callable[..., Gathered]:
    """The study that is there, as if its stage had a model that costs a dollar."""

    def look(request: Request, *others: Any) -> Gathered:
        found = gather(request, *others)
        assert found.design is not None
        assert found.ready is not None
        blocks = len(found.design.tasks) * found.design.stage.epochs
        one = Usd.parse("1")
        reserve = Usd(3 * one.pico // blocks)
        frame = Frame(Usd(0), Usd(3 * one.pico), Usd(3 * one.pico), one, Usd(0), Usd(10**6), RESERVE_FACTOR)
        model = replace(MODEL, synthetic=synthetic, price=prices)
        cap = frame.cap
        money = MoneyFacts(
            stage="main",
            names=("luna",),
            models=(model,),
            budget=frame,
            expected_costs={"luna": one},
            caps={"luna": cap},
            reserves={"luna": reserve},
            blocks=blocks,
            arms=len(found.design.arms),
            lanes=1,
        )
        share = ModelMoney("luna", str(one), str(cap), str(reserve), blocks)
        amounts = (frame.spent_before, frame.allocation, cap, frame.margin, frame.cap_quantum, frame.reserve_quantum)
        texts = [str(amount) for amount in amounts]
        design = replace(found.design, models=(model,), budget=BudgetDesign(*texts, 3, (share,)))
        ready = replace(found.ready, design=design)
        return replace(found, facts=replace(found.facts, money=money), design=design, ready=ready)

    return look


class Somebody:
    """Answers, and remembers what was asked."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[AtMost] = []

    async def __call__(self, spending: AtMost) -> bool:
        self.asked.append(spending)
        return self.answer


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("proctor.admission.worlds.sandbox_kind", lambda name: FakeKind(Steps()))
    monkeypatch.setattr("proctor.admission.admit.gather", costing())
    return write_study(tmp_path / "study")


async def start(study: Path, out: Path, somebody: Somebody | None, **words: Any) -> Admission | Verdict:
    request = Request("run", out, study=study, **words)
    if somebody is None:
        return await admit(request, KEY, Stop(), control="nowhere")
    return await admit(request, KEY, Stop(), control="nowhere", confirm=somebody)


@pytest.mark.parametrize("somebody", [Somebody(False), None], ids=["declined", "not asked"])
async def test_nobody_agrees(study: Path, tmp_path: Path, somebody: Somebody | None) -> None:
    verdict = await start(study, tmp_path / "run", somebody)
    assert isinstance(verdict, Verdict)
    (manifest,) = manifests(tmp_path / "run")
    assert (manifest["verdict"], manifest["exit_status"]) == ("refused", int(Exit.REFUSED))
    assert refusals_of(manifest) == [Reason.SPEND_NOT_CONFIRMED.id]
    assert manifest["refusals"][0]["guard"] == "spend-confirmed"
    assert manifest["probes"]["spending"]["at_most"] == "4.000000000000"
    assert not (tmp_path / "run/journal.jsonl").exists()


async def test_somebody_agrees(study: Path, tmp_path: Path) -> None:
    somebody = Somebody(True)
    admission = await start(study, tmp_path / "run", somebody)
    assert isinstance(admission, Admission)
    await admission.journal.close(None)
    assert [(each.at_most, each.expected) for each in somebody.asked] == [(Usd.parse("4"), Usd.parse("1"))]
    assert any("at most 4.00 USD" in notice for notice in admission.notices)
    (manifest,) = manifests(tmp_path / "run")
    assert manifest["verdict"] == "admitted"


@pytest.mark.parametrize("way", ["synthetic", "free", "prepare only"])
async def test_nobody_is_asked_where_nothing_is_paid(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    free = Prices("ours", tuple(replace(row, usd_per_million="0.000000000000") for row in PRICES.rows))
    look = costing(synthetic=way == "synthetic", prices=free if way == "free" else PRICES)
    monkeypatch.setattr("proctor.admission.admit.gather", look)
    somebody = Somebody(False)
    admission = await start(study, tmp_path / "run", somebody, prepare_only=way == "prepare only")
    assert isinstance(admission, Admission)
    await admission.journal.close(None)
    assert somebody.asked == []
    assert any("SYNTHETIC" in notice for notice in admission.notices) is (way == "synthetic")


async def test_nobody_is_asked_about_what_is_refused_anyway(study: Path, tmp_path: Path) -> None:
    somebody = Somebody(True)
    verdict = await start(study, tmp_path / "run", somebody, waive=("nonsense",))
    assert isinstance(verdict, Verdict)
    assert [refusal.reason for refusal in verdict.refusals] == [Reason.UNKNOWN_WAIVER]
    assert somebody.asked == []


async def test_an_interruption_while_somebody_thinks_ends_the_admission(study: Path, tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def thinks(_: AtMost) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    async def interrupts() -> None:
        await asked.wait()
        signal.raise_signal(signal.SIGINT)

    stop = Stop()
    request = Request("run", tmp_path / "run", study=study)
    other = asyncio.create_task(interrupts())
    with pytest.raises(Interrupted):
        await admit_or_stop(lambda stop: admit(request, KEY, stop, control="nowhere", confirm=thinks), stop)
    await other
    (manifest,) = manifests(tmp_path / "run")
    assert (manifest["verdict"], refusals_of(manifest)) == ("refused", [Reason.INTERRUPTED.id])


def test_a_check_says_what_it_can_cost_and_asks_nobody(study: Path, tmp_path: Path) -> None:
    verdict = check(Request("check", tmp_path / "run", study=study))
    assert verdict.refusals == ()
    assert verdict.manifest["probes"]["spending"]["ceiling"] == "4.000000000000"
