"""How installed agents are started: what each is told, in its own words."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inside_parts import DONE, TOKEN, QuietWorld, door, turn

from bundle_parts import make_bundle
from proctor.agents.base import McpServer, SkillPack, Version, abilities
from proctor.agents.installed.claude_code import ClaudeCode
from proctor.agents.installed.codex import Codex
from proctor.agents.installed.mini_swe_agent import MiniSweAgent
from proctor.agents.installed.program import InstalledAgent, merged
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended, Exec

AGENTS = {
    "claude-code": (ClaudeCode, "anthropic"),
    "codex": (Codex, "responses"),
    "mini-swe-agent": (MiniSweAgent, "chat"),
}
STDIO = McpServer("files", "stdio", command="serve", args=("--all",))
HTTP = McpServer("web", "streamable-http", url="http://web:8000/mcp")
SSE = McpServer("old", "sse", url="http://old:8000/sse")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "data/proctor/agents"
    for name in AGENTS:
        make_bundle(folder, name, "1.2.3")
    return folder


def made(name: str, **settings: Any) -> InstalledAgent:
    return AGENTS[name][0](settings, Path())


async def started(name: str, tmp_path: Path, settings: dict[str, Any] | None = None, **changes: Any) -> QuietWorld:
    world = QuietWorld()
    said = {"door": door(AGENTS[name][1], effort="high"), **changes}
    assert await made(name, **(settings or {})).act(turn(world, tmp_path, **said)) is DONE
    return world


@pytest.mark.parametrize("name", AGENTS)
async def test_each_starts_its_own_program_in_a_folder_of_its_own(name: str, tmp_path: Path) -> None:
    world = await started(name, tmp_path, {"env": {"MORE": "yes"}}, user="dev", leave_running=True)
    (ran,) = world.commands
    assert ran.argv[:2] == ("sh", f"/opt/proctor/{name}/start")
    assert (ran.cwd, ran.user, ran.deadline_sec, ran.leave_running) == ("/app", "dev", 60.0, True)
    assert (ran.env["PROCTOR_TOKEN"], ran.env["LANG"], ran.env["MORE"]) == (TOKEN, "C.UTF-8", "yes")
    home, *files = world.items
    assert (home.target, home.mode, home.owner, home.fresh) == ("/agent/home", 0o700, "dev", True)
    assert files and all(item.owner == "dev" and item.mode == 0o600 for item in files)
    assert all(path.startswith("/agent/home/") for path in world.fetched)
    assert TOKEN not in " ".join(ran.argv) and all(TOKEN.encode() not in (item.content or b"") for item in files)


@pytest.mark.parametrize("name", AGENTS)
def test_each_reaches_its_model_from_inside_in_one_format(name: str) -> None:
    able = abilities(AGENTS[name][0])
    assert (able.needs_model, able.takes_model, able.inside, able.answers_rows) == (True, True, True, False)
    assert able.apis == {AGENTS[name][1]}


async def test_codex_is_told_all_in_its_configuration(tmp_path: Path) -> None:
    world = await started("codex", tmp_path, {"config": {"web_search": "live", "sandbox_mode": "read-only"}})
    (ran,) = world.commands
    assert (ran.argv[-1], ran.stdin, ran.env["CODEX_HOME"]) == ("-", b"Do it.", "/agent/home")
    config = tomllib.loads(world.content("/agent/home/config.toml").decode())
    assert (config["model"], config["model_reasoning_effort"]) == ("model-1", "high")
    assert (config["approval_policy"], config["sandbox_mode"]) == ("never", "danger-full-access")
    assert config["web_search"] == "live"
    provider = config["model_providers"][config["model_provider"]]
    assert provider == {
        "name": "proctor",
        "base_url": "http://127.0.0.1:47600/v1",
        "env_key": "PROCTOR_TOKEN",
        "wire_api": "responses",
    }


async def test_codex_searches_nowhere_and_names_no_effort_where_none_is_said(tmp_path: Path) -> None:
    world = await started("codex", tmp_path, door=door("responses"))
    config = tomllib.loads(world.content("/agent/home/config.toml").decode())
    assert config["web_search"] == "disabled"
    assert "model_reasoning_effort" not in config


async def test_claude_code_calls_no_other_model_than_the_trials(tmp_path: Path) -> None:
    world = await started("claude-code", tmp_path, {"config": {"permissions": {"allow": ["Bash"]}}})
    (ran,) = world.commands
    named = {name: value for name, value in ran.env.items() if name.endswith("_MODEL")}
    assert set(named.values()) == {"model-1"} and len(named) >= 7
    assert ran.argv[ran.argv.index("--model") + 1] == "model-1"
    assert (ran.env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"], ran.env["CLAUDE_CODE_EFFORT_LEVEL"]) == ("4000", "high")
    assert (ran.env["IS_SANDBOX"], ran.env["CLAUDE_CONFIG_DIR"], ran.stdin) == ("1", "/agent/home", b"Do it.")
    settings = json.loads(world.content("/agent/home/settings.json"))
    assert settings == {"permissions": {"deny": ["WebSearch"], "allow": ["Bash"]}}


async def test_mini_swe_agent_is_told_its_task_in_a_file_with_room_for_any(tmp_path: Path) -> None:
    long = "Do it. {{ not a template }} " * 10_000
    world = await started("mini-swe-agent", tmp_path, {"config": {"agent": {"step_limit": 9}}}, instruction=long)
    config = json.loads(world.content("/agent/home/config.yaml"))
    assert config["run"]["task"] == long
    assert config["agent"] == {"cost_limit": 0, "step_limit": 9, "mode": "yolo", "confirm_exit": False}
    assert config["model"] == {
        "model_name": "openai/model-1",
        "model_kwargs": {
            "max_tokens": 4000,
            "reasoning_effort": "high",
            "allowed_openai_params": ["reasoning_effort"],
        },
    }


@pytest.mark.parametrize(("name", "place"), [("codex", "skills"), ("claude-code", "skills")])
async def test_skills_are_put_where_each_looks(tmp_path: Path, name: str, place: str) -> None:
    pack = SkillPack("house-rules", tmp_path / "pack", "0" * 64)
    world = await started(name, tmp_path, skills=(pack,))
    assert [item.source for item in world.items if item.target == f"/agent/home/{place}/house-rules"] == [pack.path]


async def test_an_agent_that_knows_no_skills_is_told_where_they_lie(tmp_path: Path) -> None:
    pack = SkillPack("house-rules", tmp_path / "pack", "0" * 64)
    world = await started("mini-swe-agent", tmp_path, skills=(pack,))
    assert "\n- /skills/house-rules/SKILL.md" in json.loads(world.content("/agent/home/config.yaml"))["run"]["task"]


async def test_servers_of_the_task_stand_in_each_ones_own_words(tmp_path: Path) -> None:
    world = await started("codex", tmp_path, mcp_servers=(STDIO, HTTP))
    config = tomllib.loads(world.content("/agent/home/config.toml").decode())
    assert config["mcp_servers"] == {
        "files": {"command": "serve", "args": ["--all"]},
        "web": {"url": "http://web:8000/mcp"},
    }
    world = await started("claude-code", tmp_path, mcp_servers=(STDIO, HTTP, SSE))
    (ran,) = world.commands
    assert ran.argv[-3:] == ("--strict-mcp-config", "--mcp-config", "/agent/home/servers.json")
    assert json.loads(world.content("/agent/home/servers.json")) == {
        "mcpServers": {
            "files": {"type": "stdio", "command": "serve", "args": ["--all"]},
            "web": {"type": "http", "url": "http://web:8000/mcp"},
            "old": {"type": "sse", "url": "http://old:8000/sse"},
        }
    }


@pytest.mark.parametrize(("name", "server"), [("codex", SSE), ("mini-swe-agent", STDIO)])
async def test_a_server_that_an_agent_cannot_use_is_refused(tmp_path: Path, name: str, server: McpServer) -> None:
    with pytest.raises(Refusal) as caught:
        await started(name, tmp_path, mcp_servers=(server,))
    assert (caught.value.reason, caught.value.observed) == (Reason.AGENT_UNSUITABLE, server.transport)


@pytest.mark.parametrize("name", AGENTS)
async def test_without_a_door_none_starts(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refusal) as caught:
        await started(name, tmp_path, door=None)
    assert caught.value.reason is Reason.MODEL_NEEDED


@pytest.mark.parametrize(
    "settings",
    [
        {"confg": {}},
        {"config": "model = 1"},
        {"config": {1: 2}},
        {"env": {"A": 1}},
        {"env": ["A=1"]},
        {"version": 1},
        {"version": "../1.2.3"},
        {"version": ""},
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", AGENTS)
def test_settings_that_are_none_are_refused(name: str, settings: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as caught:
        AGENTS[name][0](settings, Path())
    assert caught.value.reason is Reason.AGENT_OPTIONS_INVALID


def test_the_version_that_is_asked_for_is_the_one_that_runs(data: Path) -> None:
    make_bundle(data, "codex", "1.3.0")
    assert made("codex").version() == Version("1.3.0")
    assert made("codex", version="1.2.3").version() == Version("1.2.3")
    with pytest.raises(Refusal) as caught:
        made("codex", version="9.9.9")
    assert caught.value.reason is Reason.BUNDLE_MISSING


def saying(text: str, **changes: Any) -> QuietWorld:
    async def say(command: Exec) -> Ended:
        command.stdout.write_text(text)
        return replace(DONE, **changes)

    return QuietWorld(say)


async def test_the_running_program_says_its_version(tmp_path: Path) -> None:
    world = saying("codex-cli 1.2.3\n")
    assert await made("codex").attest(turn(world, tmp_path)) == Version("1.2.3")
    (asked,) = world.commands
    assert asked.argv[-3:] == ("sh", "/opt/proctor/codex/start", "--version")


async def test_a_program_that_says_no_version_has_none(tmp_path: Path) -> None:
    assert (await made("codex").attest(turn(saying("hello"), tmp_path))).value is None


@pytest.mark.parametrize("how", [{"exit_code": 127}, {"exit_code": None, "signal": 11}, {"start_error": "no sh"}])
async def test_a_program_that_cannot_run_there_is_refused(tmp_path: Path, how: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as caught:
        await made("claude-code").attest(turn(saying("it needs one of: bash zsh\n", **how), tmp_path))
    assert caught.value.reason is Reason.BUNDLE_UNUSABLE


def test_tables_lie_over_each_other_at_every_depth() -> None:
    under = {"a": {"b": 1, "c": {"d": 2}}, "e": [1]}
    assert merged(under, {"a": {"c": {"d": 3}}, "e": [2]}) == {"a": {"b": 1, "c": {"d": 3}}, "e": [2]}
    assert under == {"a": {"b": 1, "c": {"d": 2}}, "e": [1]}
