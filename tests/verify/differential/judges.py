"""What the runner's own parts say of a run as it is recorded: for each check a judge, or why there is none to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from guards_shown import CHECK_OF
from money_judge import broken_by_money

from proctor.core.canonical import encode
from proctor.core.ids import attempt_id, trial_folder, trial_id
from proctor.core.money import ZERO, Usd
from proctor.core.outcomes import GradeState
from proctor.core.prices import NoPrice, Prices
from proctor.core.reasons import Reason
from proctor.core.usage import Bucket, Usage
from proctor.evidence.entries import Entry
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.gateway.wire.routes import Kind as RouteKind
from proctor.gateway.wire.routes import find_route
from proctor.grading.files import verdict_files
from proctor.grading.grade import Assurance, VerifierOutcome, grade
from proctor.grading.scorers.base import Scored
from proctor.grading.solved import DuplicateTests, parse_solved
from proctor.grading.verdicts import read_verdicts
from proctor.rollout.derived import attempt_record
from proctor.rollout.verdict import as_entry
from proctor.runner.derived import derived_files
from proctor.study import Design, Plan, plan
from proctor.study.design import read_design

Body = dict[str, Any]


@dataclass(frozen=True)
class Recorded:
    """A run folder, as the runner reads it."""

    folder: Path

    @cached_property
    def design(self) -> Design:
        return read_design(self.folder / "design.json")

    @cached_property
    def plan(self) -> Plan:
        return plan(self.design)

    @cached_property
    def entries(self) -> list[Entry]:
        return list(read_entries(self.folder / "journal.jsonl"))

    @cached_property
    def broken_by_money(self) -> set[str]:
        return broken_by_money(self.design, self.plan, self.entries)

    def bodies(self, *kinds: Kind) -> Iterator[Body]:
        return (entry.body for entry in self.entries if entry.kind in kinds)

    def before(self, *kinds: Kind) -> Iterator[tuple[RunState, Body]]:
        """Entries of these kinds, each with the state of the run before it."""
        state = RunState()
        for entry in self.entries:
            if entry.kind in kinds:
                yield state, entry.body
            state.apply(entry.kind, entry.body)

    def attempts(self) -> Iterator[tuple[Body, dict[Kind, list[Body]], Body]]:
        """Of each attempt that ended its admission, what was said in its name, and its end."""
        said: dict[str, dict[Kind, list[Body]]] = {}
        for entry in self.entries:
            attempt = entry.body.get("attempt")
            if entry.kind is Kind.ATTEMPT_ENDED:
                own = said.pop(str(attempt))
                yield own[Kind.ATTEMPT_ADMITTED][0], own, entry.body
            elif isinstance(entry.kind, Kind) and entry.kind is not Kind.TRIAL_FINAL and attempt is not None:
                said.setdefault(attempt, {}).setdefault(entry.kind, []).append(entry.body)


def costs(run: Recorded) -> bool:
    held: dict[str, Usd] = {}
    for entry in run.entries:
        body = entry.body
        if entry.kind is Kind.EXCHANGE_ADMITTED:
            price = _price(run, body["model"])
            held[body["exchange"]] = Usd.parse(body["held"])
            route = find_route(*body["route"].split(" ", 1))
            free = route is not None and route.kind is RouteKind.COUNT
            worst = ZERO if free else price.worst_case(body["input_bound"], body["output_bound"])
            if held[body["exchange"]] != worst:
                return False
        elif entry.kind is Kind.EXCHANGE_ENDED and body["outcome"] != "released":
            model = next(each["model"] for each in run.bodies(Kind.EXCHANGE_ADMITTED) if _same(each, body))
            cost, charged = _cost(_price(run, model), body["usage"]), Usd.parse(body["charged"])
            whole = held[body["exchange"]]
            # as the gateway charges: the worst case, and no less than the tokens cost where more was used
            fair = {whole, max(whole, cost) if cost else whole} if body["estimated"] else {cost}
            if charged not in fair:
                return False
    return True


def _same(one: Body, other: Body) -> bool:
    return bool(one["exchange"] == other["exchange"])


def _price(run: Recorded, model: str) -> Prices:
    return next(each.price for each in run.design.models if each.name == model)


def _cost(price: Prices, usage: dict[str, int] | None) -> Usd | None:
    try:
        return price.cost(Usage({Bucket(bucket): count for bucket, count in (usage or {}).items()}))
    except NoPrice:
        return None


def bounds(run: Recorded) -> bool:
    arms = {attempt_id(b["trial"], b["number"]): b["arm"] for b in run.bodies(Kind.ATTEMPT_ADMITTED)}
    return all(
        body["output_bound"] <= run.design.model(body["model"], arms[body["attempt"]]).max_output_tokens
        for body in run.bodies(Kind.EXCHANGE_ADMITTED)
    )


def drawn(run: Recorded) -> bool:
    blocks = {(block.task, block.model, block.epoch): block.index for block in run.plan.blocks}
    return all(
        blocks[body["task"], body["model"], body["epoch"]] == body["block"] for body in run.bodies(Kind.BLOCK_ADMITTED)
    )


def joined(run: Recorded) -> bool:
    trials = {trial.id: trial for trial in run.plan.trials()}
    for body in run.bodies(Kind.ATTEMPT_ADMITTED):
        cell = body["task"], body["model"], body["arm"], body["epoch"]
        trial = trials.get(body["trial"])
        if trial is None or trial_id(*cell) != trial.id or body["block"] != trial.block:
            return False
        if body["folder"] != f"trials/{trial_folder(*cell)}/{body['number']}":
            return False
    return True


def ordered(run: Recorded) -> bool:
    """Of each model, what begins is the first of the plan that is left: of all, or of those that never began."""
    place = {trial.id: number for number, trial in enumerate(run.plan.trials())}
    model_of = {trial.id: trial.model for trial in run.plan.trials()}
    reached: dict[str | None, int] = {}
    begun: set[str] = set()
    for entry in run.entries:
        if entry.kind is Kind.RUN_RESUMED:
            reached, now = {}, set[str]()
        elif entry.kind is Kind.RUN_ADMITTED:
            now = set()
        elif entry.kind is Kind.TRIAL_FINAL:
            begun.add(entry.body["trial"])
        elif entry.kind is Kind.ATTEMPT_ADMITTED and entry.body["trial"] not in now:
            trial = entry.body["trial"]
            model = model_of[trial]
            passed = [each for each in place if model_of[each] == model and place[each] < place[trial]]
            if place[trial] < reached.get(model, -1) or (trial not in begun and not begun.issuperset(passed)):
                return False
            reached[model] = place[trial]
            begun.add(trial)
            now.add(trial)
    return True


def numbered(run: Recorded) -> bool:
    for state, body in run.before(Kind.ATTEMPT_ADMITTED):
        trial = state.trial(body["trial"])
        coming = trial.next_attempt(body["trial"])
        if (body["number"], body["supersedes"], body["replaces"]) != coming:
            return False
        if coming.replaces is not None and trial.replaced >= run.design.stage.replacements:
            return False
    return True


def finals_agree(run: Recorded) -> bool:
    exceptions: dict[str, str | None] = {}
    for state, body in run.before(Kind.TRIAL_FINAL, Kind.ATTEMPT_ENDED):
        if "outcome" in body:
            exceptions[body["attempt"]] = body["exception"]
            continue
        due = state.due.get(body["trial"])
        said = body["grade"], body["reason"], body["reward"]
        # in the process that saw the attempt end its exception says why, in a later one nothing does
        whys = {"not_graded", exceptions.get(body["attempt"])}
        if due is not None and said != (due.grade, due.reason, due.reward):
            return False
        if due is None and not (said[0] == "ungraded" and said[1] in whys and said[2] is None):
            return False
    return True


def totals(run: Recorded) -> bool:
    planned = run.plan.planned["trials"]
    return all(
        (body["totals"], body["complete"]) == (state.totals(planned), state.finals == planned)
        for state, body in run.before(Kind.RUN_ENDED)
    )


def summaries(run: Recorded) -> bool:
    last = None
    for state, _ in run.before(Kind.RUN_ENDED):
        last = derived_files(run.design, run.plan, state)
    return all((run.folder / name).read_bytes() == made for name, made in (last or {}).items())


def grades(run: Recorded) -> bool:
    for admitted, said, _ in run.attempts():
        for body in said.get(Kind.ATTEMPT_GRADED, ()):
            if not _grade(run, admitted["folder"], said, body):
                return False
    return True


def _grade(run: Recorded, folder: str, said_of: dict[Kind, list[Body]], body: Body) -> bool:
    rule = parse_solved(run.design.grading.solved)
    said = {name: body[name] for name in ("grade", "reason", "reward", "rewards")}
    if Kind.VERIFIER_ENDED in said_of:
        end = said_of[Kind.VERIFIER_ENDED][0]["ended"]
        outcome = VerifierOutcome(end["exit_code"], end["signal"], end["timed_out"], end["start_error"])
        read = read_verdicts(verdict_files(run.folder / folder / "verifier"))
        made = grade(read, outcome, rule=rule, duplicate_tests=DuplicateTests.REFUSE, assurance=Assurance.ISOLATED)
    elif Kind.ANSWER_SCORED in said_of:
        rewards = dict(body["rewards"])
        reward = rewards.pop("reward")
        state = GradeState.PASS if reward >= 1 else GradeState.FAIL
        reason = None if state is GradeState.PASS else Reason.WRONG_ANSWER
        made = Scored(state, reward, reason, "", rewards).grade(rule)
    else:
        return (body["grade"], body["reward"], body["rewards"]) == ("ungraded", None, {})
    wanted = as_entry(made)
    return said == {name: wanted[name] for name in said}


def derived(run: Recorded) -> bool:
    for admitted, said, ended in run.attempts():
        file = run.folder / admitted["folder"] / "attempt.json"
        if ended["outcome"] == "lost" or not file.exists():
            continue
        own = {
            kind: [{name: value for name, value in body.items() if name not in _BLOBS} for body in bodies]
            for kind, bodies in said.items()
        }
        content = attempt_record(own, {name: value for name, value in ended.items() if name != "attempt"})
        if file.read_bytes() != encode(content):
            return False
    return True


_BLOBS = ("instruction",)
Judge = Callable[[Recorded], bool]


def _money(check: str) -> Judge:
    return lambda run: check not in run.broken_by_money


JUDGES: dict[str, Judge] = {
    "blocks.drawn": drawn,
    "trials.ordered": ordered,
    "attempts.joined": joined,
    "attempts.numbered": numbered,
    "exchanges.admitted": bounds,
    "exchanges.ended": _money("exchanges.ended"),
    "costs.recomputed": costs,
    "budget.blocks": _money("budget.blocks"),
    "budget.ceiling": _money("budget.ceiling"),
    "ceiling.disclosed": _money("ceiling.disclosed"),
    "finals.agree": finals_agree,
    "totals.agree": totals,
    "grades.recomputed": grades,
    "attempts.derived": derived,
    "summary.recomputed": summaries,
}

# Checks whose rule no part of the runner can be asked about: it holds them by how it writes, or looks at less.
NO_JUDGE = {
    "journal.": "evidence.scan refuses the same bytes (`test_damage_is_damage_to_both`), but for times and for a tail "
    "that was torn, which whoever takes the run up mends; what belongs where is the journal's one writer's",
    "checkpoints.": "evidence.scan refuses another root; signatures are the verifier's alone",
    "run.ended": "an open run is no fault to who goes on with it",
    "key.": "evidence.openings refuses another key than the operator's; whom to trust is the verifier's alone",
    "manifests.": "admission.finish binds what it wrote; nothing reads it again",
    "design.": "study.design.read_design takes what was frozen; test_designs_agree",
    "synthetic.marked": "see guards_shown.BY_MAKING",
    **dict.fromkeys(CHECK_OF.values(), "test_designs_agree"),
    "blocks.admitted": "runner.lanes holds it by its order of work",
    "blocks.ended": "runner.lanes holds it by its order of work",
    "attempts.": "rollout holds it by its order of work; the fold takes what is said of an attempt as it comes",
    "agents.": "rollout.ends decides while the agent runs, on more than what is recorded",
    "worlds.planned": "admission.worlds plans, the sandbox says what there is",
    "rows.bare": "a row's job has no world to speak of",
    "answers.scored": "rollout.row holds it by its order of work",
    "exchanges.chunks": "gateway.tee writes it as bytes come",
    "flight.empty": "runner.session ends what is in flight",
    "finals.one": "the fold refuses a second one, and what follows it",
    "status.agrees": "runner.session works it out of what happened, not of what is recorded",
    "packs.frames": "evidence.scan looks at sizes, evidence.reader at what is asked for",
    "blobs.files": "evidence.scan looks whether they stand",
    "files.": "evidence.scan looks at folders of attempts alone",
    "anchors.": "the runner's anchors look at what they push",
    "since.extends": "the verifier's alone",
    "withheld.named": "the runner reads a copy as far as it goes",
}


def row_of(check: str) -> list[str]:
    """The rows that a check falls under."""
    return [row for row in (*JUDGES, *NO_JUDGE) if check == row or (row.endswith(".") and check.startswith(row))]
