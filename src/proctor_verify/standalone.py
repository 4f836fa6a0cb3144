"""Files that stand alone, without a run: what a check of one is, and the report over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from proctor_verify.errors import Unreadable
from proctor_verify.report import (
    WIDTH,
    Finding,
    Result,
    Status,
    ending,
    exit_of,
    failed_of,
    listed,
    plain,
    result_lines,
    verdict,
    wrapped,
)

MAX_BYTES = 1_048_576
T = TypeVar("T")


class Verdict(NamedTuple):
    """What a check came to: `where` is the part of the file that a fault lies in."""

    status: Status
    seen: str
    where: str = ""


@dataclass(frozen=True)
class FileCheck(Generic[T]):
    """One rule with a stable id. Without a `look` it is the rule of the file's form, which its reader holds."""

    id: str
    doc: str
    look: Callable[[T], Verdict] | None = None


@dataclass(frozen=True)
class FileReport:
    """A verification of one file.

    `facts` are what the file says, for a person to read; `shown` is what follows where all holds, `caveats` what it
    cannot show even then. `lenient` is the check that may be without an answer: nobody said whose key it should be.
    `marks` stand beside the verdict, and so does what the file was held against (`held`).
    """

    kind: str
    results: tuple[Result, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    lenient: str | None = None
    unreadable: str | None = None
    marks: tuple[str, ...] = ()
    held: str | None = None

    @property
    def exit_status(self) -> int:
        """0 all hold, 1 something fails or cannot be told, 2 could not read."""
        return 2 if self.unreadable is not None else exit_of(self.results, self.lenient)

    def failed(self) -> list[str]:
        """The ids of the checks that fail."""
        return failed_of(self.results)

    def to_json(self) -> dict[str, Any]:
        """The same, as JSON values."""
        return {
            "kind": self.kind,
            "checks": [result.to_json() for result in self.results],
            "marks": list(self.marks),
            "facts": {name: plain(text) for name, text in self.facts.items()},
            "shown": list(map(plain, self.shown)) if self.exit_status == 0 else [],
            "caveats": list(map(plain, self.caveats)),
            "exit_status": self.exit_status,
            "unreadable": self.unreadable,
        }


def judge(checks: Sequence[FileCheck[T]], subject: T | None, fault: str) -> tuple[Result, ...]:
    """A result for each check: of what was read, or, where that could not be, of why not."""
    return tuple(_result(check, _look(check, subject, fault)) for check in checks)


def _look(check: FileCheck[T], subject: T | None, fault: str) -> Verdict:
    if check.look is None:
        return Verdict(Status.PASS, "as the format has it") if subject is not None else failed(fault, "file")
    if subject is None:
        return Verdict(Status.CANNOT_TELL, "the file cannot be read as one")
    try:
        return check.look(subject)
    except Unreadable as error:
        return cannot_tell(str(error))


def _result(check: FileCheck[T], verdict: Verdict) -> Result:
    if verdict.status is not Status.FAIL:
        return Result(check.id, verdict.status, plain(verdict.seen))
    return Result(check.id, Status.FAIL, "1 finding", 1, (Finding(plain(verdict.where), plain(verdict.seen)),))


def holds(results: Sequence[Result], check: str) -> bool:
    """Whether a check passed."""
    return any(result.check == check and result.status is Status.PASS for result in results)


def passed(seen: str) -> Verdict:
    """It holds."""
    return Verdict(Status.PASS, seen)


def failed(seen: str, where: str) -> Verdict:
    """It does not hold, there."""
    return Verdict(Status.FAIL, seen, where)


def not_applicable(why: str) -> Verdict:
    """There is nothing of its kind."""
    return Verdict(Status.NOT_APPLICABLE, why)


def cannot_tell(why: str) -> Verdict:
    """Something that it needs is not there."""
    return Verdict(Status.CANNOT_TELL, why)


def render_text(report: FileReport) -> str:
    """What the file says, one line a check, findings below their check; what it shows, what it cannot, and the end."""
    if report.unreadable is not None:
        return f"could not read: {report.unreadable}"
    lines = [line for name, text in report.facts.items() for line in wrapped(f"{name:<11}", plain(text), " " * 11)]
    lines += [""] if lines else []
    room = max((len(result.check) for result in report.results), default=0)
    lines += [line for result in report.results for line in result_lines(result, room)]
    lines.append("")
    if report.exit_status == 0:
        lines += listed("what this file shows", list(map(plain, report.shown)))
    lines += listed("what it cannot show", list(map(plain, report.caveats)))
    lines += ending(report.results, report.lenient)
    word = verdict(report.exit_status == 0, report.marks, report.results)
    what = report.kind + (f", {report.held}" if report.held is not None else "")
    last = f"{word}: {what}"
    return "\n".join([*lines, *([last] if len(last) <= WIDTH else [what, word])])
