"""An answer's score: by rule here, or in a worker process with a deadline where a pattern or a function decides."""

from __future__ import annotations

import os
from collections.abc import Mapping

from proctor.core.questions import Question, Scorer
from proctor.core.reasons import Reason
from proctor.core.waiting import in_thread
from proctor.grading.scorers import function, pattern
from proctor.grading.scorers.base import Scored, unscored
from proctor.grading.scorers.score import IN_WORKERS, score
from proctor.rollout.workers import FaultKind, Returned, WorkerError, Workers

SEARCH = "proctor.grading.scorers.pattern:search"
# what takes longer than other attempts should wait
_LONG_CHARS = 100_000


async def score_row(
    question: Question, answer: str | None, *, workers: Workers, functions: Mapping[str, str], deadline_sec: float
) -> Scored:
    """Score one answer.

    Args:
        question: the row.
        answer: None where the agent gave none: wrong, and no scorer is asked.
        workers: where patterns and functions run.
        functions: SHA-256 of each scorer function's file as it was admitted, by the function's name.
        deadline_sec: of one call of a pattern or function.

    A scorer that raises, dies or returns what is no score leaves the answer ungraded, SCORER_FAILED; one that reaches
    its deadline, SCORER_TIMEOUT.

    Raises:
        Refusal: TOOL_INVALID, TASK_CHANGED: the function is not there any more, or not what was admitted.
    """
    if answer is None or question.scorer not in IN_WORKERS:
        if answer is not None and len(answer) > _LONG_CHARS:
            return await in_thread(score, question, answer)
        return score(question, answer)
    size = len(os.sched_getaffinity(0))
    if question.scorer is Scorer.REGEX:
        pool = workers.pool(SEARCH, None, size=size)
        args = [pattern.pattern_of(question.target), answer]
        result = await pool.call(args, deadline_sec=deadline_sec)
        return pattern.scored(question.target, answer, result.value) if isinstance(result, Returned) else _fault(result)
    name = question.scorer_function or ""
    pool = workers.pool(name, functions[name], size=size)
    result = await pool.call([answer, question.row], deadline_sec=deadline_sec)
    return function.scored(result.value) if isinstance(result, Returned) else _fault(result)


def _fault(error: WorkerError) -> Scored:
    reason = Reason.SCORER_TIMEOUT if error.kind is FaultKind.TIMEOUT else Reason.SCORER_FAILED
    return unscored(reason, error.message)
