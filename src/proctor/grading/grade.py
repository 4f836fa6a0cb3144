"""One attempt's grade: pass, fail or ungraded, decided from the verdict files and from how the verifier ended.

The order of the questions is the rule. (1) A verifier that never ran, ran out of time or was ended by a signal did
not finish: ungraded, and a reward that it wrote by then is recorded, not believed, because test scripts write a
first value and correct it later. (2) The reward must be there and be readable. An exit status is a fact beside the
grade: scripts that write a reward exit with anything, and only where there is no reward does 124, 137 or 143 say
why. (3) Reports that agree that no test ran (none, or all skipped) leave nothing to grade, whatever the reward: a
crashed test runner writes 0, and one that collected nothing may write 1. (4) A reward below the threshold beside a
report that breaks off is a test runner that died: ungraded. A reward that counts as solved stands, with the broken
report disclosed. (5) Everything else is graded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.join import conflicts
from proctor.grading.reports import CaseCounts, Report, Verdict
from proctor.grading.rewards import Number, Rewards
from proctor.grading.solved import DuplicateTests, RewardRule, SolvedRule
from proctor.grading.verdicts import Verdicts

_TIMEOUT_STATUS = 124
_KILL_STATUSES = frozenset({137, 143})
_NOT_RUN_STATUSES = frozenset({126, 127})
_DETAIL_CHARS = 300


class Assurance(StrEnum):
    """Where the verifier ran."""

    ISOLATED = "isolated"
    """A fresh sandbox, which the agent never touched."""
    SHARED = "shared"
    """The agent's sandbox, everything that the agent started being dead."""
    LIVE = "live"
    """The agent's sandbox, with the process that is the task's deliverable running."""


@dataclass(frozen=True)
class VerifierOutcome:
    """How the verifier ended: one of `exit_code` and `signal`, unless `start_error` says that it never ran."""

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    start_error: str | None = None


