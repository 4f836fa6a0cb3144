"""What the first program decides about money, crashes and resumes included, the second program bears out."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from journal_parts import KEY
from proctor.admission.limits import limits_of
from proctor.budget.authority import Authority
from proctor.core.ids import attempt_id, trial_folder
from proctor.core.money import ZERO, Usd
from proctor.core.outcomes import Outcome
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_admitted
from proctor.core.usage import Bucket, Usage
from proctor.evidence.fold import NextAttempt, RunState
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock, opening
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.rollout.record import Record
from proctor.runner.derived import write_derived
from proctor.study import Block, Design, Plan, Trial, plan
from proctor.study.design import BudgetDesign, ModelMoney, QuestionsDesign
from proctor_verify import Status, verify
from run_parts import PRICE, VERSION, admit, design
from spending_parts import hold

TASKS = ("q0", "q1", "q2")
MODELS = ("moon", "sun")
FEWEST, RUNS = 12, 100
STARTED = "2031-01-01T00:00:00.000000Z"
_NO_PROCESS: dict[str, Any] = {"exit_code": 0, "signal": None, "timed_out": False, "output_bytes": 0}
_NO_PROCESS |= {"output_dropped": 0, "leftovers": 0, "limit_hit": None, "start_error": None}


class Died(Exception):
    """The process is gone."""


def _design(margin: str, allocation: int, before: int) -> Design:
    """Three rows for two models, whose exchanges cost up to a cent each; `allocation` and spent before in cents."""
    each = Usd(allocation * 10**10 // len(MODELS))
    shares = tuple(
        ModelMoney(name, str(each), str(each), str(Usd(each.pico // len(TASKS))), len(TASKS)) for name in MODELS
    )
    total = str(Usd(each.pico * len(MODELS)))
    quanta = "0.000000000001", "0.000000000001"
    frozen = design(TASKS, ("plain", "skilled"), models=MODELS)
    return replace(
        frozen,
        tasks=tuple(replace(task, format="question", path="units.jsonl") for task in frozen.tasks),
        questions=QuestionsDesign("units.jsonl", "0" * 64, "exact", 10),
        budget=BudgetDesign(str(Usd(before * 10**10)), total, total, margin, *quanta, 1, shares),
    )


@dataclass
class Opening:
    """One process that works on a run until it is done, its money is, or it dies."""

    run: RunFolder
    journal: Journal
    frozen: Design
    drawn: Plan
    past: RunState
    authority: Authority
    rng: random.Random
    steps_left: int
    refusals: list[Refusal] = field(default_factory=list)
    ungraded: int = 0

    async def work(self) -> None:
        """Raises Died."""
        lanes = [asyncio.create_task(self._lane(blocks)) for blocks in self.drawn.by_model().values()]
        try:
            await asyncio.gather(*lanes)
        except Died:
            await asyncio.wait(lanes)
            raise

    async def _step(self) -> None:
        if self.steps_left <= 0:
            raise Died
        self.steps_left -= 1
        for _ in range(self.rng.randrange(3)):
            await asyncio.sleep(0)

    async def _lane(self, blocks: tuple[Block, ...]) -> None:
        for block in blocks:
            if block.index in self.past.blocks_ended:
                continue
            left = [trial for trial in block.trials() if self.past.final(trial.id) is None]
            coming = asyncio.create_task(
                self.authority.admit_block(block.index, block.task, block.model, block.epoch, empty=not left)
            )
            while not coming.done():
                try:
                    await self._step()
                except Died:
                    coming.cancel()
                    raise
            if (refusal := coming.result()) is not None:
                self.refusals.append(refusal)
                return
            for trial in left:
                await self._trial(trial)
            await self._step()
            self.authority.end_block(block.index)
            self.journal.post(Kind.BLOCK_ENDED, {"block": block.index})

    async def _trial(self, trial: Trial) -> None:
        if (due := self.past.due.get(trial.id)) is not None:
            final = {"grade": due.grade, "reason": due.reason, "reward": due.reward}
            self.journal.post(
                Kind.TRIAL_FINAL, {"trial": trial.id, "attempt": attempt_id(trial.id, due.number), **final}
            )
            return
        state, reason = self.past.trial(trial.id), "not_graded"
        while state.outcome is not Outcome.INFRASTRUCTURE or state.replaced < self.frozen.stage.replacements:
            coming = state.next_attempt(trial.id)
            unanswered = await self._attempt(trial, coming)
            if unanswered is None:
                return
            state, reason = state.after(coming, Outcome.INFRASTRUCTURE), unanswered
        last = {"attempt": attempt_id(trial.id, state.attempts - 1), "grade": "ungraded", "reward": None}
        self.journal.post(Kind.TRIAL_FINAL, {"trial": trial.id, **last, "reason": reason})
        self.ungraded += 1

    async def _attempt(self, trial: Trial, coming: NextAttempt) -> str | None:
        """Gives its final, too, unless it ended by infrastructure: then its exception is returned."""
        attempt = attempt_id(trial.id, coming.number)
        folder = f"trials/{trial_folder(trial.task, trial.model, trial.arm, trial.epoch)}/{coming.number}"
        record = Record(self.journal, self.run, attempt, folder)
        of_trial = {"task": trial.task, "model": trial.model, "arm": trial.arm, "epoch": trial.epoch}
        record.post(
            Kind.ATTEMPT_ADMITTED,
            trial=trial.id,
            number=coming.number,
            block=trial.block,
            folder=folder,
            supersedes=coming.supersedes,
            replaces=coming.replaces,
            **of_trial,
        )
        started = {"agent": "command", "version": VERSION, "settings": {"command": "true"}, "skills": []}
        record.post(Kind.AGENT_STARTED, {"instruction": b"Answer."}, **started, timeout_sec=60)
        unpaid = await self._ask(record, trial, attempt)
        unanswered = record.said.get(Kind.EXCHANGE_ENDED, [{"error": None}])[-1]["error"]
        if unpaid is None and unanswered is not None and self.rng.random() < 0.5:
            record.post(
                Kind.ATTEMPT_ENDED, outcome="infrastructure", exception=unanswered, message="no answer", timing={}
            )
            await self._step()
            return str(unanswered)
        graded: dict[str, Any] = {"grade": "pass", "reason": None, "reward": 1.0, "rewards": {"reward": 1.0}}
        if unpaid is None:
            record.post(Kind.AGENT_ENDED, exception=None, ended=_NO_PROCESS, duration_ns=1)
            record.post(Kind.ANSWER_SCORED, {"answer": b"42"}, scorer="exact", detail="")
        else:
            graded = {"grade": "ungraded", "reason": unpaid.reason.id, "reward": None, "rewards": {}}
            self.ungraded += 1
        record.post(Kind.ATTEMPT_GRADED, **graded, assurance=None, tests=None, disclosures=[])
        exception = unpaid.reason.id if unpaid is not None else None
        record.post(Kind.ATTEMPT_ENDED, outcome="completed", exception=exception, message=None, timing={})
        await self._step()
        del graded["rewards"]
        self.journal.post(Kind.TRIAL_FINAL, {"trial": trial.id, "attempt": attempt, **graded})
        return None

    async def _ask(self, record: Record, trial: Trial, attempt: str) -> Refusal | None:
        assert trial.model is not None
        lease = self.authority.lease(attempt, trial.block, trial.model)
        unanswered = None
        for index in range(self.rng.randrange(1, 4)):
            exchange = f"{attempt}/{index}"
            inputs, outputs = self.rng.randrange(len(exchange), 900), self.rng.randrange(1, 1001)
            held = PRICE.worst_case(inputs, outputs)
            asked = {
                "route": "POST /chat/completions",
                "request_digest": "0" * 64,
                "retries": unanswered,
                "mutations": [],
            }
            try:
                bounds = {"input_bound": inputs, "output_bound": outputs}
                await hold(lease, record, exchange, held, blobs={"request": exchange.encode()}, **asked, **bounds)
            except Refusal as refusal:
                lease.end()
                return refusal
            await self._step()
            self._settle(partial(lease.settle, record, exchange), held, inputs, outputs)
            unanswered = exchange if record.said[Kind.EXCHANGE_ENDED][-1]["error"] is not None else None
        lease.end()
        return None

    def _settle(self, settle: Callable[..., bool], held: Usd, inputs: int, outputs: int) -> None:
        whole = {"http_status": 200, "error": None, "resolved_model": "m", "finish": "stop", "usage": None}
        whole |= {"estimated": False, "flags": [], "timing": {}, "chunks": None}
        chance = self.rng.random()
        answer = {"blobs": {"response": b"42"}}
        if chance < 0.1:
            whole |= {"http_status": 429, "error": "rate_limited", "finish": None}
            settle(ZERO, outcome="released", **answer, **whole)
        elif chance < 0.2:
            whole |= {"http_status": None, "error": "provider_timeout", "finish": None, "response": None}
            settle(held, outcome="settled", **{**whole, "estimated": True})
        else:
            more = 40 if chance > 0.97 else 1
            tokens = {"input": self.rng.randrange(1, inputs + 1), "output": more * self.rng.randrange(1, outputs + 1)}
            cost = PRICE.cost(Usage({Bucket(name): count for name, count in tokens.items()}))
            settle(cost, outcome="settled", **answer, **{**whole, "usage": tokens})


async def _open(path: Path, frozen: Design) -> tuple[RunFolder, Journal]:
    run = RunFolder(path)
    if not run.is_admitted():
        run.create()
        return run, await admit(run, Lock.acquire(run, extra={}), frozen, KEY)
    head: dict[str, Any] = {"format": 1, "command": "resume", "requested": {}, "started": STARTED, "verdict": "pending"}
    head |= {"exit_status": None, "refusals": [], "waivers": {"requested": [], "used": []}, "probes": {}}
    head |= {"design_sha256": frozen.sha256}
    named = run.new_manifest(head).rewrite({**head, "verdict": "admitted"}).named()
    body = {"manifest": named, "abandoned": [], "opening": opening()}
    body["key"] = {"vkey": KEY.vkey, "fingerprint": KEY.fingerprint}
    return run, await Journal.reopen(run, lock=Lock.acquire(run, extra={}), key=KEY, resumed_body=body)


async def _run(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    frozen = _design(rng.choice(["0.000000000000", "0.010000000000"]), rng.choice([6, 12, 30]), rng.choice([0, 5]))
    drawn = plan(frozen)
    lives = rng.randrange(3)
    while True:
        run, journal = await _open(path, frozen)
        token = seal_admitted(run_id=journal.run_id, run_dir=path, design_sha256=frozen.sha256, label="proctor-test")
        past = RunState.of(read_entries(run.journal_path))
        authority = Authority(token, limits_of(frozen), journal, past)
        steps = rng.randrange(60) if lives else 10**6
        work = Opening(run, journal, frozen, drawn, past, authority, rng, steps)
        try:
            await work.work()
        except Died:
            lives -= 1
            await journal.close(None)
            continue
        break
    journal.post(Kind.RUN_PAUSED, {})
    await journal.append(Kind.RUN_UNPAUSED, {})
    if work.refusals:
        await journal.append(Kind.RUN_DRAINING, {"cause": work.refusals[0].reason.id})
    state = RunState.of(read_entries(run.journal_path))
    complete = state.finals == drawn.planned["trials"]
    status, reason = (int(state.grades["ungraded"] > 0), None) if complete else (4, work.refusals[0].reason.id)
    files = [file.as_record() for file in write_derived(run, frozen, drawn, state)]
    totals = state.totals(drawn.planned["trials"])
    await journal.close(
        {"exit_status": status, "reason": reason, "complete": complete, "totals": totals, "files": files}
    )


def _check(path: Path, seed: int) -> Counter[str]:
    """Runs, and verifies; what there was in the run."""
    asyncio.run(_run(path, seed))
    report = verify(path, KEY.fingerprint)
    odd = [result for result in report.results if result.status in (Status.FAIL, Status.CANNOT_TELL)]
    assert (seed, odd) == (seed, [])
    seen: Counter[str] = Counter()
    for entry in read_entries(path / "journal.jsonl"):
        if entry.kind is Kind.CEILING_REACHED:
            seen[entry.body["scope"]] += 1
        elif entry.kind in (Kind.EXCHANGE_ENDED, Kind.ATTEMPT_ENDED):
            seen[entry.body["outcome"]] += 1
        elif entry.kind is Kind.ATTEMPT_ADMITTED and entry.body["replaces"] is not None:
            seen["replaced"] += 1
        elif entry.kind in (Kind.RUN_RESUMED, Kind.EXCHANGE_REFUSED):
            seen[entry.kind.id] += 1
    return seen


def test_what_the_authority_decides_is_borne_out(tmp_path: Path) -> None:
    """Enough runs that everything was there; what each has depends on when the disk is done, too."""
    wanted = {"ceiling", "overrun", "cap", "model_cap", "settled", "released", "unknown", "infrastructure", "replaced"}
    wanted |= {"run.resumed", "exchange.refused"}
    seen: Counter[str] = Counter()
    for seed in range(RUNS):
        seen += _check(tmp_path / str(seed), seed)
        if seed >= FEWEST and seen.keys() >= wanted:
            break
    assert seen.keys() >= wanted, seen


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(RUNS, 2**32))
def test_so_it_is_of_any_run(seed: int) -> None:
    with TemporaryDirectory() as folder:
        _check(Path(folder, "run"), seed)
