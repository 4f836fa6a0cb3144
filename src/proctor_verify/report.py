"""What a verification says: one result for each check, and the exit status that follows from all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from textwrap import wrap
from typing import Any, Protocol

from proctor_verify.scope import Scope
from proctor_verify.tables import Group, table

SHOWN_FINDINGS = 5
SHOWN_CHARS = 240
WIDTH = 80
# Of what a run is held against, nothing else is a fault of its own when this one is another than was admitted.
_CAUSE = "design.digest"
EXPLAIN = "what a check asks: `proctor explain CHECK`, or `proctor verify --checks`"
OPEN = (
    "the run is open: its last entry is {last}. It goes on, or its process died (`proctor status RUN` says which), or "
    "its end was cut off. Verify it when it ended; one that died, after `proctor resume RUN`"
)
# What checks are about, in the order of a report: each by its id, or by how that starts.
_GROUPS = (
    ("journal", ("journal.", "run.")),
    ("checkpoints, and who signed them", ("checkpoints.", "key.", "since.")),
    ("anchors", ("anchors.",)),
    ("admission and design", ("manifests.", "design.", "synthetic.", "blocks.", "trials.")),
    ("attempts", ("attempts.", "agents.", "worlds.", "flight.")),
    ("exchanges and money", ("exchanges.", "costs.", "budget.", "ceiling.")),
    ("grades and totals", ("grades.", "answers.", "rows.", "finals.", "totals.", "status.")),
    ("files", ("packs.", "blobs.", "files.", "withheld.", "summary.")),
    ("receipts, proofs and attestations", ("receipt.", "proof.", "attestation.")),
)


class Status(Enum):
    """How a check came out."""

    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "not applicable"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not hold: where (a path inside the run, lines of the journal from 1), and what was seen."""

    path: str
    seen: str


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report. `findings` are the first few of `count`."""

    check: str
    status: Status
    seen: str
    count: int = 0
    findings: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The same, as JSON values."""
        return {
            "check": self.check,
            "count": self.count,
            "findings": [{"path": finding.path, "seen": finding.seen} for finding in self.findings],
            "seen": self.seen,
            "status": self.status.value,
        }


