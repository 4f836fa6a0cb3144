"""Installed agents in whole runs: every call of theirs is on the record, priced to the cent, and nothing else is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from each_kind import kind_or_skip
from provider_runs import KEY, VARIABLE, model
from real_runs import Leftovers, Proctor, bodies, finals, has_entry, proctor, write_task

from money_runs import Plan, check_money
from proctor.agents.bundles import find_bundle
from proctor.core.money import Usd
from proctor.core.refusal import Refusal
from proctor.evidence.kinds import Kind
from scripted_models import INPUT, OUTPUT, Run, Say, ScriptedModels, Use, serving

__all__ = ["proctor"]
pytestmark = pytest.mark.real

WRITE = Run("printf right > answer; cat answer")
LAST = {"mini-swe-agent": Run("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")}
APIS = {"mini-swe-agent": "chat", "claude-code": "anthropic", "codex": "responses"}
kinds = pytest.mark.parametrize("kind", ["namespace", "docker"])


@dataclass
class Told:
    """A run that ended: its exit status, what it printed, and where it lies."""

    status: int
    said: str
    run: Path
    models: ScriptedModels = field(repr=False)


async def run(
    proctor: Proctor, kind: str, agent: str, models: ScriptedModels, more: str = "", dollars: int = 9_000_000
) -> Told:
    kind_or_skip(kind)
    try:
        find_bundle(agent)
    except Refusal as refusal:
        pytest.skip(str(refusal))
    folder = proctor.home / "study"
    write_task(folder / "tasks/one")
    proctor.env[VARIABLE] = KEY
    async with serving(models):
        api = APIS[agent]
        base_url = models.base_url + ("" if api == "anthropic" else "/v1")
        called = model("moon", base_url, api, max_output_tokens=4_000, request_timeout="10m")
        # Claude Code marks what may be cached
        called += 'cache_read = "1"\ncache_write = "1"\n'
        # a dollar for a token, and as many tokens at worst as a request has bytes
        money = Plan({"moon": "1000"}, allocation=f"{dollars}", margin=f"{dollars}").text(1)
        (folder / "study.toml").write_text(
            f'[study]\nname = "installed"\n[tasks]\npath = "tasks"\n[draw]\nseed = 20261130\n[models.moon]\n{called}'
            f'[agent]\nname = "{agent}"\ntimeout = "10m"\n{more}[sandbox]\nkind = "{kind}"\nnetwork = "gateway-only"\n'
            f'[arms.plain]\n[stages.main]\ntype = "standard"\nlanes = 1\n{money}'
        )
        words = ("run", folder, "--out", proctor.home / "run", "--waive", "git_dirty", "--yes", "--quiet")
        status, said = await asyncio.to_thread(proctor, *words)
    return Told(status, said, proctor.home / "run", models)


def holds(proctor: Proctor, told: Told, *, exchanges: int) -> None:
    """The run passed, and is what its model was asked: no more and no less."""
    assert told.status == 0, told.said
    proctor.check(told.run)
    assert {grade for grade, _, _ in finals(told.run).values()} == {"pass"}
    ended = bodies(told.run, Kind.EXCHANGE_ENDED)
    assert len(ended) == len(bodies(told.run, Kind.EXCHANGE_ADMITTED)) == exchanges
    assert len([seen for seen in told.models.seen if seen.status == 200]) == exchanges
    assert check_money(told.run).total == Usd(exchanges * (INPUT + OUTPUT) * 10**12)
    assert not [path for path in told.run.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@kinds
@pytest.mark.parametrize("agent", APIS)
async def test_each_solves_a_task_with_every_call_priced(proctor: Proctor, kind: str, agent: str) -> None:
    left = Leftovers()
    told = await run(proctor, kind, agent, ScriptedModels([WRITE, LAST.get(agent, Say("Done."))]))
    holds(proctor, told, exchanges=2)
    left.check(told.run)
    assert bodies(told.run, Kind.EXCHANGE_REFUSED) == []
    (started,) = bodies(told.run, Kind.AGENT_STARTED)
    installed = find_bundle(agent)
    assert started["version"] == {"available": True, "value": installed.version, "reason": None}
    assert installed.sha256 in (told.run / "design.json").read_text()
    (trial,) = finals(told.run)
    status, shown = proctor("show", told.run, trial, "--full")
    assert status == 0 and "printf right > answer; cat answer" in shown


@kinds
@pytest.mark.parametrize(
    ("agent", "more", "use"),
    [
        (
            "claude-code",
            'env = { CLAUDE_CODE_SUBAGENT_MODEL = "another-1" }\n',
            Use("Agent", {"description": "Look", "prompt": "Look.", "subagent_type": "general-purpose"}),
        ),
        ("codex", "", Use("spawn_agent", {"message": "Look.", "model": "gpt-6-luna"}, "multi_agent_v1")),
    ],
    ids=["claude-code", "codex"],
)
async def test_what_is_asked_of_another_model_is_refused_and_on_the_record(
    proctor: Proctor, kind: str, agent: str, more: str, use: Use
) -> None:
    models = ScriptedModels([use, Run("true"), WRITE, Say("Done.")])
    # the main thread goes on once the other model was asked for
    models.until = has_entry(proctor.home / "run", Kind.EXCHANGE_REFUSED)
    told = await run(proctor, kind, agent, models, more)
    holds(proctor, told, exchanges=4)
    refused = bodies(told.run, Kind.EXCHANGE_REFUSED)
    assert {body["reason"] for body in refused} == {"model_not_listed"}
    assert {seen.body["model"] for seen in told.models.seen} == {"moon-1"}


@kinds
async def test_what_an_agent_does_beside_its_own_work_is_priced(proctor: Proctor, kind: str) -> None:
    started = {"description": "Look", "prompt": "Look.", "subagent_type": "general-purpose", "run_in_background": False}
    models = ScriptedModels([Use("Agent", started), Say("It is there."), WRITE, Say("Done.")])
    holds(proctor, await run(proctor, kind, "claude-code", models), exchanges=4)


@kinds
async def test_a_model_that_falls_silent_ends_the_attempt_as_idle(proctor: Proctor, kind: str) -> None:
    models = ScriptedModels([WRITE], silent_from=1)
    told = await run(proctor, kind, "codex", models, 'idle_timeout = "15s"\n')
    assert told.status == 0, told.said
    proctor.check(told.run)
    (ended,) = bodies(told.run, Kind.AGENT_ENDED)
    assert ended["exception"] == "idle_timeout"
    (final,) = finals(told.run).values()
    assert final[0] == "pass", "what it did until then is graded"


@pytest.mark.parametrize(("agent", "dollars"), [("mini-swe-agent", 8_000), ("claude-code", 60_000), ("codex", 50_000)])
async def test_an_agent_whose_money_has_run_out_stops_at_once(proctor: Proctor, agent: str, dollars: int) -> None:
    told = await run(proctor, "namespace", agent, ScriptedModels([Run("true")]), dollars=dollars)
    assert told.status == 4, told.said
    proctor.check(told.run)
    check_money(told.run)
    assert [body["reason"] for body in bodies(told.run, Kind.EXCHANGE_REFUSED)] == ["ceiling_reached"]
    assert bodies(told.run, Kind.EXCHANGE_ENDED)


# Codex gives up at a 429
@pytest.mark.parametrize(
    ("agent", "status"),
    [(agent, status) for agent in APIS for status in (429, 500) if (agent, status) != ("codex", 429)],
)
async def test_what_an_agent_tries_again_is_an_exchange_of_its_own(proctor: Proctor, agent: str, status: int) -> None:
    models = ScriptedModels([WRITE, LAST.get(agent, Say("Done."))], failing=[status])
    told = await run(proctor, "namespace", agent, models)
    assert told.status == 0, told.said
    proctor.check(told.run)
    assert {grade for grade, _, _ in finals(told.run).values()} == {"pass"}
    ended = bodies(told.run, Kind.EXCHANGE_ENDED)
    assert [(body["http_status"], body["outcome"]) for body in ended] == [(status, "released"), *[(200, "settled")] * 2]
    assert check_money(told.run).total == Usd(2 * (INPUT + OUTPUT) * 10**12)


async def test_an_agent_that_gives_up_on_its_provider_is_replaced(proctor: Proctor) -> None:
    models = ScriptedModels([WRITE, Say("Done.")], failing=[429])
    told = await run(proctor, "namespace", "codex", models)
    assert told.status == 0, told.said
    proctor.check(told.run)
    ended = bodies(told.run, Kind.ATTEMPT_ENDED)
    assert [(body["outcome"], body["exception"]) for body in ended] == [
        ("infrastructure", "rate_limited"),
        ("completed", None),
    ]
    assert {grade for grade, _, _ in finals(told.run).values()} == {"pass"}


async def test_an_agent_whose_model_the_study_keeps_it_from_is_not_graded(proctor: Proctor) -> None:
    dear = 'settings = { config = { model = { model_kwargs = { service_tier = "priority" } } } }\n'
    told = await run(proctor, "namespace", "mini-swe-agent", ScriptedModels([WRITE]), dear + 'idle_timeout = "30s"\n')
    assert told.status == 1, told.said
    proctor.check(told.run)
    assert [(grade, reason) for grade, reason, _ in finals(told.run).values()] == [("ungraded", "feature_unpriced")]
    assert told.models.seen == []
