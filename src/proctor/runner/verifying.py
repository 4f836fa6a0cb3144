"""How the second program is started: in a process that shares nothing with this one."""

from __future__ import annotations

import sys
from pathlib import Path


def second_program(run: Path, key: str | None, *, as_json: bool) -> list[str]:
    """The command that re-checks a run; exit status 0 all hold, 1 something fails, 2 could not read."""
    options = [*(["--key", key] if key is not None else []), *(["--json"] if as_json else [])]
    # -P: a run folder that is the current one must not bring modules of its own
    return [sys.executable, "-P", "-m", "proctor_verify", *options, "--", str(run)]


def on_design(file: Path, *, as_json: bool) -> list[str]:
    """The command that checks a frozen design alone; exit status as of a run."""
    return [sys.executable, "-P", "-m", "proctor_verify", *(["--json"] if as_json else []), f"--design={file}"]
