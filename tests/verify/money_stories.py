"""A sound run of models that cost something: question rows and a sandboxed task, up to where its money runs out."""

from __future__ import annotations

from builder import Story
from designs import make_design, make_model, make_task
from primitives import Body, Signer

PRICES = {"input": "2.000000000000", "cache_read": "0.200000000000", "output": "10.000000000000"}
SHAM = {"input": "0.250000000000", "output": "2.000000000000"}


def money_design() -> Body:
    """Two rows and a task, a model with tiers and one that is made up: 6 blocks, two arms."""
    design = make_design(tasks=1, epochs=1)
    design["tasks"] = [make_task("row-0", row=True), make_task("row-1", row=True), *design["tasks"]]
    costly, sham = make_model("model-0", PRICES), make_model("sham", SHAM)
    for bucket, usd in (("input", "4.000000000000"), ("output", "20.000000000000")):
        costly["price"]["rows"].append({"bucket": bucket, "above_inputs": 1000, "usd_per_million": usd})
    costly |= {"api": "anthropic", "context_window": 1000, "mutations": ["include_usage"]}
    sham |= {"provider": "practice", "api": "practice", "synthetic": True}
    function = {"name": "tools:search", "sha256": "0" * 64}
    return {
        **design,
        "models": [costly, sham],
        "arms": [
            {"name": "arm-0"},
            {"name": "arm-1", "tools": [], "model": {"effort": None, "max_output_tokens": 600}},
        ],
        "tools": [{"name": "search", "python": function, "pool": 1}],
        "questions": {"path": "units.jsonl", "sha256": "0" * 64, "scorer": "exact", "scorer_timeout_sec": 10},
        "budget": {
            "spent_before": "0.010000000000",
            "allocation": "0.090000000000",
            "cap": "0.110000000000",
            "margin": "0.005000000000",
            "cap_quantum": "0.000000000000",
            "reserve_quantum": "0.000000000000",
            "reserve_factor": 1,
            "models": [
                _share("model-0", "0.060000000000", "0.020000000000"),
                _share("sham", "0.030000000000", "0.010000000000"),
            ],
            "prior_spend": {"amount": "0.010000000000", "source": "a bill", "sha256": "0" * 64},
        },
    }


def _share(name: str, cap: str, reserve: str) -> Body:
    return {"name": name, "expected": cap, "cap": cap, "reserve": reserve, "blocks": 3}


def money_story(signer: Signer | None = None) -> Story:
    """Opening 1 dies with an exchange in flight. In 2, the last block of the model is charged past the ceiling."""
    s = Story(money_design(), signer=signer or Signer())
    s.admit()
    s.checkpoint()
    s.block(0)
    _answered(s, 0, s.arms(0)[0])
    second = s.start(0, s.arms(0)[1])
    refused = s.ask(second)
    nothing = {"charged": "0.000000000000", "estimated": False}
    s.answer(refused, outcome="released", http_status=429, error="rate_limited", finish=None, **nothing)
    again = s.ask(second, retries=refused)
    s.answer(again, {"input": 200, "cache_read": 400, "output": 90})
    s.answer(s.ask(second, inputs=1500), {"input": 1100, "output": 50})
    s.grade(second, "fail", 0.25, "below_threshold" if not s.is_row(second) else "wrong_answer")
    s.end(second)
    s.final(second)
    s.add("block.ended", block=0)
    s.block(3)
    for arm in s.arms(3):
        _answered(s, 3, arm)
    s.add("block.ended", block=3)
    s.block(1)
    lost = s.start(1, s.arms(1)[0])
    s.answer(s.ask(lost), {"input": 10, "output": 5})
    unheard = s.ask(lost)

    s.resume(previous_ended=False, abandoned=[s.manifest("pending")])
    s.add("run.recovered", quarantined=[], lost=[lost])
    s.answer(unheard, outcome="unknown", http_status=None, resolved_model=None, finish=None, timing={})
    s.end(lost, "lost", "lost")
    s.checkpoint()
    s.block(1)
    first = s.start(1, s.arms(1)[0], supersedes=lost)
    s.count(first)
    streamed = s.ask(first, mutations=["include_usage"])
    s.answer(streamed, {"input": 10, "output": 5}, chunks=s.blob(b"[[0,0]]"))
    s.answer(s.ask(first), finish=None, error="reply_unreadable")
    s.answer(s.ask(first), {"input": 700, "output": 400}, estimated=True, charged=s.bounds[f"{first}/3"], flags=["odd"])
    s.grade(first, "pass", 1)
    s.end(first)
    s.final(first)
    _answered(s, 1, s.arms(1)[1])
    s.add("block.ended", block=1)
    s.block(4)
    for arm in s.arms(4):
        _answered(s, 4, arm)
    s.add("block.ended", block=4)
    s.block(2)
    dear = s.start(2, s.arms(2)[0])
    s.answer(s.ask(dear), {"input": 500, "output": 30000})
    s.reached("overrun")
    s.reached("ceiling")
    s.grade(dear, "pass", 1)
    s.end(dear)
    s.final(dear)
    stopped = s.start(2, s.arms(2)[1])
    s.refuse(stopped, "ceiling_reached", "0.006600000000")
    s.refuse(stopped, "feature_unpriced", "0.000000000000")
    s.run_out(stopped, "ceiling_reached")
    s.end(stopped, exception="ceiling_reached")
    s.final(stopped)
    s.add("block.ended", block=2)
    s.add("run.draining", cause="ceiling_reached")
    s.stop(4, "ceiling_reached")
    s.checkpoint(named=False)
    return s


def bare_story(signer: Signer | None = None) -> Story:
    """A run of the same design in which nothing was begun, so that its amounts are free."""
    s = Story(money_design(), signer=signer or Signer())
    s.admit()
    s.stop(130, "interrupted")
    s.checkpoint(named=False)
    return s


def _answered(s: Story, index: int, arm: str) -> None:
    attempt = s.start(index, arm)
    s.answer(s.ask(attempt), {"input": 500, "output": 100})
    s.grade(attempt, "pass", 1)
    s.end(attempt)
    s.final(attempt)
