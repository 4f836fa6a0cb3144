"""What a run is doing, or how it ended, in a record and in lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.evidence.lock import read_lock
from proctor.report.anchored import anchored, anchored_lines
from proctor.report.left import resumes
from proctor.report.progress import human
from proctor.report.reading import Reading
from proctor.report.spending import Spend, spend_of
from proctor.report.summary import ending
from proctor.report.text import field, safe


def rest_record(reading: Reading, *, live: bool) -> dict[str, Any]:
    """What the journal tells where no process answers: counts, what was in flight, and how the run ended.

    `ended` is null where it did not: its process died, or (`live`) does not answer just now. `resumes` is whether
    `proctor resume` has something to do.
    """
    state = reading.state
    money = spend_of(reading.design, state)
    return {
        "answers": False,
        "planned": len(reading.rows),
        "done": state.finals,
        "complete": reading.complete,
        "resumes": not live and resumes(reading),
        "grades": {grade.value: state.grades[grade] for grade in GradeState},
        "in_flight": [{"trial": reading.in_flight.get(attempt, attempt), "phase": None} for attempt in state.open],
        "superseded": sum(counts.superseded for counts in state.counts.values()),
        "replaced": sum(counts.replaced for counts in state.counts.values()),
        "paused": state.paused and live,
        "draining": state.draining,
        "left_sec": None,
        "journal_entries": state.entries,
        "anchors": anchored(reading),
        "spend": None if money is None else money.as_record(),
        "ended": state.ended,
    }


def live_record(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What a live run answers, in the form of `rest_record`; `spend` is `Spend.as_record()`, or null."""
    whole = answer["done"] == answer["planned"]
    rest: dict[str, Any] = {"resumes": False, "ended": None, "spend": None, "anchors": [], "broken": None}
    return {"answers": True, "complete": whole, **rest, **answer}


def status_lines(record: Mapping[str, Any]) -> list[str]:
    """The record for people; `part` of it is what `selection_text` says, None where all of the stage is planned."""
    grades = record["grades"]
    counts = " · ".join(f"{grades[grade]} {grade}" for grade in GradeState)
    lines = [_head(record), f"done       {record['done']:,}/{record['planned']:,} · {counts}"]
    lines += [] if record["part"] is None else field("part", record["part"])
    if record["superseded"] or record["replaced"]:
        lines.append(f"attempts   {record['superseded']} superseded · {record['replaced']} replaced")
    money = None if record["spend"] is None else Spend.of_record(record["spend"])
    for number, line in enumerate(money.lines() if money else ()):
        lines.append(f"{'' if number else 'spent':10} {line}")
    going = not record["paused"] and not record["draining"]
    if going and record["left_sec"] is not None and record["done"] < record["planned"]:
        lines.append(f"time left  about {human(record['left_sec'])}, at the pace so far")
    lines += _in_flight(record)
    for number, line in enumerate(anchored_lines(record["anchors"], record["journal_entries"])):
        lines.append(f"{'' if number else 'anchored':10} {line}")
    return lines


def left_open_lines(reading: Reading) -> list[str]:
    """Of a run that is not complete: what became of its process, and what was in flight."""
    if reading.complete:
        return []
    lock = read_lock(reading.run)
    record = rest_record(reading, live=lock.live)
    process = {"pid": lock.pid, "host": lock.host, "same_boot": lock.same_boot}
    told = {**record, "live": lock.live, "answers": lock.live, "process": process}
    return [_head(told), *_in_flight(record)]


def _in_flight(record: Mapping[str, Any]) -> list[str]:
    lines = []
    for number, each in enumerate(record["in_flight"]):
        phase = "" if each["phase"] is None else f"  ({each['phase']})"
        lines.append(f"{'' if number else 'in flight':10} {safe(str(each['trial']))}{safe(phase)}")
    return lines


def _head(record: Mapping[str, Any]) -> str:
    process = record["process"]
    who = f"process {process['pid']} on {safe(str(process['host']))}"
    if record["live"]:
        if not record["answers"]:
            ended = record["ended"] is not None
            # what a process does that holds a run with an end
            doing = ": it pushes the last checkpoint to anchors, or takes the run up again" if ended else ""
            return f"live       {who} holds the run and does not answer just now{doing}"
        doing = "draining: nothing new starts" if record["draining"] else "paused" if record["paused"] else "running"
        return f"live       {doing} ({who})"
    ended = record["ended"]
    if ended is not None:
        reason = Reason.by_id(str(ended["reason"])) if ended["reason"] else None
        return f"ended      {ending(int(ended['exit_status']), reason, None)}"
    if process["pid"] is None:
        return "dead       its process ended without a word"
    since = " (the machine was restarted since)" if process["same_boot"] is False else ""
    return f"dead       {who} ended without a word{since}"
