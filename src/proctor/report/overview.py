"""A whole run at a glance: what it is, who wrote it, how each opening ended, and a line for each trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from dataclasses import field as dataclass_field
from os.path import lexists
from pathlib import Path
from typing import Any

from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.withheld import WITHHELD
from proctor.report.agents import agent_lines, agents_record
from proctor.report.anchored import anchored, anchored_lines
from proctor.report.claims import claims_lines
from proctor.report.costs import synthetic_lines
from proctor.report.reading import Reading, Row
from proctor.report.selected import selection_text
from proctor.report.spending import spend_of
from proctor.report.summary import ending, fingerprint
from proctor.report.text import (
    count,
    dollars,
    field,
    fitted,
    moment,
    needed,
    safe,
    screen,
    seconds,
    short_path,
    table,
)


@dataclass
class Openings:
    """Each process that wrote the journal: since when, under which manifest, how it ended (None: without a word)."""

    found: list[dict[str, Any]] = dataclass_field(default_factory=list)

    def take(self, entry: Entry) -> None:
        """Look at the next entry."""
        if entry.kind in (Kind.RUN_ADMITTED, Kind.RUN_RESUMED):
            writer = dict(entry.body["opening"])
            self.found.append(
                {"since": entry.time, "manifest": entry.body["manifest"]["path"], **writer, "ended": None}
            )
        elif entry.kind is Kind.RUN_ENDED:
            status, reason = entry.body["exit_status"], entry.body["reason"]
            self.found[-1]["ended"] = {"time": entry.time, "exit_status": status, "reason": reason}


def invocations(reading: Reading) -> list[dict[str, Any]]:
    """Every invocation by its manifest: command, verdict, reasons that refused it, waivers used."""
    return [
        {
            "manifest": manifest.file.path,
            "command": body.get("command"),
            "started": body.get("started"),
            "verdict": body.get("verdict"),
            "refusals": [each.get("reason") for each in body.get("refusals") or () if isinstance(each, dict)],
            "waived": (body.get("waivers") or {}).get("used"),
        }
        for manifest in reading.run.manifests()
        for body in [manifest.body or {}]
    ]


def overview_record(reading: Reading, openings: Openings) -> dict[str, Any]:
    """For JSON."""
    money = spend_of(reading.design, reading.state)
    return {
        "study": reading.design.study.name,
        "stage": reading.design.stage.name,
        "run_id": (reading.state.admitted or {}).get("run_id"),
        "design_sha256": reading.design.sha256,
        "key": (reading.state.admitted or {}).get("key"),
        "complete": reading.complete,
        "hypotheses": [asdict(claim) for claim in reading.design.hypotheses],
        "synthetic": list(reading.design.synthetic),
        "agents": agents_record(reading.design),
        "spend": None if money is None else money.as_record(),
        "totals": reading.state.totals(len(reading.rows)),
        "journal_entries": reading.state.entries,
        "anchors": anchored(reading),
        "openings": openings.found,
        "invocations": invocations(reading),
        "trials": [row.as_record() for row in reading.rows],
    }


def overview_lines(path: Path, reading: Reading, openings: Openings) -> list[str]:
    """For people."""
    state, design = reading.state, reading.design
    totals = state.totals(len(reading.rows))
    counts = " · ".join(f"{totals[grade]} {grade}" for grade in GradeState)
    claims, money = claims_lines(design), spend_of(design, state)
    lines = list(money.lines()) if money else []
    spent = [line for number, each in enumerate(lines) for line in field("" if number else "spent", each)]
    modelled = money is not None
    held = anchored_lines(anchored(reading), state.entries)
    # what its list says is for those who read what is withheld
    is_copy = lexists(path / WITHHELD)
    stand = [line for number, each in enumerate(held) for line in field("" if number else "anchored", each)]
    return [
        *synthetic_lines(design),
        *([safe(part)] if (part := selection_text(design)) else []),
        *field("study", f"{safe(design.study.name)} · {safe(design.stage.name)}"),
        *field("run", f"{(state.admitted or {}).get('run_id')} in {safe(short_path(path))}"),
        *(field("copy", "public: `proctor verify` says how much is withheld") if is_copy else []),
        *agent_lines(design),
        *field("design", f"sha256:{design.sha256}"),
        *field("key", str(fingerprint(reading))),
        *field("journal", count(state.entries, "entry", "entries")),
        *stand,
        *field("trials", f"{totals['finals']}/{totals['trials']} · {counts}"),
        *spent,
        *(["", *claims] if claims else []),
        "",
        *_openings(openings),
        *_invocations(reading),
        "",
        *_trials(reading.rows, modelled=modelled),
    ]


# what is left out first where a terminal has no room
_SPARED = ("tokens", "time", "tries", "cost")
# these only where they are the same in each row: without them trials would not be told apart
_SAME = ("model", "epoch")
_SHORT_ID = 8


def _trials(rows: Sequence[Row], *, modelled: bool) -> list[str]:
    """A line for each trial. A terminal too narrow for all columns is spared some, which is said."""
    priced = ["cost", "tokens"] if modelled else []
    head = ["grade", "task", *(["model"] if modelled else []), "arm", "epoch", "tries", "time", *priced, "why", "trial"]
    cells = [_trial(row, modelled=modelled) for row in rows]
    limit, spared = screen(), []
    if limit is not None and needed(head, cells) > limit:
        # the beginning of an id will do wherever one is asked for
        cells = [[*row[:-1], row[-1][:_SHORT_ID]] for row in cells]
    for name in (*_SPARED, *_SAME):
        if limit is None or needed(head, cells) <= limit:
            break
        at = head.index(name) if name in head else None
        if at is not None and (name in _SPARED or len({row[at] for row in cells}) == 1):
            head, cells = head[:at] + head[at + 1 :], [row[:at] + row[at + 1 :] for row in cells]
            spared.append(name)
    wider = f"(no room here for {', '.join(spared)}: a wider terminal, a pipe, or `results --csv`)"
    return [*table(head, cells), *(fitted(wider, 0) if spared else [])]


def _openings(openings: Openings) -> list[str]:
    rows = []
    for number, each in enumerate(openings.found, start=1):
        end = each["ended"]
        reason = Reason.by_id(str(end["reason"])) if end and end["reason"] else None
        said = f"{moment(end['time'])}  {ending(end['exit_status'], reason, None)}" if end else "no end on the record"
        rows.append([number, moment(each["since"]), f"{each['pid']} on {each['host']}", each["version"], said])
    return table(["opening", "since", "process", "proctor", "ended"], rows)


def _invocations(reading: Reading) -> list[str]:
    """Only those that say more than an opening does: refused ones, and those with waivers."""
    rows = [
        [each["manifest"], each["command"], each["verdict"], _listed(each["refusals"]), _listed(each["waived"])]
        for each in invocations(reading)
        if each["refusals"] or each["waived"]
    ]
    return ["", *table(["manifest", "command", "verdict", "reasons", "waived"], rows)] if rows else []


def _listed(names: list[Any] | None) -> str | None:
    return ", ".join(map(str, names)) if names else None


def _without_final(row: Row) -> str:
    if not row.tries.attempts:
        return "not run"
    return "in flight" if row.tries.outcome is None else "begun"


def _trial(row: Row, *, modelled: bool) -> list[Any]:
    grade = row.grade if row.final else _without_final(row)
    why = row.tries.exception
    if row.final and row.reason is not None and row.reason != why:
        why = row.reason if why is None else f"{row.reason} ({why})"
    trial = row.trial
    spent = row.tries.spent
    costs = [None, None] if spent is None else [dollars(spent.cost), f"{sum(spent.tokens.values()):,}"]
    cells = [grade, trial.task, *([trial.model] if modelled else []), trial.arm, trial.epoch]
    cells += [row.tries.attempts, seconds(row.tries.duration_ns), *(costs if modelled else [])]
    return [*cells, why, trial.id]
