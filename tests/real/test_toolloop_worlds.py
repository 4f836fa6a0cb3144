"""toolloop with the practice model on the quickstart's tasks, in real worlds: what it solves, and what it leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from namespace_bench import Bench, admitted, bench, kind

from proctor.agents.base import SkillPack, Turn
from proctor.agents.toolloop import Toolloop
from proctor.core.models import Answer, Finish, Message, Role, ToolCall, ToolSpec
from proctor.core.money import ZERO
from proctor.core.prices import Prices
from proctor.core.usage import Usage
from proctor.gateway.practice import Practice
from proctor.gateway.wire.formats import WIRES
from proctor.sandbox.base import PutItem
from proctor.sandbox.namespace.sandbox import NamespaceSandbox
from proctor.study.actors import ModelDesign

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real

QUICKSTART = Path(__file__).resolve().parents[2] / "examples/quickstart"
PACK = SkillPack("house-rules", QUICKSTART / "skills/house-rules", "0" * 64)
MODEL = ModelDesign(
    "practice", "practice", "practice-1", "practice", None, None, 2000, 60, None, None, None, Prices("none", ())
)


class Direct:
    """The practice model through its wire, with no money between."""

    def __init__(self) -> None:
        self.questions = 0

    async def ask(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, max_output_tokens: int | None = None
    ) -> Answer:
        self.questions += 1
        wire = WIRES[MODEL.api]
        reader = wire.reader()
        reader.feed((await Practice().send(wire.request(MODEL, messages, tools), deadline_sec=60)).body)
        reply = reader.close()
        assert reply.whole and reply.flags == ()
        message = Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native)
        return Answer(message, reply.finish, reply.usage or Usage(), ZERO, str(self.questions))


class Commands:
    """A model that runs these commands, and then stops."""

    def __init__(self, *commands: str) -> None:
        self._commands = commands
        self.results: list[str] = []

    async def ask(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, max_output_tokens: int | None = None
    ) -> Answer:
        self.results = [message.text for message in messages if message.role is Role.TOOL]
        at, calls = len(self.results), ()
        if at < len(self._commands):
            raw = json.dumps({"command": self._commands[at]})
            calls = (ToolCall(str(at), "shell", json.loads(raw), raw),)
        message = Message(Role.ASSISTANT, "", calls)
        return Answer(message, Finish.TOOLS if calls else Finish.STOP, Usage(), ZERO, "x")


def turn(world: NamespaceSandbox, output: Path, model: Direct | Commands, task: str, *skills: SkillPack) -> Turn:
    output.mkdir()
    return Turn(world, task, "/app", {}, None, output, 600.0, skills, model=model)


@pytest.mark.parametrize("skills", [(), (PACK,)], ids=["no-skill", "with-skill"])
@pytest.mark.parametrize("task", sorted(path.name for path in (QUICKSTART / "tasks").iterdir()))
async def test_the_practice_model_solves_what_its_rules_fit(
    bench: Bench, tmp_path: Path, task: str, skills: tuple[SkillPack, ...]
) -> None:
    folder = QUICKSTART / "tasks" / task
    world = await bench.start()
    await world.put([PutItem("/app", source=folder / "environment"), PutItem("/logs/verifier")])
    await world.put([PutItem(f"/skills/{pack.name}", source=pack.path) for pack in skills])
    model = Direct()
    instruction = (folder / "instruction.md").read_text()
    ended = await Toolloop({}, tmp_path).act(turn(world, tmp_path / "agent", model, instruction, *skills))
    assert (ended.exit_code, ended.timed_out, ended.limit_hit) == (0, False, None)
    await world.put([PutItem("/tests", source=folder / "tests")])
    _, said = await bench.run(world, "sh /tests/test.sh; echo; cat /logs/verifier/reward.txt")
    solved = {"archive-script", "merge-bookings"} | ({"orders-to-json", "top-words"} if skills else set())
    assert said.split()[-1].startswith("1" if task in solved else "0"), said
    assert 3 <= model.questions <= 6


async def test_a_command_that_runs_on_is_ended_and_nothing_of_it_is_left(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start()
    await world.put([PutItem("/app")])
    model = Commands("echo before; sleep 3600", "sleep 3600 & echo beside")
    agent = Toolloop({"shell_timeout": 6}, tmp_path)
    ended = await agent.act(turn(world, tmp_path / "agent", model, "Wait."))
    assert (ended.exit_code, ended.timed_out) == (0, False)
    assert model.results[0] == "timed out: ended after 6 s\nbefore\n"
    assert model.results[1] == "exit code 0; 1 processes that it left running were ended\nbeside\n"
    assert await world.kill_all() == 0


async def test_at_the_deadline_the_command_is_ended_with_the_attempt(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start()
    await world.put([PutItem("/app")])
    model = Commands("sleep 3600")
    (tmp_path / "agent").mkdir()
    late = Turn(world, "Wait.", "/app", {}, None, tmp_path / "agent", 0.5, model=model)
    ended = await Toolloop({}, tmp_path).act(late)
    assert (ended.timed_out, ended.limit_hit) == (True, None)
    assert await world.kill_all() == 0
