"""Two arms over the same tasks: raw counts, no statistics. Repeats are averaged within the task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from proctor.core.outcomes import GradeState
from proctor.report.reading import Row
from proctor.study import Design


@dataclass(frozen=True)
class Pairs:
    """Tasks counted by how `first` and `second` did on them.

    A task counts with its share of passed repeats: `both` and `neither` are tasks that each arm always or never
    passed, `first_only` and `second_only` those that one arm passed (with repeats: more often), `even` those with
    the same share in between. `not_compared` tasks have an ungraded repeat in either arm.
    """

    model: str | None
    first: str
    second: str
    repeats: int
    both: int = 0
    first_only: int = 0
    second_only: int = 0
    neither: int = 0
    even: int = 0
    not_compared: int = 0

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def paired_counts(design: Design, rows: Sequence[Row]) -> list[Pairs]:
    """For each model: each pair of the hypotheses, else each other arm against the baseline (or the first arm)."""
    grades: dict[tuple[str | None, str, str], list[str]] = {}
    for row in rows:
        grades.setdefault((row.trial.model, row.trial.arm, row.trial.task), []).append(row.grade)
    tasks = [task.name for task in design.tasks]
    return [
        _count(model, first, second, design.stage.epochs, tasks, grades)
        for model in design.model_names
        for first, second in dict.fromkeys(compared_arms(design))
    ]


def compared_arms(design: Design) -> Iterator[tuple[str, str]]:
    """Each pair of the hypotheses that can be compared; without any, each other arm against the baseline."""
    arms = [arm.name for arm in design.arms]
    yield from (claim.compare for claim in design.hypotheses if set(claim.compare) <= set(arms))
    if not design.hypotheses:
        baseline = design.baseline if design.baseline in arms else arms[0]
        yield from ((arm, baseline) for arm in arms if arm != baseline)


def _count(
    model: str | None,
    first: str,
    second: str,
    repeats: int,
    tasks: Sequence[str],
    grades: Mapping[tuple[str | None, str, str], Sequence[str]],
) -> Pairs:
    seen = dict.fromkeys(("both", "first_only", "second_only", "neither", "even", "not_compared"), 0)
    for task in tasks:
        seen[_kind(grades.get((model, first, task), ()), grades.get((model, second, task), ()))] += 1
    return Pairs(model, first, second, repeats, **seen)


def _kind(first: Sequence[str], second: Sequence[str]) -> str:
    one, other = _share(first), _share(second)
    if one is None or other is None:
        return "not_compared"
    if one != other:
        return "first_only" if one > other else "second_only"
    return "both" if one == 1 else "neither" if one == 0 else "even"


def _share(grades: Sequence[str]) -> Fraction | None:
    if not grades or GradeState.UNGRADED.value in grades:
        return None
    return Fraction(sum(grade == GradeState.PASS.value for grade in grades), len(grades))
