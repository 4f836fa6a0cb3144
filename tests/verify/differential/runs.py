"""Generated runs: each decision is what the runner's own parts say, but for one or two that deviate by a step.

The money is the authority's, numbers and finals are the fold's, the order is the plan's, grades are the graders'. A
deviation that contradicts a decision ends the run, since nothing could go on from what never was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder import Story
from hypothesis import strategies as st
from made_ends import end, finish, misstated, say_final, stop
from made_exchanges import answer, ask, unheard
from steps import Step

from proctor.admission.limits import limits_of
from proctor.budget.authority import Authority, Lease
from proctor.core.ids import trial_folder
from proctor.core.money import ZERO, Usd
from proctor.core.outcomes import Outcome
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_admitted
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.grading.solved import parse_solved
from proctor.study import Design, plan
from proctor.study.plan import Block, Trial

# What may deviate. Amounts and counts do by a step: what is held (for a count of tokens too), charged or estimated, the
# bound on the output, a reserve, what a `ceiling.reached` says, a reward, the finals that an end counts. Of decisions
# the opposite is recorded: a block or a hold that was denied, a refusal of what fits, one that nothing is said of, a
# charge for what was released, one more replacement. The rest is a word that is another one.
DEVIATIONS = (
    *("held", "counted", "charged", "estimate", "output_bound", "reserve", "spent", "limit", "reward", "totals"),
    *("block", "hold", "refused", "silent", "released", "replaced", "order"),
    *("overrun", "grade", "final", "complete", "summary", "attempt", "index", "join", "folder"),
    *("supersedes", "replaces"),
)
# what `_admit` says where a block may fit once others have ended
WAITS = object()


def shifted(amount: str, step: int) -> str:
    """An amount and a step of picodollars, not below zero."""
    return str(Usd(max(0, Usd.parse(amount).pico + step)))


@dataclass
class Going:
    """An attempt in flight: its exchanges in flight by id, with what each holds; `stop` is why it asks no more.

    `counts` are those exchanges that count tokens.
    """

    id: str
    trial: Trial
    folder: str
    row: bool
    lease: Lease | None
    flying: dict[str, Usd] = field(default_factory=dict)
    counts: set[str] = field(default_factory=set)
    asked: int = 0
    stop: str | None = None


class Maker:
    """Makes one run. `deviations` are those that may be taken, by name: how often to pass one by, and the step."""

    def __init__(self, draw: st.DrawFn, design: Design, deviations: dict[str, list[int]]) -> None:
        self.draw, self.design, self.deviations = draw, design, deviations
        self.taken: list[str] = []
        self.story = Story(design.to_json())
        self.plan = plan(design)
        self.state: RunState = RunState()
        self.rule = parse_solved(design.grading.solved)
        self.over = False
        self.going: list[Going] = []

    def off(self, name: str) -> int:
        """The step by which this one deviates, 0 where it does not."""
        passes = self.deviations.get(name)
        if passes is None:
            return 0
        if passes[0]:
            passes[0] -= 1
            return 0
        del self.deviations[name]
        self.taken.append(name)
        return passes[1]

    # Entries, as the runner hands them over.

    @property
    def run_id(self) -> str:
        """For the authority."""
        return self.story.run_id

    def post(self, kind: Kind, body: Mapping[str, Any], /) -> Step | None:
        """For the authority: the journal."""
        recorded = dict(body)
        refused = kind is Kind.CEILING_REACHED and body["scope"] == "ceiling" and Usd.parse(body["wanted"]) > ZERO
        if refused and self.off("silent"):
            return None
        if kind is Kind.CEILING_REACHED:
            for name in ("spent", "limit"):
                recorded[name] = shifted(recorded[name], self.off(name))
        if kind is Kind.BLOCK_ADMITTED and recorded["reserve"] is not None and (step := self.off("reserve")):
            recorded["reserve"], self.over = shifted(recorded["reserve"], step), True
        if kind is Kind.BLOCK_ADMITTED and self.off("index"):
            recorded["block"] += 1
        self.state.apply(kind, recorded)
        return self.story.add(kind.id, **recorded)

    # The whole run.

    def make(self) -> Story:
        for number in range(last := self.draw(st.integers(0, 2)), -1, -1):
            self._open(first=number == last)
            self._work()
            if self.over or not number or self.draw(st.booleans()):
                self._close()
            else:
                self.story.checkpoint()
            if self.over or self._complete():
                break
        if self.story.entries()[-1].kind != "run.ended":
            self._close()
        return self.story

    def _complete(self) -> bool:
        return self.state.finals == self.plan.planned["trials"]

    def _open(self, *, first: bool) -> None:
        story, lost = self.story, self.going
        opening = {"opening": {}, "manifest": {"path": "", "sha256": ""}, "abandoned": []}
        clean = not first and story.entries()[-1].kind == "run.ended"
        if first:
            story.admit()
            self.state.apply(Kind.RUN_ADMITTED, opening)
        else:
            story.resume(previous_ended=clean)
            self.state.apply(Kind.RUN_RESUMED, opening)
        if not first and not clean:
            story.add("run.recovered", quarantined=[], lost=[going.id for going in lost])
        for going in lost:
            for exchange, held in going.flying.items():
                unheard(self, going, exchange, held)
            end(self, going, Outcome.LOST, "lost")
        if clean:
            story.add("checkpoint.made")
        self.going, self.unpaid = [], None
        token = seal_admitted(run_id=self.run_id, run_dir=Path("/"), design_sha256="1" * 64, label="x")
        self.authority = Authority(token, limits_of(self.design), self, self.state)
        self.opened: set[int] = set()
        self.begun: set[str] = set()
        self._settle_past()
        self.queues = {model: self._queue(blocks) for model, blocks in self.plan.by_model().items()}
        self.again: list[tuple[Block, Trial]] = []

    def _queue(self, blocks: tuple[Block, ...]) -> list[tuple[Block, Trial]]:
        return [(block, trial) for block in blocks for trial in self.left_of(block)]

    def left_of(self, block: Block) -> list[Trial]:
        return [trial for trial in block.trials() if self.state.final(trial.id) is None]

    def _settle_past(self) -> None:
        for block in self.plan.blocks:
            if block.index in self.state.blocks_ended:
                continue
            for trial in self.left_of(block):
                if trial.id in self.state.due:
                    say_final(self, trial, self.state.due[trial.id]._asdict())
                elif self.is_spent(trial):
                    say_final(self, trial, {"grade": "ungraded", "reason": "not_graded", "reward": None})
            if not self.left_of(block):
                self._admit(block, empty=True)
                self.end_block(block)

    def is_spent(self, trial: Trial) -> bool:
        state = self.state.trial(trial.id)
        return state.outcome is Outcome.INFRASTRUCTURE and state.replaced >= self.design.stage.replacements

    def end_block(self, block: Block) -> None:
        """Where nothing is left of it."""
        self.authority.end_block(block.index)
        self.state.apply(Kind.BLOCK_ENDED, {"block": block.index})
        self.story.add("block.ended", block=block.index)

    def _work(self) -> None:
        for _ in range(self.draw(st.integers(1, 30))):
            if self.over:
                return
            if self.going and (len(self.going) > 2 or self.draw(st.integers(0, 2))):
                self._go_on(self.draw(st.sampled_from(self.going)))
            else:
                self._begin()

    def _close(self) -> None:
        """Nothing new starts; what is in flight is let go of, and the end is written."""
        complete = not self.going and self._complete()
        cause, status = "SIGINT", 130
        reason: str | None = "interrupted"
        if self.unpaid is not None and self.draw(st.booleans()):
            cause, status, reason = self.unpaid, 4, self.unpaid
        if not complete:
            self.story.add("run.draining", cause=cause)
        for going in list(self.going):
            for exchange in list(going.flying):
                answer(self, going, exchange)
            end(self, going, Outcome.INTERRUPTED, "interrupted")
            self.going.remove(going)
        if complete:
            status, reason = int(self.state.grades["ungraded"] > 0), None
        misstated(self, stop(self, status, reason))
        self.story.checkpoint(named=False)

    # Blocks and attempts.

    def _admit(self, block: Block, *, empty: bool = False) -> object:
        """None, a refusal, or WAITS."""
        coming = self.authority.admit_block(block.index, block.task, block.model, block.epoch, empty=empty)
        try:
            coming.send(None)
        except StopIteration as done:
            return done.value
        coming.close()
        return WAITS

    def _begin(self) -> None:
        queue = self.queues[self.draw(st.sampled_from(list(self.queues)))]
        again = bool(self.again) and self.draw(st.booleans())
        if again:
            block, trial = self.again.pop()
        elif not queue:
            return
        else:
            place = 1 if len(queue) > 1 and self.off("order") else 0
            block, trial = queue[place]
        if block.index not in self.opened:
            refusal = self._admit(block)
            if refusal is not None:
                self._denied(block, refusal)
                return
            self.opened.add(block.index)
        if self.over:
            return
        if not again:
            queue.remove((block, trial))
        self._start(block, trial)

    def _denied(self, block: Block, refusal: object) -> None:
        if isinstance(refusal, Refusal):
            self.unpaid = refusal.reason.id
        if self.off("block"):
            limits = limits_of(self.design)
            assert limits is not None and block.model is not None
            reserve = str(limits.models[block.model].reserve)
            names = {"block": block.index, "task": block.task, "model": block.model, "epoch": block.epoch}
            self.over = True
            self.post(Kind.BLOCK_ADMITTED, {**names, "reserve": reserve})

    def _start(self, block: Block, trial: Trial) -> None:
        coming = self.state.trial(trial.id).next_attempt(trial.id)
        attempt, folder = f"{trial.id}/{coming.number}", trial_folder(trial.task, trial.model, trial.arm, trial.epoch)
        links = {"supersedes": coming.supersedes, "replaces": coming.replaces}
        recorded_links = dict(links)
        for one, other in (("supersedes", "replaces"), ("replaces", "supersedes")):
            if links[one] is not None and self.off(one):
                recorded_links = {one: None, other: links[one]}
        if self.off("folder"):
            folder = folder[:-1] + ("0" if folder[-1] != "0" else "1")
        body = {
            "attempt": attempt,
            "trial": trial.id,
            "number": coming.number,
            "block": trial.block + bool(self.off("join")),
            **{name: getattr(trial, name) for name in ("task", "model", "arm", "epoch")},
            "folder": f"trials/{folder}/{coming.number}",
        }
        self.state.apply(Kind.ATTEMPT_ADMITTED, {**body, **links})
        self.story.add("attempt.admitted", **body, **recorded_links)
        self.story.open[attempt] = body
        row = self.story.is_row(attempt)
        lease = None
        if trial.model is not None:
            lease = self.authority.lease(attempt, trial.block, trial.model)
        going = Going(attempt, trial, body["folder"], row, lease)
        self.going.append(going)
        if not row:
            self.story._world(attempt, "agent")
        self.story.add(
            "agent.started",
            attempt=attempt,
            agent="oracle",
            version={"available": True, "value": "1", "reason": None},
            settings={},
            instruction=self.story.blob(b"Do it.\n"),
            skills=[],
            timeout_sec=60,
        )

    def _go_on(self, going: Going) -> None:
        choice = self.draw(st.integers(0, 5))
        if going.flying and choice < 3:
            answer(self, going, self.draw(st.sampled_from(list(going.flying))))
        elif going.lease is not None and going.stop is None and choice < 4:
            ask(self, going)
        else:
            finish(self, going)
