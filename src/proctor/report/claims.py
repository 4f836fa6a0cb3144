"""The preregistered hypotheses of a stage: what was frozen, and that its test is not computed here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from proctor.core.reasons import Reason
from proctor.report.text import table
from proctor.study import Design


def claims_record(design: Design) -> list[dict[str, Any]]:
    """For JSON; a result is absent with its reason."""
    absent = {"available": False, "reason": Reason.NOT_IN_THIS_VERSION.id}
    return [{**asdict(claim), "result": absent} for claim in design.hypotheses]


def claims_lines(design: Design) -> list[str]:
    """For people: a line for each hypothesis, and what stands in the place of its test."""
    if not design.hypotheses:
        return []
    rows = [
        [claim.id, " | ".join(claim.compare), claim.endpoint, claim.test, claim.direction, claim.alpha]
        for claim in design.hypotheses
    ]
    return [
        *table(["hypothesis", "first | second", "endpoint", "test", "direction", "alpha"], rows),
        "Preregistered, and frozen with the design. The test itself is not computed in",
        "this version: the paired counts of `results` are what there is.",
    ]
