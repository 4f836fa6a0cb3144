"""The derived files that a story comes to, as section 8 of the format has them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from primitives import Body, money, picodollars, trial_id

if TYPE_CHECKING:
    from builder import Story
    from steps import Step


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


def spent(story: Story, before: Step, model: str | None) -> str:
    """What was spent before, is settled and open at a step; of one model what is settled and open. Section 5."""
    blocks: dict[int, Body] = {}
    of_attempt = {}
    total = 0 if model else picodollars(story.design["budget"]["spent_before"])
    for step in story.entries():
        body = step.body
        if step is before:
            break
        if step.kind == "block.admitted":
            reserve = picodollars(body["reserve"])
            blocks[body["block"]] = {"model": body["model"], "reserve": reserve, "settled": 0, "held": {}}
        elif step.kind == "block.ended":
            blocks.pop(body["block"], None)
        elif step.kind == "run.resumed":
            for block in blocks.values():
                block["reserve"] = block["settled"] = 0
        elif step.kind == "attempt.admitted":
            if body["block"] in blocks:
                of_attempt[body["attempt"]] = blocks[body["block"]]
        elif step.kind.startswith("exchange.") and body["attempt"] not in of_attempt:
            continue  # of nobody, or of a trial that is not planned
        elif step.kind == "exchange.admitted":
            of_attempt[body["attempt"]]["held"][body["exchange"]] = picodollars(body["held"])
        elif step.kind == "exchange.ended":
            block = of_attempt[body["attempt"]]
            if block["held"].pop(body["exchange"], None) is None:
                continue
            block["settled"] += picodollars(body["charged"])
            total += picodollars(body["charged"]) if model in (None, block["model"]) else 0
    for block in blocks.values():
        if model in (None, block["model"]):
            total += max(block["reserve"] - block["settled"], sum(block["held"].values()))
    return money(total)


def limit(budget: Body, scope: str, model: str | None) -> str:
    """The limit that a scope is about."""
    if model is not None:
        return next(share["cap"] for share in budget["models"] if share["name"] == model)
    return money(picodollars(budget["cap"]) + (picodollars(budget["margin"]) if scope == "ceiling" else 0))


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
    bills = _first_ends(listed.get("exchange.ended", []))
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
        "tokens": _tokens(bills) if last["attempt.admitted"]["model"] else no_model,
        "cost": _of_an_attempt(_cost(bills)) if last["attempt.admitted"]["model"] else no_model,
        "snapshots": {"available": False, "reason": "no snapshot is part of the evidence in this version"},
    }


def _first_ends(bills: list[Body]) -> list[Body]:
    """An exchange ends once: what is said of it again counts for nothing."""
    return list({body["exchange"]: body for body in reversed(bills)}.values())


def _tokens(bills: list[Body]) -> Body:
    return dict(sum((Counter(body["usage"]) for body in bills if body["usage"]), Counter()))


def _cost(bills: list[Body]) -> Body:
    return {
        "charged": money(sum(picodollars(body["charged"]) for body in bills)),
        "exchanges": len(bills),
        "estimated": sum(body["estimated"] for body in bills),
        "overruns": sum(body["overrun"] for body in bills),
        "tokens": _tokens(bills),
    }


def _of_an_attempt(cost: Body) -> Body:
    return {name: cost[name] for name in ("charged", "exchanges", "estimated")}


def run_summary(story: Story) -> Body:
    """Section 8, from the steps themselves."""
    steps = story.entries()
    design = story.design
    trials = {trial_id(*trial): (trial[1], trial[2]) for trial in story.planned()}
    # an attempt ends once
    ends = list({s.body["attempt"]: s.body for s in reversed(steps) if s.kind == "attempt.ended"}.values())
    billed = _first_ends([step.body for step in steps if step.kind == "exchange.ended"])
    billed = [body for body in billed if body["attempt"][:16] in trials]
    begins = [step.body for step in steps if step.kind == "attempt.admitted"]
    ended = [step.body for step in steps if step.kind == "run.ended"][-1]
    groups = []
    for model in sorted([model["name"] for model in design["models"]] or [None], key=str):
        for arm in sorted(arm["name"] for arm in design["arms"]):
            finals = [body for trial, body in story.finals.items() if trials.get(trial) == (model, arm)]
            mine = [body for body in ends if trials.get(body["attempt"][:16]) == (model, arm)]
            bills = [body for body in billed if trials.get(body["attempt"][:16]) == (model, arm)]
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
                    "cost": _cost(bills) if model else None,
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
        "synthetic": [model["name"] for model in design["models"] if "synthetic" in model],
        "spent": {
            "before": design["budget"]["spent_before"] if "budget" in design else None,
            "charged": money(sum(picodollars(body["charged"]) for body in billed)),
        },
        "openings": 1 + sum(step.kind == "run.resumed" for step in steps),
        "groups": groups,
    }


def _counts(finals: list[Body | None]) -> Body:
    grades = Counter(final["grade"] if final else "ungraded" for final in finals)
    reasons = Counter(
        final["reason"] if final else "not_run" for final in finals if not final or final["grade"] == "ungraded"
    )
    del reasons[None]  # one without a reason counts for none
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
    whole, places = divmod(abs(millionths), 10**6)
    return {"num": num, "den": den, "decimal": f"{'-' * (millionths < 0)}{whole}.{places:06d}"}
