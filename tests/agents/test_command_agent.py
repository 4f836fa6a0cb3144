"""The command agent: what its program is told, and where its model is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from inside_parts import DONE, TOKEN, QuietWorld, door, turn

from proctor.agents.command import Command
from proctor.agents.environment import variables
from proctor.sandbox.base import Ended, Exec

URL = "http://127.0.0.1:47600"
OWN = {"PROCTOR_BASE_URL": URL, "PROCTOR_TOKEN": TOKEN, "PROCTOR_MODEL": "model-1"}
OPENAI = {"OPENAI_BASE_URL": f"{URL}/v1", "OPENAI_API_BASE": f"{URL}/v1", "OPENAI_API_KEY": TOKEN}
ANTHROPIC = {"ANTHROPIC_BASE_URL": URL, "ANTHROPIC_API_KEY": TOKEN, "ANTHROPIC_AUTH_TOKEN": TOKEN}
GEMINI = {"GOOGLE_GEMINI_BASE_URL": URL, "GEMINI_API_KEY": TOKEN, "GOOGLE_API_KEY": TOKEN}
DIRECT = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


@pytest.mark.parametrize(
    ("api", "family"),
    [("chat", OPENAI), ("responses", OPENAI), ("practice", OPENAI), ("anthropic", ANTHROPIC), ("gemini", GEMINI)],
)
def test_only_the_variables_of_the_models_own_format_are_set(api: str, family: dict[str, str]) -> None:
    assert variables(api, URL, TOKEN, "model-1") == {**OWN, **family, **DIRECT, "PROCTOR_API": api}
    assert "PROCTOR_MODEL" not in variables(api, URL, TOKEN, None)


async def test_the_program_finds_its_model_and_its_instruction(tmp_path: Path) -> None:
    world = QuietWorld()
    agent = Command({"command": ["solve", "--all"], "env": {"PROCTOR_MODEL": "mine", "MODE": "fast"}}, tmp_path)
    assert await agent.act(turn(world, tmp_path, door=door("anthropic"), user="dev", leave_running=True)) is DONE
    (ran,) = world.commands
    assert (ran.argv, ran.cwd, ran.user, ran.stdin, ran.deadline_sec) == (
        ("solve", "--all"),
        "/app",
        "dev",
        b"Do it.",
        60.0,
    )
    assert ran.leave_running
    told = {"LANG": "C.UTF-8", "PROCTOR_INSTRUCTION": "/agent/instruction.md", "PROCTOR_MODEL": "mine", "MODE": "fast"}
    assert ran.env == {**variables("anthropic", URL, TOKEN, "model-1"), **told}
    assert world.content("/agent/instruction.md") == b"Do it."


async def test_without_a_model_nothing_points_at_one(tmp_path: Path) -> None:
    world = QuietWorld()
    await Command({"command": "true"}, tmp_path).act(turn(world, tmp_path))
    (ran,) = world.commands
    assert ran.env == {"LANG": "C.UTF-8", "PROCTOR_INSTRUCTION": "/agent/instruction.md"}
    assert not ran.leave_running


async def test_a_program_that_cannot_start_has_the_status_that_shells_give(tmp_path: Path) -> None:
    async def missing(command: Exec) -> Ended:
        return replace(DONE, exit_code=None, start_error="no such program")

    ended = await Command({"command": ["nothing"]}, tmp_path).act(turn(QuietWorld(missing), tmp_path))
    assert (ended.exit_code, ended.start_error) == (127, "no such program")
