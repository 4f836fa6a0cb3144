"""The check of the derived files of a run against the journal, and their content as section 8 specifies it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from proctor_verify import canonical
from proctor_verify.check import Check
from proctor_verify.design import Design
from proctor_verify.errors import Unreadable
from proctor_verify.facts import Tally
from proctor_verify.journal import Entry
from proctor_verify.prices import usd
from proctor_verify.run import Run
from proctor_verify.vocabulary import GRADES

MAX_SUMMARY = 64 << 20


class Summaries(Check):
    id = "summary.recomputed"
    doc = (
        "`summary.json` and `grade_summary.json` are, byte for byte, what the journal adds up to; "
        "a complete run has them"
    )
    noun = "summaries"
    kinds = ("run.ended",)
    needs_design = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._wanted: dict[str, bytes] = {}

    def entry(self, entry: Entry) -> None:
        named = {file["path"] for file in entry.body["files"]}
        for path, make in _CONTENTS.items():
            if path in named:
                self._want(entry, path, make(self.run, self.design))
            elif entry.body["exit_status"] in (0, 1) and entry.body["complete"]:
                self.fail_at(entry, f"ends a complete run, and does not name {path}")

    def _want(self, entry: Entry, path: str, content: dict[str, Any]) -> None:
        try:
            self._wanted[path] = canonical.encode(content)
        except Unreadable as error:
            self.fail_at(entry, f"names {path}, which cannot hold what the journal adds up to: {error}")

    def finish(self) -> None:
        for path, wanted in self._wanted.items():
            self.looked += 1
            try:
                stands = self.run.folder.read(path, MAX_SUMMARY)
            except Unreadable:
                continue  # said by files.digests
            if stands != wanted:
                self.fail(path, "is not what the journal adds up to")


def grade_summary(run: Run, design: Design) -> dict[str, Any]:
    """The content of `grade_summary.json`."""
    planned = len(design.tasks) * design.epochs
    groups = _groups(run, design)
    everything = Tally()
    for _, _, tally in groups:
        everything.grades += tally.grades
        everything.ungraded_reasons += tally.ungraded_reasons
        everything.rewards += tally.rewards
        everything.reward_sum += tally.reward_sum
    return {
        "format": 1,
        "all": _rates(everything, planned * len(groups)),
        "groups": [{"model": model, "arm": arm, **_rates(tally, planned)} for model, arm, tally in groups],
    }


def run_summary(run: Run, design: Design) -> dict[str, Any]:
    """The content of `summary.json`."""
    planned = len(design.tasks) * design.epochs
    first = run.first or {}
    return {
        "format": 1,
        "run_id": first.get("run_id"),
        "design_sha256": first.get("design_sha256"),
        "study": design.study,
        "stage": design.stage,
        "complete": run.complete,
        "totals": totals(run, design),
        "openings": run.openings,
        "synthetic": list(design.parts.synthetic),
        "spent": {
            "before": usd(design.parts.budget.spent_before) if design.parts.budget is not None else None,
            "charged": usd(run.money.charged),
        },
        "groups": [
            {
                "model": model,
                "arm": arm,
                "planned": planned,
                "grades": {grade: tally.grades[grade] for grade in GRADES},
                "reasons": dict(tally.reasons),
                "exceptions": dict(tally.exceptions),
                "superseded": tally.superseded,
                "replaced": tally.replaced,
                "cost": _cost(tally) if model is not None else None,
            }
            for model, arm, tally in _groups(run, design)
        ],
    }


def _cost(tally: Tally) -> dict[str, Any]:
    bill = tally.bill
    return {
        "charged": usd(bill.charged),
        "exchanges": bill.exchanges,
        "estimated": bill.estimated,
        "overruns": bill.overruns,
        "tokens": bill.tokens,
    }


def totals(run: Run, design: Design) -> dict[str, int]:
    """What `run.ended` counts."""
    return {"trials": design.trials, "finals": run.finals, **{grade: run.grades[grade] for grade in GRADES}}


_CONTENTS: dict[str, Callable[[Run, Design], dict[str, Any]]] = {
    "grade_summary.json": grade_summary,
    "summary.json": run_summary,
}


def _groups(run: Run, design: Design) -> list[tuple[str | None, str, Tally]]:
    # A design without models has the one model None, so None never meets a name in this order.
    models = sorted(design.models, key=str)
    return [(model, arm, run.groups.get((model, arm), Tally())) for model in models for arm in sorted(design.arms)]


def _rates(tally: Tally, planned: int) -> dict[str, Any]:
    passed, failed = tally.grades["pass"], tally.grades["fail"]
    ungraded, graded = planned - passed - failed, passed + failed
    reasons = dict(tally.ungraded_reasons)
    not_run = planned - tally.grades.total()
    if not_run:
        reasons["not_run"] = reasons.get("not_run", 0) + not_run
    mean = tally.reward_sum / tally.rewards if tally.rewards else None
    return {
        "planned": planned,
        "pass": passed,
        "fail": failed,
        "ungraded": ungraded,
        "ungraded_by_reason": reasons,
        "headline": _rate(passed, planned),
        "graded_only": {**_rate(passed, graded), "comparable": graded == planned},
        "bounds": {"low": _rate(passed, planned), "high": _rate(passed + ungraded, planned)},
        "mean_reward": {
            "trials": tally.rewards,
            "num": str(mean.numerator) if mean is not None else None,
            "den": str(mean.denominator) if mean is not None else None,
            "decimal": _six_places(mean) if mean is not None else None,
            "comparable": tally.rewards == planned,
        },
    }


def _rate(num: int, den: int) -> dict[str, Any]:
    return {"num": num, "den": den, "decimal": _six_places(Fraction(num, den)) if den else None}


def _six_places(value: Fraction) -> str:
    """Rounded half up, towards plus infinity."""
    millionths = (2 * value.numerator * 10**6 + value.denominator) // (2 * value.denominator)
    sign = "-" if millionths < 0 else ""
    return f"{sign}{abs(millionths) // 10**6}.{abs(millionths) % 10**6:06d}"
