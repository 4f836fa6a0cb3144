"""Claude Code, Codex CLI and the providers' SDKs, as they are, on `proctor gateway`: all that they ask is recorded."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from test_command_sdks import ANTHROPIC, OPENAI, sdks

from proctor.agents.bundles import PROGRAM, find_bundle
from proctor.core.money import Usd
from proctor.core.refusal import Refusal
from proctor.evidence.callstate import read_calls
from scripted_models import INPUT, OUTPUT, Run, Say, ScriptedModels, serving

__all__ = ["sdks"]

SOURCES = Path(__file__).resolve().parents[2] / "src"
SEC = 1200
CODEX = """
model = "gpt-x"
model_provider = "own"
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"
[model_providers.own]
name = "own"
base_url = "{OPENAI_BASE_URL}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""


def program(agent: str) -> str:
    """The script that starts an installed agent; skips where it is not installed."""
    try:
        bundle = find_bundle(agent)
    except Refusal as refusal:
        pytest.skip(str(refusal))
    return str(bundle.folder / PROGRAM / "start")


async def opened(record: Path, url: str, api: str, *more: str) -> tuple[asyncio.subprocess.Process, dict[str, str]]:
    """A gateway at a dollar for a million tokens in and ten for those out, and its variables."""
    words = ["--upstream", url, "--api", api, "--price", "1,10,1,1", "--max-output-tokens", "64000", "--budget", "50"]
    gateway = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proctor", "gateway", *words, "--record", str(record), "--json", "--quiet", *more),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert gateway.stdout is not None
    said = b""
    while line := await gateway.stdout.readline():
        said += line
        if line == b"}\n":
            break
    variables: dict[str, str] = json.loads(said)["variables"]
    return gateway, variables


def start(agent: str, folder: Path, variables: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    if agent == "codex":
        (folder / "config.toml").write_text(CODEX.format(**variables))
        words = ["exec", "--skip-git-repo-check", "solve it"]
        return words, {**environment, "CODEX_HOME": str(folder)}
    words = ["-p", "solve it", "--dangerously-skip-permissions", "--model", "claude-test-1"]
    return words, {**environment, "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


@pytest.mark.parametrize(
    ("agent", "api", "below"),
    [("claude-code", "anthropic", ""), ("codex", "responses", "/v1")],
    ids=["claude", "codex"],
)
async def test_a_client_solves_a_task_and_all_it_asked_is_charged(
    tmp_path: Path, agent: str, api: str, below: str
) -> None:
    script = program(agent)
    record = tmp_path / "calls.jsonl"
    async with asyncio.timeout(SEC), serving(ScriptedModels([Run("echo 42 > answer.txt"), Say("done")])) as models:
        gateway, variables = await opened(record, models.base_url + below, api)
        words, environment = start(agent, tmp_path, variables)
        client = await asyncio.create_subprocess_exec(
            *("sh", script, *words),
            cwd=tmp_path,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await client.communicate()
        gateway.send_signal(signal.SIGINT)
        assert await gateway.wait() == 130
        asked = [seen for seen in models.seen if seen.status == 200]
    assert (tmp_path / "answer.txt").exists(), said
    assert (tmp_path / "answer.txt").read_text() == "42\n" and len(models.main) == 2
    state = read_calls(record)
    paid = [seen for seen in asked if not seen.path.endswith("count_tokens")]
    each = Usd(INPUT * 10**6 + OUTPUT * 10**7)
    assert sum(calls.exchanges for calls in state.models.values()) == len(asked)
    assert state.total == Usd(each.pico * len(paid)) and not state.open and not state.overruns
    bodies = [entry["body"] for entry in map(json.loads, record.read_bytes().splitlines())]
    sent = [json.loads(_text(body["request"])) for body in bodies if "held" in body and "exchange" in body]
    assert [body["model"] for body in sent] == [seen.body["model"] for seen in asked]


@pytest.mark.parametrize(
    ("api", "script", "below", "paid"),
    [("chat", OPENAI, "/v1", 4), ("anthropic", ANTHROPIC, "", 2)],
    ids=["openai", "anthropic"],
)
async def test_an_sdk_needs_the_variables_alone(
    tmp_path: Path, sdks: Path, api: str, script: str, below: str, paid: int
) -> None:
    record = tmp_path / "calls.jsonl"
    async with asyncio.timeout(SEC), serving(ScriptedModels([Say("right")])) as models:
        gateway, variables = await opened(record, models.base_url + below, api, "--model", "m-1")
        client = await asyncio.create_subprocess_exec(
            *("/usr/bin/python3", "-c", script),
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(sdks), **variables},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await client.communicate()
        gateway.send_signal(signal.SIGINT)
        assert await gateway.wait() == 130
    assert client.returncode == 0 and said.decode().count("right") == paid, said
    state = read_calls(record)
    assert state.total == Usd(paid * (INPUT * 10**6 + OUTPUT * 10**7)) and not state.open
    assert state.models["m-1"].exchanges == len(models.seen)


def _text(body: Any) -> str:
    assert isinstance(body["text"], str)
    return str(body["text"])
