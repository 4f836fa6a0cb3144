"""How the second program is started: in a process that shares nothing with this one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def second_program(
    run: Path,
    key: str | None,
    *,
    as_json: bool,
    anchors: Sequence[str] = (),
    since: str | None = None,
    witnesses: Sequence[str] = (),
) -> list[str]:
    """The command that re-checks a run; exit status 0 all hold, 1 something fails, 2 could not read."""
    # one word each: a value may look like an option
    told = [("key", key), *(("anchor", where) for where in anchors), ("since", since)]
    told += [("witness", witness) for witness in witnesses]
    options = [f"--{name}={value}" for name, value in told if value is not None]
    options += ["--json"] if as_json else []
    # -P: a run folder that is the current one must not bring modules of its own
    return [sys.executable, "-P", "-m", "proctor_verify", *options, "--", str(run)]


def on_design(file: Path, *, as_json: bool) -> list[str]:
    """The command that checks a frozen design alone; exit status as of a run."""
    return [sys.executable, "-P", "-m", "proctor_verify", *(["--json"] if as_json else []), f"--design={file}"]
