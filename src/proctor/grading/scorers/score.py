"""One door to all scorers: what stands against a row, what its oracle answers, and what an answer is worth."""

from __future__ import annotations

from typing import Any

from proctor.core.questions import Question, Scorer
from proctor.core.reasons import Reason
from proctor.grading.scorers import choice, exact, number, outputs, pattern
from proctor.grading.scorers.base import Scored, shown, wrong

IN_WORKERS = frozenset({Scorer.REGEX, Scorer.PYTHON})
"""Scorers that run what a study brings, with a deadline, in worker processes."""


def check_row(question: Question) -> str | None:
    """What stands against a row: a target that its scorer cannot take, or that the oracle's answer would not pass."""
    why = _check(question)
    if why is None and question.scorer not in IN_WORKERS:
        answer = target_text(question)
        scored = score(question, answer)
        if scored.reason is not None:
            return f"the oracle's answer {shown(answer)} would not pass: {scored.detail}"
    return why


def target_text(question: Question) -> str:
    """The right answer as text: what the oracle answers."""
    target: Any = question.target
    match question.scorer:
        case Scorer.CHOICE:
            return choice.right_letter(target, question.choices) or target
        case Scorer.REGEX:
            return pattern.target_text(target)
        case Scorer.EXACT | Scorer.NUMBER:
            return exact.target_text(target)
        case Scorer.JSON | Scorer.PYTHON:
            return target if isinstance(target, str) else outputs.target_text(target)


def score(question: Question, answer: str | None) -> Scored:
    """Score an answer, in time linear in its length; None is an answer that was not given.

    Raises:
        ValueError: the scorer is one of `IN_WORKERS`, and there is an answer.
    """
    if answer is None:
        return wrong("there is no answer", Reason.NO_ANSWER)
    match question.scorer:
        case Scorer.EXACT:
            return exact.score(question.target, answer)
        case Scorer.CHOICE:
            return choice.score(question.target, answer, question.choices)
        case Scorer.NUMBER:
            return number.score(question.target, answer, question.tolerance)
        case Scorer.JSON:
            return outputs.score(question.target, answer, question.tolerance)
        case Scorer.REGEX | Scorer.PYTHON:
            raise ValueError(f"the scorer {question.scorer.value} runs in workers")


def _check(question: Question) -> str | None:
    match question.scorer:
        case Scorer.EXACT:
            return exact.check(question.target)
        case Scorer.CHOICE:
            return choice.check(question.target, question.choices)
        case Scorer.NUMBER:
            return number.check(question.target)
        case Scorer.JSON:
            return outputs.check(question.target)
        case Scorer.REGEX:
            return pattern.check(question.target)
        case Scorer.PYTHON:
            return None
