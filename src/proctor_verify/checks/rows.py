"""Checks of question rows, and of models that are made up."""

from __future__ import annotations

from proctor_verify.check import Check
from proctor_verify.checks.design import DesignRule
from proctor_verify.design import NO_TRIAL, Design
from proctor_verify.design_parts import PRACTICE
from proctor_verify.journal import Entry

_SANDBOXED = ("sandbox.started", "attempt.boundary", "verifier.ended", "attempt.files")
# The scorer was asked: there is an answer.
_SCORED = frozenset({None, "wrong_answer", "below_threshold", "scorer_failed", "scorer_timeout", "reward_key_missing"})


class RowsBare(Check):
    id = "rows.bare"
    doc = "an attempt at a question row has no world, no boundaries, no verifier and no files"
    noun = "attempts at rows"
    kinds = ("attempt.admitted", *_SANDBOXED)
    needs_design = True

    def entry(self, entry: Entry) -> None:
        if entry.kind == "attempt.admitted":
            trial = self.trials.find(entry.body["trial"])
            self.looked += trial >= 0 and self.trials.is_row(trial)
            return
        attempt = self.run.open.get(entry.body["attempt"])
        if attempt is not None and attempt.is_row:
            self.fail_at(entry, f"is {entry.kind} of {attempt.id}, whose task is a question row")


class AnswersScored(Check):
    id = "answers.scored"
    doc = (
        "an attempt at a question row has one scored answer before its grade, where the grade says that it was scored; "
        "no other attempt has one"
    )
    noun = "answers"
    kinds = ("answer.scored", "attempt.graded")
    needs_design = True

    def entry(self, entry: Entry) -> None:
        attempt = self.run.open.get(entry.body["attempt"])
        if attempt is None or attempt.trial == NO_TRIAL:
            return  # said by attempts.admitted, attempts.ended, attempts.joined
        if entry.kind == "answer.scored":
            self.looked += 1
            if not attempt.is_row:
                self.fail_at(entry, f"scores an answer of {attempt.id}, whose task is no question row")
            elif attempt.answers or attempt.grade is not None:
                self.fail_at(entry, f"scores an answer of {attempt.id}, which has one, or a grade")
        elif attempt.is_row and not attempt.answers and entry.body["reason"] in _SCORED:
            self.fail_at(entry, f"grades {attempt.id} {entry.body['grade']}, and no answer of it was scored")


class SyntheticMarked(DesignRule):
    id = "synthetic.marked"
    doc = f"a model of provider `{PRACTICE}` is marked as synthetic in the design, and has that `api`, and no other is"
    noun = "models"

    def judge(self, design: Design) -> None:
        for name, model in design.parts.models.items():
            self.looked += 1
            if len({model.synthetic, model.provider == PRACTICE, model.api == PRACTICE}) > 1:
                said = f"{'' if model.synthetic else 'not '}marked as synthetic"
                self.fail("design.json", f"has model {name} of {model.provider} with api {model.api}, {said}")
