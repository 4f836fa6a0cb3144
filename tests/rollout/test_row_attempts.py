"""One attempt at a row, with agents that misbehave: whatever they do, what they asked for is settled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fake_worlds import FakeKind, Steps
from journal_parts import RUN_ID, attempt_admitted
from proctor.agents.base import Answered, RowTurn, Version
from proctor.core.canonical import encode
from proctor.core.clock import SystemClock
from proctor.core.models import Message, ModelAccess, Role
from proctor.core.money import ZERO, Usd
from proctor.core.prices import PriceRow, Prices
from proctor.core.questions import Question, Scorer
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_admitted
from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_blob
from proctor.gateway.gateway import Gateway
from proctor.grading.solved import parse_solved
from proctor.rollout.job import Result, RowJob
from proctor.rollout.row import MAX_ANSWER_CHARS, run_row
from proctor.rollout.toolbox import open_tools
from proctor.rollout.tools import Tools
from proctor.rollout.workers import Workers
from proctor.study.actors import ModelDesign
from scripted_provider import ScriptedProvider
from spending_parts import Spending, limits

HELLO = [Message(Role.USER, "What is 3 * 10?")]
# a dollar for a token that comes out, of which there are 100 at most
DEAR = Prices("test", (PriceRow("input", 0, "0.000000000000"), PriceRow("output", 0, "1000000.000000000000")))
HELD = Usd.parse("100")


@dataclass
class Acting:
    """An agent that does what it is told here."""

    act: Callable[[RowTurn], Awaitable[Answered]]
    name: str = "acting"
    needs_solution: bool = False
    needs_model: bool = True

    def version(self) -> Version:
        return Version("1")

    async def answer(self, turn: RowTurn) -> Answered:
        return await self.act(turn)


@dataclass
class Bench:
    """A run with one block, in which one attempt is made."""

    spending: Spending
    tools: Tools
    base_url: str | None = None
    phases: list[str] = field(default_factory=list)

    async def job(self, act: Callable[[RowTurn], Awaitable[Answered]], timeout_sec: float | None = None) -> RowJob:
        body = attempt_admitted("task", 0, block=0, model="m")
        row: Mapping[str, Any] = {"id": "task", "prompt": HELLO[0].text, "target": 30}
        question = Question("task", tuple(HELLO), 30, {}, None, None, {}, None, Scorer.NUMBER, None, row)
        api = "practice" if self.base_url is None else "chat"
        return RowJob(
            **{name: body[name] for name in ("attempt", "trial", "number", "block", "task", "model", "arm", "epoch")},
            folder=body["folder"],
            agent=Acting(act),
            settings={},
            skills=(),
            agent_timeout_sec=timeout_sec,
            model_design=ModelDesign("m", api, "m-1", api, self.base_url, None, 100, 60, None, None, None, DEAR),
            question=question,
            messages=tuple(HELLO),
            tools=await open_tools(self.tools.workers, [], "m"),
            functions={},
            rule=parse_solved("reward >= 1.0"),
            scorer_timeout_sec=30,
        )

    async def run(self, act: Callable[[RowTurn], Awaitable[Answered]], timeout_sec: float | None = None) -> Result:
        return await run_row(await self.job(act, timeout_sec), self.tools)

    async def over(self) -> list[Entry]:
        """All entries of the run; at rest nothing is held, and the block can end."""
        assert self.spending.authority.held == ZERO
        self.spending.authority.end_block(0)
        return await self.spending.entries()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    spending = await Spending.open(tmp_path / "run", limits(Usd.parse("1000")))
    assert await spending.authority.admit_block(0, "task", "m", 1) is None
    token = seal_admitted(run_id=RUN_ID, run_dir=tmp_path / "run", design_sha256="1" * 64, label="proctor-test")
    gateway = Gateway(token, {}, SystemClock())
    async with Workers(token, tmp_path) as workers:
        made = Bench(spending, None)
        made.tools = Tools(
            *(token, FakeKind(Steps()), spending.journal, spending.run, SystemClock()),
            lambda _, phase: made.phases.append(phase),
            *(spending.authority, gateway, workers),
        )
        yield made
    await gateway.close()


async def ask(model: ModelAccess | None) -> str:
    assert model is not None
    return (await model.ask(HELLO)).message.text


def of(entries: list[Entry], kind: Kind) -> list[dict[str, Any]]:
    return [dict(entry.body) for entry in entries if entry.kind is kind]


def check_order(entries: list[Entry]) -> None:
    """What an attempt asked for is over when its agent is said to be, and the attempt ends last."""
    kinds = [entry.kind for entry in entries if "attempt" in entry.body]
    assert kinds[0] is Kind.ATTEMPT_ADMITTED
    assert kinds[-1] is Kind.ATTEMPT_ENDED
    if Kind.AGENT_ENDED in kinds:
        assert Kind.EXCHANGE_ENDED not in kinds[kinds.index(Kind.AGENT_ENDED) :]


async def test_an_answer_is_scored_and_paid(bench: Bench) -> None:
    async def act(turn: RowTurn) -> Answered:
        assert turn.target is None, "only who needs the solution is told it"
        return Answered(await ask(turn.model))

    result = await bench.run(act)
    entries = await bench.over()
    check_order(entries)
    assert (result.outcome, result.exception) == ("completed", None)
    assert [body["charged"] for body in of(entries, Kind.EXCHANGE_ENDED)] == [f"1.{0:012d}"]
    assert bench.phases == ["agent"]


@pytest.mark.parametrize("fault", [ValueError("no"), SystemExit(3), RecursionError("deep"), TimeoutError("its own")])
async def test_an_agent_that_raises_is_a_fault_of_infrastructure_and_what_it_asked_is_paid(
    bench: Bench, fault: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    async def act(turn: RowTurn) -> Answered:
        await ask(turn.model)
        raise fault

    result = await bench.run(act)
    entries = await bench.over()
    check_order(entries)
    assert (result.outcome, result.exception) == ("infrastructure", Reason.INTERNAL_ERROR)
    assert [body["outcome"] for body in of(entries, Kind.EXCHANGE_ENDED)] == ["settled"]
    assert of(entries, Kind.ATTEMPT_GRADED) == []


@pytest.mark.parametrize(
    "reason", [Reason.CEILING_REACHED, Reason.CAP_REACHED, Reason.RATE_LIMITED, Reason.KEY_MISSING]
)
async def test_an_agent_cannot_say_what_its_model_never_said(
    bench: Bench, reason: Reason, capsys: pytest.CaptureFixture[str]
) -> None:
    async def act(turn: RowTurn) -> Answered:
        await ask(turn.model)
        raise Refusal(reason, "as if a provider had said so")

    result = await bench.run(act)
    check_order(await bench.over())
    assert (result.outcome, result.exception) == ("infrastructure", Reason.INTERNAL_ERROR)
    assert reason.id in str(result.message)


async def test_a_deadline_in_the_middle_of_a_request_charges_its_worst_case(bench: Bench) -> None:
    with ScriptedProvider() as provider:
        bench.base_url = f"{provider.url}/slow"

        async def act(turn: RowTurn) -> Answered:
            return Answered(await ask(turn.model))

        result = await bench.run(act, timeout_sec=3.0)
    entries = await bench.over()
    check_order(entries)
    assert (result.outcome, result.exception) == ("completed", Reason.AGENT_TIMEOUT)
    (body,) = of(entries, Kind.EXCHANGE_ENDED)
    assert (body["outcome"], body["charged"], body["error"]) == ("settled", str(HELD), "interrupted")
    (graded,) = of(entries, Kind.ATTEMPT_GRADED)
    assert (graded["grade"], graded["reason"]) == ("fail", "no_answer")


async def test_an_interruption_in_the_middle_of_a_request_charges_its_worst_case(bench: Bench) -> None:
    with ScriptedProvider() as provider:
        bench.base_url = f"{provider.url}/slow"

        async def act(turn: RowTurn) -> Answered:
            return Answered(await ask(turn.model))

        running = asyncio.create_task(bench.run(act))
        assert await asyncio.to_thread(provider.was_asked.wait, 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    entries = await bench.over()
    check_order(entries)
    (body,) = of(entries, Kind.EXCHANGE_ENDED)
    assert (body["outcome"], body["charged"], body["estimated"]) == ("settled", str(HELD), True)
    (end,) = of(entries, Kind.ATTEMPT_ENDED)
    assert (end["outcome"], end["exception"]) == ("interrupted", "interrupted")


async def test_who_keeps_the_model_beyond_its_turn_is_refused_and_nothing_is_recorded(bench: Bench) -> None:
    kept: list[ModelAccess] = []

    async def act(turn: RowTurn) -> Answered:
        assert turn.model is not None
        kept.append(turn.model)
        return Answered("30")

    await bench.run(act)
    with pytest.raises(Refusal) as refused:
        await ask(kept[0])
    assert refused.value.reason is Reason.LEASE_STALE
    entries = await bench.over()
    assert of(entries, Kind.EXCHANGE_ADMITTED) == []
    assert of(entries, Kind.EXCHANGE_REFUSED) == []


async def test_what_an_agent_left_running_is_settled_before_its_end_is_said(bench: Bench) -> None:
    left: list[asyncio.Task[str]] = []

    async def act(turn: RowTurn) -> Answered:
        begun = asyncio.Event()

        async def ask_on() -> str:
            begun.set()
            return await ask(turn.model)

        left.extend(asyncio.create_task(ask_on()) for _ in range(5))
        await begun.wait()
        return Answered("30")

    result = await bench.run(act)
    entries = await bench.over()
    check_order(entries)
    assert result.exception is None
    ended = of(entries, Kind.EXCHANGE_ENDED)
    assert len(ended) == len(of(entries, Kind.EXCHANGE_ADMITTED))
    said = await asyncio.gather(*left, return_exceptions=True)
    # who had not begun hears that it is over
    refusals = [each.reason for each in said if isinstance(each, Refusal)]
    assert set(refusals) <= {Reason.LEASE_STALE}
    assert len(refusals) + len([each for each in said if isinstance(each, str)]) == 5


async def test_an_answer_of_any_length_and_any_characters_is_kept_as_far_as_it_is_scored(bench: Bench) -> None:
    async def act(turn: RowTurn) -> Answered:
        return Answered("\udcff\x00" + "7" * (MAX_ANSWER_CHARS + 10))

    result = await bench.run(act)
    entries = await bench.over()
    (scored,) = of(entries, Kind.ANSWER_SCORED)
    kept = read_blob(bench.spending.run, scored["answer"])
    assert kept.startswith(b"\\udcff\x007")
    assert len(kept) == MAX_ANSWER_CHARS - 1 + len(b"\\udcff")
    assert (result.outcome, result.grade and result.grade.state) == ("completed", "fail")
    assert len(encode(scored)) < 65_535


async def test_money_that_is_not_there_ends_the_attempt_ungraded(bench: Bench) -> None:
    async def act(turn: RowTurn) -> Answered:
        while True:
            await ask(turn.model)

    async def many(turn: RowTurn) -> Answered:
        await asyncio.gather(*(act(turn) for _ in range(20)))
        raise AssertionError("all of them go on until nothing is left")

    result = await bench.run(many)
    entries = await bench.over()
    check_order(entries)
    assert (result.outcome, result.exception) == ("completed", Reason.CEILING_REACHED)
    assert result.grade is not None and result.grade.state == "ungraded"
    assert len(of(entries, Kind.CEILING_REACHED)) == 1
