"""Whole run folders made by the real journal from a script of attempts, without a sandbox."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from journal_parts import KEY
from proctor.core.canonical import encode
from proctor.core.ids import attempt_id, new_run_id, trial_folder
from proctor.core.money import ZERO, Usd
from proctor.core.prices import PriceRow, Prices
from proctor.core.usage import Bucket, Usage
from proctor.evidence.fold import RunState
from proctor.evidence.journal import Journal
from proctor.evidence.keys import OperatorKey
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock, opening
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.grading.files import Absent, Content, VerdictFiles
from proctor.grading.grade import Assurance, VerifierOutcome, grade
from proctor.grading.join import per_test_record
from proctor.grading.solved import DuplicateTests, parse_solved
from proctor.grading.verdicts import read_verdicts
from proctor.rollout.derived import attempt_record
from proctor.rollout.verdict import as_entry
from proctor.runner.derived import write_derived
from proctor.study import Block, Design, Trial, plan
from proctor.study.actors import AgentDesign, ArmDesign, ModelDesign, SandboxDesign
from proctor.study.design import BudgetDesign, DrawDesign, FrozenTask, GradingDesign, ModelMoney, StageDesign, StudyName

SECOND = 1_000_000_000
DOLLAR = 10**12
VERSION = {"available": True, "value": "7", "reason": None}


PRICE = Prices("made for the tests", (PriceRow("input", 0, "2.000000000000"), PriceRow("output", 0, "10.000000000000")))


def practice(name: str) -> ModelDesign:
    """A made-up model: two dollars for a million tokens in, ten for a million out."""
    return ModelDesign(name, "practice", name, "practice", None, None, 1000, 60, None, None, None, PRICE, True)


def design(
    tasks: Sequence[str] = ("alpha", "beta"),
    arms: Sequence[str] = ("plain", "skilled"),
    *,
    epochs: int = 1,
    replacements: int = 1,
    models: Sequence[str] = (),
) -> Design:
    return Design(
        format=1,
        study=StudyName("hints", None),
        stage=StageDesign("main", "standard", epochs, 1, None, replacements),
        draw=DrawDesign(7),
        agent=AgentDesign("command", {"command": "true"}, None),
        models=tuple(map(practice, models)),
        arms=tuple(ArmDesign(name) for name in arms),
        tasks=tuple(FrozenTask(name, hashlib.sha256(name.encode()).hexdigest(), "harbor", name) for name in tasks),
        sandbox=SandboxDesign("namespace", "none", 1, None, None, None, None, {}),
        grading=GradingDesign("reward >= 1.0", "refuse", None),
        baseline=arms[0],
        budget=budget(models, len(tasks) * epochs) if models else None,
    )


def budget(models: Sequence[str], blocks: int) -> BudgetDesign:
    """A dollar for each block, and ten more below the hard ceiling."""
    each, every = str(Usd(blocks * DOLLAR)), str(Usd(blocks * len(models) * DOLLAR))
    quanta = str(Usd(DOLLAR // 100)), str(Usd(DOLLAR // 1000))
    shares = tuple(ModelMoney(name, each, each, str(Usd(DOLLAR)), blocks) for name in models)
    return BudgetDesign(str(ZERO), every, every, str(Usd(10 * DOLLAR)), *quanta, 1, shares)


@dataclass(frozen=True)
class Ask:
    """One exchange: the bodies of request and response as they are recorded, and the tokens; None: no usage came."""

    request: Mapping[str, Any]
    response: Mapping[str, Any] | None
    usage: Mapping[str, int] | None
    overrun: bool = False
    error: str | None = None


@dataclass(frozen=True)
class Try:
    """One attempt: what its verifier wrote, and how it ended. `left_open` leaves it in flight.

    Each of `refused` is a request that the gateway did not pass on: why, and its words. An `answer` makes it an attempt
    of a question row: no world, no folder, a score in place of a verifier.
    """

    reward: str | None = "1"
    outcome: str = "completed"
    exception: str | None = None
    message: str | None = None
    ctrf: bytes | None = None
    timed_out: bool = False
    agent_output: bytes = b"working\n"
    test_output: bytes = b"tests done\n"
    left_open: bool = False
    asks: tuple[Ask, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    answer: bytes | None = None


@dataclass
class Story:
    """What each trial's attempts are, by (task, arm) or (task, arm, epoch); `default` for the others."""

    default: tuple[Try, ...] = (Try(),)
    tries: Mapping[tuple[Any, ...], tuple[Try, ...]] = field(default_factory=dict)
    stop_after: int | None = None

    def of(self, trial: Trial) -> tuple[Try, ...]:
        whole = self.tries.get((trial.task, trial.arm, trial.epoch))
        return whole or self.tries.get((trial.task, trial.arm), self.default)


