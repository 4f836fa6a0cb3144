"""Each arm with each model: its pass rate with an interval, what repeats say, and what a solved trial cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from proctor.analysis.interval import Interval
from proctor.analysis.paired import estimate
from proctor.analysis.rates import Repeats, clopper_pearson, repeats, wilson
from proctor.evidence.fold import Cell, CellCounts
from proctor.evidence.spent import Spent
from proctor.report.comparing import clustered, repeated
from proctor.report.reading import Reading, Row


@dataclass(frozen=True)
class CellResult:
    """One arm with one model. `spent` is of all its attempts, None where there is no model.

    `interval` is of the headline, pass / planned: Wilson's for one independent trial a task (`single`), else over the
    tasks' own rates. `repeats` is None with one epoch.
    """

    model: str | None
    synthetic: bool
    arm: str
    planned: int
    passed: int
    single: bool
    interval: Interval | None
    repeats: Repeats | None
    spent: Spent | None

    @property
    def exact(self) -> Interval | None:
        """Clopper-Pearson's interval of the headline, None where trials are not independent."""
        return clopper_pearson(self.passed, self.planned) if self.single else None

    def as_record(self) -> dict[str, Any]:
        """For JSON; `per_solved` is for each trial that passed, rounded up, null where none did."""
        found, exact = self.repeats, self.exact
        each = None if self.spent is None else self.spent.per(self.passed)
        return {
            "model": self.model,
            "synthetic": self.synthetic,
            "arm": self.arm,
            "interval": None if self.interval is None else self.interval.as_record(),
            "exact_interval": None if exact is None else exact.as_record(),
            "repeats": None
            if found is None
            else {
                "k": found.k,
                "tasks": found.tasks,
                "planned": found.planned,
                "pass_at_k": None if found.any_passes is None else float(found.any_passes),
                "pass_hat_k": None if found.all_pass is None else float(found.all_pass),
            },
            "spent": None if self.spent is None else self.spent.as_record(),
            "per_solved": None if each is None else {"cost": str(each[0]), "tokens": each[1]},
        }


def cells(reading: Reading) -> list[CellResult]:
    """All of them, models and arms in the order of the design."""
    rows: dict[tuple[str | None, str], list[Row]] = {}
    for row in reading.rows:
        rows.setdefault((row.trial.model, row.trial.arm), []).append(row)
    order = [(model, arm.name) for model in reading.design.model_names for arm in reading.design.arms]
    counts = reading.state.counts
    return [
        _cell(*key, rows[key], reading.design.stage.epochs, counts.get(Cell(*key), CellCounts()).spent) for key in order
    ]


def _cell(model: str | None, arm: str, rows: Sequence[Row], epochs: int, spent: Spent) -> CellResult:
    if epochs == 1:
        tasks, clusters = [repeated((row,)) for row in rows], clustered((row,) for row in rows)
    else:
        own = _tasks(rows)
        tasks, clusters = list(map(repeated, own)), clustered(own)
    passed = sum(task.passed for task in tasks)
    single = epochs == 1 and clusters is None
    if single:
        interval: Interval | None = wilson(passed, len(rows))
    else:
        found = estimate([Fraction(task.passed, task.planned) for task in tasks], span=(0, 1), clusters=clusters)
        interval = None if found is None else found.interval
    again = None
    if epochs > 1:
        again = repeats(((task.planned - task.ungraded, task.passed) for task in tasks), epochs)
    synthetic = any(row.synthetic for row in rows)
    return CellResult(
        model, synthetic, arm, len(rows), passed, single, interval, again, None if model is None else spent
    )


def _tasks(rows: Sequence[Row]) -> list[list[Row]]:
    by_task: dict[str, list[Row]] = {}
    for row in rows:
        by_task.setdefault(row.trial.task, []).append(row)
    return list(by_task.values())
