"""Arms compared over their tasks: what was preregistered, with its decision, and all else, which decides nothing.

A task is compared where each of its repeats, in both arms, has a value: nothing is made up for what is ungraded.
What that could change is said beside it: the bounds of the difference over all planned tasks, and whether a decision
would stand at both of them. The family of Holm's adjustment is every hypothesis of the stage with every model, a test
that could not be made with p = 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import Any

from proctor.analysis.paired import Estimate, Repeated, difference_bounds, estimate, mean
from proctor.analysis.power import smallest_by_mcnemar, smallest_by_t
from proctor.analysis.significance import PValue, holm, mcnemar, sign_flip
from proctor.core.claims import ClaimTest, Direction
from proctor.core.outcomes import GradeState
from proctor.report.endpoints import SOLVED, is_share, value_of
from proctor.report.paired import compared_arms
from proctor.report.reading import Reading, Row
from proctor.study.design import Design, HypothesisDesign

ALPHA = 0.05


class Decision(StrEnum):
    """What a preregistered test came to."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"
    OPEN = "open"


@dataclass(frozen=True)
class Comparison:
    """Two arms with one model: `first` minus `second`, on one endpoint.

    `claim` is the hypothesis, None where nothing was preregistered. `p` is None, and `why_open` says why, where the
    test cannot be made. `bounds` are of the difference over all planned tasks, `ps_at_bounds` the p-values there.
    `detectable` is the smallest difference that a run like this one finds with power 0.8.
    """

    model: str | None
    synthetic: bool
    first: str
    second: str
    endpoint: str
    test: ClaimTest
    direction: Direction
    alpha: float
    claim: str | None
    planned: int
    compared: int
    means: tuple[Fraction, Fraction] | None
    estimate: Estimate | None
    p: PValue | None
    bounds: tuple[Fraction, Fraction] | None
    ps_at_bounds: tuple[float, float] | None
    detectable: float | None
    adjusted: float | None = None
    decision: Decision | None = None
    stands_at_bounds: bool | None = None
    why_open: str | None = None

    @property
    def share(self) -> bool:
        """Whether the difference is one of rates."""
        return is_share(self.endpoint)

    def as_record(self) -> dict[str, Any]:
        """For JSON; numbers are doubles."""
        found = self.estimate
        interval = None if found is None or found.interval is None else found.interval.as_record()
        return {
            "model": self.model,
            "synthetic": self.synthetic,
            "first": self.first,
            "second": self.second,
            "endpoint": self.endpoint,
            "preregistered": self.claim is not None,
            "hypothesis": self.claim,
            "tasks": {"planned": self.planned, "compared": self.compared},
            "first_mean": None if self.means is None else float(self.means[0]),
            "second_mean": None if self.means is None else float(self.means[1]),
            "difference": None if found is None else float(found.mean),
            "standard_error": None if found is None else found.standard_error,
            "units": None if found is None else found.units,
            "clustered": None if found is None else found.clustered,
            "interval": interval,
            "bounds": None if self.bounds is None else [float(end) for end in self.bounds],
            "test": self.test.value,
            "direction": self.direction.value,
            "alpha": self.alpha,
            "p": None if self.p is None else self.p.as_record(),
            "p_holm": self.adjusted,
            "p_at_bounds": None if self.ps_at_bounds is None else list(self.ps_at_bounds),
            "decision": None if self.decision is None else self.decision.value,
            "decision_stands_at_bounds": self.stands_at_bounds,
            "open_because": self.why_open,
            "smallest_detectable": self.detectable,
        }


def comparisons(reading: Reading) -> list[Comparison]:
    """Every hypothesis with every model, then what else arms can be compared on."""
    design = reading.design
    arms = {arm.name for arm in design.arms}
    tables = _Tables(reading)
    claimed = [
        tables.compare(model, claim.compare, claim.endpoint, claim)
        for claim in design.hypotheses
        for model in design.model_names
        if set(claim.compare) <= arms
    ]
    untested = len(design.hypotheses) * len(design.model_names) - len(claimed)
    told = {(each.model, each.first, each.second) for each in claimed if each.endpoint == SOLVED and each.p}
    others = [
        tables.compare(model, pair, SOLVED, None)
        for model in design.model_names
        for pair in dict.fromkeys([*compared_arms(design), *_against_baseline(design)])
        if (model, *pair) not in told
    ]
    return [*_decided(claimed, untested, _why_undecided(reading)), *others]


