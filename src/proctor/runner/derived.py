"""The derived files of a run: summary.json and grade_summary.json, from the design and the journal alone.

`summary.json` is `{format, run_id, design_sha256, study, stage, complete, totals, openings, synthetic, spent, groups}`:
`totals` as in `run.ended`, `openings` how many processes wrote the journal, `synthetic` the names of models that are
made up, `spent` `{before, charged}` in money, `before` null without a budget. `groups` has one for each planned (model,
arm), sorted by model (null first) and then arm by code point: `{model, arm, planned, grades: {pass, fail, ungraded},
reasons, exceptions, superseded, replaced, cost}`. `reasons` counts finals by reason id, `exceptions` ends of attempts
by exception id, `superseded` attempts that ended interrupted or lost, `replaced` attempts that took the place of one
that infrastructure ended. `cost` is null without a model, else `{charged, exchanges, estimated, overruns, tokens:
{bucket: n}}` over all attempts, those that do not count too.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from proctor.core.canonical import encode
from proctor.core.money import Usd
from proctor.core.outcomes import GradeState
from proctor.evidence.fold import Cell, CellCounts, RunState
from proctor.evidence.reader import read_own
from proctor.evidence.runfolder import FileRef, RunFolder
from proctor.report.reading import grade_summary
from proctor.study import Design, Plan

FORMAT = 1


def fold_own(run: RunFolder, design: Design, entries: int) -> RunState:
    """The state of a run after so many entries, for the process that writes its journal."""
    state = RunState()
    for kind, body in read_own(run.journal_path, entries):
        state.apply(kind, body)
    return state


def derived_files(design: Design, drawn: Plan, state: RunState) -> dict[str, bytes]:
    """Names and contents, canonical JSON."""
    return {
        "grade_summary.json": encode(grade_summary(drawn.trials(), state)),
        "summary.json": encode(run_summary(design, drawn, state)),
    }


def run_summary(design: Design, drawn: Plan, state: RunState) -> dict[str, Any]:
    """The content of summary.json."""
    planned = Counter(Cell(trial.model, trial.arm) for trial in drawn.trials())
    total = planned.total()
    admitted = state.admitted or {}
    return {
        "format": FORMAT,
        "run_id": admitted.get("run_id"),
        "design_sha256": admitted.get("design_sha256"),
        "study": design.study.name,
        "stage": design.stage.name,
        "complete": state.finals == total,
        "totals": state.totals(total),
        "openings": len(state.openings),
        "synthetic": list(design.synthetic),
        "spent": {
            "before": design.budget.spent_before if design.budget is not None else None,
            "charged": str(Usd(state.charged.total())),
        },
        "groups": [_group(cell, planned[cell], state.counts.get(cell)) for cell in sorted(planned, key=_by_model)],
    }


def _by_model(cell: Cell) -> tuple[bool, str, str]:
    return (cell.model is not None, cell.model or "", cell.arm)


def _group(cell: Cell, planned: int, counts: CellCounts | None) -> dict[str, Any]:
    seen = counts or CellCounts()
    return {
        "model": cell.model,
        "arm": cell.arm,
        "planned": planned,
        "grades": {grade.value: seen.grades[grade.value] for grade in GradeState},
        "reasons": dict(seen.reasons),
        "exceptions": dict(seen.exceptions),
        "superseded": seen.superseded,
        "replaced": seen.replaced,
        "cost": None if cell.model is None else {**seen.spent.as_record(), "tokens": seen.spent.tokens},
    }


def write_derived(run: RunFolder, design: Design, drawn: Plan, state: RunState) -> list[FileRef]:
    """Write the derived files, both or none: what stands is what a `run.ended` names. Returns what was written.

    Raises:
        Refusal: DISK_FULL, WRITE_FAILED.
    """
    return run.write_together(dict(sorted(derived_files(design, drawn, state).items())))
