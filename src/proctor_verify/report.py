"""What a verification says: one result for each check, and the exit status that follows from all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

SHOWN_FINDINGS = 5
SHOWN_CHARS = 240


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


@dataclass(frozen=True)
class Report:
    """A whole verification.

    `unreadable` says why nothing could be checked, else it is None. `caveats` are what this evidence cannot prove
    even where everything holds. `strict` is whether a trust root was given. `synthetic` are the models that are made
    up: nothing that the run says of them is a result.
    """

    results: tuple[Result, ...]
    unreadable: str | None = None
    caveats: tuple[str, ...] = ()
    strict: bool = False
    run_id: str | None = None
    entries: int = 0
    synthetic: tuple[str, ...] = ()

    @property
    def exit_status(self) -> int:
        """0 all hold, 1 something fails or cannot be told, 2 could not read.

        Only the missing trust root is let off with a warning: no run can supply that itself.
        """
        if self.unreadable is not None:
            return 2
        for result in self.results:
            if result.status is Status.FAIL:
                return 1
            if result.status is Status.CANNOT_TELL and (self.strict or result.check != "key.trust"):
                return 1
        return 0

    def failed(self) -> list[str]:
        """The ids of the checks that fail."""
        return [result.check for result in self.results if result.status is Status.FAIL]

    def to_json(self) -> dict[str, Any]:
        """The same, as JSON values; equal for equal evidence, wherever the folder stands."""
        return {
            "caveats": list(self.caveats),
            "checks": [
                {
                    "check": result.check,
                    "count": result.count,
                    "findings": [{"path": finding.path, "seen": finding.seen} for finding in result.findings],
                    "seen": result.seen,
                    "status": result.status.value,
                }
                for result in self.results
            ],
            "entries": self.entries,
            "exit_status": self.exit_status,
            "run_id": self.run_id,
            "synthetic": list(self.synthetic),
            "unreadable": self.unreadable,
        }


def plain(text: object) -> str:
    """Text that is safe on a terminal and in any encoding, cut to a readable length."""
    shown = str(text)
    if len(shown) > SHOWN_CHARS:
        shown = shown[: SHOWN_CHARS - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in shown)


def render_json(report: Report) -> str:
    """Sorted and deterministic."""
    return json.dumps(report.to_json(), sort_keys=True, indent=2, ensure_ascii=True)


def render_text(report: Report) -> str:
    """One line a check, findings below their check, the summary last."""
    if report.unreadable is not None:
        return f"could not read: {report.unreadable}"
    lines: list[str] = []
    if report.synthetic:
        lines += [f"SYNTHETIC: {', '.join(map(plain, report.synthetic))}: made up by rules, no model was called", ""]
    for result in report.results:
        lines.append(f"{_mark(result.status):<14} {result.check:<22} {result.seen}".rstrip())
        lines.extend(f"{'':<15}{finding.path}: {finding.seen}" for finding in result.findings)
        more = result.count - len(result.findings)
        if more > 0:
            lines.append(f"{'':<15}and {more:,} more")
    lines.append("")
    lines.extend(f"not proven: {caveat}" for caveat in report.caveats)
    lines.append(_summary(report))
    return "\n".join(lines)


def render_checks(checks: Sequence[tuple[str, str]]) -> str:
    """The table of checks: id and what it means, as Markdown."""
    rows = [f"| `{check}` | {doc} |" for check, doc in checks]
    return "\n".join(["| check | holds when |", "|---|---|", *rows])


def _mark(status: Status) -> str:
    word: str = status.value
    return word.upper() if status is Status.FAIL else word


def _summary(report: Report) -> str:
    count = {status: sum(result.status is status for result in report.results) for status in Status}
    parts = [f"{count[status]} {status.value}" for status in Status if count[status]]
    word = "VERIFIED" if report.exit_status == 0 else "NOT VERIFIED"
    failed = report.failed()
    why = f" ({', '.join(failed)})" if failed else ""
    word += ", SYNTHETIC" if report.synthetic else ""
    return f"{word}: run {plain(report.run_id or 'unknown')}, {report.entries:,} entries; {', '.join(parts)}{why}"
