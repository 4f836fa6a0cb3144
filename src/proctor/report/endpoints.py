"""What a hypothesis compares, as a number of each trial."""

from __future__ import annotations

from fractions import Fraction

from proctor.core.outcomes import GradeState
from proctor.evidence.runfolder import RunFolder
from proctor.grading.reports import Status
from proctor.report.reading import Row
from proctor.report.testfile import tests_of

SOLVED = "solved"
_SHARES = (SOLVED, "test")
_FORMS = ("ctrf", "junit")
_YES, _NO = Fraction(1), Fraction(0)
_TEST_VALUES = {Status.PASSED: _YES, Status.FAILED: _NO, Status.ERROR: _NO}


def is_share(endpoint: str) -> bool:
    """Whether its values lie between 0 and 1."""
    return endpoint.partition(":")[0] in _SHARES


def value_of(run: RunFolder, row: Row, endpoint: str) -> Fraction | None:
    """The trial's value, exact; None where it has none: ungraded, not reported, or not run.

    Costs (dollars) and tokens are of all attempts, and there as soon as the trial has its final.

    Raises:
        Refusal: `evidence_unreadable`, `evidence_damaged` for files of tests.
    """
    kind, _, name = endpoint.partition(":")
    if kind in ("cost", "tokens"):
        return _spent(row, kind)
    if row.grade == GradeState.UNGRADED.value:
        return None
    if kind == SOLVED:
        return _YES if row.grade == GradeState.PASS.value else _NO
    if kind == "test":
        return _test(run, row, name)
    reward = row.reward if not name else (row.tries.rewards or {}).get(name)
    # a double's shortest text is what the journal holds
    return None if reward is None else Fraction(repr(reward))


def _spent(row: Row, kind: str) -> Fraction | None:
    if not row.final or not row.tries.attempts:
        return None
    spent = row.tries.spent
    if spent is None:
        return Fraction(0)
    return spent.cost.fraction() if kind == "cost" else Fraction(sum(spent.tokens.values()))


def _test(run: RunFolder, row: Row, name: str) -> Fraction | None:
    """1 where every row of that identity passed, 0 where one failed; None where it was skipped or is not told."""
    record = None if row.tries.folder is None else tests_of(run, row.tries.folder)
    own = next((test for test in record["tests"] if test["name"] == name), None) if record else None
    if record is None or own is None:
        return None
    told = [form for form in _FORMS if isinstance(own[form], list) and not record["reports"][form]["coarse"]]
    found = [_TEST_VALUES.get(each["status"]) for form in told for each in own[form]]
    known = [value for value in found if value is not None]
    return min(known) if known and len(known) == len(found) else None
