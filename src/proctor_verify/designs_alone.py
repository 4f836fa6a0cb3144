"""A frozen design by itself, without a run: held to every rule that needs nothing else, and named by its digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from os import PathLike
from typing import Any

from proctor_verify.checks import DESIGN_RULES
from proctor_verify.checks.design import Plan
from proctor_verify.design import MAX_BYTES, MAX_TRIALS, Design
from proctor_verify.errors import Unreadable
from proctor_verify.outside import small_file
from proctor_verify.prices import usd
from proctor_verify.report import Report, Status, plain

WHEN = "when: nothing here shows since when this design stands; compare its digest with one noted before the run"


@dataclass(frozen=True)
class DesignReport:
    """What is said of a design: `report` as of a run, and what it is, as far as it can be read.

    `sha256` is its identity, None where the file could not be read; `ceiling` is money, None without a budget.
    """

    report: Report
    sha256: str | None = None
    name: str | None = None
    trials: int | None = None
    blocks: int | None = None
    ceiling: str | None = None

    @property
    def exit_status(self) -> int:
        """0 all hold, 1 something fails, 2 could not read."""
        return self.report.exit_status

    def to_json(self) -> dict[str, Any]:
        """The same, as JSON values; equal for equal bytes."""
        said = self.report.to_json()
        return {
            **{key: said[key] for key in ("caveats", "checks", "exit_status", "synthetic", "unreadable")},
            "design": {
                "blocks": self.blocks,
                "ceiling": self.ceiling,
                "name": self.name,
                "sha256": self.sha256,
                "trials": self.trials,
            },
        }


def verify_design(path: str | PathLike[str]) -> DesignReport:
    """Check a frozen design alone. What cannot be read as one is a finding, never an exception.

    Args:
        path: a file that holds the bytes of a `design.json`, whatever it is called.
    """
    try:
        raw = small_file(path, MAX_BYTES)
    except Unreadable as error:
        return DesignReport(Report((), unreadable=f"{plain(path)}: {error}"))
    return judged(raw)


def judged(raw: bytes) -> DesignReport:
    """The same of bytes that are there."""
    design, fault = _design(raw)
    plan = Plan()
    plan.judge(design, fault)
    results = [plan.result()]
    for make in DESIGN_RULES:
        rule = make()
        if design is None:
            rule.cannot_tell(f"there is no design to go by: {fault}")
        else:
            rule.judge(design)
        results.append(rule.result())
    digest = hashlib.sha256(raw).hexdigest()
    if design is None:
        return DesignReport(Report(tuple(results), caveats=(WHEN,)), digest)
    budget = design.parts.budget
    return DesignReport(
        Report(tuple(results), caveats=(WHEN,), synthetic=design.parts.synthetic),
        digest,
        f"{design.study}/{design.stage}",
        design.trials,
        design.blocks,
        usd(budget.ceiling) if budget is not None else None,
    )


def render_design_text(found: DesignReport) -> str:
    """What the design is, one line a check with its findings below, the verdict last."""
    report = found.report
    if report.unreadable is not None:
        return f"could not read: {report.unreadable}"
    lines = [f"design {found.sha256}"]
    if found.trials is not None:
        ceiling = f"at most {found.ceiling} dollars" if found.ceiling is not None else "no budget"
        lines.append(f"{plain(found.name)}: trials {found.trials:,}, blocks {found.blocks:,}; {ceiling}")
    if report.synthetic:
        lines.append(f"SYNTHETIC: {plain(', '.join(report.synthetic))}: made up by rules, no model is called")
    lines.append("")
    for result in report.results:
        word = result.status.value.upper() if result.status is Status.FAIL else result.status.value
        lines.append(f"{word:<14} {result.check:<29} {result.seen}".rstrip())
        lines.extend(f"{'':<15}{finding.seen}" for finding in result.findings)
        if result.count > len(result.findings):
            lines.append(f"{'':<15}and {result.count - len(result.findings):,} more")
    failed = report.failed()
    holds = "HOLDS" if report.exit_status == 0 else f"DOES NOT HOLD ({', '.join(failed)})"
    return "\n".join([*lines, "", *(f"not proven: {caveat}" for caveat in report.caveats), f"{holds}: a design alone"])


def _design(raw: bytes) -> tuple[Design | None, str | None]:
    try:
        design = Design.of(raw)
        if design.trials > MAX_TRIALS:
            raise Unreadable(f"{design.trials:,} trials are planned, more than {MAX_TRIALS:,}")
    except Unreadable as error:
        return None, str(error)
    return design, None
