"""toolloop on tasks and on rows: what it asks, what it does, and each way in which it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_parts import HostWorld, Script, call, says, shell

from proctor.agents.base import Answered, RowTurn, SkillPack, Turn, make_agent
from proctor.agents.shell import COMMAND_BYTES, SHOWN_BYTES
from proctor.agents.toolloop import MAX_CALLS, SKILL_BYTES, Toolloop
from proctor.core.models import Answer, Message, Role, ToolCall, ToolSpec
from proctor.core.reasons import Reason
from proctor.core.redact import Redactor
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended

DONE = says("done")


def agent(base: Path, **settings: object) -> Toolloop:
    return Toolloop(settings, base)


async def act(
    folder: Path,
    *answers: Answer | BaseException | None,
    world: HostWorld | None = None,
    deadline_sec: float = 60.0,
    skills: tuple[SkillPack, ...] = (),
    secrets: tuple[str, ...] = (),
    leave_running: bool = False,
    **settings: object,
) -> tuple[Ended, Script]:
    (folder / "agent").mkdir()
    (folder / "work").mkdir()
    model = Script(answers)
    turn = Turn(
        sandbox=world or HostWorld(),
        instruction="Write hello to greeting.txt.",
        workdir=str(folder / "work"),
        env={},
        user=None,
        output=folder / "agent",
        deadline_sec=deadline_sec,
        skills=skills,
        model=model,
        redactor=Redactor(secrets),
        leave_running=leave_running,
    )
    return await agent(folder, **settings).act(turn), model


def test_it_says_what_it_needs(tmp_path: Path) -> None:
    made = agent(tmp_path)
    assert (made.needs_model, made.needs_solution) == (True, False)
    assert made.version().value


async def test_commands_are_run_until_an_answer_has_none(tmp_path: Path) -> None:
    first, second = says("writing", shell("echo hello > greeting.txt")), says("", shell("cat greeting.txt; exit 3"))
    ended, model = await act(tmp_path, first, second, DONE)
    assert (ended.exit_code, ended.signal, ended.timed_out, ended.limit_hit) == (0, None, False, None)
    assert (tmp_path / "work/greeting.txt").read_text() == "hello\n"
    assert model.results() == ["exit code 0\n(no output)", "exit code 3\nhello\n"]
    asked, tools = model.seen[-1]
    assert [message.role for message in asked] == [Role.SYSTEM, Role.USER, *[Role.ASSISTANT, Role.TOOL] * 2]
    assert asked[1].text == "Write hello to greeting.txt."
    assert (asked[2], asked[3].call_id, asked[3].tool) == (first.message, "call-0", "shell")
    assert [tool.name for tool in tools] == ["shell"]


async def test_what_is_said_and_done_can_be_read_along(tmp_path: Path) -> None:
    await act(tmp_path, says("I look", shell("echo found")), says("half \ud800 a pair"))
    log = (tmp_path / "agent/toolloop.txt").read_text()
    for part in ("Write hello", "I look", "echo found", "exit code 0\nfound", "half \\ud800 a pair", "[done]"):
        assert part in log
    assert [path.name for path in (tmp_path / "agent").iterdir()] == ["toolloop.txt"]


async def test_the_run_s_own_keys_are_not_written_down(tmp_path: Path) -> None:
    """Short ones too, which agents may hear since they may be words."""
    _, model = await act(tmp_path, says("It is ollama1.", shell("echo ollama1")), DONE, secrets=("ollama1",))
    assert model.results() == ["exit code 0\nollama1\n"]
    log = (tmp_path / "agent/toolloop.txt").read_text()
    assert "ollama1" not in log and log.count("[redacted:secret]") == 3


async def test_the_longest_command_that_linux_takes_is_run(tmp_path: Path) -> None:
    _, model = await act(tmp_path, says("", shell("echo ran #".ljust(COMMAND_BYTES, "x"))), DONE)
    assert model.results() == ["exit code 0\nran\n"]


async def test_what_looks_like_a_key_is_shown_to_the_model_alone(tmp_path: Path) -> None:
    key = f"sk-{'a1' * 20}"
    _, model = await act(tmp_path, says("", shell(f"echo {key}; echo DB_PASSWORD=hunter2")), says(f"It is {key}."))
    assert model.results() == [f"exit code 0\n{key}\nDB_PASSWORD=hunter2\n"]
    log = (tmp_path / "agent/toolloop.txt").read_text()
    assert "It is [redacted:key]." in log
    assert key not in log and "hunter2" not in log


async def test_several_calls_of_one_answer_are_made_in_order(tmp_path: Path) -> None:
    ended, model = await act(tmp_path, says("", *(shell(f"echo {n} >> all; cat all", n) for n in range(3))), DONE)
    assert ended.exit_code == 0
    assert model.results()[-1] == "exit code 0\n0\n1\n2\n"
    assert [message.call_id for message in model.seen[-1][0][-3:]] == ["call-0", "call-1", "call-2"]


async def test_thousands_of_calls_of_one_answer_are_not_made(tmp_path: Path) -> None:
    world = HostWorld()
    flood = says("", *(shell("echo ran", number) for number in range(MAX_CALLS + 3_000)))
    ended, model = await act(tmp_path, flood, DONE, world=world)
    assert (ended.exit_code, len(world.commands)) == (0, MAX_CALLS)
    results = model.results()
    assert len(results) == MAX_CALLS + 3_000, "each call has its answer, or providers refuse the next request"
    assert results[MAX_CALLS - 1] == "exit code 0\nran\n"
    assert set(results[MAX_CALLS:]) == {f"not run: one answer may make {MAX_CALLS} calls at most"}


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (call("bash", '{"command": "true"}'), "there is no tool 'bash'; there are: shell"),
        (call("shell", "echo"), "not a JSON object"),
        (call("shell", "[]"), "not a JSON object"),
        (call("shell", "{}"), '{"command": "…"}'),
        (call("shell", '{"command": 7}'), '{"command": "…"}'),
        (call("shell", '{"command": " "}'), '{"command": "…"}'),
        (call("shell", '{"command": "echo \\u0000"}'), "NUL"),
        (call("shell", '{"command": "echo \\ud800"}'), "surrogate"),
        (shell("#" * (COMMAND_BYTES + 1)), f"at most {COMMAND_BYTES} bytes"),
    ],
    ids=lambda value: value.raw[:40] if isinstance(value, ToolCall) else "",
)
async def test_a_call_that_cannot_be_made_is_answered(tmp_path: Path, bad: ToolCall, told: str) -> None:
    world = HostWorld()
    ended, model = await act(tmp_path, says("", bad), DONE, world=world)
    assert (ended.exit_code, world.commands) == (0, [])
    (result,) = model.results()
    assert result.startswith("not run: ")
    assert told in result


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"timed_out": True, "exit_code": None, "signal": 9}, "timed out: ended after 7 s\nx\n"),
        ({"exit_code": None, "signal": 11}, "ended by signal 11\nx\n"),
        (
            {"exit_code": None, "signal": 9, "limit_hit": "memory"},
            "ended by signal 9; the sandbox's limit was hit: memory\nx\n",
        ),
        ({"leftovers": 2}, "exit code 0; 2 processes that it left running were ended\nx\n"),
        ({"exit_code": None, "start_error": "no such user"}, "not run: no such user\nx\n"),
    ],
)
async def test_the_model_is_told_how_a_command_ended(tmp_path: Path, how: dict[str, object], told: str) -> None:
    world = HostWorld(lambda ended: replace(ended, **how))
    _, model = await act(tmp_path, says("", shell("echo x")), DONE, world=world, shell_timeout=7)
    assert model.results() == [told]


async def test_commands_have_the_time_that_is_left(tmp_path: Path) -> None:
    world = HostWorld()
    await act(tmp_path, says("", shell("true")), DONE, world=world, deadline_sec=50, shell_timeout=3600)
    assert 0 < world.commands[0].deadline_sec <= 50


@pytest.mark.parametrize("leave", [False, True])
async def test_commands_leave_servers_running_where_the_tests_ask_them(tmp_path: Path, leave: bool) -> None:
    world = HostWorld()
    await act(tmp_path, says("", shell("true")), DONE, world=world, leave_running=leave)
    assert [command.leave_running for command in world.commands] == [leave]


@pytest.mark.parametrize(("size", "dropped"), [(SHOWN_BYTES, 0), (SHOWN_BYTES + 1, 0), (10**6, 0), (40_000, 15_000)])
async def test_long_output_is_cut_in_the_middle(tmp_path: Path, size: int, dropped: int) -> None:
    world = HostWorld(lambda ended: replace(ended, output_bytes=ended.output_bytes - dropped))
    script = f"printf a; head -c {size - 2} /dev/zero | tr '\\0' x; printf z"
    _, model = await act(tmp_path, says("", shell(script)), DONE, world=world)
    (result,) = model.results()
    shown = result.removeprefix("exit code 0\n")
    if size <= SHOWN_BYTES:
        assert shown == "a" + "x" * (size - 2) + "z"
        return
    head, said, tail = shown.split("\n")
    assert len(head) + len(tail) == SHOWN_BYTES
    assert said == f"[… {size - SHOWN_BYTES} bytes left out …]"
    assert (head[0], tail[-1]) == ("a", "x" if dropped else "z")


async def test_output_that_is_no_text_is_shown_as_far_as_it_can_be(tmp_path: Path) -> None:
    _, model = await act(tmp_path, says("", shell("printf 'a\\377b'")), DONE)
    assert model.results() == ["exit code 0\na\ufffdb"]


async def test_the_step_limit_ends_it_after_what_was_asked_for_is_done(tmp_path: Path) -> None:
    ended, model = await act(tmp_path, says("", shell("echo x >> steps")), steps=3)
    assert (ended.exit_code, ended.limit_hit, len(model.seen)) == (0, "steps", 3)
    assert (tmp_path / "work/steps").read_text() == "x\n" * 3
    assert "[stopped: steps]" in (tmp_path / "agent/toolloop.txt").read_text()


async def test_a_last_step_without_a_call_is_no_limit(tmp_path: Path) -> None:
    ended, _ = await act(tmp_path, says("", shell("true")), DONE, steps=2)
    assert ended.limit_hit is None


@pytest.mark.parametrize(("tokens", "questions"), [(19, 2), (20, 2), (21, 3)])
async def test_the_token_limit_is_looked_at_before_each_question(tmp_path: Path, tokens: int, questions: int) -> None:
    ended, model = await act(tmp_path, says("", shell("true"), tokens=10), tokens=tokens)
    assert (ended.limit_hit, len(model.seen)) == ("tokens", questions)


async def test_the_deadline_ends_a_question_that_has_no_answer(tmp_path: Path) -> None:
    for deadline in (0.2, 5.0, 60.0):  # in which it comes to the question
        folder = tmp_path / str(deadline)
        folder.mkdir()
        ended, model = await act(folder, says("", shell("echo kept > kept")), None, deadline_sec=deadline)
        if len(model.seen) == 2:
            break
    assert (ended.timed_out, ended.limit_hit, len(model.seen)) == (True, None, 2)
    assert (folder / "work/kept").exists()


async def test_after_the_deadline_nothing_is_asked(tmp_path: Path) -> None:
    ended, model = await act(tmp_path, DONE, deadline_sec=0)
    assert (ended.timed_out, model.seen) == (True, [])


async def test_a_timeout_that_is_not_the_deadline_goes_through(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        await act(tmp_path, TimeoutError())


async def test_a_context_that_is_full_ends_it(tmp_path: Path) -> None:
    ended, _ = await act(tmp_path, says("", shell("true")), Refusal(Reason.CONTEXT_EXCEEDED, "too long"))
    assert (ended.exit_code, ended.limit_hit) == (0, "context")


@pytest.mark.parametrize("reason", [Reason.CEILING_REACHED, Reason.RATE_LIMITED, Reason.KEY_REJECTED], ids=str)
async def test_a_refusal_goes_through_and_leaves_only_the_log(tmp_path: Path, reason: Reason) -> None:
    with pytest.raises(Refusal) as raised:
        await act(tmp_path, says("", shell("echo x")), Refusal(reason, "no"))
    assert raised.value.reason is reason
    assert [path.name for path in (tmp_path / "agent").iterdir()] == ["toolloop.txt"]


async def test_cancelled_it_ends_at_once(tmp_path: Path) -> None:
    model = Script([None])
    task = asyncio.ensure_future(agent(tmp_path).answer(row(model)))
    await model.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_without_a_model_it_refuses(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as raised:
        await agent(tmp_path).answer(replace(row(Script([])), model=None))
    assert raised.value.reason is Reason.MODEL_NEEDED


def pack(folder: Path, name: str, text: str) -> SkillPack:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(text)
    return SkillPack(name, folder / name, sha256=name * 8)


async def test_skills_are_named_to_a_model_that_can_read_them(tmp_path: Path) -> None:
    skills = (pack(tmp_path, "one", "the secret"), pack(tmp_path, "two", "more"))
    _, model = await act(tmp_path, DONE, skills=skills, system="Be brief.")
    system = model.seen[0][0][0].text
    assert system.startswith("Be brief.")
    assert "/skills/one/SKILL.md\n- /skills/two/SKILL.md" in system
    assert "the secret" not in system


class Doubler:
    """A tool box with one tool."""

    specs: Sequence[ToolSpec] = (ToolSpec("double", "Doubles.", {"type": "object"}),)

    async def call(self, call: ToolCall) -> str:
        return str(2 * int((call.arguments or {})["n"]))


def row(model: Script, *, skills: tuple[SkillPack, ...] = (), messages: tuple[Message, ...] = ()) -> RowTurn:
    asked = messages or (Message(Role.USER, "What is twice 21?"),)
    return RowTurn(asked, Doubler(), deadline_sec=60, skills=skills, model=model)


async def test_a_row_is_answered_with_the_tools_of_the_study_only(tmp_path: Path) -> None:
    bad = says("", shell("ls"), call("double", "{"))
    model = Script([says("", call("double", '{"n": 21}')), bad, says("42")])
    assert await agent(tmp_path).answer(row(model)) == Answered("42")
    assert model.results()[0] == "42"
    assert [text.startswith("not run: ") for text in model.results()[1:]] == [True, True]
    assert [tool.name for tool in model.seen[0][1]] == ["double"]
    assert [message.role for message in model.seen[0][0]] == [Role.USER], "a row has the words of its set"


async def test_a_row_is_shown_the_skills_themselves(tmp_path: Path) -> None:
    skills = (pack(tmp_path, "short", "Doubling is adding."), pack(tmp_path, "long", "y" * (SKILL_BYTES + 1)))
    model = Script([says("42")])
    asked = (Message(Role.SYSTEM, "Answer in digits."), Message(Role.USER, "2 + 2?"))
    answering = agent(tmp_path, system="Think.")
    for _ in range(2):
        await answering.answer(row(model, skills=skills, messages=asked))
        system, *others = model.seen[-1][0]
        assert tuple(others) == asked
        assert system.text.startswith("Think.\n\n# Skill: short\n\nDoubling is adding.\n\n# Skill: long\n\nyyy")
        assert system.text.endswith("y\n[… the rest is left out …]")
        assert system.text.count("y") == SKILL_BYTES


@pytest.mark.parametrize(
    ("settings", "answer", "exception"),
    [
        ({"steps": 1}, says("let me see", call("double", '{"n": 1}')), Reason.STEP_LIMIT),
        ({"tokens": 5}, says("let me see", call("double", '{"n": 1}')), Reason.TOKEN_LIMIT),
        ({}, Refusal(Reason.CONTEXT_EXCEEDED, "too long"), Reason.CONTEXT_EXCEEDED),
        ({}, says(" \n"), None),
    ],
    ids=str,
)
async def test_a_row_without_a_last_word_has_no_answer(
    tmp_path: Path, settings: dict[str, object], answer: Answer | BaseException, exception: Reason | None
) -> None:
    assert await agent(tmp_path, **settings).answer(row(Script([answer]))) == Answered(None, exception)


async def test_a_row_has_a_deadline(tmp_path: Path) -> None:
    turn = replace(row(Script([None])), deadline_sec=0.01)
    assert await agent(tmp_path).answer(turn) == Answered(None, Reason.AGENT_TIMEOUT)


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": True}, "steps"),
        ({"steps": 2.0}, "steps"),
        ({"steps": 10**9}, "steps"),
        ({"tokens": -1}, "tokens"),
        ({"tokens": "many"}, "tokens"),
        ({"shell_timeout": 0}, "shell_timeout"),
        ({"shell_timeout": True}, "shell_timeout"),
        ({"shell_timeout": float("nan")}, "shell_timeout"),
        ({"shell_timeout": "2m"}, "shell_timeout"),
        ({"system": ""}, "system"),
        ({"system": 7}, "system"),
    ],
    ids=str,
)
def test_settings_out_of_range(tmp_path: Path, settings: dict[str, object], path: str) -> None:
    with pytest.raises(Refusal) as raised:
        Toolloop(settings, tmp_path)
    assert (raised.value.reason, raised.value.path) == (Reason.AGENT_OPTIONS_INVALID, f"agent.settings.{path}")


def test_an_unknown_setting_is_answered_with_the_closest(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="the closest is 'shell_timeout'") as raised:
        Toolloop({"shell_timeot": 3}, tmp_path)
    assert raised.value.reason is Reason.AGENT_OPTIONS_INVALID


@given(
    st.dictionaries(st.sampled_from(["steps", "tokens", "shell_timeout", "system", "env"]), st.integers() | st.text())
)
def test_settings_are_taken_or_refused(settings: dict[str, object]) -> None:
    try:
        Toolloop(settings, Path())
    except Refusal as refusal:
        assert refusal.reason is Reason.AGENT_OPTIONS_INVALID


async def test_oracle_and_nop_answer_rows(tmp_path: Path) -> None:
    turn = replace(row(Script([])), target="42")
    for name, answer in (("oracle", "42"), ("nop", None)):
        made = make_agent(name, {}, tmp_path)
        assert await made.answer(turn) == Answered(answer)
