"""However the work ends, the record and the process say the same."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import asyncio, json, os, signal, sys, threading
from proctor.admission.finish import Ending, Stop, run_to_the_end
from proctor.core.exits import Exit
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

def me(number):
    os.kill(os.getpid(), number)

def elsewhere(number):
    signal.pthread_kill(threading.get_ident(), number)

async def forever(stop):
    await asyncio.Event().wait()

async def drained(stop):
    await stop.draining.wait()
    return Exit.DONE

async def work(stop: Stop):
    {work}

async def close(ending: Ending) -> Exit:
    me(signal.SIGINT) if {late} else None
    await asyncio.sleep(0)
    print(json.dumps([int(ending.exit), ending.reason.id if ending.reason else None]), flush=True)
    return ending.exit

sys.exit(int(asyncio.run(run_to_the_end(work, close, Stop()))))
"""

CASES = {
    "returns": ("return Exit.DONE", 0, None),
    "does not hold": ("return Exit.DOES_NOT_HOLD", 1, None),
    "exception": ("raise ValueError('x')", 5, "internal_error"),
    "SystemExit(0)": ("raise SystemExit(0)", 5, "internal_error"),
    "SystemExit(None)": ("raise SystemExit", 5, "internal_error"),
    "SystemExit(text)": ("raise SystemExit('text')", 5, "internal_error"),
    "refusal": ("raise Refusal(Reason.DISK_FULL, 'x')", 5, "disk_full"),
    "deadline": ("stop.drain('deadline', Exit.STOPPED, Reason.STAGE_DEADLINE); return Exit.DONE", 4, "stage_deadline"),
    "one SIGINT drains": ("me(signal.SIGINT); return await drained(stop)", 130, "interrupted"),
    "two SIGINT abort": (
        "me(signal.SIGINT); await drained(stop); me(signal.SIGINT); await forever(stop)",
        130,
        "interrupted",
    ),
    "SIGTERM aborts": ("me(signal.SIGTERM); await forever(stop)", 143, "interrupted"),
    "SIGHUP aborts": ("me(signal.SIGHUP); await forever(stop)", 129, "interrupted"),
    "SIGTERM that another thread takes while the loop waits": (
        "threading.Timer(0.1, elsewhere, [signal.SIGTERM]).start(); await forever(stop)",
        143,
        "interrupted",
    ),
    "SIGINT while a deadline drains aborts": (
        "stop.drain('deadline', Exit.STOPPED, Reason.STAGE_DEADLINE); me(signal.SIGINT); await forever(stop)",
        4,
        "interrupted",
    ),
    "SIGINT then SIGTERM": (
        "me(signal.SIGINT); await drained(stop); me(signal.SIGTERM); await forever(stop)",
        130,
        "interrupted",
    ),
}


def run(work: str, late: bool = False) -> tuple[int, list[object], int]:
    program = PROGRAM.replace("{work}", work).replace("{late}", str(late))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    lines = done.stdout.splitlines()
    return done.returncode, json.loads(lines[-1]), len(lines)


@pytest.mark.parametrize("name", CASES)
def test_the_record_equals_the_exit_status(name: str) -> None:
    work, status, reason = CASES[name]
    assert run(work) == (status, [status, reason], 1)


def test_a_signal_while_closing_changes_nothing() -> None:
    assert run("return Exit.DONE", late=True) == (0, [0, None], 1)


def test_signal_statuses_are_the_shell_s() -> None:
    assert 128 + signal.SIGINT == 130 and 128 + signal.SIGTERM == 143 and 128 + signal.SIGHUP == 129
