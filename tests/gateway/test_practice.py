"""The practice model: the rules of its pages, each on both sides, and the chat format around them."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.gateway.practice import OVERRUN_TOKENS, Practice, respond
from proctor.gateway.rules.rows import UNKNOWN, reckon
from proctor.gateway.wire.base import Call

MODEL = "practice-1"
SHELL = {"name": "shell", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
CALCULATOR = {"name": "calculate", "parameters": {"type": "object", "properties": {"sum": {"type": "string"}}}}
SKILL = "# Skill: house\n\n- **usage status**: `2` (a wrong command line)\n"


def body(
    messages: Sequence[dict[str, Any]], *, tools: Sequence[dict[str, Any]] = (), model: str = MODEL, **more: Any
) -> bytes:
    wrapped = [{"type": "function", "function": tool} for tool in tools]
    return json.dumps({"model": model, "messages": messages, "tools": wrapped, **more}).encode()


def asked(question: str, system: str = "") -> list[dict[str, Any]]:
    user = [{"role": "user", "content": question}]
    return [{"role": "system", "content": system}, *user] if system else user


def answer(messages: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    status, said = respond(body(messages, **more))
    assert status == 200, said
    return said


def text(question: str, system: str = "", **more: Any) -> str:
    return str(answer(asked(question, system), **more)["choices"][0]["message"]["content"])


def drawn(questions: Sequence[str], rights: Sequence[str], system: str = "", **more: Any) -> list[bool]:
    return [text(question, system, **more) == right for question, right in zip(questions, rights, strict=True)]


ROLES = ("system", "user", "assistant", "tool")
KEYS = ("role", "content", "text", "tool_calls", "function", "name", "arguments", "id", "tools", "parameters", "type")
SUMS = [f"What is {n} * {n + 7}?" for n in range(200)]
VALUES = [str(n * (n + 7)) for n in range(200)]


def test_sums_are_right_as_often_as_the_page_says_and_more_often_with_a_skill() -> None:
    plain, skilled = drawn(SUMS, VALUES), drawn(SUMS, VALUES, SKILL)
    assert 100 <= sum(plain) <= 140
    assert 155 <= sum(skilled) <= 185
    assert all(with_it >= without for without, with_it in zip(plain, skilled, strict=True))
    assert drawn(SUMS, VALUES, "Be brief.") == plain
    assert drawn(SUMS, VALUES, model="practice-2") != plain


@pytest.mark.parametrize(
    ("sum", "value"),
    [
        ("2 + 3 * 4", 14),
        ("2*3+4*5", 26),
        ("10 − 2 × 3 ÷ 4", Fraction(17, 2)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("1 - 2 - 3", -4),
        ("8 / 0", None),
    ],
)
def test_sums(sum: str, value: Fraction | int | None) -> None:
    assert reckon(sum) == value


@given(st.lists(st.integers(0, 10**18 - 1), min_size=2, max_size=21), st.data())
def test_sums_are_exact(numbers: list[int], data: st.DataObject) -> None:
    signs = data.draw(st.lists(st.sampled_from("+-*"), min_size=len(numbers) - 1, max_size=len(numbers) - 1))
    sum = str(numbers[0]) + "".join(f" {sign} {number}" for sign, number in zip(signs, numbers[1:], strict=True))
    assert reckon(sum) == eval(sum)


def some(questions: Sequence[str], **more: Any) -> set[str]:
    return {text(question, **more) for question in questions}


def test_choices_are_answered_with_a_letter() -> None:
    questions = [f"What is {n} + 1?\n\nA) {n}\nB) {n + 1}\nC) {n + 2}" for n in range(60)]
    said = [text(question) for question in questions]
    assert set(said) == {"A", "B", "C"}
    assert 25 <= said.count("B") <= 50


def test_choices_that_it_does_not_understand_are_picked() -> None:
    assert some([f"Who is number {n}?\nA) Ada\nB) Bea" for n in range(30)]) == {"A", "B"}


def test_words() -> None:
    assert some([f"Write the word `stressed` backwards, please ({n})." for n in range(30)]) == {"desserts", "stressed"}
    assert some([f"Write `lamp` in capital letters ({n})." for n in range(30)]) == {"LAMP", "lamp"}


def test_named_sums_are_answered_as_json() -> None:
    said = some([f"Answer in JSON ({n}). `both`: 17 + 4\n`half`: 1 / 3" for n in range(30)])
    assert '{"both": 21, "half": 0.333333}' in said
    assert {tuple(json.loads(each)) for each in said} == {("both", "half")}
    assert len(said) > 1


def test_a_convention_is_known_where_it_can_be_read_only() -> None:
    question = "Which is the `usage status` of the house?"
    assert text(question, SKILL) == "2"
    assert text(question) == UNKNOWN
    assert text(f"{question}\nA) 1\nB) 2", SKILL) == "B"


@pytest.mark.parametrize("question", ["Who are you?", "", "What is 8 / 0?", "7", "version 1.2.3", f"{'9' * 10**6} +"])
def test_what_it_does_not_understand(question: str) -> None:
    assert text(question) == UNKNOWN


def called(said: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    (call,) = said["choices"][0]["message"]["tool_calls"]
    assert said["choices"][0]["finish_reason"] == "tool_calls"
    return call["function"]["name"], json.loads(call["function"]["arguments"])


def gone_on(messages: list[dict[str, Any]], said: dict[str, Any], result: str) -> list[dict[str, Any]]:
    message = said["choices"][0]["message"]
    told = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": result}
    return [*messages, message, told]


def test_a_calculator_is_asked_and_believed() -> None:
    for question in SUMS[:20]:
        messages = asked(question)
        said = answer(messages, tools=[CALCULATOR])
        name, arguments = called(said)
        assert (name, arguments) == ("calculate", {"sum": question.removeprefix("What is ").removesuffix("?")})
        last = answer(gone_on(messages, said, " 391\n"), tools=[CALCULATOR])["choices"][0]
        assert (last["message"]["content"], last["finish_reason"]) == ("391", "stop")
        failed = answer(gone_on(messages, said, "not run: no such tool"), tools=[CALCULATOR])
        assert failed["choices"][0]["message"]["content"] == text(question)


@pytest.mark.parametrize(
    "parameters", [None, {}, {"properties": {}}, {"properties": {"n": {"type": "integer"}}}, {"properties": 7}], ids=str
)
def test_other_tools_are_left_alone(parameters: Any) -> None:
    assert text(SUMS[0], tools=[{"name": "other", "parameters": parameters}]) == text(SUMS[0])


def test_the_same_request_has_the_same_answer() -> None:
    request = body(asked(SUMS[3], SKILL))
    assert respond(request) == respond(request)


def test_tokens_are_four_bytes_each_rounded_up() -> None:
    usage = answer([{"role": "user", "content": "Wer bist dü?"}])["usage"]
    assert usage == {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8}
    messages = asked(SUMS[0])
    said = answer(messages, tools=[CALCULATOR])
    call = said["choices"][0]["message"]["tool_calls"][0]["function"]
    size = len("I have it reckoned.calculate") + len(call["arguments"])
    assert said["usage"]["completion_tokens"] == -(-size // 4)
    told = answer(gone_on(messages, said, "xy"), tools=[CALCULATOR])["usage"]["prompt_tokens"]
    assert told == -(-(len(SUMS[0]) + size + 2) // 4)


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_no_answer_is_longer_than_the_request_allows(limit: str) -> None:
    said = answer(asked("Who are you?"), **{limit: 1})
    assert (said["choices"][0]["message"]["content"], said["choices"][0]["finish_reason"]) == (UNKNOWN[:4], "length")
    assert said["usage"]["completion_tokens"] == 1
    said = answer(asked(SUMS[0]), tools=[CALCULATOR], **{limit: 5})
    assert "tool_calls" not in said["choices"][0]["message"]
    whole = answer(asked("Who are you?"), **{limit: 4})
    assert whole["choices"][0]["finish_reason"] == "stop"


def test_drills() -> None:
    question = asked("Who are you?")
    assert respond(body(question, model="practice-limited"))[0] == 429
    assert respond(body(question, model="practice-down"))[0] == 503
    assert "usage" not in answer(question, model="practice-unmetered")
    assert answer(question, model="practice-overrun")["usage"]["completion_tokens"] == OVERRUN_TOKENS + 4


@pytest.mark.parametrize(
    "request_body",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"messages": []}',
        b'{"model": 1, "messages": []}',
        b'{"model": "m"}',
        b'{"model": "m", "messages": {}}',
        b'{"model": "m", "messages": [1]}',
        b'{"model": "m", "messages": [{"role": "assistant", "tool_calls": [{}]}]}',
        b'{"model": "m", "messages": [], "tools": [{}]}',
        b'{"model": "m", "messages": [], "max_tokens": "many"}',
    ],
)
def test_what_is_no_request_is_answered_as_one_that_is_wrong(request_body: bytes) -> None:
    status, said = respond(request_body)
    assert (status, said["error"]["type"]) == (400, "invalid_request_error")


async def test_it_is_an_upstream() -> None:
    practice = Practice()
    reply = await practice.send(Call("/v1/chat/completions", {}, body(asked("Who are you?"))), deadline_sec=1)
    await practice.close()
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert json.loads(reply.body)["model"] == MODEL


class Session:
    """The practice model with a shell: its commands are run on the host, in a folder made for it."""

    def __init__(self, work: Path, task: str, system: str = "") -> None:
        self.commands: list[str] = []
        messages = asked(task, system)
        for _ in range(30):
            said = answer(messages, tools=[SHELL])
            message = said["choices"][0]["message"]
            if "tool_calls" not in message:
                self.last = message["content"]
                return
            name, arguments = called(said)
            assert name == "shell"
            self.commands.append(arguments["command"])
            ran = subprocess.run(
                ["bash", "-c", arguments["command"]],
                cwd=work,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
            )
            messages = gone_on(messages, said, f"exit code {ran.returncode}\n{ran.stdout}")
        raise AssertionError("it does not stop")


def test_it_looks_and_leaves_alone_what_it_does_not_understand(tmp_path: Path) -> None:
    session = Session(tmp_path, "Make `/nowhere/a` and `/nowhere/b c` better than `/nowhere/a`.")
    assert len(session.commands) == 2
    assert "for file in /nowhere/a; do" in session.commands[1]
    assert session.last == "None of my rules fits this task: I leave everything as it is."
    assert list(tmp_path.iterdir()) == []


def test_it_does_what_the_task_says_in_so_many_words(tmp_path: Path) -> None:
    task = "Write `it's $HOME` to `a file.txt`.\nThen run `cp 'a file.txt' copy;\nexit 3`."
    session = Session(tmp_path, task)
    assert (tmp_path / "copy").read_text() == "it's $HOME\n"
    assert session.last == "Done. My commands ended so: exit code 0; exit code 3."


def test_it_follows_a_skill_that_it_can_see_where_the_task_says_its_words(tmp_path: Path) -> None:
    skill = """\
        - When a task says `Most Frequent
          words`, run `touch counted`.
        - When a task says `orders.csv`, run `touch exported`.
        """
    # the file is read by its name in the prompt, which lies outside of this folder: here it is the same command
    system = "Read /skills/practised/SKILL.md and /skills/practised/SKILL.md first."
    messages = asked("Print the most frequent\nwords.", system)
    said = answer(messages, tools=[SHELL])
    messages = gone_on(messages, said, "exit code 0\n.")
    said = answer(messages, tools=[SHELL])
    assert called(said)[1] == {"command": "cat /skills/practised/SKILL.md"}
    read = gone_on(messages, said, f"exit code 0\n{textwrap.dedent(skill)}")
    said = answer(read, tools=[SHELL])
    assert called(said)[1] == {"command": "touch counted"}
    said = answer(gone_on(read, said, "exit code 0\n"), tools=[SHELL])
    assert said["choices"][0]["message"]["content"].startswith("Done.")
    said = answer(gone_on(messages, answer(messages, tools=[SHELL]), "exit code 1\nno such file"), tools=[SHELL])
    assert said["choices"][0]["message"]["content"].startswith("None of my rules fits")


@pytest.mark.parametrize(("fault", "mended"), [("<", "<="), (">=", ">"), ("=>", None)])
def test_it_mends_a_program_by_its_examples(tmp_path: Path, fault: str, mended: str | None) -> None:
    right = "value = int(input())\nprint('small' if value {} 10 else 'large')\n"
    program = tmp_path / "size.py"
    program.write_text(right.format(fault))
    (tmp_path / "examples").mkdir()
    for name, number, size in (
        ("a", 10, ("small", "large")),
        ("b", 11, ("large", "small")),
        ("c", 9, ("small", "large")),
    ):
        (tmp_path / f"examples/{name}.in").write_text(f"{number}\n")
        (tmp_path / f"examples/{name}.out").write_text(f"{size[mended == '>']}\n")
    session = Session(tmp_path, "Find the fault.")
    assert len(session.commands) == 2
    assert program.read_text() == right.format(mended or fault)


def test_it_quotes_variables_of_scripts_where_the_task_speaks_of_spaces(tmp_path: Path) -> None:
    script = tmp_path / "copy.sh"
    bare = 'for file in $1/*; do\n    cp -- $file $2/ && n=$((n + 1))\ndone\necho "$n" $n\n'
    script.write_text(bare)
    Session(tmp_path, "Mend it.")
    assert script.read_text() == bare
    for _ in range(2):
        Session(tmp_path, "Mend it for names with spaces.")
        assert script.read_text() == (
            'for file in "$1"/*; do\n    cp -- "$file" "$2"/ && n=$((n + 1))\ndone\necho "$n" "$n"\n'
        )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(SUMS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(KEYS), JSON), st.lists(st.dictionaries(st.sampled_from(KEYS), JSON), max_size=4))
def test_any_shape_is_answered(more: dict[str, Any], messages: list[dict[str, Any]]) -> None:
    spoken = [{"role": role, **message} for role, message in zip(ROLES, messages, strict=False)]
    status, said = respond(json.dumps({"model": MODEL, "messages": spoken, **more}).encode())
    assert (status, "error" in said) in {(200, False), (400, True)}


@given(st.binary(max_size=200) | st.text().map(lambda said: body(asked(said, said), tools=[SHELL])))
def test_any_bytes_are_answered(data: bytes) -> None:
    status, said = respond(data)
    assert (status, "error" in said) in {(200, False), (400, True)}
