"""What every way to install shares: tools that are run with a deadline, and the script that starts a program."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

FETCH_SEC = 900.0
# of what a tool says
SHOWN_CHARS = 1_000


def write_start(program: Path, line: str) -> None:
    """Make the script that starts a program wherever it lies; `$here` is the program's folder in `line`."""
    path = program / "start"
    path.write_text(f'#!/bin/sh\nhere="${{0%/*}}"\n{line}\n', encoding="utf-8")
    path.chmod(0o755)


def run_tool(words: Sequence[str], work: Path, deadline_sec: float, *, bare: bool = False) -> str:
    """What a tool prints; with `bare` it is told nothing of where it runs.

    Raises:
        Refusal: INSTALL_FAILED, with the end of what it said.
    """
    own = {"PATH": os.defpath, "HOME": str(work)} if bare else {**os.environ, "NO_UPDATE_NOTIFIER": "1"}
    try:
        process = subprocess.Popen(
            words,
            cwd=work,
            env=own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as fault:
        raise Refusal(Reason.INSTALL_FAILED, f"{words[0]} cannot be started: {fault.strerror}") from fault
    try:
        printed, said = process.communicate(timeout=deadline_sec)
    except subprocess.TimeoutExpired as late:
        raise Refusal(
            Reason.INSTALL_FAILED, f"{' '.join(words[:2])} was not done in time", required=f"{deadline_sec:g} s"
        ) from late
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0:
        told = (said or printed).decode("utf-8", "replace").strip()
        raise Refusal(
            Reason.INSTALL_FAILED,
            f"{' '.join(words[:2])} ended with status {process.returncode}: {told[-SHOWN_CHARS:]}",
            observed=process.returncode,
            required=0,
        )
    return printed.decode("utf-8", "replace")
