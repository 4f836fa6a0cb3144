"""proctor logs: the journal for people, raw output for pipes, safe output for terminals, and following."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from journal_parts import attempt_admitted, boundary, create, ended
from proctor.evidence.kinds import Kind
from run_parts import Ask, Story, Try, design, make_run

SRC = Path(__file__).resolve().parents[2] / "src"
ESCAPES = b"\x1b[31mred\x1b[0m\r\n\xff\x07tail"
DEADLINE_SEC = 600


def child(*words: object, **options) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    return subprocess.Popen([sys.executable, "-m", "proctor", *map(str, words)], env=env, **options)


async def test_a_line_for_each_entry(proctor, tmp_path: Path) -> None:
    cut = Try(outcome="lost", exception="lost")
    story = Story(tries={("alpha", "plain"): (cut, Try(reward="0"))})
    await make_run(tmp_path / "run", design(), story, end=0)
    said = proctor("logs", tmp_path / "run")
    lines = said.out.splitlines()
    assert len(lines) == len((tmp_path / "run/journal.jsonl").read_bytes().splitlines())
    assert all(line[10] == "T" and line[19:22] == "Z  " for line in lines)
    for words in (
        "admitted: hints · main, 4 trials planned",
        "alpha · plain · 1: ends: lost (lost)",
        "alpha · plain · 1 (attempt 1): begins, in place of one that was interrupted or lost",
        "alpha · plain · 1 (attempt 1): graded fail (below_threshold), reward 0",
        "alpha · plain · 1 (attempt 1): final: fail (below_threshold), reward 0",
        "agent over after 2.00 s: exit code 0",
        "4 of 4 trials have their final",
    ):
        assert sum(words in line for line in lines) >= 1, words


async def test_money_and_answers_are_told(proctor, tmp_path: Path) -> None:
    frozen = design(("sum",), ("plain",), models=("sun",))
    frozen = replace(frozen, tasks=(replace(frozen.tasks[0], format="question"),))
    asks = (Ask({"messages": []}, None, {"input": 1200, "output": 90}), Ask({"messages": []}, None, None))
    await make_run(tmp_path / "run", frozen, Story(default=(Try(asks=asks, answer=b"42"),)))
    said = proctor("logs", tmp_path / "run").out
    for words in (
        "sum · sun · plain · 1: asks sun, $",
        "$0.0033 charged for 1,290 tokens",
        "charged, the worst case",
        "sum · sun · plain · 1: answer scored by exact: ",
    ):
        assert words in said, words
    assert "exchange." not in said and "answer.scored" not in said
    told = proctor("logs", tmp_path / "run", "sum/plain")
    assert told.out == "" and "nothing was printed: a question has no program" in told.err
    assert "show" in told.err and told.err.rstrip().endswith("sum/plain")


async def test_entries_as_json_lines(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run")
    lines = [json.loads(line) for line in proctor("logs", tmp_path / "run", "--json").out.splitlines()]
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    assert lines[0]["kind"] == "run.admitted" and lines[-1]["kind"] == "run.ended"


async def test_a_pipe_gets_the_bytes_of_the_last_attempt(tmp_path: Path) -> None:
    first = Try(outcome="infrastructure", exception="sandbox_lost", agent_output=b"first")
    story = Story(tries={("alpha", "plain"): (first, Try(agent_output=ESCAPES, test_output=b"\0\n"))})
    await make_run(tmp_path / "run", design(), story)
    with child("logs", tmp_path / "run", "alpha/plain", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as logs:
        out, err = logs.communicate(timeout=DEADLINE_SEC)
    folder = next(path.name for path in (tmp_path / "run/trials").iterdir() if path.name.startswith("alpha-plain"))
    agent = f"==> trials/{folder}/1/agent/stdout.txt <==\n".encode()
    verifier = f"\n==> trials/{folder}/1/verifier/test-stdout.txt <==\n".encode()
    assert logs.returncode == 0 and not err
    assert out == agent + ESCAPES + verifier + b"\0\n"


async def test_a_terminal_gets_nothing_that_steers_it(tmp_path: Path) -> None:
    story = Story(tries={("alpha", "plain"): (Try(agent_output=ESCAPES),)})
    await make_run(tmp_path / "run", design(), story)
    try:
        ours, theirs = pty.openpty()
    except OSError as fault:
        pytest.skip(f"no terminal can be had here: {fault}")
    with child("logs", tmp_path / "run", "alpha/plain", stdout=theirs, stderr=subprocess.DEVNULL) as logs:
        os.close(theirs)
        seen = await asyncio.to_thread(read_all, ours)
    assert logs.returncode == 0
    lines = seen.split(b"\r\n")
    assert lines[1:3] == [b"\\x1b[31mred\\x1b[0m", b"\\xff\\x07tail"] and lines[4:] == [b"tests done", b""]
    assert lines[0].endswith(b"agent/stdout.txt <==") and lines[3].endswith(b"verifier/test-stdout.txt <==")


def read_all(terminal: int) -> bytes:
    seen = b""
    try:
        while data := os.read(terminal, 4096):
            seen += data
    except OSError:
        pass  # a terminal whose other side is closed ends so
    os.close(terminal)
    return seen


async def test_nothing_printed_is_said(proctor, tmp_path: Path) -> None:
    story = Story(tries={("alpha", "plain"): (Try(agent_output=b"", test_output=b""),)})
    await make_run(tmp_path / "run", design(), story)
    said = proctor("logs", tmp_path / "run", "alpha/plain")
    assert said.status == 0 and not said.out and "nothing was printed" in said.err


async def test_following_shows_what_comes_and_ends_with_the_run(tmp_path: Path) -> None:
    _, journal = await create(tmp_path / "run")
    first = attempt_admitted()
    with child("logs", tmp_path / "run", "-f", stdout=subprocess.PIPE) as logs:
        assert logs.stdout is not None
        async with asyncio.timeout(DEADLINE_SEC):
            assert b"admitted" in await asyncio.to_thread(logs.stdout.readline)
            assert b"checkpoint" in await asyncio.to_thread(logs.stdout.readline)
            await journal.append(Kind.ATTEMPT_ADMITTED, first)
            assert b"task \xc2\xb7 base \xc2\xb7 1: begins" in await asyncio.to_thread(logs.stdout.readline)
            await journal.append(Kind.ATTEMPT_BOUNDARY, boundary(first["attempt"]))
            assert b"reached env-ready" in await asyncio.to_thread(logs.stdout.readline)
            await journal.close(ended())
            assert b"run ended: stopped" in await asyncio.to_thread(logs.stdout.read)
    assert logs.returncode == 0


async def test_following_ends_on_ctrl_c(tmp_path: Path) -> None:
    _, journal = await create(tmp_path / "run")
    with child("logs", tmp_path / "run", "-f", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as logs:
        assert logs.stdout is not None
        async with asyncio.timeout(DEADLINE_SEC):
            await asyncio.to_thread(logs.stdout.readline)
            logs.send_signal(signal.SIGINT)
            _, err = await asyncio.to_thread(logs.communicate)
    await journal.close(None)
    assert logs.returncode == 130 and b"Traceback" not in err


async def test_following_a_dead_run_ends_at_once(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run", story=Story(tries={("alpha", "plain"): (Try(left_open=True),)}), end=None)
    assert proctor("logs", tmp_path / "run", "-f").status == 0
    assert proctor("logs", tmp_path / "run", "alpha/plain", "-f").out.endswith("agent/stdout.txt <==\nworking\n")
