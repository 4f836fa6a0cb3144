"""Faults of exchanges, answers and question rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builder import Story
from money_stories import money_story
from plants import Plants
from primitives import cost, money, picodollars, worst_case
from steps import Step

PLANTS = Plants(money_story)
plant = PLANTS.before_sealing


def _ended(s: Story, **body: Any) -> Step:
    return s.find("exchange.ended", **body)


def _admitted(s: Story, ended: Step) -> Step:
    return s.find("exchange.admitted", exchange=ended.body["exchange"])


def _off_by(step: Step, name: str, picos: int) -> None:
    step.body[name] = money(picodollars(step.body[name]) + picos)


# Admissions.


@plant("exchanges.admitted", "a number is left out")
def _(s: Story) -> None:
    ended = _ended(s)
    admitted = _admitted(s, ended)
    for step in (admitted, ended):
        step.body["exchange"] = f"{step.body['attempt']}/1"


@plant("exchanges.admitted", "another model than the trial's")
def _(s: Story) -> None:
    s.find("exchange.admitted", model="model-0").body["model"] = "sham"


@plant("exchanges.admitted", "before the agent started")
def _(s: Story) -> None:
    _moved(s, before=s.find("agent.started", attempt=_ended(s).body["attempt"]))


@plant("exchanges.admitted", "after the agent ended")
def _(s: Story) -> None:
    after = s.find("agent.ended", attempt=_ended(s).body["attempt"])
    _moved(s, before=s.steps[s.at(after) + 1])


def _moved(s: Story, before: Any) -> None:
    """The first exchange stands elsewhere."""
    ended = _ended(s)
    both = [_admitted(s, ended), ended]
    for step in both:
        s.drop(step)
    s.insert_before(before, *both)
    s.repack()


@plant("exchanges.admitted", "sends one again that is in flight")
def _(s: Story) -> None:
    body = s.find("exchange.admitted").body
    body["retries"] = body["exchange"]


@plant("exchanges.admitted", "sends one of another attempt again")
def _(s: Story) -> None:
    s.find("exchange.admitted", 1).body["retries"] = s.find("exchange.admitted").body["exchange"]


@plant("exchanges.admitted", "sends one again that was answered")
def _(s: Story) -> None:
    ended = _ended(s, usage={"input": 200, "cache_read": 400, "output": 90}).body
    following = f"{ended['attempt']}/{int(ended['exchange'].rpartition('/')[2]) + 1}"
    s.find("exchange.admitted", exchange=following).body["retries"] = ended["exchange"]


@plant("exchanges.admitted", "fewer tokens in than its request has bytes")
def _(s: Story) -> None:
    body = s.find("exchange.admitted", input_bound=800).body
    inputs = body["request"]["size"] - 1
    body.update(input_bound=inputs, held=worst_case(s.rows_of(body["model"]), inputs, body["output_bound"]))


@plant("exchanges.admitted", "more output than the arm allows")
def _(s: Story) -> None:
    of_arm = {step.body["attempt"] for step in s.entries() if step.body.get("arm") == "arm-1"}
    body = next(
        step.body for step in s.entries() if step.kind == "exchange.admitted" and step.body["attempt"] in of_arm
    )
    held = worst_case(s.rows_of(body["model"]), body["input_bound"], 601)
    ended = _ended(s, exchange=body["exchange"])
    if ended.body["estimated"]:
        ended.body["charged"] = held
    body.update(output_bound=601, held=held)


@plant("exchanges.admitted", "a change that the design does not admit")
def _(s: Story) -> None:
    s.find("exchange.admitted", mutations=["include_usage"]).body["mutations"] = ["clamp_max_output"]


@plant("exchanges.admitted", "a change of a model that admits none")
def _(s: Story) -> None:
    s.find("exchange.admitted", model="sham").body["mutations"] = ["include_usage"]


# Ends.


@plant("exchanges.ended", "never")
def _(s: Story) -> None:
    s.drop(_ended(s))
    s.repack()


@plant("exchanges.ended", "twice")
def _(s: Story) -> None:
    there = _ended(s)
    s.insert_after(there, Step(there.kind, dict(there.body)))


@plant("exchanges.ended", "released, and charged")
def _(s: Story) -> None:
    _ended(s, outcome="released").body["charged"] = "0.000000000001"


@plant("exchanges.ended", "released without a reason")
def _(s: Story) -> None:
    _ended(s, outcome="released").body["error"] = None


@plant("exchanges.ended", "released without a status, and sent")
def _(s: Story) -> None:
    _ended(s, outcome="released").body.update(http_status=None, error="provider_timeout")


@plant("exchanges.ended", "settled where the provider refused")
def _(s: Story) -> None:
    _ended(s, error="reply_unreadable").body["http_status"] = 500


@plant("exchanges.ended", "a fault of one that finished")
def _(s: Story) -> None:
    _ended(s).body["error"] = "provider_failed"


@plant("exchanges.ended", "in flight where its process died, and nothing charged")
def _(s: Story) -> None:
    told = {"outcome": "released", "charged": "0.000000000000", "estimated": False, "error": "provider_unreachable"}
    _ended(s, outcome="unknown").body.update(told)


@plant("exchanges.ended", "in flight where its process died, and charged by a usage")
def _(s: Story) -> None:
    body = _ended(s, outcome="unknown").body
    body.update(outcome="settled", estimated=False, error="interrupted", usage={"input": 1})
    body["charged"] = cost(s.rows_of("model-0"), body["usage"])


@plant("exchanges.ended", "unheard, and told of")
def _(s: Story) -> None:
    _ended(s, outcome="unknown").body["http_status"] = 200


@plant("exchanges.ended", "unheard in an attempt that was completed")
def _(s: Story) -> None:
    nothing = dict.fromkeys(("http_status", "resolved_model", "finish", "response", "usage"))
    _ended(s, flags=["odd"]).body.update(nothing, outcome="unknown", flags=[], timing={})
    s.repack()


@plant("exchanges.ended", "an overrun that is not said")
def _(s: Story) -> None:
    _ended(s, overrun=True).body["overrun"] = False


@plant("exchanges.ended", "an overrun that is none")
def _(s: Story) -> None:
    _ended(s).body["overrun"] = True


@plant("exchanges.ended", "without usage, and no estimate")
def _(s: Story) -> None:
    _ended(s, error="reply_unreadable").body["estimated"] = False


@plant("exchanges.ended", "an estimate beside a sound usage")
def _(s: Story) -> None:
    _ended(s, flags=["odd"]).body["flags"] = []


@plant("exchanges.ended", "no error, and nothing said of why it stopped")
def _(s: Story) -> None:
    _ended(s).body["finish"] = None


def _counted(s: Story) -> Step:
    return _ended(s, outcome="released", error=None)


@plant("exchanges.ended", "tokens counted for money")
def _(s: Story) -> None:
    _counted(s).body.update(outcome="settled", estimated=True)


@plant("exchanges.ended", "tokens counted, and a usage")
def _(s: Story) -> None:
    _counted(s).body["usage"] = {"input": 1}


@plant("exchanges.ended", "tokens counted, and a finish")
def _(s: Story) -> None:
    _counted(s).body["finish"] = "stop"


@plant("exchanges.ended", "tokens counted, and a stream")
def _(s: Story) -> None:
    _counted(s).body["chunks"] = s.blob(b"[[0,0]]")
    s.repack()


@plant("exchanges.admitted", "tokens counted in a format that counts none")
def _(s: Story) -> None:
    _admitted(s, _counted(s)).body["route"] = "POST /v1beta/models/x:countTokens"


@plant("exchanges.admitted", "tokens counted, and an output")
def _(s: Story) -> None:
    _admitted(s, _counted(s)).body["output_bound"] = 1


@plant("exchanges.admitted", "tokens counted, and the request changed")
def _(s: Story) -> None:
    _admitted(s, _counted(s)).body["mutations"] = ["include_usage"]


@plant("exchanges.ended", "tokens counted, without an answer")
def _(s: Story) -> None:
    _counted(s).body["http_status"] = 404


@plant("exchanges.ended", "chunks of what never came")
def _(s: Story) -> None:
    ended = s.find("exchange.ended", error="rate_limited")
    ended.body.update(chunks=ended.body["response"], response=None)


CHUNK_MAPS = {
    "no JSON": b"[[0,0]",
    "spaces": b"[[0,0], [1,1]]",
    "a first one that is not at the start": b"[[1,0]]",
    "offsets that fall": b"[[0,0],[2,1],[1,2]]",
    "times that fall": b"[[0,0],[1,5],[2,4]]",
    "an offset behind the end": b"[[0,0],[100000,1]]",
    "more than there may be": b"[[0,0]%b]" % b"".join(b",[%d,0]" % at for at in range(1, 32_769)),
}
for _name, _map in CHUNK_MAPS.items():

    @plant("exchanges.chunks", _name)
    def _(s: Story, content: bytes = _map) -> None:
        ended = next(step for step in s.entries() if step.body.get("chunks") is not None)
        if len(content) > 100_000:
            ended.body["response"] = s.blob(bytes(200_000))
        ended.body["chunks"] = s.blob(content)
        s.repack()


# Costs.


@plant("costs.recomputed", "money held for a count of tokens")
def _(s: Story) -> None:
    ended = _counted(s)
    _admitted(s, ended).body["held"] = "0.000000000001"


@plant("ceiling.disclosed", "money held for what was not passed on")
def _(s: Story) -> None:
    s.find("exchange.refused", reason="feature_unpriced").body["held"] = "0.000000000001"


@plant("costs.recomputed", "a picodollar too much")
def _(s: Story) -> None:
    _off_by(_ended(s), "charged", 1)


@plant("costs.recomputed", "a picodollar too little")
def _(s: Story) -> None:
    _off_by(_ended(s), "charged", -1)


@plant("costs.recomputed", "long input at the price of short input")
def _(s: Story) -> None:
    body = _ended(s, usage={"input": 1100, "output": 50}).body
    cheap = [row for row in s.rows_of("model-0") if not row["above_inputs"]]
    body["charged"] = cost(cheap, body["usage"])


@plant("costs.recomputed", "what was cached at the price of what was not")
def _(s: Story) -> None:
    body = _ended(s, usage={"input": 200, "cache_read": 400, "output": 90}).body
    body["charged"] = cost(s.rows_of("model-0"), {"input": 600, "output": 90})


@plant("costs.recomputed", "tokens without a price")
def _(s: Story) -> None:
    _ended(s).body["usage"] = {"audio_out": 3}


@plant("costs.recomputed", "less held than the worst case")
def _(s: Story) -> None:
    _off_by(s.find("exchange.admitted"), "held", -1)


@plant("costs.recomputed", "the worst case of the last tier alone")
def _(s: Story) -> None:
    body = s.find("exchange.admitted", input_bound=1500).body
    body["held"] = cost(s.rows_of("model-0"), {"input": 1000, "output": body["output_bound"]})


@plant("costs.recomputed", "an estimate below what was held")
def _(s: Story) -> None:
    _off_by(_ended(s, error="reply_unreadable"), "charged", -1)


@plant("costs.recomputed", "less charged for what nobody heard")
def _(s: Story) -> None:
    _off_by(_ended(s, outcome="unknown"), "charged", -1)


# Answers and rows.


def _of_a_row(s: Story, kind: str) -> Step:
    rows = {step.body["attempt"] for step in s.entries() if step.kind == "answer.scored"}
    return next(step for step in s.entries() if step.kind == kind and step.body["attempt"] in rows)


@plant("answers.scored", "never")
def _(s: Story) -> None:
    s.drop(s.find("answer.scored"))
    s.repack()


@plant("answers.scored", "twice")
def _(s: Story) -> None:
    there = s.find("answer.scored")
    s.insert_after(there, Step(there.kind, dict(there.body)))


@plant("answers.scored", "after the grade")
def _(s: Story) -> None:
    late = s.find("answer.scored")
    s.move_after(s.find("attempt.graded", attempt=late.body["attempt"]), late)


@plant("answers.scored", "of a sandboxed task")
def _(s: Story) -> None:
    attempt = s.find("verifier.ended").body["attempt"]
    answer = {**s.find("answer.scored").body, "attempt": attempt}
    s.insert_before(s.find("verifier.ended"), Step("answer.scored", answer))


@plant("rows.bare", "a world")
def _(s: Story) -> None:
    started = _of_a_row(s, "agent.started")
    world = {**s.find("sandbox.started").body, "attempt": started.body["attempt"]}
    s.insert_before(started, Step("sandbox.started", world))


@plant("rows.bare", "a boundary")
def _(s: Story) -> None:
    started = _of_a_row(s, "agent.started")
    s.insert_before(started, Step("attempt.boundary", {"attempt": started.body["attempt"], "boundary": "env-ready"}))


@plant("rows.bare", "files")
def _(s: Story) -> None:
    ended = _of_a_row(s, "attempt.ended")
    s.insert_before(ended, Step("attempt.files", {"attempt": ended.body["attempt"], "files": []}))


@PLANTS.afterwards("files.unlisted", "a folder of a row's attempt")
def _(folder: Path) -> None:
    s = money_story()
    of_row = next(step for step in s.entries() if step.kind == "attempt.admitted" and step.body["task"] == "row-0")
    (folder / of_row.body["folder"]).mkdir(parents=True)


def _regraded(s: Story, **fields: Any) -> None:
    graded = _of_a_row(s, "attempt.graded").body
    graded.update(fields)
    final = s.find("trial.final", trial=graded["attempt"][:16]).body
    final.update({name: graded[name] for name in ("grade", "reason", "reward")})
    s.finals[final["trial"]] = final


@plant("grades.recomputed", "a row passes below its threshold")
def _(s: Story) -> None:
    _regraded(s, rewards={"reward": 0.5}, reward=0.5)


@plant("grades.recomputed", "a row's reward is not among its rewards")
def _(s: Story) -> None:
    _regraded(s, rewards={"reward": 1}, reward=2)


@plant("agents.ended", "a row is completed, and its agent goes on")
def _(s: Story) -> None:
    s.drop(_of_a_row(s, "agent.ended"))


@plant("agents.ended", "completed without a verifier, for want of money that nobody refused")
def _(s: Story) -> None:
    s.drop(s.find("exchange.refused"))


@plant("agents.ended", "stopped short, and nothing said of it at its end")
def _(s: Story) -> None:
    s.find("attempt.ended", exception="ceiling_reached").body["exception"] = None


# Models that are made up.


@plant("synthetic.marked", "made up, and not marked")
def _(s: Story) -> None:
    del s.design["models"][1]["synthetic"]


@plant("synthetic.marked", "marked, and not made up")
def _(s: Story) -> None:
    s.design["models"][0]["synthetic"] = True


@plant("synthetic.marked", "made up, behind another provider's name")
def _(s: Story) -> None:
    s.design["models"][1]["provider"] = "openai"
    del s.design["models"][1]["synthetic"]
