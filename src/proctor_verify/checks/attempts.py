"""Checks of attempts: what was admitted, to what it belongs, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proctor_verify.check import Check
from proctor_verify.design import NO_TRIAL
from proctor_verify.facts import OpenAttempt
from proctor_verify.folder import is_safe
from proctor_verify.journal import Entry
from proctor_verify.run import folder_mark
from proctor_verify.schema import KINDS
from proctor_verify.vocabulary import BOUNDARIES, CUT_SHORT, ENDS_RUN

OF_AN_ATTEMPT = tuple(
    kind for kind, fields in KINDS.items() if "attempt" in fields and kind not in ("attempt.admitted", "trial.final")
)


class AttemptsAdmitted(Check):
    id = "attempts.admitted"
    doc = "whatever is done in an attempt's name stands after its admission"
    kinds = OF_AN_ATTEMPT
    needs_design = True

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        attempt = entry.body["attempt"]
        if not self.run.was_admitted(attempt):
            self.fail_at(entry, f"is {entry.kind} of {attempt}, which was not admitted before")


class AttemptsJoined(Check):
    id = "attempts.joined"
    doc = (
        "each attempt and each final belongs to a planned trial: its id is that of its task, model, arm and epoch, "
        "its block and its folder are the trial's"
    )
    noun = "joins"
    kinds = ("attempt.admitted", "trial.final")
    needs_design = True

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        body, trials = entry.body, self.trials
        trial = trials.find(body["trial"])
        if trial == NO_TRIAL:
            self.fail_at(entry, f"is of trial {body['trial']}, which the design does not plan")
        elif entry.kind == "attempt.admitted":
            if trials.locate(body["task"], body["model"], body["arm"], body["epoch"]) != trial:
                self.fail_at(entry, f"names another task, model, arm or epoch than those of trial {body['trial']}")
            elif body["attempt"] != f"{body['trial']}/{body['number']}":
                self.fail_at(entry, f"names attempt {body['attempt']} as number {body['number']} of {body['trial']}")
            elif self.run.blocks.index_of[trials.block_of(trial)] != body["block"]:
                self.fail_at(entry, f"names block {body['block']}, which is not that of trial {body['trial']}")
            else:
                self._folder(entry, trial)

    def _folder(self, entry: Entry, trial: int) -> None:
        folder, trial_id = entry.body["folder"], entry.body["trial"]
        parts = folder.split("/")
        shaped = len(parts) == 3 and is_safe(folder) and parts[0] == "trials" and parts[2] == str(entry.body["number"])
        if not shaped or not parts[1].endswith(f"-{trial_id[:8]}"):
            self.fail_at(entry, f"has folder {folder}, which is not how this attempt's is called")
        elif self.trials.folders[trial] not in (0, folder_mark(parts[1:2])):
            self.fail_at(entry, f"has folder {folder}, and an earlier attempt of the trial stands elsewhere")


class AttemptsNumbered(Check):
    id = "attempts.numbered"
    doc = (
        "attempts of a trial are numbered 0, 1, 2 … one after the other; each but the first names the one that it "
        "supersedes (lost, or interrupted in an earlier opening) or replaces (infrastructure); replacements stay "
        "within the design's bound"
    )
    noun = "attempts"
    kinds = ("attempt.admitted",)
    needs_design = True

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        body, trials = entry.body, self.trials
        trial = trials.find(body["trial"])
        if trial == NO_TRIAL or trials.final[trial]:
            return  # said by attempts.joined, finals.one
        if body["number"] != trials.attempts[trial]:
            self.fail_at(entry, f"is number {body['number']}, where {trials.attempts[trial]} is next")
            return
        before = self.run.recent.get(trial)
        wanted: tuple[str | None, str | None] = (None, None)
        if before is not None:
            wanted = (None, before.id) if before.outcome == "infrastructure" else (before.id, None)
            if before.outcome == "completed":
                self.fail_at(entry, f"follows {before.id}, which was completed")
                return
            if before.outcome == "interrupted" and before.opening == self.run.opening:
                self.fail_at(entry, f"follows {before.id}, which was interrupted in this opening, as all of it was")
                return
        elif trials.attempts[trial]:
            self.fail_at(entry, "is admitted while another attempt of its trial is open")
            return
        if (body["supersedes"], body["replaces"]) != wanted:
            self.fail_at(entry, f"supersedes {body['supersedes']} and replaces {body['replaces']}, not {wanted}")
        elif body["replaces"] is not None and trials.replaced[trial] >= self.design.replacements:
            self.fail_at(entry, f"is one more replacement than the {self.design.replacements} that the design allows")


class AttemptsEnded(Check):
    id = "attempts.ended"
    doc = "an attempt ends once, and nothing is done in its name after that"
    kinds = OF_AN_ATTEMPT
    needs_design = True

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        attempt = entry.body["attempt"]
        if attempt not in self.run.open and self.run.was_admitted(attempt):
            self.fail_at(entry, f"is {entry.kind} of {attempt}, which has ended")


class AttemptsPhases(Check):
    id = "attempts.phases"
    doc = (
        "an agent has one world at most, and ends once, after it started once, and before its verifier has a world, "
        "ends, or gives a grade, or its answer is scored; requests are refused while it is at work; a verifier has one "
        "world at most, before it ends, and ends once, and no file of it is named before; each boundary is reached "
        "once, in their order: env-ready before the agent starts, with no world for it in between, pre-verify when it "
        "has ended and no verifier began, post-verify when that has ended and before the grade"
    )
    noun = "steps"
    kinds = (
        "sandbox.started",
        "attempt.boundary",
        "agent.started",
        "exchange.refused",
        "agent.ended",
        "verifier.ended",
    )

    def entry(self, entry: Entry) -> None:
        attempt = self.run.open.get(entry.body["attempt"])
        if attempt is None:
            return  # said by attempts.admitted, attempts.ended
        self.looked += 1
        fault = _FAULTS[entry.kind](attempt, entry.body)
        if fault is not None:
            self.fail_at(entry, fault)


def _of_world(attempt: OpenAttempt, body: dict[str, Any]) -> str | None:
    role = body["role"]
    if attempt.verifier_world if role == "verifier" else attempt.agent_world:
        return f"starts another world for the {role} of {attempt.id}"
    if role == "verifier":
        ended = attempt.verifier_ended is not None
        return f"starts a world for the verifier of {attempt.id}, which has ended" if ended else None
    if attempt.boundary and not attempt.agent_started:  # said by worlds.planned where its agent has started
        return f"starts a world for the agent of {attempt.id}, which was said to be ready before"
    return None


def _of_start(attempt: OpenAttempt, _: dict[str, Any]) -> str | None:
    return f"starts the agent of {attempt.id} again" if attempt.agent_started else None


def _of_end(attempt: OpenAttempt, _: dict[str, Any]) -> str | None:
    if not attempt.agent_started or attempt.agent_ended is not None:
        return f"ends the agent of {attempt.id}, which was not running"
    if attempt.verifier_world or attempt.verifier_ended is not None or attempt.grade is not None:
        return f"ends the agent of {attempt.id}, which was verified or graded before"
    if attempt.answers:
        return f"ends the agent of {attempt.id}, whose answer was scored before"
    return None


def _of_refusal(attempt: OpenAttempt, _: dict[str, Any]) -> str | None:
    if not attempt.agent_started or attempt.agent_ended is not None:
        return f"refuses a request while no agent of {attempt.id} runs"
    return None


def _of_verifier(attempt: OpenAttempt, _: dict[str, Any]) -> str | None:
    if attempt.verifier_ended is not None:
        return f"ends the verifier of {attempt.id} again"
    early = next((path for path in attempt.files if path.startswith("verifier/")), None)
    return None if early is None else f"ends the verifier of {attempt.id}, whose {early} was named before"


def _of_boundary(attempt: OpenAttempt, body: dict[str, Any]) -> str | None:
    name, at = body["boundary"], BOUNDARIES.index(body["boundary"])
    if at < attempt.boundary:
        return f"reaches {name} of {attempt.id} again, or after a later boundary"
    passed = attempt.agent_started, attempt.agent_ended is not None, attempt.verifier_ended is not None
    # the agent has not started yet, or has ended, or the verifier has
    # and what comes next has not begun
    verified = attempt.verifier_world or attempt.verifier_ended is not None
    if passed[at] != (at > 0) or (False, verified, attempt.grade is not None)[at]:
        return f"reaches {name} of {attempt.id} at another step than that one"
    return None


_FAULTS: dict[str, Callable[[OpenAttempt, dict[str, Any]], str | None]] = {
    "sandbox.started": _of_world,
    "attempt.boundary": _of_boundary,
    "agent.started": _of_start,
    "exchange.refused": _of_refusal,
    "agent.ended": _of_end,
    "verifier.ended": _of_verifier,
}


class AttemptsOutcomes(Check):
    id = "attempts.outcomes"
    doc = (
        "an attempt ends as its exception has it: lost by `lost` alone, interrupted by `interrupted` or by what ends "
        "the run, and by infrastructure for any other reason, which is there"
    )
    noun = "attempts"
    kinds = ("attempt.ended",)

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        outcome, exception = entry.body["outcome"], entry.body["exception"]
        if outcome != "completed" and outcome != _outcome_for(exception):
            self.fail_at(entry, f"ends {entry.body['attempt']} as {outcome} for {exception}")


def _outcome_for(exception: str | None) -> str | None:
    """How an attempt ends that did not complete, for that reason."""
    if exception == "interrupted" or exception in ENDS_RUN:
        return "interrupted"
    return exception if exception in (None, "lost") else "infrastructure"


class AttemptsGraded(Check):
    id = "attempts.graded"
    doc = (
        "an attempt is graded at most once, one that completed is, and one that was graded completed, unless its "
        "process or its journal died first; a reason stands exactly where the grade is not pass"
    )
    noun = "attempts"
    kinds = ("attempt.graded", "attempt.ended")

    def entry(self, entry: Entry) -> None:
        attempt = self.run.open.get(entry.body["attempt"])
        if attempt is None:
            return  # said by attempts.admitted, attempts.ended
        if entry.kind == "attempt.graded":
            self.looked += 1
            body = entry.body
            if attempt.grade is not None:
                self.fail_at(entry, f"grades {attempt.id} again")
            elif (body["grade"] == "pass") != (body["reason"] is None):
                self.fail_at(entry, f"is {body['grade']} with reason {body['reason']}")
            return
        outcome, exception = entry.body["outcome"], entry.body["exception"]
        if outcome == "completed" and attempt.grade is None:
            self.fail_at(entry, f"completes {attempt.id}, which has no grade")
        elif attempt.grade is not None and not _may_keep_its_grade(outcome, exception):
            self.fail_at(entry, f"ends {attempt.id} as {outcome} for {exception}, and it has a grade")


def _may_keep_its_grade(outcome: str, exception: str | None) -> bool:
    """Whether an attempt that is graded may end so: it counts, unless its process or its journal died first."""
    return outcome in ("completed", "lost") or exception in CUT_SHORT  # how that ends is for attempts.outcomes to say


class Flight(Check):
    id = "flight.empty"
    doc = "nothing is in flight at the end of an opening that ended, nor at the end of the run"
    noun = "ends"
    kinds = ("run.ended",)

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        if self.run.open:
            self.fail_at(
                entry, f"ends with {len(self.run.open)} attempts in flight, {next(iter(self.run.open))} among them"
            )

    def finish(self) -> None:
        if self.run.open and not self.run.ended:
            self.fail("journal.jsonl", f"{len(self.run.open)} attempts are in flight, {min(self.run.open)} among them")