@dataclass(frozen=True)
class Grade:
    """A grade.

    Args:
        state: pass, fail or ungraded.
        reason: why, where it is not pass.
        reward: the number that the rule looks at, where there is one.
        rewards: every named number that was read, believed or not.
        assurance: where the verifier ran; None where it did not.
        tests: tests by identity, of the finer of the reports that could be read.
        disclosures: what a reader of the grade must know, one sentence each.
    """

    state: GradeState
    reason: Reason | None = None
    reward: Number | None = None
    rewards: Mapping[str, Number] = field(default_factory=lambda: MappingProxyType({}))
    assurance: Assurance | None = None
    tests: CaseCounts | None = None
    disclosures: tuple[str, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """The grade as it stands in a journal entry: under 40,000 bytes, integers as integers, doubles as doubles."""
        return {
            "state": self.state.value,
            "reason": self.reason.id if self.reason else None,
            "reward": self.reward,
            "rewards": dict(self.rewards),
            "assurance": self.assurance.value if self.assurance else None,
            "tests": self.tests.as_record() if self.tests else None,
            "disclosures": list(self.disclosures),
        }


def ungraded(reason: Reason, detail: str) -> Grade:
    """The grade of an attempt that did not get as far as a verifier that ended."""
    return Grade(GradeState.UNGRADED, reason, disclosures=(detail[:_DETAIL_CHARS],))


def grade(
    verdicts: Verdicts,
    outcome: VerifierOutcome,
    *,
    rule: SolvedRule,
    duplicate_tests: DuplicateTests,
    assurance: Assurance,
) -> Grade:
    """Decide; the module says in which order."""
    rewards = verdicts.rewards.values if isinstance(verdicts.rewards, Rewards) else {}
    reports = verdicts.reports
    finest = min(reports, key=lambda report: report.coarse, default=None)
    said = _disclosures(verdicts, outcome)
    if isinstance(rule, RewardRule):
        state, reason, detail = _from_reward(verdicts, outcome, rule)
    else:
        state, reason, detail = _from_tests(verdicts, outcome, duplicate_tests)
    if finest:
        said += _beside(state, finest.counts())
    return Grade(
        state=state,
        reason=reason,
        reward=rewards.get(rule.key) if isinstance(rule, RewardRule) else None,
        rewards=MappingProxyType(dict(rewards)),
        assurance=assurance,
        tests=finest.counts() if finest else None,
        disclosures=(*((detail[:_DETAIL_CHARS],) if detail else ()), *said),
    )


_Decision = tuple[GradeState, Reason | None, str | None]


def _from_reward(verdicts: Verdicts, outcome: VerifierOutcome, rule: RewardRule) -> _Decision:
    if unfinished := _unfinished(outcome):
        return unfinished
    rewards = verdicts.rewards
    if isinstance(rewards, Refusal):
        if rewards.reason is Reason.REWARD_MISSING and (why := _status_reason(outcome)):
            return GradeState.UNGRADED, why, f"no reward, and the verifier's exit status is {outcome.exit_code}"
        return GradeState.UNGRADED, rewards.reason, rewards.message
    if rule.key not in rewards.values:
        return GradeState.UNGRADED, Reason.REWARD_KEY_MISSING, f"the rule is {rule}"
    if no_tests := _no_tests(verdicts.reports):
        return no_tests
    if rule.holds(rewards.values[rule.key]):
        return GradeState.PASS, None, None
    broken = next((read for read in verdicts.damaged if read.reason is Reason.REPORT_UNREADABLE), None)
    if broken and not verdicts.reports:
        return GradeState.UNGRADED, broken.reason, f"{broken.message}, and the reward does not count as solved"
    return GradeState.FAIL, Reason.BELOW_THRESHOLD, None


def _from_tests(verdicts: Verdicts, outcome: VerifierOutcome, duplicate_tests: DuplicateTests) -> _Decision:
    if unfinished := _unfinished(outcome):
        return unfinished
    if verdicts.damaged:
        return GradeState.UNGRADED, verdicts.damaged[0].reason, verdicts.damaged[0].message
    reports = verdicts.reports
    if not reports:
        why = _status_reason(outcome) or Reason.REPORT_MISSING
        return GradeState.UNGRADED, why, f"no report; the verifier's exit status is {outcome.exit_code}"
    if no_tests := _no_tests(reports):
        return no_tests
    duplicates = sum(report.counts().duplicates for report in reports)
    if duplicates and duplicate_tests is DuplicateTests.REFUSE:
        return GradeState.UNGRADED, Reason.DUPLICATE_TESTS, None
    verdict_of = [_all_tests(report) for report in reports]
    if len(set(verdict_of)) > 1 or _conflicts(verdicts):
        return GradeState.UNGRADED, Reason.VERDICTS_DISAGREE, "the CTRF and the JUnit report disagree"
    if verdict_of[0] is Verdict.PASS:
        return GradeState.PASS, None, None
    if verdict_of[0] is Verdict.FAIL:
        return GradeState.FAIL, Reason.TESTS_FAILED, None
    return GradeState.UNGRADED, Reason.REPORT_UNKNOWN, "no test passed or failed: all are of other statuses"


def _unfinished(outcome: VerifierOutcome) -> _Decision | None:
    if outcome.start_error is not None:
        return GradeState.UNGRADED, Reason.VERIFIER_CRASHED, outcome.start_error
    if outcome.timed_out:
        return GradeState.UNGRADED, Reason.VERIFIER_TIMEOUT, None
    if outcome.signal is not None:
        return GradeState.UNGRADED, Reason.VERIFIER_KILLED, f"signal {outcome.signal}"
    return None


def _status_reason(outcome: VerifierOutcome) -> Reason | None:
    if outcome.exit_code == _TIMEOUT_STATUS:
        return Reason.VERIFIER_TIMEOUT
    if outcome.exit_code in _KILL_STATUSES:
        return Reason.VERIFIER_KILLED
    if outcome.exit_code in _NOT_RUN_STATUSES:
        return Reason.VERIFIER_CRASHED
    return None


def _no_tests(reports: tuple[Report, ...]) -> _Decision | None:
    if not reports or any(report.counts().ran for report in reports):
        return None
    skipped = sum(len(report.rows) for report in reports)
    seen = f"all {skipped} rows are skipped" if skipped else "the report has no tests; a collection error looks so too"
    return GradeState.UNGRADED, Reason.NO_TESTS_RAN, seen


def _all_tests(report: Report) -> Verdict:
    """FAIL if any test's last row fails, else PASS if any passes, else OTHER."""
    last = {rows[-1].verdict for rows in report.by_identity().values()}
    return Verdict.FAIL if Verdict.FAIL in last else Verdict.PASS if Verdict.PASS in last else Verdict.OTHER


def _conflicts(verdicts: Verdicts) -> int:
    if isinstance(verdicts.ctrf, Report) and isinstance(verdicts.junit, Report):
        return conflicts(verdicts.ctrf, verdicts.junit)
    return 0


def _beside(state: GradeState, tests: CaseCounts) -> list[str]:
    if state is GradeState.PASS and tests.last_row_fails:
        return [f"the grade is pass, and {tests.last_row_fails} tests fail"]
    if state is GradeState.FAIL and not tests.last_row_fails and not tests.all_other:
        return ["the grade is fail, and no test fails"]
    return []


def _disclosures(verdicts: Verdicts, outcome: VerifierOutcome) -> list[str]:
    said: list[str] = []
    if isinstance(verdicts.rewards, Rewards) and _unfinished(outcome):
        said.append("the reward was written by a verifier that did not finish; it does not count")
    elif isinstance(verdicts.rewards, Rewards) and _status_reason(outcome):
        said.append(f"the verifier's exit status is {outcome.exit_code}; its reward counts")
    said += [f"report not read: {read.message}"[:_DETAIL_CHARS] for read in verdicts.damaged]
    for report in verdicts.reports:
        said += [f"{report.source.value}: {sentence}" for sentence in report.disclosures]
    if disagreeing := _conflicts(verdicts):
        said.append(f"{disagreeing} tests pass in one report and fail in the other")
    return said
