"""A run re-checked by the second program, in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.runner.verifying import report_of, second_program


@dataclass(frozen=True)
class Finding:
    """One thing that does not hold: the check's id, where (a path inside the run, with a line), and what was seen."""

    check: str
    path: str
    seen: str


@dataclass(frozen=True)
class Verification:
    """What the second program says. `findings` is empty where everything holds; of many it has the first of each check.

    `checks` has how each check came out (pass, fail, not applicable, cannot tell). `unreadable` says why nothing could
    be checked, None else. `shown` is what this evidence shows where everything holds, in sentences, and `caveats` are
    what it cannot show even then. `synthetic` names the models that are made up.
    """

    exit_status: int
    run_id: str | None
    checks: dict[str, str]
    findings: tuple[Finding, ...]
    shown: tuple[str, ...]
    caveats: tuple[str, ...]
    synthetic: tuple[str, ...]
    unreadable: str | None

    @property
    def ok(self) -> bool:
        """Whether everything that was asked for holds."""
        return self.exit_status == 0


def verify(
    run: Path,
    key: str | None,
    deadline_sec: float,
    *,
    anchors: Sequence[str] = (),
    since: str | None = None,
    witnesses: Sequence[str] = (),
) -> Verification:
    """Start the second program, and read its report.

    Raises:
        TimeoutError: it did not come to an end by the deadline.
        RuntimeError: it ended without a report.
    """
    command = second_program(run, key, as_json=True, anchors=anchors, since=since, witnesses=witnesses)
    status, report = report_of(command, deadline_sec)
    failed = [check for check in report["checks"] if check["status"] == "fail"]
    return Verification(
        exit_status=status,
        run_id=report["run_id"],
        checks={check["check"]: check["status"] for check in report["checks"]},
        findings=tuple(
            Finding(check["check"], found["path"], found["seen"])
            for check in failed
            for found in check["findings"] or [{"path": "", "seen": check["seen"]}]
        ),
        shown=tuple(report["shown"]),
        caveats=tuple(report["caveats"]),
        synthetic=tuple(report["synthetic"]),
        unreadable=report["unreadable"],
    )
