"""Comparisons of arms: decisions of what was preregistered, what the ungraded could change, and other endpoints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.evidence.fold import RunState
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.spent import Spent
from proctor.report.claims import claims_record
from proctor.report.compared import finds_text
from proctor.report.comparing import Comparison, Decision, comparisons
from proctor.report.reading import Reading, Row, Tries, read_run
from proctor.study import Design, plan
from proctor.study.design import HypothesisDesign, Selection
from run_parts import Story, Try, design, make_run

CLAIM = HypothesisDesign("H1", "solved", ("skilled", "plain"), "mcnemar", "greater", 0.05)
P, F, U = "pass", "fail", "ungraded"


def reading(
    frozen: Design, skilled: Sequence[str], plain: Sequence[str], *, finals: int | None = None, costs: bool = False
) -> Reading:
    """A run of tasks t0, t1 …, with the grades of each, repeats after each other."""
    drawn = plan(frozen)
    epochs, tasks = frozen.stage.epochs, [task.name for task in frozen.tasks]
    grades = {"skilled": skilled, "plain": plain}
    rows = []
    for trial in drawn.trials():
        grade = grades[trial.arm][tasks.index(trial.task) * epochs + trial.epoch - 1]
        cost = (3 if trial.arm == "skilled" else 1) * 10**10 * (1 + tasks.index(trial.task))
        spent = Spent(cost, 1, 0, 0, {"input": cost // 10**9}) if costs else None
        rows.append(Row(trial, grade, None, 1.0 if grade == P else 0.0, True, Tries(1, spent=spent)))
    state = RunState()
    state.grades.update(pass_=len(rows) if finals is None else finals)
    return Reading(RunFolder(Path("nowhere")), frozen, state, tuple(rows))


def claimed(frozen: Design, *claims: HypothesisDesign) -> Design:
    return replace(frozen, hypotheses=claims or (CLAIM,))


def tasks(count: int) -> list[str]:
    return [f"t{number:02}" for number in range(count)]


def first(found: Reading) -> Comparison:
    return comparisons(found)[0]


def test_a_claim_that_holds_whatever_the_ungraded_are() -> None:
    own = first(reading(claimed(design(tasks(12))), [P] * 10 + [U, P], [F] * 11 + [P]))
    assert own.decision is Decision.SUPPORTED and own.stands_at_bounds is True
    assert (own.planned, own.compared) == (12, 11)
    assert own.p is not None and own.p.p == pytest.approx(2**-10) and own.adjusted == own.p.p


def test_a_claim_that_the_ungraded_could_change() -> None:
    own = first(reading(claimed(design(tasks(8))), [P] * 6 + [U, U], [F] * 8))
    assert own.decision is Decision.SUPPORTED and own.p is not None and own.p.p == pytest.approx(2**-6)
    assert own.stands_at_bounds is True, "ungraded tasks that the other arm failed can only help"
    own = first(reading(claimed(design(tasks(8))), [P] * 6 + [U, U], [F] * 6 + [P, P]))
    # both could have been lost: 6 of 8 disagreements are no proof
    assert own.decision is Decision.SUPPORTED and own.stands_at_bounds is False
    assert own.bounds is not None and [float(end) for end in own.bounds] == [0.5, 0.75]


def test_two_sides_that_disagree_are_no_agreement() -> None:
    both = replace(CLAIM, direction="two-sided")
    grades = [P] * 10 + [U] * 40, [F] * 10 + [U] * 40
    own = first(reading(claimed(design(tasks(50)), both), *grades))
    assert own.decision is Decision.SUPPORTED and own.ps_at_bounds is not None
    assert max(own.ps_at_bounds) < 0.05, "clear at both bounds, on opposite sides"
    assert own.stands_at_bounds is False


def test_the_wrong_direction_supports_nothing() -> None:
    own = first(reading(claimed(design(tasks(10))), [F] * 10, [P] * 10))
    assert own.decision is Decision.NOT_SUPPORTED and own.p is not None and own.p.p == 1


def test_a_run_that_is_not_complete_decides_nothing() -> None:
    own = first(reading(claimed(design(tasks(10))), [P] * 10, [F] * 10, finals=19))
    assert own.decision is Decision.OPEN and own.why_open is not None and "1 of 20 trials" in own.why_open
    assert own.p is not None


def test_a_selection_of_the_stage_decides_nothing() -> None:
    frozen = replace(claimed(design(tasks(10))), selection=Selection(limit=10))
    own = first(reading(frozen, [P] * 10, [F] * 10))
    assert own.decision is Decision.OPEN and own.why_open is not None and "selection" in own.why_open


def test_mcnemar_of_repeats_is_open_and_shown_as_something_else() -> None:
    own, other = comparisons(reading(claimed(design(tasks(4), epochs=2)), [P] * 8, [F] * 8))
    assert own.decision is Decision.OPEN and own.why_open is not None and "2 epochs" in own.why_open and own.p is None
    assert other.claim is None and other.decision is None and other.p is not None and other.p.test == "sign-flip"


def test_where_nothing_is_graded_nothing_is_compared() -> None:
    own = first(reading(claimed(design(tasks(3))), [U] * 3, [P] * 3))
    assert (own.decision, own.p, own.estimate, own.means) == (Decision.OPEN, None, None, None)
    assert own.bounds is not None and [float(end) for end in own.bounds] == [-1, 0]


def test_holm_counts_every_claim_with_every_model() -> None:
    frozen = claimed(design(tasks(6), models=("m1", "m2")), CLAIM, replace(CLAIM, id="H2", direction="less"))
    found = [each for each in comparisons(reading(frozen, [P] * 6, [F] * 6)) if each.claim]
    assert [(each.claim, each.model) for each in found] == [("H1", "m1"), ("H1", "m2"), ("H2", "m1"), ("H2", "m2")]
    # 2^-6 is below 0.05 alone, and not as the smallest of four
    assert found[0].adjusted == pytest.approx(4 / 64) and found[0].decision is Decision.NOT_SUPPORTED


def test_a_claim_about_an_arm_that_was_not_run_still_counts() -> None:
    frozen = claimed(design(tasks(6)), CLAIM, replace(CLAIM, id="H2", compare=("third", "plain")))
    found = comparisons(reading(frozen, [P] * 6, [F] * 6))
    assert [each.claim for each in found] == ["H1"] and found[0].adjusted == pytest.approx(2 / 64)
    record = claims_record(frozen, found)
    assert [len(each["results"]) for each in record] == [1, 0]


def test_clusters_make_fewer_units() -> None:
    found = reading(design(tasks(6)), [P] * 6, [F] * 3 + [P] * 3)
    rows = tuple(replace(row, cluster=f"c{int(row.trial.task[1:]) // 3}") for row in found.rows)
    (plain,), (own,) = comparisons(found), comparisons(replace(found, rows=rows))
    assert plain.test == "mcnemar" and own.test == "sign-flip"
    assert own.estimate is not None and (own.estimate.units, own.estimate.clustered) == (2, True)
    assert own.p is not None and own.p.units == 1


@pytest.mark.parametrize(("apart", "said"), [(1.5, "nothing"), (1.0, "100.0 pp"), (0.25, "25.0 pp")])
def test_no_two_rates_are_further_apart_than_all_and_nothing(apart: float, said: str) -> None:
    own = first(reading(design(tasks(6)), [P] * 6, [F] * 3 + [P] * 3))
    assert finds_text(replace(own, detectable=apart)) == said
    assert finds_text(replace(own, endpoint="reward:off", detectable=apart)) == f"{apart:.4g}"


def test_costs_and_tokens_are_compared_over_all_trials() -> None:
    cost = replace(CLAIM, endpoint="cost", test="sign-flip")
    tokens = replace(CLAIM, id="H2", endpoint="tokens", test="sign-flip", direction="less")
    found = reading(claimed(design(tasks(6), models=("m",)), cost, tokens), [U] * 6, [P] * 6, costs=True)
    dear, many, solved = comparisons(found)
    assert dear.estimate is not None and float(dear.estimate.mean) == pytest.approx(0.02 * 3.5)
    assert dear.p is not None and dear.p.p == pytest.approx(2**-6) and dear.bounds is None
    assert many.estimate is not None and float(many.estimate.mean) == 70 and many.p is not None and many.p.p == 1
    assert solved.claim is None and solved.compared == 0


def test_every_value_of_a_record_is_json() -> None:
    for found in (
        reading(claimed(design(tasks(3))), [P, F, U], [F, F, P]),
        reading(claimed(design(tasks(1), epochs=2)), [U, U], [P, P]),
    ):
        for each in comparisons(found):
            json.dumps(each.as_record(), allow_nan=False)


def ctrf(status: str) -> bytes:
    summary = {"tests": 1, "passed": 0, "failed": 0, "skipped": 0, "pending": 0, "other": 0}
    tests = [{"name": "a::b[1 + 1]", "status": status}]
    return json.dumps({"results": {"tool": {"name": "t"}, "summary": summary, "tests": tests}}).encode()


async def test_a_named_test_is_an_endpoint(tmp_path: Path) -> None:
    claim = replace(CLAIM, endpoint="test:a::b[1 + 1]")
    tries = {("t00", "skilled"): (Try(ctrf=ctrf("passed")),), ("t00", "plain"): (Try(ctrf=ctrf("failed")),)}
    tries |= {("t01", "skilled"): (Try(ctrf=ctrf("skipped")),), ("t01", "plain"): (Try(ctrf=ctrf("passed")),)}
    tries |= {("t02", "skilled"): (Try(),), ("t02", "plain"): (Try(ctrf=ctrf("passed")),)}
    run = await make_run(tmp_path / "run", claimed(design(tasks(3)), claim), Story(tries=tries))
    own = first(read_run(run))
    assert (own.planned, own.compared) == (3, 1), "skipped and not reported are no value"
    assert own.estimate is not None and own.estimate.mean == 1 and own.bounds is None