async def make_run(
    path: Path,
    frozen: Design | None = None,
    story: Story | None = None,
    *,
    end: int | None = 0,
    reason: str | None = None,
    key: OperatorKey = KEY,
) -> RunFolder:
    """A run as the runner leaves it: `end` is the exit status, None leaves it without an end (its process died)."""
    frozen, story = frozen or design(), story or Story()
    run = RunFolder(path)
    run.create()
    lock = Lock.acquire(run, extra={"control": str(path / "nobody.sock")})
    try:
        written = Written(run, frozen, key, await admit(run, lock, frozen, key))
    except BaseException:
        lock.release()
        raise
    drawn = plan(frozen)
    finals = 0
    for block in drawn.blocks:
        await written.admit(block)
        for trial in block.trials():
            if story.stop_after is not None and finals >= story.stop_after:
                break
            finals += await _trial(written, block, trial, story.of(trial))
        else:
            if all(not each.left_open for trial in block.trials() for each in story.of(trial)):
                await written.journal.append(Kind.BLOCK_ENDED, {"block": block.index})
            continue
        break
    if end is None:
        await written.journal.close(None)
        return run
    await written.end(end, reason)
    return run


@dataclass
class Written:
    """A run while it is written, opening after opening."""

    run: RunFolder
    frozen: Design
    key: OperatorKey
    journal: Journal

    async def admit(self, block: Block) -> None:
        body = {"block": block.index, "task": block.task, "model": block.model, "epoch": block.epoch}
        body["reserve"] = str(Usd(DOLLAR)) if self.frozen.budget else None
        await self.journal.append(Kind.BLOCK_ADMITTED, body)

    async def end(self, status: int, reason: str | None) -> None:
        drawn, state = plan(self.frozen), RunState.of(read_entries(self.run.journal_path))
        files = write_derived(self.run, self.frozen, drawn, state)
        await self.journal.close(
            {
                "exit_status": status,
                "reason": reason,
                "complete": state.finals == drawn.planned["trials"],
                "totals": state.totals(drawn.planned["trials"]),
                "files": [file.as_record() for file in files],
            }
        )

    async def again(self, block: Block) -> None:
        """End this opening as interrupted, and go on with the block in another."""
        await self.end(130, "interrupted")
        body = {"manifest": bound_manifest(self.run, self.frozen), "abandoned": [], "opening": opening()}
        body["key"] = {"vkey": self.key.vkey, "fingerprint": self.key.fingerprint}
        lock = Lock.acquire(self.run, extra={"control": str(self.run.path / "nobody.sock")})
        self.journal = await Journal.reopen(self.run, lock=lock, key=self.key, resumed_body=body)
        await self.admit(block)


def bound_manifest(run: RunFolder, frozen: Design) -> dict[str, str]:
    """The manifest of one more invocation, as the opening that it led to names it."""
    manifest: dict[str, Any] = {
        "format": 1,
        "command": "run",
        "requested": {},
        "started": "2026-11-30T00:00:00.000000Z",
        "verdict": "admitted",
        "exit_status": None,
        "refusals": [],
        "waivers": {"requested": [], "used": []},
        "probes": {},
        "design_sha256": frozen.sha256,
    }
    return run.new_manifest({**manifest, "verdict": "pending"}).rewrite(manifest).named()


async def admit(run: RunFolder, lock: Lock, frozen: Design, key: OperatorKey) -> Journal:
    manifest = bound_manifest(run, frozen)
    run.write_atomic("design.json", frozen.to_bytes())
    run_id = new_run_id()
    first = {
        "format": 1,
        "run_id": run_id,
        "study": frozen.study.name,
        "stage": frozen.stage.name,
        "manifest": manifest,
        "design_sha256": frozen.sha256,
        "abandoned": [],
        "opening": opening(),
        "key": {"vkey": key.vkey, "fingerprint": key.fingerprint},
        "planned": plan(frozen).planned,
    }
    return await Journal.create(run, lock=lock, key=key, run_id=run_id, first=(Kind.RUN_ADMITTED, first))


