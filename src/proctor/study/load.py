"""Reading a study: bytes once, then everything that is wrong with it at once, as refusals."""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from proctor.core import toml
from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study.arms import Resolved, resolve
from proctor.study.folders import Folders
from proctor.study.later import later_refusals
from proctor.study.names import name_refusals
from proctor.study.problems import Loc, faulty_places, schema_refusals
from proctor.study.schema import StudyFile
from proctor.study.schema.values import NAME
from proctor.tasks.tree import Tree

FILE_NAME = "study.toml"
MAX_BYTES = 4 * 2**20
# A schema four tables deep, and free-form settings: more is a mistake or an attack on readers that recurse.
MAX_DEPTH = 32


@dataclass(frozen=True)
class LoadedStudy:
    """A study as it was read.

    `path` is its file, or None where the command line made it; relative paths start at `folder`. `sha256` is of its
    bytes. `file` and `resolved` are None where the tables do not fit the schema. `refusals` is everything that is
    wrong. `trees` has each folder that goes into a sandbox, by its digest.
    """

    folder: Path
    path: Path | None
    sha256: str
    file: StudyFile | None = None
    resolved: Resolved | None = None
    refusals: tuple[Refusal, ...] = ()
    trees: Mapping[str, Tree] = field(default_factory=dict)


