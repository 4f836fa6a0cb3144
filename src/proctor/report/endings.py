"""Attempts that do not count, or did not end by themselves: how many, and for each cause one to look at."""

from __future__ import annotations

from collections import Counter

from proctor.core.outcomes import SUPERSEDED
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.fold import CellCounts
from proctor.report.reading import Reading, Row
from proctor.report.tailing import AGENT_OUTPUTS, last_line
from proctor.report.text import command, count, safe, short_path, table, typable, with_model
from proctor.report.trial import short_id


def endings_lines(reading: Reading) -> list[str]:
    """Said although the rates do not need them."""
    rows = [
        [with_model(cell.model, cell.arm), counts.superseded, counts.replaced, _exceptions(counts) or None]
        for cell, counts in sorted(reading.state.counts.items(), key=lambda item: str(item[0]))
        if cell is not None and (counts.superseded or counts.replaced or counts.exceptions)
    ]
    if not rows:
        return []
    counted = table(["attempts", "superseded", "replaced", "ended by"], rows, right=[1, 2])
    return ["", *counted, *_examples(reading)]


def _exceptions(counts: CellCounts) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(Counter(counts.exceptions).items()))


def _examples(reading: Reading) -> list[str]:
    """For each cause the first trial whose last attempt met it; what was only cut short is tried anew in any case."""
    first: dict[str, Row] = {}
    for row in reading.rows:
        if row.tries.exception is None:
            continue
        if row.tries.outcome not in SUPERSEDED or _ended_run(row.tries.exception) is not None:
            first.setdefault(row.tries.exception, row)
    return [line for reason in sorted(first) for line in ["", *_example(reading, reason, first[reason])]]


def _example(reading: Reading, reason: str, row: Row) -> list[str]:
    lines = [f"{safe(reason)}, for example {safe(row.trial.label)}:"]
    stopped = _ended_run(reason)
    seen = None if row.tries.folder is None or stopped is not None else _last_of_agent(reading, row.tries.folder)
    if row.tries.refusal is not None:
        first = "" if row.tries.refused == 1 else "the first "
        lines.append(f"  {count(row.tries.refused, 'request')} of it refused, {first}{safe(row.tries.refusal)}")
    if seen is not None:
        lines.append(f"  last of {seen[0]}: {seen[1]}")
    elif row.tries.message is not None and row.tries.message == row.tries.refusal:
        pass  # said in the line before
    elif row.tries.message:
        lines.append(f"  {safe(row.tries.message)}")
    elif (known := Reason.by_id(reason)) is not None:
        lines.append(f"  {known.summary}")
    if stopped is not None:
        lines.append(f"  do: {typable(stopped.remedy)}")
    look = "show" if seen is None else "logs"
    words = ("proctor", look, short_path(reading.run.path), short_id(reading.rows, row))
    return [*lines, f"  {safe(command(*words))}"]


def _ended_run(reason: str) -> Reason | None:
    """The reason, where every other attempt would meet the same: the run stopped for it, not the attempt alone."""
    known = Reason.by_id(reason)
    return known if known is not None and known.ends_run else None


def _last_of_agent(reading: Reading, folder: str) -> tuple[str, str] | None:
    try:
        return last_line(reading.run, folder, AGENT_OUTPUTS)
    except Refusal:
        return None  # an example only: `verify` says what is wrong with a file
