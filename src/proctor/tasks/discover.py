"""What lies at paths that a user names: tasks, tasks of later formats, folders of tasks, files to pass over."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.reading import format_of, later_format
from proctor.tasks.tree import mode_of

MAX_DEPTH = 8


class Found(StrEnum):
    """What a path is."""

    TASK = "task"
    LATER_FORMAT = "later-format"
    PASSED_OVER = "passed-over"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Candidate:
    """One thing found. `refusal` says why it cannot be a task; None for tasks and for files passed over."""

    path: Path
    found: Found
    format: str | None = None
    refusal: Refusal | None = None


def discover(paths: Iterable[Path]) -> list[Candidate]:
    """One record for each thing found, in the order of the paths, and by name below a folder of tasks.

    A folder that is no task is walked (not into tasks, links or hidden folders, at most `MAX_DEPTH` deep); files in it
    are not mentioned. A folder found twice is listed once.
    """
    found: dict[Path, Candidate] = {}
    for path in paths:
        for candidate in _look(path):
            found.setdefault(candidate.path.absolute(), candidate)
    return list(found.values())


def _look(path: Path) -> list[Candidate]:
    try:
        mode = mode_of(path)
        below = list(_walk(path, 0)) if stat.S_ISDIR(mode) else []
    except Refusal as refusal:
        return [Candidate(path, Found.NOTHING, refusal=refusal)]
    if stat.S_ISDIR(mode):
        if below:
            return below
        return [_nothing(path, "There is no task in that folder: no task.toml, task.md or task.yaml.")]
    if mode:
        return [Candidate(path, Found.PASSED_OVER)]
    return [_nothing(path, "There is nothing at that path.")]


def _walk(folder: Path, depth: int) -> Iterator[Candidate]:
    format_ = format_of(folder)
    if format_ is not None:
        yield Candidate(folder, Found.TASK, format_)
        return
    later = later_format(folder)
    if later is not None:
        refusal = Refusal(Reason.TASK_FORMAT_LATER, f"The format is {later}.", path=str(folder), observed=later)
        yield Candidate(folder, Found.LATER_FORMAT, later, refusal)
        return
    if depth == MAX_DEPTH:
        return
    try:
        with os.scandir(folder) as listing:
            names = sorted(
                child.name
                for child in listing
                if child.is_dir(follow_symlinks=False) and not child.name.startswith(".")
            )
    except OSError as error:
        refusal = Refusal(Reason.TASK_UNREADABLE, f"Cannot be read: {error.strerror}.", path=str(folder))
        yield Candidate(folder, Found.NOTHING, refusal=refusal)
        return
    for name in names:
        yield from _walk(folder / name, depth + 1)


def _nothing(path: Path, message: str) -> Candidate:
    return Candidate(path, Found.NOTHING, refusal=Refusal(Reason.TASK_NOT_FOUND, message, path=str(path)))