def load_study(path: Path) -> LoadedStudy:
    """Read a study file, or the `study.toml` of a folder.

    Raises:
        Refusal: STUDY_NOT_FOUND, STUDY_UNREADABLE. Everything else is in the result's `refusals`.
    """
    file, data = _bytes(path)
    return check_tables(_tables(data, file), file.parent, file, hashlib.sha256(data).hexdigest())


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a study file, whatever they say.

    Raises:
        Refusal: as `load_study` does.
    """
    file, data = _bytes(path)
    return _tables(data, file)


def read_study(path: Path, tables: Mapping[str, Any] | None) -> LoadedStudy:
    """The study of a file, or of `tables` that no file holds: then `path` is its folder.

    Raises:
        Refusal: as `load_study` does; JSON_INVALID where the tables hold what has no form in JSON.
    """
    if tables is None:
        return load_study(path)
    digest = hashlib.sha256(encode(tables)).hexdigest()
    return check_tables(copy.deepcopy(dict(tables)), path, None, digest)


def single_task_study(
    task: Path,
    agent: str,
    settings: Mapping[str, Any] | None = None,
    sandbox: Mapping[str, Any] | None = None,
    grading: Mapping[str, Any] | None = None,
) -> LoadedStudy:
    """The study of one task that no file describes: one stage, one arm, every default.

    Args:
        task: the task's folder; its parent is the study's folder.
        agent: the agent's name.
        settings: further keys of `[agent]`, as a study file would write them.
        sandbox: keys of `[sandbox]`, likewise.
        grading: keys of `[grading]`, likewise.
    """
    where = task.resolve()
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", where.name, flags=re.ASCII).strip("-.")[:64]
    tables: dict[str, Any] = {
        "study": {"name": name if NAME.fullmatch(name) else "task"},
        "tasks": {"path": where.name},
        "agent": {**(settings or {}), "name": agent},
    }
    if sandbox:
        tables["sandbox"] = dict(sandbox)
    if grading:
        tables["grading"] = dict(grading)
    return check_tables(tables, where.parent, None, hashlib.sha256(encode(tables)).hexdigest())


def _bytes(path: Path) -> tuple[Path, bytes]:
    try:
        file = path / FILE_NAME if path.is_dir() else path
        if not file.is_file():
            raise Refusal(
                Reason.STUDY_NOT_FOUND, "there is no study file there", path=str(file), required=f"a {FILE_NAME}"
            )
        # some files of a system are plain, and wait for what may never come: then they hold nothing
        with open(file, "rb", opener=_at_once) as opened:
            data = opened.read(MAX_BYTES + 1) or b""
    except OSError as error:
        what = f"the study file cannot be read: {os.strerror(error.errno or 0)}"
        raise Refusal(Reason.STUDY_UNREADABLE, what, path=str(path)) from error
    if len(data) > MAX_BYTES:
        what = "the study file is larger than any study"
        raise Refusal(Reason.STUDY_UNREADABLE, what, path=str(file), required={"bytes": MAX_BYTES})
    return file, data


def _at_once(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)


def _tables(data: bytes, file: Path) -> dict[str, Any]:
    try:
        tables = toml.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _no_toml(f"line {line} is not UTF-8", file, {"line": line}) from error
    except ValueError as error:
        # TOML's own error names line and column; the other is an integer of thousands of digits.
        raise _no_toml(str(error), file) from error
    except RecursionError as error:
        raise _no_toml("it nests too deeply", file) from error
    if _deeper_than(tables, MAX_DEPTH):
        raise _no_toml("it nests too deeply", file, required={"depth": MAX_DEPTH})
    return tables


def _no_toml(what: str, file: Path, observed: Any = None, required: Any = None) -> Refusal:
    message = f"the study file is not readable TOML: {what}"
    return Refusal(Reason.STUDY_UNREADABLE, message, path=str(file), observed=observed, required=required)


def _deeper_than(value: object, bound: int) -> bool:
    level: list[object] = [value]
    for _ in range(bound):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return any(isinstance(each, dict | list) for each in level)


def check_tables(tables: dict[str, Any], folder: Path, path: Path | None, sha256: str) -> LoadedStudy:
    """A study from the tables of its file; `folder` is where relative paths start."""
    try:
        file = StudyFile.model_validate(tables)
    except ValidationError as error:
        return LoadedStudy(folder, path, sha256, refusals=tuple(_all_that_can_be_said(error, tables, folder)))
    resolved, trees, found = _looked_at(file, tables, folder)
    return LoadedStudy(folder, path, sha256, file, resolved, tuple(found), trees)


def _looked_at(
    file: StudyFile, tables: Mapping[str, Any], folder: Path
) -> tuple[Resolved, Mapping[str, Tree], list[Refusal]]:
    folders = Folders(folder)
    found = [*later_refusals(file), *name_refusals(file)]
    if file.tasks.path is not None:
        found += folders.require_folder(file.tasks.path, "tasks.path")
    if file.tasks.questions is not None:
        found += folders.require_file(file.tasks.questions, "tasks.questions")
    for key in ("exclusions", "baseline_exclusions", "supplementary_exclusions", "disputed", "adjudication"):
        if (written := getattr(file.scoring, key)) is not None:
            found += folders.require_file(written, f"scoring.{key}")
    resolved, problems = resolve(file, tables, folders)
    return resolved, folders.trees, found + problems


def _all_that_can_be_said(error: ValidationError, tables: dict[str, Any], folder: Path) -> list[Refusal]:
    """The schema's findings, and what can be seen of the rest once the faulty places are left out."""
    found = schema_refusals(error, StudyFile)
    mended = copy.deepcopy(tables)
    # From the end, so that places in lists keep their numbers until it is their turn.
    for place in reversed(faulty_places(error)):
        _leave_out(mended, place)
    try:
        file = StudyFile.model_validate(mended)
    except ValidationError:
        return found
    _, _, further = _looked_at(file, mended, folder)
    said = [refusal.path or "" for refusal in found]
    return found + [each for each in further if not any(_overlap(each.path or "", path) for path in said)]


def _overlap(one: str, other: str) -> bool:
    """Whether one dotted place is the other or lies in it: what was left out there would be reported again."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and long[len(short) : len(short) + 1] in ("", ".", "[")


def _leave_out(tables: dict[str, Any], place: Loc) -> None:
    holder: Any = tables
    for part in place[:-1]:
        if not _holds(holder, part):
            return
        holder = holder[part]
    if place and _holds(holder, place[-1]):
        del holder[place[-1]]


def _holds(holder: Any, part: str | int) -> bool:
    if isinstance(holder, list):
        return isinstance(part, int) and part < len(holder)
    return isinstance(holder, dict) and part in holder
