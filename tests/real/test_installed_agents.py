"""Installed agents as they are, in real worlds: what each asks of its model, and what it makes of the answers."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from namespace_bench import Bench, admitted, bench, kind

from proctor.agents.base import McpServer, SkillPack, Turn, Version
from proctor.agents.installed.claude_code import ClaudeCode
from proctor.agents.installed.codex import Codex
from proctor.agents.installed.mini_swe_agent import MiniSweAgent
from proctor.agents.installed.program import InstalledAgent
from proctor.core.models import Door
from proctor.core.network import Network
from proctor.core.refusal import Refusal
from proctor.sandbox.base import PutItem
from scripted_models import Run, Say, ScriptedModels, serving

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real

MODEL, TOKEN = "model-1", "token-of-this-attempt"
WRITE = Run("printf right > answer; cat answer")


@dataclass(frozen=True)
class Client:
    """An agent, and how a script of its model ends its work."""

    agent_class: type[InstalledAgent]
    api: str
    path: str
    last: Run | Say
    key: str

    def made(self, base: Path, **settings: Any) -> InstalledAgent:
        try:
            return self.agent_class(settings, base)
        except Refusal as refusal:
            pytest.skip(str(refusal))


CLIENTS = {
    "mini-swe-agent": Client(
        MiniSweAgent,
        "chat",
        "/v1/chat/completions",
        Run("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
        "authorization",
    ),
    "claude-code": Client(ClaudeCode, "anthropic", "/v1/messages?beta=true", Say("Done."), "x-api-key"),
    "codex": Client(Codex, "responses", "/v1/responses", Say("Done."), "authorization"),
}
clients = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())


@asynccontextmanager
async def at_work(bench: Bench, agent: InstalledAgent, client: Client, models: ScriptedModels) -> AsyncIterator[Turn]:
    """A turn in a world that reaches its model and nothing else."""
    world = await bench.start(network=Network.GATEWAY_ONLY, bundles=(agent.bundle(),))
    await world.put([PutItem("/app", mode=0o777), PutItem("/logs/agent", mode=0o777)])
    output = bench.folder / "agent"
    output.mkdir()
    async with serving(models, await world.listen()):
        began = time.monotonic_ns()
        door = Door(models.base_url, TOKEN, MODEL, client.api, None, 4_000, lambda: began)
        yield Turn(world, "Write the right word into answer.", "/app", {}, None, output, 120.0, door=door)


@clients
async def test_each_solves_a_task_with_its_own_tool(bench: Bench, tmp_path: Path, client: Client) -> None:
    agent = client.made(tmp_path)
    models = ScriptedModels([WRITE, client.last])
    async with at_work(bench, agent, client, models) as turn:
        assert await agent.attest(turn) == agent.version() == Version(agent.installed.version)
        ended = await agent.act(turn)
        assert (ended.exit_code, ended.timed_out, ended.limit_hit) == (0, False, None), logs(turn)
        _, answer = await bench.run(turn.sandbox, "cat /app/answer")
    assert answer == "right"
    assert [(seen.method, seen.path) for seen in models.main] == [("POST", client.path)] * 2
    assert {seen.body["model"] for seen in models.seen} == {MODEL}
    assert all(TOKEN in {k.lower(): v for k, v in seen.headers.items()}[client.key] for seen in models.seen)
    assert [seen.path for seen in models.seen if seen.side] == []
    assert any("right" in result for result in models.results())


def logs(turn: Turn) -> str:
    return "\n".join(path.read_text("utf-8", "replace")[-2000:] for path in sorted(turn.output.glob("*.txt")))
