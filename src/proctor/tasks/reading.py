"""Reads a task folder of any format that is known by its file."""

from __future__ import annotations

import dataclasses
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks import benchflow, harbor
from proctor.tasks.task import Task
from proctor.tasks.tree import Tree, mode_of, read_tree

# Where a folder holds several of them, the first is read.
READERS: Mapping[str, tuple[str, Callable[[Tree], Task]]] = {
    "task.toml": (harbor.FORMAT, harbor.read_harbor),
    "task.md": (benchflow.FORMAT, benchflow.read_benchflow),
}
LATER = {"task.yaml": "Terminal-Bench task.yaml", "task.yml": "Terminal-Bench task.yaml"}


def format_of(folder: Path) -> str | None:
    """The format of a task folder; None where it is none that is read. Raises Refusal TASK_UNREADABLE."""
    return next((name for file, (name, _) in READERS.items() if _has(folder, file)), None)


def later_format(folder: Path) -> str | None:
    """The format of a task folder that a later version reads; None where none is known."""
    return next((name for file, name in LATER.items() if _has(folder, file)), None)


def read_task(path: Path) -> Task:
    """Read a task folder once; every later use is of these bytes.

    Raises:
        Refusal: TASK_NOT_FOUND, TASK_FORMAT_LATER (task.yaml alone, or another schema), TASK_UNREADABLE, TASK_UNSAFE,
            TASK_CHANGED (it changed while being read).
    """
    if not stat.S_ISDIR(mode_of(path)):
        raise Refusal(Reason.TASK_NOT_FOUND, "There is no task folder at that path.", path=str(path))
    file = next((file for file in READERS if _has(path, file)), None)
    if file is None:
        later = later_format(path)
        if later is None:
            message = f"The folder holds no {' and no '.join(READERS)}."
            raise Refusal(Reason.TASK_NOT_FOUND, message, path=str(path))
        raise Refusal(Reason.TASK_FORMAT_LATER, f"The format is {later}.", path=str(path), observed=later)
    tree = read_tree(path)
    task = READERS[file][1](tree)
    others = [other for other in (*READERS, *LATER) if other != file and tree.has_file(other)]
    beside = tuple(f"{other} stands beside {file}, which is read" for other in others)
    return dataclasses.replace(task, notes=beside + task.notes)


def _has(folder: Path, file: str) -> bool:
    return stat.S_ISREG(mode_of(folder / file))