@dataclass(frozen=True)
class Report:
    """A whole verification.

    `unreadable` says why nothing could be checked, else it is None. `shown` is what follows where everything holds,
    `caveats` are what this evidence cannot prove even then. `strict` is whether a trust root was given. `synthetic`
    are the models that are made up: nothing that the run says of them is a result. `scope` is how much of its stage
    the run is of, None where no design says; `open_at` is the kind of the last entry of a run that did not end;
    `groups` are the grades as the journal adds up to them.
    """

    results: tuple[Result, ...]
    unreadable: str | None = None
    caveats: tuple[str, ...] = ()
    strict: bool = False
    run_id: str | None = None
    entries: int = 0
    synthetic: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    scope: Scope | None = None
    open_at: str | None = None
    groups: tuple[Group, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """What stands beside the verdict: what must not be taken for a whole, or for real."""
        return marks_of(self.scope, self.synthetic)

    @property
    def exit_status(self) -> int:
        """0 all hold, 1 something fails or cannot be told, 2 could not read.

        Only the missing trust root is let off with a warning: no run can supply that itself.
        """
        return 2 if self.unreadable is not None else exit_of(self.results, self.lenient)

    @property
    def lenient(self) -> str | None:
        """The check that may be without an answer."""
        return None if self.strict else "key.trust"

    def failed(self) -> list[str]:
        """The ids of the checks that fail."""
        return failed_of(self.results)

    def to_json(self) -> dict[str, Any]:
        """The same, as JSON values; equal for equal evidence, wherever the folder stands."""
        holds = self.exit_status == 0
        return {
            "caveats": list(self.caveats),
            "checks": [result.to_json() for result in self.results],
            "entries": self.entries,
            "exit_status": self.exit_status,
            "grades": [group.to_json() for group in self.groups] if holds else [],
            "marks": list(self.marks),
            "run_id": self.run_id,
            "scope": None if self.scope is None else self.scope.to_json(),
            "shown": list(self.shown) if holds else [],
            "synthetic": list(self.synthetic),
            "unreadable": self.unreadable,
        }


def exit_of(results: Sequence[Result], lenient: str | None) -> int:
    """0 all hold, 1 something fails or cannot be told; the check `lenient` may be without an answer."""
    for result in results:
        if result.status is Status.FAIL or (result.status is Status.CANNOT_TELL and result.check != lenient):
            return 1
    return 0


def failed_of(results: Sequence[Result]) -> list[str]:
    """The ids of the checks that fail."""
    return [result.check for result in results if result.status is Status.FAIL]


def plain(text: object) -> str:
    """Text that is safe on a terminal and in any encoding, cut to a readable length."""
    shown = str(text)
    if len(shown) > SHOWN_CHARS:
        shown = shown[: SHOWN_CHARS - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in shown)


class _Said(Protocol):
    def to_json(self) -> dict[str, Any]: ...


def render_json(report: _Said) -> str:
    """Sorted and deterministic."""
    return json.dumps(report.to_json(), sort_keys=True, indent=2, ensure_ascii=True)


def render_text(report: Report) -> str:
    """By what checks are about, one line each with its findings below; what is shown, what is not, the summary last."""
    if report.unreadable is not None:
        return f"could not read: {report.unreadable}"
    lines: list[str] = []
    if report.synthetic:
        lines += [f"SYNTHETIC: {', '.join(map(plain, report.synthetic))}: made up by rules, no model was called", ""]
    room = max((len(result.check) for result in report.results), default=0)
    for group, results in _grouped(report.results):
        lines.append(group)
        for result in results:
            lines += result_lines(result, room)
        lines.append("")
    if report.exit_status == 0:
        lines += ["grades, as the journal adds up", *table(report.groups), ""] if report.groups else []
        lines += listed("what this evidence shows", report.shown)
    lines += listed("what it cannot show", report.caveats)
    return "\n".join([*lines, *_summary(report)])


def _grouped(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    groups: dict[str, list[Result]] = {title: [] for title, _ in _GROUPS}
    for result in results:
        groups.setdefault(_about(result.check), []).append(result)
    return ((title, found) for title, found in groups.items() if found)


def _about(check: str) -> str:
    return next((title for title, starts in _GROUPS if check.startswith(starts)), "other")


def result_lines(result: Result, room: int) -> Iterator[str]:
    """A result and its findings, the check's name in `room` columns."""
    start = f"  {_mark(result.status):<14} {result.check:<{room}} "
    yield from wrapped(start, result.seen, " " * len(start))
    for finding in result.findings:
        yield from wrapped(" " * 17, f"{finding.path}: {finding.seen}", " " * 19)
    if result.count > len(result.findings) > 0:
        yield f"{'':<17}and {result.count - len(result.findings):,} more"


def listed(title: str, sentences: Sequence[str]) -> list[str]:
    """Sentences below a title, a blank line after them; nothing where there are none."""
    lines = [line for sentence in sentences for line in wrapped("  - ", sentence, "    ")]
    return [title, *lines, ""] if lines else []


def wrapped(start: str, text: str, below: str) -> list[str]:
    """Text in lines of a readable width; a line may end at white space alone."""
    lines = wrap(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=below,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [start.rstrip()]


def checks_json(checks: Sequence[tuple[str, str]]) -> str:
    """The same table for programs: id, what it is about, and what it means."""
    rows = [{"check": check, "about": _about(check), "holds_when": doc} for check, doc in checks]
    return json.dumps(rows, indent=2, ensure_ascii=True)


def render_checks(checks: Sequence[tuple[str, str]]) -> str:
    """The table of checks: id and what it means, as Markdown."""
    rows = [f"| `{check}` | {doc} |" for check, doc in checks]
    return "\n".join(["| check | holds when |", "|---|---|", *rows])


def _mark(status: Status) -> str:
    word: str = status.value
    return word.upper() if status is Status.FAIL else word


def marks_of(scope: Scope | None, synthetic: Sequence[str]) -> tuple[str, ...]:
    """What stands beside a verdict."""
    return (*(scope.marks if scope is not None else ()), *(("SYNTHETIC",) if synthetic else ()))


def verdict(holds: bool, marks: Sequence[str], results: Sequence[Result]) -> str:
    """The words of the last line. Where all holds, only whose key it is can be left without an answer."""
    words = ["VERIFIED" if holds else "NOT VERIFIED", *marks]
    if holds and any(result.status is Status.CANNOT_TELL for result in results):
        words.append("but not who signed")
    return ", ".join(words)


def ending(results: Sequence[Result], lenient: str | None) -> list[str]:
    """What keeps all from holding: the checks that fail, then those without an answer, by why they have none."""
    failed = failed_of(results)
    lines = wrapped("", f"does not hold: {', '.join(failed)}", "  ") if failed else []
    doubts: dict[str, list[str]] = {}
    for result in results:
        if result.status is Status.CANNOT_TELL and result.check != lenient:
            doubts.setdefault(result.seen, []).append(result.check)
    for why, checks in doubts.items():
        more = f" and {len(checks) - SHOWN_FINDINGS:,} more" if len(checks) > SHOWN_FINDINGS else ""
        lines += wrapped("", f"cannot be told: {', '.join(checks[:SHOWN_FINDINGS])}{more}: {why}", "  ")
    if _CAUSE in failed and len(failed) > 1:
        lines += wrapped("", f"first of all: {_CAUSE}; what else does not hold may follow from that", "  ")
    return [*lines, EXPLAIN] if lines else []


def _summary(report: Report) -> list[str]:
    count = {status: sum(result.status is status for result in report.results) for status in Status}
    counts = ", ".join(f"{count[status]} {status.value}" for status in Status if count[status])
    run, found = f"run {plain(report.run_id or 'unknown')}", f"{report.entries:,} entries; checks: {counts}"
    why = ending(report.results, report.lenient)
    if report.open_at is not None:
        why += wrapped("", OPEN.format(last=plain(report.open_at)), "  ")
    word = verdict(report.exit_status == 0, report.marks, report.results)
    last = f"{word}: {run}"
    return [found, *why, last] if len(last) <= WIDTH else [f"{run}, {found}", *why, word]
