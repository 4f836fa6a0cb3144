"""proctor show RUN TRIAL: what was said, what it cost, and nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_parts import Ask, Story, Try, design, make_run

TRIAL = "alpha/sun/only"


def message(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def called(number: int, command: str) -> list[dict[str, Any]]:
    function = {"name": "shell", "arguments": f'{{"command": "{command}"}}'}
    return [{"id": f"call_{number}", "type": "function", "function": function}]


def ask(messages: Sequence[dict[str, Any]], answer: dict[str, Any], **usage: int) -> Ask:
    finish = "tool_calls" if "tool_calls" in answer else "stop"
    choice = {"index": 0, "message": answer, "finish_reason": finish}
    tokens = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    response = {"object": "chat.completion", "model": "sun", "choices": [choice], "usage": tokens}
    return Ask({"model": "sun", "messages": list(messages)}, response, usage)


START = [message("system", "You have a shell."), message("user", "Count the words.")]
CALL = message("assistant", "I look first.", tool_calls=called(1, "wc -w words.txt"))
RESULT = message("tool", "42 words.txt", tool_call_id="call_1")
DONE = message("assistant", "There are 42.")
ASKS = (ask(START, CALL, input=1200, output=90), ask([*START, CALL, RESULT], DONE, input=1300, output=10))


async def shown(tmp_path: Path, *asks: Ask, name: str = "alpha") -> Path:
    frozen = design((name,), ("only",), models=("sun",))
    return (await make_run(tmp_path / "run", frozen, Story((Try(asks=asks),)))).path


async def test_each_message_is_shown_once(proctor, tmp_path: Path) -> None:
    run = await shown(tmp_path, *ASKS)
    out = proctor("show", run, TRIAL).out
    for text in ("You have a shell.", "Count the words.", "I look first.", "42 words.txt", "There are 42."):
        assert out.count(text) == 1, text
    assert 'calls      shell {"command": "wc -w words.txt"}' in out
    first, second = out.split("exchange ")[1:]
    assert "1,200 input, 90 output · $0.0033 SYNTHETIC" in first and "There are 42." in second
    assert "alpha · sun · only · 1: pass SYNTHETIC" in out
    assert "cost       $0.006 in 2 exchanges, 2,500 tokens in, 100 out, SYNTHETIC" in out
    told = proctor("show", run, TRIAL, "--json").json()
    (attempt,) = told["tries"]
    assert [len(turn["new_messages"]) for turn in attempt["conversation"]] == [2, 1]
    assert attempt["conversation"][0]["answer"]["calls"][0]["name"] == "shell"
    assert attempt["conversation"][1]["ended"]["charged"] == "0.002700000000" and told["synthetic"] is True


async def test_a_conversation_that_was_changed_says_so(proctor, tmp_path: Path) -> None:
    other = [START[0], message("user", "In short: count."), CALL, RESULT]
    out = proctor("show", await shown(tmp_path, ASKS[0], ask(other, DONE)), TRIAL).out
    assert "(2 earlier messages not sent any more)" in out
    assert out.count("In short: count.") == 1 and out.count("You have a shell.") == 1


async def test_long_messages_are_cut_unless_all_is_wanted(proctor, tmp_path: Path) -> None:
    long = [message("user", "\n".join(f"line {number}" for number in range(500))), message("user", "x" * 5000)]
    run = await shown(tmp_path, ask(long, DONE))
    said = proctor("show", run, TRIAL)
    assert "line 11\n" in said.out and "line 12\n" not in said.out and "x" * 1300 not in said.out
    assert said.out.count("more characters: --full shows all") == 2
    full = proctor("show", run, TRIAL, "--full").out
    assert "line 499\n" in full and "x" * 5000 in full and "--full" not in full


async def test_the_middle_of_many_exchanges_is_left_out(proctor, tmp_path: Path) -> None:
    messages, asks = list(START), []
    for number in range(40):
        said = message("assistant", f"step {number:02}")
        asks.append(ask(messages, said))
        messages += [said, message("user", "go on")]
    run = await shown(tmp_path, *asks)
    out = proctor("show", run, TRIAL).out
    assert "16 exchanges not shown: --full shows all" in out
    assert "step 05" in out and "step 06" not in out and "step 21" not in out and "step 22" in out
    assert all(f"step {number:02}" in proctor("show", run, TRIAL, "--full").out for number in range(40))


async def test_what_a_provider_sends_cannot_steer_a_terminal(proctor, tmp_path: Path) -> None:
    evil = message("assistant", "\x1b[2J\u202eevil", tool_calls=called(1, "\\u001b]0;x\\u0007"))
    out = proctor("show", await shown(tmp_path, ask(START, evil)), TRIAL).out
    assert "\x1b" not in out and "\u202e" not in out and "\\x1b[2J\\u202eevil" in out


async def test_bodies_that_are_no_conversation_are_said(proctor, tmp_path: Path) -> None:
    odd = Ask({"messages": "none"}, {"error": {"message": "no such model", "code": 404}}, None, error="model_not_found")
    said = proctor("show", await shown(tmp_path, odd, Ask({"messages": [7]}, None, None)), TRIAL)
    assert said.status == 0 and "model_not_found" in said.out and "no such model" in said.out
    assert "estimated" in said.out


async def test_a_body_that_was_changed_refuses(proctor, tmp_path: Path) -> None:
    run = await shown(tmp_path, *ASKS)
    (pack,) = (run / "packs").iterdir()
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.write_bytes(bytes(data))
    for words in ((), ("--json",)):
        said = proctor("show", run, TRIAL, *words)
        assert said.status == 3 and "evidence_damaged" in said.err


async def test_a_question_row_shows_prompt_answer_and_score(proctor, tmp_path: Path) -> None:
    frozen = design(("q1",), ("only",))
    frozen = replace(frozen, tasks=(replace(frozen.tasks[0], format="question"),))
    run = (await make_run(tmp_path / "run", frozen, Story((Try(answer=b"42\x1b[0m\n"),)))).path
    out = proctor("show", run, "q1/only").out
    assert "How much is 6 times 7?" in out and "42\\x1b[0m" in out
    assert "folder" not in out and proctor("results", run, "--json").json()["trials"][0]["folder"] is None
    assert "scored     by exact: the answer was compared as text" in out
    (attempt,) = proctor("show", run, "q1/only", "--json").json()["tries"]
    assert attempt["answer"] == {
        "text": "42\x1b[0m\n",
        "scorer": "exact",
        "detail": "the answer was compared as text",
    }
    assert attempt["instruction"] == "How much is 6 times 7?" and attempt["files"] == []


async def test_a_run_shows_what_each_trial_cost(proctor, tmp_path: Path) -> None:
    run = await shown(tmp_path, *ASKS)
    lines = proctor("show", run).out.splitlines()
    assert lines[0].startswith("SYNTHETIC: sun is made up by rules")
    assert any("$0.006" in line and "2,600" in line for line in lines)
    told = proctor("show", run, "--json").json()
    assert told["synthetic"] == ["sun"] and told["spend"]["charged"] == "0.006000000000"


async def test_a_run_at_rest_says_what_was_spent(proctor, tmp_path: Path) -> None:
    said = proctor("status", await shown(tmp_path, *ASKS))
    assert "spent      sun: $0.006" in said.out and "SYNTHETIC" in said.out
