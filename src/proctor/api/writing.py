"""Tasks written from Python, in the formats that proctor reads: a task folder, a question set."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import tomlkit

from proctor.api.refused import refusing
from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.report.output import replaced
from proctor.tasks.reading import read_task

_SCHEMA = "1.4"

Files = Mapping[str, str | bytes]


def write_questions(path: str | PathLike[str], rows: Iterable[Mapping[str, Any]], *, replace: bool = False) -> Path:
    """Write a question set, one row a line (docs/questions.md has their keys). `Study.check` says what is wrong in it.

    Args:
        path: the file, whole or not there.
        rows: each with `id`, `prompt` and `target` at least, of values that JSON has.
        replace: whether a file that stands there may be replaced.

    Raises:
        Refused: `would_overwrite`, `json_invalid` (a value has no form in JSON), `output_unwritable`.
    """
    file = Path(path)
    with refusing():
        lines = [encode(dict(row)) + b"\n" for row in rows]
        if not replace and file.exists():
            raise _occupied(file)
        with replaced(file) as opened:
            opened.writelines(lines)
    return file


def write_task(
    folder: str | PathLike[str],
    *,
    instruction: str,
    tests: str | Files,
    solution: str | Files | None = None,
    environment: Files | None = None,
    settings: Mapping[str, Any] | None = None,
    replace: bool = False,
) -> Path:
    """Write a task folder in Harbor's format, whole or not at all; `proctor tasks check` then tries it.

    Args:
        folder: the task's folder, whose name is the task's unless `settings` say another.
        instruction: what the agent is told.
        tests: `test.sh`, or files by their path in `tests/`. It writes the reward to `/logs/verifier/reward.txt`.
        solution: `solve.sh`, or files by their path in `solution/`: what the agent `oracle` runs.
        environment: files by their path in `environment/`: with a `Dockerfile` what that says of them, without one they
            are what the working directory starts with.
        settings: tables of `task.toml`, such as `{"agent": {"timeout_sec": 120}}` (docs/tasks.md).
        replace: whether a task that stands there may be replaced.

    Raises:
        Refused: `would_overwrite`, `output_unwritable`, or what stands against reading the task.
    """
    target = Path(folder).absolute()
    files: dict[str, str | bytes] = {"task.toml": _toml(settings or {}), "instruction.md": instruction}
    files |= _below("environment", environment or {})
    files |= _below("tests", {"test.sh": tests} if isinstance(tests, str) else tests)
    files |= _below("solution", {"solve.sh": solution} if isinstance(solution, str) else solution or {})
    with refusing():
        _place(target, files, replace)
    return Path(folder)


def _toml(settings: Mapping[str, Any]) -> str:
    return tomlkit.dumps({"schema_version": _SCHEMA, **settings})


def _below(folder: str, files: Files) -> dict[str, str | bytes]:
    for path in files:
        if path.startswith("/") or not all(part not in ("", ".", "..") for part in path.split("/")):
            raise ValueError(f"{path!r} is no path below {folder}/")
    return {f"{folder}/{path}": content for path, content in files.items()}


def _place(target: Path, files: Files, replace: bool) -> None:
    """Written beside its place, read as a task, and put there."""
    taken = target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir())))
    if taken and not (replace and (target / "task.toml").is_file() and not target.is_symlink()):
        raise _occupied(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as beside:
            # of the name that a reader of the task is to see
            made = Path(beside) / target.name
            for path, content in files.items():
                file = made / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.encode() if isinstance(content, str) else content)
                if file.suffix == ".sh":
                    file.chmod(0o755)
            read_task(made)
            if target.exists():
                shutil.rmtree(target)
            made.rename(target)
    except OSError as fault:
        what = f"the task cannot be written: {fault.strerror or fault}"
        raise Refusal(Reason.OUTPUT_UNWRITABLE, what, path=str(target)) from fault


def _occupied(path: Path) -> Refusal:
    return Refusal(
        Reason.WOULD_OVERWRITE,
        "there is something there already",
        path=str(path),
        remedy="Name another place, or say `replace=True`.",
    )
