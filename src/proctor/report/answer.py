"""The answer to a question row, and what its scorer made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_blob
from proctor.evidence.runfolder import RunFolder
from proctor.report.conversation import said
from proctor.report.text import field, safe
from proctor.report.trial import AttemptTold


def answer_record(run: RunFolder, told: AttemptTold) -> dict[str, Any]:
    """For JSON: `instruction`, what the agent was told, and `answer`; each null where there is none.

    Raises:
        Refusal: `evidence_damaged`, `evidence_unreadable`.
    """
    started, scored = told.last(Kind.AGENT_STARTED), told.last(Kind.ANSWER_SCORED)
    answer = None
    if scored is not None:
        answer = {"text": _text(run, scored["answer"]), "scorer": scored["scorer"], "detail": scored["detail"]}
    return {"instruction": None if started is None else _text(run, started["instruction"]), "answer": answer}


def answer_lines(run: RunFolder, told: AttemptTold, *, prompt: bool, full: bool) -> Iterator[str]:
    """The answer for people, cut unless `full`; with `prompt` the question before it. Nothing without either.

    Raises:
        Refusal: `evidence_damaged`, `evidence_unreadable`.
    """
    record = answer_record(run, told)
    if prompt and record["instruction"] is not None:
        yield ""
        yield "asked"
        yield from said("", record["instruction"], full)
    answer = record["answer"]
    if answer is not None:
        yield ""
        yield "submitted"
        yield from said("", answer["text"], full)
        yield from field("scored", safe(f"by {answer['scorer']}: {answer['detail']}"))


def _text(run: RunFolder, ref: Any) -> str:
    return read_blob(run, ref).decode("utf-8", "backslashreplace")
