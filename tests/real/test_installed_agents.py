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
from each_kind import PYTHON_IMAGE, SMALL_IMAGE, AnyBench, any_bench

from proctor.agents.base import McpServer, SkillPack, Turn, Version
from proctor.agents.installed.claude_code import ClaudeCode
from proctor.agents.installed.codex import Codex
from proctor.agents.installed.mini_swe_agent import MiniSweAgent
from proctor.agents.installed.program import InstalledAgent
from proctor.core.models import Door
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import PutItem
from scripted_models import Run, Say, ScriptedModels, Use, serving

__all__ = ["any_bench"]
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
    model: str = MODEL

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
    # a model that it knows is offered one tool, which runs programs that call all others
    "codex-programs": Client(Codex, "responses", "/v1/responses", Say("Done."), "authorization", "gpt-6-luna"),
}
clients = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())
# those that start in a moment, with time for it on a machine that is busy
START_SEC = 6.0
QUICK = ("claude-code", "codex")
quick_clients = pytest.mark.parametrize("client", [CLIENTS[name] for name in QUICK], ids=QUICK)


def logs(turn: Turn) -> str:
    return "\n".join(path.read_text("utf-8", "replace")[-2000:] for path in sorted(turn.output.glob("*.txt")))


@asynccontextmanager
async def at_work(
    any_bench: AnyBench,
    agent: InstalledAgent,
    client: Client,
    models: ScriptedModels,
    *,
    image: str = PYTHON_IMAGE,
    **said: Any,
) -> AsyncIterator[Turn]:
    """A turn in a world that reaches its model and nothing else."""
    started = await any_bench.start(network=Network.GATEWAY_ONLY, bundles=(agent.installed.as_bundle(),), image=image)
    await started.put([PutItem("/app", mode=0o777), PutItem("/logs/agent", mode=0o777)])
    output = any_bench.folder / "agent"
    output.mkdir()
    async with serving(models, await started.listen()):

        def last_ns() -> int:
            """A model that is to fall silent was heard just now, until it has."""
            talks = models.silent_from is not None and len(models.main) <= models.silent_from
            return time.monotonic_ns() if talks else models.last_ns

        door = Door(models.base_url, TOKEN, client.model, client.api, "high", 4_000, last_ns)
        yield replace(
            Turn(started, "Write the right word into answer.", "/app", {}, None, output, 1200.0, door=door), **said
        )


@clients
async def test_each_solves_a_task_with_its_own_tool(any_bench: AnyBench, tmp_path: Path, client: Client) -> None:
    agent = client.made(tmp_path)
    models = ScriptedModels([WRITE, client.last])
    async with at_work(any_bench, agent, client, models) as turn:
        assert await agent.attest(turn) == agent.version() == Version(agent.installed.version)
        ended = await agent.act(turn)
        assert (ended.exit_code, ended.timed_out, ended.limit_hit) == (0, False, None), logs(turn)
        _, answer = await any_bench.run(turn.sandbox, "sh", "-c", "cat /app/answer")
    assert answer == "right"
    assert [(seen.method, seen.path) for seen in models.main] == [("POST", client.path)] * 2
    assert {seen.body["model"] for seen in models.seen} == {client.model}
    assert all(TOKEN in {k.lower(): v for k, v in seen.headers.items()}[client.key] for seen in models.seen)
    assert [seen.path for seen in models.seen if seen.side] == []
    assert any("right" in result for result in models.results())


@clients
async def test_each_asks_for_the_effort_and_the_output_of_its_trial(
    any_bench: AnyBench, tmp_path: Path, client: Client
) -> None:
    agent = client.made(tmp_path)
    models = ScriptedModels([client.last])
    async with at_work(any_bench, agent, client, models) as turn:
        assert (await agent.act(turn)).exit_code == 0, logs(turn)
    body = models.main[0].body
    effort, most = {
        "chat": (body.get("reasoning_effort"), body.get("max_tokens")),
        "anthropic": (body.get("output_config", {}).get("effort"), body.get("max_tokens")),
        # it names no bound: the gateway's own holds
        "responses": (body.get("reasoning", {}).get("effort"), 4_000),
    }[client.api]
    assert (effort, most) == ("high", 4_000)


