"""Checks of finals and totals: what counts, and what the run says that it adds up to."""

from __future__ import annotations

from proctor_verify.check import Check
from proctor_verify.checks.summaries import totals
from proctor_verify.design import NO_TRIAL
from proctor_verify.facts import SUPERSEDED, Grade
from proctor_verify.journal import Entry
from proctor_verify.said import counts_words, grade_words
from proctor_verify.vocabulary import SIGNALS

# Stopped by budget, deadline or operator.
STOPPED = 4


class One(Check):
    id = "finals.one"
    doc = "a trial has one final, of its last attempt, after that has ended, and no attempt after it"
    noun = "finals"
    kinds = ("trial.final", "attempt.admitted")
    needs_design = True

    def entry(self, entry: Entry) -> None:
        body = entry.body
        trial = self.trials.find(body["trial"])
        if trial == NO_TRIAL:
            return  # said by attempts.joined
        if entry.kind == "attempt.admitted":
            if self.trials.final[trial]:
                self.fail_at(entry, f"admits {body['attempt']} after the final of its trial")
            return
        self.looked += 1
        # of a trial whose attempt is open, or that has its final, there is none
        last = self.run.recent.get(trial)
        if last is None or last.id != body["attempt"]:
            said = f"the last attempt of trial {body['trial']}, ended and without a final yet"
            self.fail_at(entry, f"names {body['attempt']}, which is not {said}")


class Agree(Check):
    id = "finals.agree"
    doc = "a final says what its attempt's grade says, and is ungraded where there is none"
    noun = "finals"
    kinds = ("trial.final",)
    needs_design = True

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        fault = self._fault(entry)
        if fault is not None:
            self.fail_at(entry, fault)

    def _fault(self, entry: Entry) -> str | None:
        final, last = Grade.of(entry.body), self.run.recent.get(self.trials.find(entry.body["trial"]))
        if last is None or last.id != entry.body["attempt"]:
            return None  # said by finals.one, attempts.joined
        if last.outcome in SUPERSEDED:
            return f"names {last.id}, which was {last.outcome}"
        if last.grade is not None:
            return None if final == last.grade else f"says {_words(final)}, and {last.id} {_words(last.grade)}"
        if final.grade != "ungraded" or final.reward is not None or final.reason not in ("not_graded", last.exception):
            return f"says {_words(final)}, and {last.id} has no grade"
        return None


class Totals(Check):
    id = "totals.agree"
    doc = "each `run.ended` counts what the journal holds up to it, and says `complete` exactly where it is"
    noun = "ends"
    kinds = ("run.ended",)
    needs_design = True

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        counted = totals(self.run, self.design)
        if entry.body["totals"] != counted:
            holds = {name: count for name, count in counted.items() if count != entry.body["totals"][name]}
            said = {name: entry.body["totals"][name] for name in holds}
            self.fail_at(entry, f"says {counts_words(said)}, and the journal holds {counts_words(holds)}")
        if entry.body["complete"] != self.run.complete:
            self.fail_at(entry, f"says complete: {entry.body['complete']}")


class ExitStatus(Check):
    id = "status.agrees"
    doc = (
        "exit status 0 only where complete and all graded, 1 only where complete and some are not, both without a "
        "reason, every other with one; or 0 for `prepared_only`, in an opening that admitted no attempt; a signal's "
        "status and a stop's reason are those of the drain"
    )
    noun = "ends"
    kinds = ("run.ended",)
    needs_design = True

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        status, reason, ungraded = entry.body["exit_status"], entry.body["reason"], self.run.grades["ungraded"]
        if status == 0 and reason == "prepared_only":
            if self.run.begun or self.run.complete:
                self.fail_at(entry, f"says that it only prepared, with {self.run.begun} attempts begun")
        elif (status in (0, 1)) != (reason is None):
            self.fail_at(entry, f"exits {status} with reason {reason}")
        elif status in (0, 1) and not (self.run.complete and (ungraded > 0) == (status == 1)):
            missing = self.design.trials - self.run.finals
            self.fail_at(entry, f"exits {status} with {ungraded} ungraded and {missing} trials without a final")
        elif not _is_drained(status, reason, self.run.draining):
            self.fail_at(entry, f"exits {status} with reason {reason}, and drained for {self.run.draining}")


def _is_drained(status: int, reason: str | None, cause: str | None) -> bool:
    """Whether the drain of an opening bears out its end. What is cancelled is interrupted, whatever it drained for."""
    if status in SIGNALS:
        return reason == "interrupted" and (cause not in SIGNALS.values() or cause == SIGNALS[status])
    if status == STOPPED and reason != "interrupted":
        return reason == ("stage_deadline" if cause == "deadline" else cause)
    return True


def _words(grade: Grade) -> str:
    return grade_words(grade.grade, grade.reason, grade.reward)
