"""What is known of a run while its journal streams by: facts only, taken in without judging them.

Checks see an entry before the facts take it in. What does not fit is passed over here; saying so is theirs.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any

from proctor_verify.anchors import Receipts
from proctor_verify.aside import Aside
from proctor_verify.design import MAX_BYTES, NO_TRIAL, Design, Trials
from proctor_verify.elsewhere import Elsewhere
from proctor_verify.errors import Unreadable
from proctor_verify.facts import SUPERSEDED, Blocks, EndedAttempt, FileFact, Grade, OpenAttempt, Tally
from proctor_verify.folder import Folder
from proctor_verify.journal import Entry
from proctor_verify.merkle import CompactRange
from proctor_verify.money import Flight, Money
from proctor_verify.notes import TrustRoot
from proctor_verify.order import Order
from proctor_verify.prices import pico
from proctor_verify.vocabulary import BOUNDARIES, COUNTS
from proctor_verify.withheld import Withheld

ZEROS = "0" * 64


class Run:
    """The facts. `size` and `head` are of the lines before the entry, or the stretch, that checks see now.

    `begun` counts the attempts admitted in this opening; `draining` is the cause for which nothing new starts in it.
    """

    def __init__(self, folder: Folder, trust: TrustRoot | None, elsewhere: Elsewhere | None = None) -> None:
        self.folder = folder
        self.aside = Aside()
        self.trust = trust
        self.elsewhere = elsewhere or Elsewhere()
        self.receipts = Receipts(folder)
        self.withheld = Withheld.read(folder)
        self.size = 0
        self.head = ZEROS
        self.tree = CompactRange()
        self.note_sizes = _note_sizes(folder)
        self.roots = {0: self.tree.root()}
        # of the entry before, and of the last one that each checkpoint covers
        self.time = ""
        self.times: dict[int, str] = {}
        self._root_sizes = self.note_sizes | self.elsewhere.sizes
        self.blind: str | None = None
        # why there is no journal; what became of it while it was read; bytes of it that were read
        self.no_journal: str | None = None
        self.journal_changed: str | None = None
        self.journal_bytes = 0
        self.first: dict[str, Any] | None = None
        self.openings = 0
        self.begun = 0
        self.draining: str | None = None
        self.last_kind: str | None = None
        self.derived: dict[str, FileFact] = {}
        self.open: dict[str, OpenAttempt] = {}
        self.recent: dict[int, EndedAttempt] = {}
        self.grades: Counter[str] = Counter()
        self.assurances: Counter[str] = Counter()
        self.groups: dict[tuple[str | None, str], Tally] = {}
        self.design: Design | None = None
        self.trials: Trials | None = None
        self.design_fault: str | None = None
        self.design_sha256: str | None = None
        self.order: Order | None = None
        self.blocks = Blocks(array("I"))
        self.money = Money(None)
        self._read_design()

    def _read_design(self) -> None:
        try:
            raw = self.folder.read("design.json", MAX_BYTES)
            self.design_sha256 = hashlib.sha256(raw).hexdigest()
            design = Design.of(raw)
            del raw
            self.trials = Trials(design)
        except Unreadable as error:
            self.design_fault = str(error)
            return
        self.design = design
        self.order = Order(design)
        self.blocks = Blocks(self.order.index_of)
        self.money = Money(design.parts.budget)

    @property
    def cuts(self) -> list[int]:
        """The sizes at which the root of the tree is wanted, sorted."""
        return sorted(self._root_sizes)

    @property
    def opening(self) -> int:
        """Which opening this is: never 0, which marks what was admitted in none, not even where entry 0 is gone."""
        return self.openings + 1

    @property
    def finals(self) -> int:
        """How many trials have their final."""
        return self.grades.total()

    @property
    def complete(self) -> bool:
        """Whether every planned trial has its final."""
        return self.design is not None and self.finals == self.design.trials

    @property
    def ended(self) -> bool:
        """Whether the last entry is a `run.ended`."""
        return self.last_kind == "run.ended"

    def was_admitted(self, attempt: str) -> bool:
        """Whether an attempt of that id was admitted, open or not."""
        if attempt in self.open:
            return True
        if self.trials is None:
            return False
        trial = self.trials.find(attempt[:16])
        return trial != NO_TRIAL and int(attempt[17:]) < self.trials.attempts[trial]

    def is_settled(self, block: int) -> bool:
        """Whether no attempt at any trial of a block is to come: each has its final, or what is due to become it."""
        assert self.design is not None and self.trials is not None
        arms = len(self.design.arms)
        return all(self._is_due(trial) for trial in range(block * arms, (block + 1) * arms))

    def _is_due(self, trial: int) -> bool:
        assert self.design is not None and self.trials is not None
        last = self.recent.get(trial)
        if self.trials.final[trial] or last is None:
            return bool(self.trials.final[trial])
        spent = self.trials.replaced[trial] >= self.design.replacements
        return last.outcome == "completed" or (last.outcome == "infrastructure" and spent)

    def advance(self, digest: str, leaf: bytes) -> None:
        """A line is over, whatever stood in it."""
        self.extend(digest, [(0, leaf)])

    def extend(self, head: str, subtrees: list[tuple[int, bytes]]) -> None:
        """Lines are over: the digest of the last, and the subtrees that they are."""
        for height, subtree in subtrees:
            self.tree.append(subtree, height)
        self.size = self.tree.size
        self.head = head
        if self.size in self._root_sizes:
            self.roots[self.size] = self.tree.root()
            self.times[self.size] = self.time

    def take(self, entry: Entry) -> None:
        """Take in an entry whose body has the shape of its kind, or one of a kind that is not known."""
        self.time = entry.time
        taker = _TAKERS.get(entry.kind)
        if taker is not None:
            taker(self, entry.body)
        self.last_kind = entry.kind

    def _run_admitted(self, body: dict[str, Any]) -> None:
        if self.size == 0:
            self.first = body
            self.openings = 1

    def _run_resumed(self, body: dict[str, Any]) -> None:
        self.openings += 1
        self.begun = 0
        self.draining = None
        self.money.opened()

    def _run_draining(self, body: dict[str, Any]) -> None:
        self.draining = self.draining or body["cause"]

    def _run_ended(self, body: dict[str, Any]) -> None:
        # A later end that could not write its files leaves those of an earlier one standing.
        self.derived.update((f["path"], FileFact(f["sha256"], f["size"], "derived")) for f in body["files"])

    def _checkpoint_made(self, body: dict[str, Any]) -> None:
        self.receipts.made.setdefault(body["size"], body["sha256"])

    def _checkpoint_anchored(self, body: dict[str, Any]) -> None:
        self.receipts.named.setdefault(body["path"], body["sha256"])
        self.receipts.named_at.setdefault(body["path"], self.time)

    def _block_admitted(self, body: dict[str, Any]) -> None:
        block = self.trials.locate_block(body["task"], body["model"], body["epoch"]) if self.trials else NO_TRIAL
        if block != NO_TRIAL:
            self.blocks.pending += not (self.blocks.admitted_in[block] or self.blocks.ended[block])
            self.blocks.admitted_in[block] = self.opening
            self.money.block_admitted(self.blocks.index_of[block], body["model"], body["reserve"])

    def _block_ended(self, body: dict[str, Any]) -> None:
        block = self.blocks.at(body["block"])
        if block != NO_TRIAL:
            self.blocks.pending -= bool(self.blocks.admitted_in[block]) and not self.blocks.ended[block]
            self.blocks.ended[block] = 1
            self.money.block_ended(body["block"])

    def _attempt_admitted(self, body: dict[str, Any]) -> None:
        self.begun += 1
        trial = self.trials.find(body["trial"]) if self.trials else NO_TRIAL
        attempt = OpenAttempt(body["attempt"], trial, body["folder"], self.opening)
        self.open[body["attempt"]] = attempt
        if self.trials is not None and trial != NO_TRIAL:
            attempt.is_row = self.trials.is_row(trial)
            attempt.block = self.blocks.index_of[self.trials.block_of(trial)]
            attempt.model, attempt.arm = self.trials.group_of(trial)
            attempt.tally = self._tally(self.trials, trial)
            self.trials.attempts[trial] += 1
            self.trials.admitted_in[trial] = self.opening
            self.trials.replaced[trial] += body["replaces"] is not None
            attempt.tally.replaced += body["replaces"] is not None
            self.recent.pop(trial, None)
        if self.trials is not None and not attempt.is_row:
            self._place(self.trials, trial, body)

    def _place(self, trials: Trials, trial: int, body: dict[str, Any]) -> None:
        """Where an attempt's folder is: with those before it, or astray."""
        name = body["folder"].split("/")[1:2]
        mark = folder_mark(name)
        known = trial != NO_TRIAL and name and name[0].endswith(f"-{trials.id_of(trial)[:8]}")
        if known and trials.folders[trial] in (0, mark):
            trials.folders[trial] = mark
        else:
            trials.astray[mark] = max(trials.astray.get(mark, 0), body["number"] + 1)

    def _agent_started(self, body: dict[str, Any]) -> None:
        if attempt := self.open.get(body["attempt"]):
            attempt.agent_started = True

    def _exchange_admitted(self, body: dict[str, Any]) -> None:
        attempt = self.open.get(body["attempt"])
        if attempt is not None and attempt.model is not None and body["exchange"] not in attempt.flying:
            flight = Flight(attempt.model, pico(body["held"]), self.opening, body["route"].endswith(COUNTS))
            attempt.flying[body["exchange"]] = flight
            attempt.next_exchange += 1
            attempt.unanswered.append(0)
            self.money.held(attempt.block, flight)

    def _exchange_ended(self, body: dict[str, Any]) -> None:
        attempt = self.open.get(body["attempt"])
        flight = attempt.flying.pop(body["exchange"], None) if attempt is not None else None
        if attempt is not None and flight is not None and attempt.tally is not None:
            charged = pico(body["charged"])
            self.money.settled(attempt.block, flight, charged)
            attempt.unknown |= body["outcome"] == "unknown"
            if body["error"] is not None:
                attempt.told.add(body["error"])
            if body["error"] is not None or (body["outcome"] == "released" and not flight.free):
                attempt.leave_unanswered(body["exchange"])
            attempt.bill.add(body, charged)
            attempt.tally.bill.add(body, charged)

    def _exchange_refused(self, body: dict[str, Any]) -> None:
        if attempt := self.open.get(body["attempt"]):
            attempt.told.add(body["reason"])

    def _ceiling_reached(self, body: dict[str, Any]) -> None:
        self.money.reached(body)

    def _answer_scored(self, body: dict[str, Any]) -> None:
        if attempt := self.open.get(body["attempt"]):
            attempt.answers += 1

    def _agent_ended(self, body: dict[str, Any]) -> None:
        if attempt := self.open.get(body["attempt"]):
            attempt.agent_ended = body

    def _sandbox_started(self, body: dict[str, Any]) -> None:
        if attempt := self.open.get(body["attempt"]):
            attempt.agent_world |= body["role"] == "agent"
            attempt.verifier_world |= body["role"] == "verifier"

    def _attempt_boundary(self, body: dict[str, Any]) -> None:
        if attempt := self.open.get(body["attempt"]):
            attempt.boundary = BOUNDARIES.index(body["boundary"]) + 1

    def _verifier_ended(self, body: dict[str, Any]) -> None:
        if attempt := self.open.get(body["attempt"]):
            attempt.verifier_ended = body

    def _attempt_files(self, body: dict[str, Any]) -> None:
        if attempt := self.open.get(body["attempt"]):
            for named in body["files"]:
                attempt.files[named["path"]] = FileFact(named["sha256"], named["size"], named["role"])

    def _attempt_graded(self, body: dict[str, Any]) -> None:
        attempt = self.open.get(body["attempt"])
        if attempt is not None and attempt.grade is None:
            attempt.graded, attempt.grade = body, Grade.of(body)
            if body["assurance"] is not None:
                self.assurances[body["assurance"]] += 1

    def _attempt_ended(self, body: dict[str, Any]) -> None:
        attempt = self.open.pop(body["attempt"], None)
        if attempt is None or attempt.tally is None:
            return
        for flight in attempt.flying.values():
            self.money.settled(attempt.block, flight, 0)
        outcome, exception = body["outcome"], body["exception"]
        self.recent[attempt.trial] = EndedAttempt(attempt.id, outcome, exception, attempt.grade, self.opening)
        if outcome in SUPERSEDED:
            attempt.tally.superseded += 1
            if attempt.grade is not None:
                attempt.tally.dropped[attempt.grade.grade] += 1
        if exception is not None:
            attempt.tally.exceptions[exception] += 1

    def _trial_final(self, body: dict[str, Any]) -> None:
        trial = self.trials.find(body["trial"]) if self.trials else NO_TRIAL
        if self.trials is None or trial == NO_TRIAL or self.trials.final[trial]:
            return
        self.trials.final[trial] = 1
        self.recent.pop(trial, None)
        self.blocks.finals[self.trials.block_of(trial)] += 1
        self.grades[body["grade"]] += 1
        self._tally(self.trials, trial).add_final(Grade.of(body))

    def _tally(self, trials: Trials, trial: int) -> Tally:
        group = trials.group_of(trial)
        tally = self.groups.get(group)
        if tally is None:
            tally = self.groups[group] = Tally()
        return tally