@clients
async def test_each_works_as_a_user_without_rights_and_leaves_its_log(
    any_bench: AnyBench, tmp_path: Path, client: Client
) -> None:
    agent = client.made(tmp_path)
    models = ScriptedModels([Run("id -u > answer; cat answer"), client.last])
    async with at_work(any_bench, agent, client, models, user="nobody") as turn:
        assert await agent.attest(turn) == agent.version()
        assert (await agent.act(turn)).exit_code == 0, logs(turn)
        _, answer = await any_bench.run(
            turn.sandbox, "sh", "-c", "id -u nobody; cat /app/answer; stat -c %a /agent/home"
        )
    assert len(set(answer.split()[:2])) == 1 and answer.split()[2] == "700"
    brought = [path for path in turn.output.rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl")]
    assert any("id -u > answer" in path.read_text() for path in brought)
    assert TOKEN not in "".join(path.read_text("utf-8", "replace") for path in turn.output.rglob("*") if path.is_file())


@clients
async def test_skills_reach_each_model(any_bench: AnyBench, tmp_path: Path, client: Client) -> None:
    agent = client.made(tmp_path)
    skill = tmp_path / "skill"
    skill.mkdir()
    (skill / "SKILL.md").write_text(
        "---\nname: house-rules\ndescription: What holds in zanzibar houses.\n---\nBe brief.\n"
    )
    models = ScriptedModels([client.last])
    async with at_work(any_bench, agent, client, models, skills=(SkillPack("house-rules", skill, "0" * 64),)) as turn:
        await turn.sandbox.put([PutItem("/skills/house-rules", source=skill)])
        assert (await agent.act(turn)).exit_code == 0, logs(turn)
    asked = json.dumps(models.main[0].body)
    assert "house-rules" in asked
    assert "zanzibar" in asked or client.api == "chat"


SERVER = """\
import json, sys
def say(of, **result):
    print(json.dumps({"jsonrpc": "2.0", "id": of["id"], "result": result}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        version = asked["params"]["protocolVersion"]
        say(asked, protocolVersion=version, capabilities={"tools": {}}, serverInfo={"name": "words", "version": "1"})
    elif asked.get("method") == "tools/list":
        schema = {"type": "object", "properties": {}}
        say(asked, tools=[{"name": "right_word", "description": "Tells the right word.", "inputSchema": schema}])
    elif "id" in asked:
        say(asked)
"""


@pytest.mark.parametrize("name", ["claude-code", "codex"])
async def test_servers_of_the_task_are_started(any_bench: AnyBench, tmp_path: Path, name: str) -> None:
    client = CLIENTS[name]
    agent = client.made(tmp_path)
    models = ScriptedModels([client.last])
    words = McpServer("words", "stdio", command="python3", args=("/srv/words.py",))
    async with at_work(any_bench, agent, client, models, mcp_servers=(words,)) as turn:
        _, found = await any_bench.run(turn.sandbox, "sh", "-c", "command -v python3")
        if not found:
            pytest.skip("no python3 in worlds of this host, and the server is in Python")
        await turn.sandbox.put([PutItem("/srv/words.py", content=SERVER.encode())])
        assert (await agent.act(turn)).exit_code == 0, logs(turn)
    assert "words" in json.dumps(models.main[0].body)


@quick_clients
async def test_a_model_that_falls_silent_ends_each_as_idle(any_bench: AnyBench, tmp_path: Path, client: Client) -> None:
    agent = client.made(tmp_path)
    models = ScriptedModels([WRITE], silent_from=1)
    async with at_work(any_bench, agent, client, models, idle_sec=3.0) as turn:
        ended = await agent.act(turn)
        assert await turn.sandbox.kill_all() == 0
    assert (ended.limit_hit, ended.timed_out) == ("idle", False)
    assert len(models.main) == 2


@quick_clients
async def test_at_its_deadline_nothing_of_it_is_left(any_bench: AnyBench, tmp_path: Path, client: Client) -> None:
    agent = client.made(tmp_path)
    models = ScriptedModels([Run("sleep 3600 & sleep 3600")])
    async with at_work(any_bench, agent, client, models, deadline_sec=START_SEC) as turn:
        ended = await agent.act(turn)
        assert await turn.sandbox.kill_all() == 0
    assert (ended.timed_out, ended.limit_hit) == (True, None)


@clients
async def test_each_runs_in_a_root_without_python_node_or_bash(
    any_bench: AnyBench, tmp_path: Path, client: Client
) -> None:
    agent = client.made(tmp_path)
    models = ScriptedModels([WRITE, client.last])
    async with at_work(any_bench, agent, client, models, image=SMALL_IMAGE) as turn:
        if client.agent_class.shells:
            with pytest.raises(Refusal) as caught:
                await agent.attest(turn)
            assert caught.value.reason is Reason.BUNDLE_UNUSABLE and "bash" in caught.value.message
            return
        assert await agent.attest(turn) == agent.version()
        assert (await agent.act(turn)).exit_code == 0, logs(turn)
        _, answer = await any_bench.run(turn.sandbox, "sh", "-c", "cat /app/answer")
    assert answer == "right"


@pytest.mark.parametrize(
    ("name", "settings", "use"),
    [
        (
            "claude-code",
            {"env": {"CLAUDE_CODE_SUBAGENT_MODEL": "another-1"}},
            Use("Agent", {"description": "Look", "prompt": "Look.", "subagent_type": "general-purpose"}),
        ),
        ("codex", {}, Use("spawn_agent", {"message": "Look.", "model": "gpt-6-luna"}, "multi_agent_v1")),
    ],
    ids=["claude-code", "codex"],
)
async def test_what_an_agent_asks_of_another_model_is_seen_and_ends_nothing(
    any_bench: AnyBench, tmp_path: Path, name: str, settings: dict[str, Any], use: Use
) -> None:
    client = CLIENTS[name]
    agent = client.made(tmp_path, **settings)
    models = ScriptedModels([use, Run("true"), WRITE, client.last], model=MODEL)
    # the main thread goes on once the other model was asked for
    models.until = lambda: any(seen.status == 404 for seen in models.seen)
    async with at_work(any_bench, agent, client, models) as turn:
        assert (await agent.act(turn)).exit_code == 0, logs(turn)
        _, answer = await any_bench.run(turn.sandbox, "sh", "-c", "cat /app/answer")
    assert answer == "right"
    refused = [seen for seen in models.seen if seen.status == 404]
    assert {seen.body["model"] for seen in refused} - {MODEL} == {seen.body["model"] for seen in refused} != set()
    assert len(models.main) == 4


async def test_the_agents_that_claude_code_starts_ask_the_trials_model(any_bench: AnyBench, tmp_path: Path) -> None:
    client = CLIENTS["claude-code"]
    agent = client.made(tmp_path)
    started = {"description": "Look", "prompt": "Look.", "subagent_type": "general-purpose", "run_in_background": False}
    models = ScriptedModels([Use("Agent", started), Say("It is there."), client.last])
    async with at_work(any_bench, agent, client, models) as turn:
        assert (await agent.act(turn)).exit_code == 0, logs(turn)
    assert [seen.body["model"] for seen in models.seen] == [MODEL] * 3
    assert any("It is there." in result for result in models.results())
