"""The answer to a question row, and what its scorer made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proctor.core.reasons import Reason
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import shown_blob
from proctor.evidence.runfolder import RunFolder
from proctor.report.conversation import said
from proctor.report.text import field, safe
from proctor.report.trial import AttemptTold

_LEFT_OUT = f"({Reason.EVIDENCE_WITHHELD.id}: this public copy of the run leaves it out)"


def answer_record(run: RunFolder, told: AttemptTold) -> dict[str, Any]:
    """For JSON: `instruction`, what the agent was told, and `answer`; each null where there is none.

    `withheld` names those of the two whose text a public copy leaves out; it is null then.

    Raises:
        Refusal: `evidence_damaged`, `evidence_unreadable`.
    """
    started, scored = told.last(Kind.AGENT_STARTED), told.last(Kind.ANSWER_SCORED)
    instruction = None if started is None else _text(run, started["instruction"])
    answer = None
    if scored is not None:
        answer = {"text": _text(run, scored["answer"]), "scorer": scored["scorer"], "detail": scored["detail"]}
    withheld = [] if started is None or instruction is not None else ["instruction"]
    withheld += [] if answer is None or answer["text"] is not None else ["answer"]
    return {"instruction": instruction, "answer": answer, "withheld": withheld}


def answer_lines(run: RunFolder, told: AttemptTold, *, prompt: bool, full: bool) -> Iterator[str]:
    """The answer for people, cut unless `full`; with `prompt` the question before it. Nothing without either.

    Raises:
        Refusal: `evidence_damaged`, `evidence_unreadable`.
    """
    record = answer_record(run, told)
    if prompt and (record["instruction"] is not None or "instruction" in record["withheld"]):
        yield ""
        yield "asked"
        yield from said("", _LEFT_OUT if record["instruction"] is None else record["instruction"], full)
    answer = record["answer"]
    if answer is not None:
        yield ""
        yield "submitted"
        yield from said("", _LEFT_OUT if answer["text"] is None else answer["text"], full)
        yield from field("scored", safe(f"by {answer['scorer']}: {answer['detail']}"))


def _text(run: RunFolder, ref: Any) -> str | None:
    body = shown_blob(run, ref)
    return None if body is None else body.decode("utf-8", "backslashreplace")
