"""A frozen design by itself, without a run: held to every rule that needs nothing else, and named by its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

from proctor_verify.checks import DESIGN_RULES
from proctor_verify.checks import design as of_designs
from proctor_verify.design import MAX_BYTES, MAX_PARTS, MAX_TRIALS, Design
from proctor_verify.errors import Unreadable
from proctor_verify.outside import small_file
from proctor_verify.prices import dollars, usd
from proctor_verify.report import Report, ending, listed, plain, result_lines, wrapped
from proctor_verify.scope import Scope
from proctor_verify.strictjson import loads

_OF_A_DESIGN = frozenset({"arms", "stage", "study", "tasks"})
_SAID = ("caveats", "checks", "exit_status", "marks", "synthetic", "unreadable")
WHEN = "when: nothing here shows since when this design stands; compare its digest with one noted before the run"


class Planned(NamedTuple):
    """What a design plans, to be compared by eye: how many tasks, by which arms and models, how often, which draw.

    `solved` is the rule of its grading, `claims` are its hypotheses, as JSON values.
    """

    tasks: int
    arms: tuple[str, ...]
    models: tuple[str, ...]
    epochs: int
    solved: str
    seed: int
    claims: tuple[Any, ...]

    @classmethod
    def read(cls, design: Design, value: Any) -> Planned:
        """From a design, and from its JSON value what the checks do not need of it."""
        claims = value.get("hypotheses", [])
        return cls(
            len(design.tasks),
            design.arms,
            tuple(name for name in design.models if name is not None),
            design.epochs,
            value["grading"]["solved"],
            design.seed,
            tuple(claims) if type(claims) is list else (),
        )

    def lines(self) -> Iterator[str]:
        """A line for each, and for each claim."""
        for name, said in (
            ("tasks", f"{self.tasks:,}"),
            ("arms", ", ".join(self.arms)),
            ("models", ", ".join(self.models) or "none"),
            ("epochs", f"{self.epochs:,}"),
            ("solved", self.solved),
            ("seed", str(self.seed)),
            *(("claim", json.dumps(claim, sort_keys=True)) for claim in self.claims),
        ):
            yield from wrapped(f"{name:<9}", plain(said), " " * 9)


@dataclass(frozen=True)
class DesignReport:
    """What is said of a design: `report` as of a run, and what it is, as far as it can be read.

    `sha256` is its identity, None where the file could not be read; `ceiling` is money, None without a budget; `plan`
    is what it plans, to be compared by eye.
    """

    report: Report
    sha256: str | None = None
    name: str | None = None
    trials: int | None = None
    blocks: int | None = None
    ceiling: str | None = None
    plan: Planned | None = None

    @property
    def exit_status(self) -> int:
        """0 all hold, 1 something fails, 2 could not read."""
        return self.report.exit_status

    def to_json(self) -> dict[str, Any]:
        """The same, as JSON values; equal for equal bytes."""
        said = self.report.to_json()
        return {
            **{key: said[key] for key in _SAID},
            "design": {
                "blocks": self.blocks,
                "ceiling": self.ceiling,
                "name": self.name,
                "plan": None if self.plan is None else self.plan._asdict(),
                "selection": self.report.scope.to_json()["selection"] if self.report.scope is not None else None,
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
    try:
        value = _value(raw)
    except Unreadable as error:
        return DesignReport(Report((), unreadable=f"this is no design.json: {error}"))
    design, fault = _design(raw)
    plan = of_designs.Plan()
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
    budget, scope = design.parts.budget, Scope(design.selection, design.trials)
    return DesignReport(
        Report(
            tuple(results),
            caveats=(*map(plain, scope.caveats()), WHEN),
            synthetic=design.parts.synthetic,
            scope=scope,
        ),
        digest,
        f"{design.study}/{design.stage}",
        design.trials,
        design.blocks,
        usd(budget.ceiling) if budget is not None else None,
        Planned.read(design, value),
    )


def render_design_text(found: DesignReport) -> str:
    """What the design is, one line a check with its findings below, the verdict last."""
    report = found.report
    if report.unreadable is not None:
        return f"could not read: {report.unreadable}"
    lines = [f"design {found.sha256}"]
    if found.trials is not None and found.plan is not None:
        ceiling = f"at most ${dollars(found.ceiling)}" if found.ceiling is not None else "no budget"
        named = f"{plain(found.name)}: trials {found.trials:,}, blocks {found.blocks:,}; {ceiling}"
        lines += [*wrapped("", named, "  "), *found.plan.lines()]
    if report.synthetic:
        lines.append(f"SYNTHETIC: {plain(', '.join(report.synthetic))}: made up by rules, no model is called")
    lines.append("")
    room = max(len(result.check) for result in report.results)
    lines += [line for result in report.results for line in result_lines(result, room)]
    lines += ["", *listed("what it cannot show", report.caveats)]
    lines += ending(report.results, None)
    holds = "HOLDS" if report.exit_status == 0 else "DOES NOT HOLD"
    return "\n".join([*lines, f"{', '.join([holds, *report.marks])}: a design alone"])


def _value(raw: bytes) -> Any:
    """The JSON value of what may be a design, whole or not.

    Raises:
        Unreadable: it is none.
    """
    if sum(map(raw.count, (b"{", b"[", b","))) > MAX_PARTS:
        return None
    value = loads(raw, max_bytes=MAX_BYTES)
    if type(value) is not dict or not value.keys() >= _OF_A_DESIGN:
        raise Unreadable(f"it has not the members {', '.join(sorted(_OF_A_DESIGN))}")
    return value


def _design(raw: bytes) -> tuple[Design | None, str | None]:
    try:
        design = Design.of(raw)
        if design.trials > MAX_TRIALS:
            raise Unreadable(f"{design.trials:,} trials are planned, more than {MAX_TRIALS:,}")
    except Unreadable as error:
        return None, str(error)
    return design, None
