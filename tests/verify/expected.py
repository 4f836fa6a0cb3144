"""The derived files that a story comes to, as section 8 of the format has them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from primitives import Body, trial_id

if TYPE_CHECKING:
    from builder import Story


def grade_summary(design: Body, finals: dict[str, Body]) -> Body:
    """Section 8, for rewards with few decimals."""
    models = [model["name"] for model in design["models"]] or [None]
    groups = []
    everything: list[Body | None] = []
    for model in sorted(models, key=str):
        for arm in sorted(arm["name"] for arm in design["arms"]):
            ids = [
                trial_id(task["name"], model, arm, epoch)
                for task in design["tasks"]
                for epoch in range(1, design["stage"]["epochs"] + 1)
            ]
            mine = [finals.get(trial) for trial in ids]
            everything += mine
            groups.append({"model": model, "arm": arm, **_counts(mine)})
    return {"format": 1, "all": _counts(everything), "groups": groups}


def attempt_record(story: Story, attempt: str) -> Body:
    """Section 8, from the attempt's steps up to its end."""
    last: dict[str, Body] = {}
    listed: dict[str, list[Body]] = {"attempt.boundary": [], "sandbox.started": []}
    for step in story.entries():
        if step.body.get("attempt") != attempt or (step.kind != "attempt.admitted" and not last):
            continue
        body = {name: value for name, value in step.body.items() if name not in ("attempt", "instruction")}
        last[step.kind] = body
        listed.setdefault(step.kind, []).append(body)
        if step.kind == "attempt.ended":
            break
    no_model = {"available": False, "reason": "no model is called through proctor in this run"}
    return {
        "format": 1,
        "identity": {"attempt": attempt, **last["attempt.admitted"]},
        "agent": last.get("agent.started"),
        "agent_ended": last.get("agent.ended"),
        "verifier_ended": last.get("verifier.ended"),
        "grade": last.get("attempt.graded"),
        "boundaries": [body["boundary"] for body in listed["attempt.boundary"]],
        "sandboxes": listed["sandbox.started"],
        "ended": last["attempt.ended"],
        "tokens": no_model,
        "cost": no_model,
        "snapshots": {"available": False, "reason": "no snapshot is part of the evidence in this version"},
    }


def run_summary(story: Story) -> Body:
    """Section 8, from the steps themselves."""
    steps = story.entries()
    design = story.design
    trials = {trial_id(*trial): (trial[1], trial[2]) for trial in story.planned()}
    ends = [step.body for step in steps if step.kind == "attempt.ended"]
    begins = [step.body for step in steps if step.kind == "attempt.admitted"]
    ended = [step.body for step in steps if step.kind == "run.ended"][-1]
    groups = []
    for model in sorted([model["name"] for model in design["models"]] or [None], key=str):
        for arm in sorted(arm["name"] for arm in design["arms"]):
            finals = [body for trial, body in story.finals.items() if trials.get(trial) == (model, arm)]
            mine = [body for body in ends if trials.get(body["attempt"][:16]) == (model, arm)]
            grades = Counter(final["grade"] for final in finals)
            groups.append(
                {
                    "model": model,
                    "arm": arm,
                    "planned": len(design["tasks"]) * design["stage"]["epochs"],
                    "grades": {grade: grades[grade] for grade in ("pass", "fail", "ungraded")},
                    "reasons": dict(Counter(final["reason"] for final in finals if final["reason"])),
                    "exceptions": dict(Counter(body["exception"] for body in mine if body["exception"])),
                    "superseded": sum(body["outcome"] in ("interrupted", "lost") for body in mine),
                    "replaced": sum(bool(b["replaces"]) for b in begins if trials.get(b["trial"]) == (model, arm)),
                }
            )
    return {
        "format": 1,
        "run_id": story.run_id,
        "design_sha256": story.settled(steps[0].body["design_sha256"]),
        "study": design["study"]["name"],
        "stage": design["stage"]["name"],
        "complete": ended["complete"],
        "totals": ended["totals"],
        "openings": sum(step.kind in ("run.admitted", "run.resumed") for step in steps),
        "groups": groups,
    }


def _counts(finals: list[Body | None]) -> Body:
    grades = Counter(final["grade"] if final else "ungraded" for final in finals)
    reasons = Counter(
        final["reason"] if final else "not_run" for final in finals if not final or final["grade"] == "ungraded"
    )
    # Quarters are enough for what the stories write, and need no fractions.
    quarters = [int(f["reward"] * 4) for f in finals if f and f["grade"] != "ungraded" and f["reward"] is not None]
    planned, passed, graded = len(finals), grades["pass"], grades["pass"] + grades["fail"]
    return {
        "planned": planned,
        "pass": passed,
        "fail": grades["fail"],
        "ungraded": grades["ungraded"],
        "ungraded_by_reason": dict(reasons),
        "headline": _rate(passed, planned),
        "graded_only": {**_rate(passed, graded), "comparable": graded == planned},
        "bounds": {"low": _rate(passed, planned), "high": _rate(passed + grades["ungraded"], planned)},
        "mean_reward": {**_mean(sum(quarters), 4 * len(quarters)), "comparable": len(quarters) == planned},
    }


def _mean(num: int, den: int) -> Body:
    if not den:
        return {"trials": 0, "num": None, "den": None, "decimal": None}
    common = next(d for d in range(max(num, den), 0, -1) if num % d == 0 and den % d == 0)
    return {
        "trials": den // 4,
        "num": str(num // common),
        "den": str(den // common),
        "decimal": _rate(num, den)["decimal"],
    }


def _rate(num: int, den: int) -> Body:
    if not den:
        return {"num": num, "den": den, "decimal": None}
    millionths = (2 * num * 10**6 + den) // (2 * den)
    return {"num": num, "den": den, "decimal": f"{millionths // 10**6}.{millionths % 10**6:06d}"}