async def _trial(written: Written, block: Block, trial: Trial, tries: Sequence[Try]) -> int:
    before: Try | None = None
    for number, each in enumerate(tries):
        if before is not None and before.outcome == "interrupted":
            await written.again(block)
        attempt = await _attempt(written.journal, written.run, trial, number, each, before)
        if each.left_open:
            return 0
        before = each
    last = tries[-1]
    if last.outcome in ("interrupted", "lost"):
        return 0
    graded = attempt.get("graded")
    final = {"trial": trial.id, "attempt": attempt_id(trial.id, len(tries) - 1), "grade": "ungraded", "reward": None}
    final["reason"] = last.exception or "not_graded"
    if graded is not None and last.outcome == "completed":
        final.update({name: graded[name] for name in ("grade", "reason", "reward")})
    await written.journal.append(Kind.TRIAL_FINAL, final)
    return 1


async def _attempt(
    journal: Journal, run: RunFolder, trial: Trial, number: int, each: Try, before: Try | None
) -> dict[str, Any]:
    attempt = attempt_id(trial.id, number)
    said: dict[Kind, list[dict[str, Any]]] = {}

    async def add(kind: Kind, blobs: Mapping[str, bytes] | None = None, **body: Any) -> dict[str, Any]:
        whole = {"attempt": attempt, **body}
        said.setdefault(kind, []).append(whole)
        await journal.append(kind, whole, blobs=blobs)
        return whole

    last = attempt_id(trial.id, number - 1)
    folder = f"trials/{trial_folder(trial.task, trial.model, trial.arm, trial.epoch)}/{number}"
    await add(
        Kind.ATTEMPT_ADMITTED,
        trial=trial.id,
        number=number,
        block=trial.block,
        task=trial.task,
        model=trial.model,
        arm=trial.arm,
        epoch=trial.epoch,
        folder=folder,
        supersedes=last if before and before.outcome in ("interrupted", "lost") else None,
        replaces=last if before and before.outcome == "infrastructure" else None,
    )
    if each.answer is not None:
        return {"graded": await _row(add, trial, each)}
    limit = {"name": "memory", "wanted": 2**29, "enforced": 2**29, "how": "cgroup memory.max", "why_not": None}
    facts = {"kind": "namespace", "tier": "privileged", "network": "none"}
    world = {"facts": facts, "limits": [limit], "base_substituted": None}
    await add(Kind.SANDBOX_STARTED, role="agent", from_snapshot=False, **world)
    await add(Kind.ATTEMPT_BOUNDARY, boundary="env-ready")
    started = {"agent": "command", "version": VERSION, "settings": {"command": "true"}, "skills": []}
    await add(Kind.AGENT_STARTED, {"instruction": b"Do the task."}, **started, timeout_sec=60)
    for index, ask in enumerate(each.asks):
        await _ask(add, trial, f"{attempt}/{index}", ask)
    for reason, message in each.refused:
        asked = {"model": trial.model, "route": "POST /chat/completions", "held": "0.000000000000"}
        await add(Kind.EXCHANGE_REFUSED, {"request": b"{}"}, **asked, reason=reason, message=message)
    (run.path / folder / "agent").mkdir(parents=True)
    (run.path / folder / "agent/stdout.txt").write_bytes(each.agent_output)
    if each.left_open:
        return {}
    ended = {"exit_code": 0, "signal": None, "timed_out": False, "output_bytes": len(each.agent_output)}
    ended |= {"output_dropped": 0, "leftovers": 0, "limit_hit": None, "start_error": None}
    by_itself = {"agent_timeout": (None, 9), "agent_killed": (None, 9), "agent_error": (1, None)}
    exit_code, signal = by_itself.get(each.exception or "", (0, None))
    of_agent = each.exception if each.exception in by_itself else None
    ended_so = {**ended, "exit_code": exit_code, "signal": signal, "timed_out": of_agent == "agent_timeout"}
    await add(Kind.AGENT_ENDED, exception=of_agent, ended=ended_so, duration_ns=2 * SECOND)
    graded = None
    if each.outcome == "completed":
        await add(Kind.SANDBOX_STARTED, role="verifier", from_snapshot=True, **world)
        graded = await _verify(add, run.path / folder, each, ended)
    end = {"outcome": each.outcome, "exception": each.exception, "message": each.message}
    end["timing"] = {} if each.outcome == "lost" else {"start": SECOND // 2, "agent": 2 * SECOND}
    names = sorted(path.relative_to(run.path / folder) for path in (run.path / folder).rglob("*") if path.is_file())
    await add(Kind.ATTEMPT_FILES, files=[_file(run.path / folder, name.as_posix(), "source") for name in names])
    (run.path / folder / "attempt.json").write_bytes(encode(attempt_record(said, end)))
    await add(Kind.ATTEMPT_FILES, files=[_file(run.path / folder, "attempt.json", "derived")])
    await add(Kind.ATTEMPT_ENDED, **end)
    return {"graded": graded}


async def _row(add: Any, trial: Trial, each: Try) -> dict[str, Any]:
    started = {"agent": "toolloop", "version": VERSION, "settings": {}, "skills": [], "timeout_sec": None}
    admitted = await add(Kind.AGENT_STARTED, {"instruction": b"How much is 6 times 7?"}, **started)
    for index, ask in enumerate(each.asks):
        await _ask(add, trial, f"{admitted['attempt']}/{index}", ask)
    ended = {"exit_code": 0, "signal": None, "timed_out": False, "output_bytes": 0, "output_dropped": 0}
    ended |= {"leftovers": 0, "limit_hit": None, "start_error": None}
    await add(Kind.AGENT_ENDED, exception=None, ended=ended, duration_ns=SECOND)
    detail = "the answer was compared as text"
    await add(Kind.ANSWER_SCORED, {"answer": each.answer}, scorer="exact", detail=detail)
    passed = each.reward == "1"
    graded = await add(
        Kind.ATTEMPT_GRADED,
        grade="pass" if passed else "fail",
        reason=None if passed else "wrong_answer",
        reward=1.0 if passed else 0.0,
        rewards={},
        assurance=None,
        tests=None,
        disclosures=[],
    )
    await add(Kind.ATTEMPT_ENDED, outcome="completed", exception=None, message=None, timing={"agent": SECOND})
    return graded


async def _ask(add: Any, trial: Trial, exchange: str, ask: Ask) -> None:
    held = PRICE.worst_case(1000, 1000)
    named = {"exchange": exchange, "model": trial.model, "route": "POST /chat/completions"}
    bound = {"request_digest": "0" * 64, "input_bound": 1000, "output_bound": 1000, "held": str(held)}
    bound |= {"retries": None, "mutations": []}
    await add(Kind.EXCHANGE_ADMITTED, {"request": encode(ask.request)}, **named, **bound)
    cost = held if ask.usage is None else PRICE.cost(Usage({Bucket(name): n for name, n in ask.usage.items()}))
    answer = None if ask.response is None else {"response": encode(ask.response)}
    await add(
        Kind.EXCHANGE_ENDED,
        answer,
        exchange=exchange,
        outcome="settled",
        http_status=200 if ask.error is None else 500,
        error=ask.error,
        resolved_model=trial.model,
        finish=None if ask.error else "stop",
        **({"response": None} if answer is None else {}),
        chunks=None,
        usage=ask.usage,
        charged=str(cost),
        estimated=ask.usage is None,
        overrun=ask.overrun,
        flags=[],
        timing={"sent": 1000, "first_byte": SECOND, "last_byte": 2 * SECOND},
    )


async def _verify(add: Any, folder: Path, each: Try, ended: Mapping[str, Any]) -> dict[str, Any]:
    (folder / "verifier").mkdir()
    (folder / "verifier/test-stdout.txt").write_bytes(each.test_output)
    if each.reward is not None:
        (folder / "verifier/reward.txt").write_text(each.reward)
    if each.ctrf is not None:
        (folder / "verifier/ctrf.json").write_bytes(each.ctrf)
    seen = {**ended, "timed_out": each.timed_out, "exit_code": None if each.timed_out else 0}
    seen["signal"] = 9 if each.timed_out else None
    await add(Kind.VERIFIER_ENDED, assurance="isolated", ended=seen, duration_ns=SECOND)
    verdicts = read_verdicts(
        VerdictFiles(
            reward_txt=Absent() if each.reward is None else Content(each.reward.encode()),
            ctrf=Absent() if each.ctrf is None else Content(each.ctrf),
        )
    )
    outcome = VerifierOutcome(seen["exit_code"], seen["signal"], each.timed_out, None)
    decided = grade(
        verdicts,
        outcome,
        rule=parse_solved("reward >= 1.0"),
        duplicate_tests=DuplicateTests.REFUSE,
        assurance=Assurance.ISOLATED,
    )
    (folder / "tests.json").write_bytes(encode(per_test_record(verdicts)))
    body = as_entry(decided)
    await add(Kind.ATTEMPT_GRADED, **body)
    return body


def _file(folder: Path, name: str, role: str) -> dict[str, Any]:
    data = (folder / name).read_bytes()
    return {"path": name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "role": role}