def _against_baseline(design: Design) -> Iterator[tuple[str, str]]:
    arms = [arm.name for arm in design.arms]
    baseline = design.baseline if design.baseline in arms else arms[0]
    pairs = {frozenset(claim.compare) for claim in design.hypotheses}
    yield from ((arm, baseline) for arm in arms if arm != baseline and {arm, baseline} not in pairs)


def _why_undecided(reading: Reading) -> str | None:
    missing = len(reading.rows) - reading.state.finals
    if missing:
        return f"{missing} of {len(reading.rows)} trials have no final yet"
    if reading.design.selection is not None:
        return "a selection of the stage was run, and the claim is about all of it"
    return None


def _decided(claimed: Sequence[Comparison], untested: int, why_open: str | None) -> Iterator[Comparison]:
    rest = [1.0] * untested
    own = [1.0 if each.p is None else each.p.p for each in claimed]
    ends = [(p, p) if each.ps_at_bounds is None else each.ps_at_bounds for each, p in zip(claimed, own, strict=True)]
    adjusted = holm([*own, *rest])
    at_low, at_high = holm([*(low for low, _ in ends), *rest]), holm([*(high for _, high in ends), *rest])
    for at, each in enumerate(claimed):
        why = each.why_open or why_open
        if why is not None:
            yield replace(each, adjusted=adjusted[at], decision=Decision.OPEN, why_open=why)
            continue
        supported = adjusted[at] <= each.alpha
        decision = Decision.SUPPORTED if supported else Decision.NOT_SUPPORTED
        stands = None
        if each.ps_at_bounds is not None and each.bounds is not None:
            same = (at_low[at] <= each.alpha) == supported == (at_high[at] <= each.alpha)
            # significant at both ends, but on opposite sides, is no agreement
            stands = same and (not supported or each.bounds[0] > 0 or each.bounds[1] < 0)
        yield replace(each, adjusted=adjusted[at], decision=decision, stands_at_bounds=stands)


