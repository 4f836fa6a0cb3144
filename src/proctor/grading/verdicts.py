"""All verdict files of one verifier run, read once: what each says, or why it says nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.ctrf import read_ctrf
from proctor.grading.files import MAX_REPORT_BYTES, Absent, Content, NotAFile, TooLarge, VerdictFile, VerdictFiles
from proctor.grading.junit import read_junit
from proctor.grading.reports import Report
from proctor.grading.rewards import Rewards, read_rewards

ReportRead = Report | Refusal


@dataclass(frozen=True)
class Verdicts:
    """What the files say; a `Refusal` is why one says nothing (`report_missing` where there is none)."""

    rewards: Rewards | Refusal
    ctrf: ReportRead
    junit: ReportRead

    @property
    def reports(self) -> tuple[Report, ...]:
        """The reports that could be read, CTRF first."""
        return tuple(read for read in (self.ctrf, self.junit) if isinstance(read, Report))

    @property
    def damaged(self) -> tuple[Refusal, ...]:
        """Why reports that are there could not be read."""
        return tuple(
            read
            for read in (self.ctrf, self.junit)
            if isinstance(read, Refusal) and read.reason is not Reason.REPORT_MISSING
        )


def read_verdicts(files: VerdictFiles) -> Verdicts:
    """Read all four files; never raises for their content. Takes seconds for a report of tens of megabytes."""
    try:
        rewards: Rewards | Refusal = read_rewards(files.reward_txt, files.reward_json)
    except Refusal as refusal:
        rewards = refusal
    return Verdicts(
        rewards=rewards,
        ctrf=_report(files.ctrf, read_ctrf, "the CTRF report"),
        junit=_report(files.junit, read_junit, "the JUnit report"),
    )


def _report(file: VerdictFile, read: Callable[[bytes], Report], what: str) -> ReportRead:
    match file:
        case Absent():
            return Refusal(Reason.REPORT_MISSING, f"{what} is absent")
        case TooLarge(size=size):
            return Refusal(
                Reason.REPORT_UNREADABLE,
                f"{what} has {size} bytes",
                observed={"bytes": size},
                required={"bytes": MAX_REPORT_BYTES},
            )
        case NotAFile(kind=kind):
            return Refusal(Reason.REPORT_UNREADABLE, f"{what} is not a regular file", observed=kind)
        case Content(data=data):
            try:
                return read(data)
            except Refusal as refusal:
                return refusal
