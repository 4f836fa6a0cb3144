"""The preregistered hypotheses of a stage: what was frozen, and what their tests came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from proctor.report.comparing import Comparison
from proctor.report.text import table
from proctor.study import Design


def claims_record(design: Design, compared: Sequence[Comparison]) -> list[dict[str, Any]]:
    """For JSON: each hypothesis with a result for each model; no result where one of its arms was not run."""
    return [
        {**asdict(claim), "results": [each.as_record() for each in compared if each.claim == claim.id]}
        for claim in design.hypotheses
    ]


def claims_lines(design: Design) -> list[str]:
    """For people: a line for each hypothesis, as it was preregistered."""
    if not design.hypotheses:
        return []
    rows = [
        [claim.id, " | ".join(claim.compare), claim.endpoint, claim.test, claim.direction, claim.alpha]
        for claim in design.hypotheses
    ]
    return table(["hypothesis", "first | second", "endpoint", "test", "direction", "alpha"], rows)