class _Tables:
    """The rows of a run by model, arm and task."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._epochs = reading.design.stage.epochs
        self._synthetic = frozenset(reading.design.synthetic)
        # few are different, of however many tasks
        self._rates: dict[Repeated, Fraction | None] = {}
        self._rows: dict[tuple[str | None, str], dict[str, list[Row]]] = {}
        for row in reading.rows:
            own = self._rows.setdefault((row.trial.model, row.trial.arm), {})
            own.setdefault(row.trial.task, []).append(row)

    def compare(
        self, model: str | None, arms: tuple[str, str], endpoint: str, claim: HypothesisDesign | None
    ) -> Comparison:
        one, other = self._rows[model, arms[0]], self._rows[model, arms[1]]
        values = [(self._mean(rows, endpoint), self._mean(other[task], endpoint)) for task, rows in one.items()]
        clusters = clustered(one.values())
        kept = [at for at, pair in enumerate(values) if None not in pair]
        pairs = [(first, second) for first, second in values if first is not None and second is not None]
        differences = [first - second for first, second in pairs]
        units = None if clusters is None else [clusters[at] for at in kept]
        single = self._epochs == 1
        plain = ClaimTest.MCNEMAR if single and units is None else ClaimTest.SIGN_FLIP
        test = ClaimTest(claim.test) if claim else plain
        direction = Direction(claim.direction) if claim else Direction.TWO_SIDED
        alpha = claim.alpha if claim else ALPHA
        found = estimate(differences, span=(-1, 1) if is_share(endpoint) else None, clusters=units)
        bounds, ps = None, None
        if endpoint == SOLVED:
            bounds, ps = self._at_bounds(list(one.values()), [other[task] for task in one], test, direction, clusters)
        why = None
        if not differences:
            why = "no task has a value of this endpoint in each repeat of both arms"
        elif test is ClaimTest.MCNEMAR and not single:
            why = f"the test `mcnemar` is of one trial each, and there are {self._epochs} epochs"
        p = None if why else self._test(test, differences, units, direction)
        return Comparison(
            model=model,
            synthetic=model in self._synthetic,
            first=arms[0],
            second=arms[1],
            endpoint=endpoint,
            test=test,
            direction=direction,
            alpha=alpha,
            claim=claim.id if claim else None,
            planned=len(one),
            compared=len(differences),
            means=_means(pairs),
            estimate=found,
            p=p,
            bounds=bounds,
            ps_at_bounds=ps if p is not None else None,
            detectable=_detectable(found, p, alpha, direction),
            why_open=why,
        )

    def _mean(self, rows: Sequence[Row], endpoint: str) -> Fraction | None:
        """Over a task's repeats, None where one has no value."""
        if endpoint == SOLVED:
            counted = repeated(rows)
            if counted not in self._rates:
                self._rates[counted] = counted.rate
            return self._rates[counted]
        values = [value_of(self._reading.run, row, endpoint) for row in rows]
        known = [value for value in values if value is not None]
        if len(known) != self._epochs:
            return None
        return known[0] if len(known) == 1 else mean(known)

    def _test(
        self, test: ClaimTest, differences: Sequence[Fraction], units: Sequence[object] | None, direction: Direction
    ) -> PValue:
        if test is ClaimTest.MCNEMAR:
            return mcnemar(sum(each > 0 for each in differences), sum(each < 0 for each in differences), direction)
        return sign_flip(differences, direction, clusters=units, seed=self._reading.design.draw.seed)

    def _at_bounds(
        self,
        first: Sequence[Sequence[Row]],
        second: Sequence[Sequence[Row]],
        test: ClaimTest,
        direction: Direction,
        clusters: Sequence[str | int] | None,
    ) -> tuple[tuple[Fraction, Fraction] | None, tuple[float, float] | None]:
        """The bounds, and the p-values there where anything is ungraded."""
        ones, others = [*map(repeated, first)], [*map(repeated, second)]
        bounds = difference_bounds(ones, others)
        if not any(task.ungraded for task in [*ones, *others]) or (test is ClaimTest.MCNEMAR and self._epochs > 1):
            return bounds, None
        pairs = list(zip(ones, others, strict=True))
        ends = {pair: _ends(*pair) for pair in set(pairs)}
        low, high = (self._test(test, [ends[pair][at] for pair in pairs], clusters, direction).p for at in (0, 1))
        return bounds, (low, high)


def clustered(tasks: Iterable[Sequence[Row]]) -> list[str | int] | None:
    """The cluster of each task, one without being its own; None where no task has one."""
    clusters = [rows[0].cluster for rows in tasks]
    if not any(cluster is not None for cluster in clusters):
        return None
    return [at if cluster is None else cluster for at, cluster in enumerate(clusters)]


def repeated(rows: Sequence[Row]) -> Repeated:
    """A task in one arm, counted."""
    grades = [row.grade for row in rows]
    return _counted(len(grades), grades.count(GradeState.PASS.value), grades.count(GradeState.UNGRADED.value))


@cache
def _counted(planned: int, passed: int, ungraded: int) -> Repeated:
    # there are few, and 100,000 tasks may have them
    return Repeated(planned, passed, ungraded)


def _ends(one: Repeated, other: Repeated) -> tuple[Fraction, Fraction]:
    bounds = difference_bounds([one], [other])
    assert bounds is not None
    return bounds


def _means(pairs: Sequence[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction] | None:
    if not pairs:
        return None
    return mean([first for first, _ in pairs]), mean([second for _, second in pairs])


def _detectable(found: Estimate | None, p: PValue | None, alpha: float, direction: Direction) -> float | None:
    if found is None or p is None:
        return None
    if p.test == ClaimTest.MCNEMAR:
        return smallest_by_mcnemar(found.tasks, p.units / found.tasks, alpha, direction)
    return smallest_by_t(found.standard_error, found.units, alpha, direction) if found.standard_error else None