_TAKERS: dict[str, Callable[[Run, dict[str, Any]], None]] = {
    "run.admitted": Run._run_admitted,
    "run.resumed": Run._run_resumed,
    "run.draining": Run._run_draining,
    "run.ended": Run._run_ended,
    "checkpoint.made": Run._checkpoint_made,
    "checkpoint.anchored": Run._checkpoint_anchored,
    "block.admitted": Run._block_admitted,
    "block.ended": Run._block_ended,
    "attempt.admitted": Run._attempt_admitted,
    "sandbox.started": Run._sandbox_started,
    "agent.started": Run._agent_started,
    "exchange.admitted": Run._exchange_admitted,
    "exchange.ended": Run._exchange_ended,
    "exchange.refused": Run._exchange_refused,
    "agent.ended": Run._agent_ended,
    "attempt.boundary": Run._attempt_boundary,
    "verifier.ended": Run._verifier_ended,
    "answer.scored": Run._answer_scored,
    "attempt.files": Run._attempt_files,
    "attempt.graded": Run._attempt_graded,
    "attempt.ended": Run._attempt_ended,
    "trial.final": Run._trial_final,
    "ceiling.reached": Run._ceiling_reached,
}


def folder_mark(parts: list[str]) -> int:
    """Eight bytes that stand for the name of a trial's folder; never 0, which stands for none."""
    digest = hashlib.sha256("/".join(parts).encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") | 1


def _note_sizes(folder: Folder) -> set[int]:
    try:
        return {int(name.name[:12]) for name in folder.names("checkpoints") if is_note_name(name.name)}
    except Unreadable:
        return set()


def is_note_name(name: str) -> bool:
    """Whether this is how a checkpoint's file is called: 12 digits and `.note`."""
    return len(name) == 17 and name.endswith(".note") and name[:12].isascii() and name[:12].isdigit()
