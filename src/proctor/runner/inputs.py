"""The inputs of a run, copied once and checked against their digests: what was hashed is what every attempt gets.

A task, skill or agent folder that is edited while a run goes on would otherwise make later attempts differ from
earlier ones under one digest.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from proctor.admission.ready import Ready
from proctor.agents.base import Agent, SkillPack, make_agent
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted
from proctor.evidence.disk import write_refusal
from proctor.grading.solved import parse_solved
from proctor.rollout.toolbox import FunctionTools, open_tools
from proctor.rollout.workers import Workers
from proctor.runner.images import Found
from proctor.study import Design
from proctor.tasks.tree import plain_mode, read_tree

FOLDER = "inputs"


class Inputs:
    """Where the checked copies lie, and what acts with them: agents and skills by arm, models by (model, arm).

    `boxes` are the tools of question rows, by model and arm; `images` those of the run; `rule` is what counts as
    solved.
    """

    def __init__(
        self,
        copies: Mapping[Path, Path],
        ready: Ready,
        boxes: Mapping[tuple[str | None, str], FunctionTools],
        images: Found | None = None,
    ) -> None:
        design = ready.design
        self.boxes = boxes
        self.images = images or {}
        self.rule = parse_solved(design.grading.solved)
        self._copies = dict(copies)
        self.agents = {arm.name: self._agent(ready, arm.name) for arm in design.arms}
        self.models = {
            (model.name, arm.name): design.model(model.name, arm.name) for model in design.models for arm in design.arms
        }
        self.skills = {
            arm.name: tuple(SkillPack(each.name, self.at(ready.base / each.path), each.sha256) for each in arm.skills)
            for arm in design.arms
        }

    def at(self, path: Path) -> Path:
        """The copy of a path that lies in a copied folder, and the path itself elsewhere."""
        return copied(self._copies, path)

    def _agent(self, ready: Ready, arm: str) -> Agent:
        own = ready.design.agent_of(arm)
        if own.files is None:
            return ready.agents[arm]
        # a relative path would be one from the study's folder
        copy = self.at(ready.base / own.files.path).absolute()
        return make_agent(own.name, {**own.settings, "files": str(copy)}, ready.base, ready.handed)


def copied(copies: Mapping[Path, Path], path: Path) -> Path:
    """The copy of a path that lies in a copied folder, and the path itself elsewhere."""
    for original, copy in copies.items():
        if path.is_relative_to(original):
            return copy / path.relative_to(original)
    return path


async def open_boxes(workers: Workers, design: Design) -> dict[tuple[str | None, str], FunctionTools]:
    """The tools of question rows, by model and arm; one worker of each tool is started.

    Raises:
        Refusal: TOOL_INVALID, TASK_CHANGED.
    """
    return {
        (model, arm.name): await open_tools(workers, design.tools_of(arm.name), model)
        for model in design.model_names
        for arm in design.arms
    }


def stage(ready: Ready, admitted: Admitted) -> dict[Path, Path]:
    """Copy every folder that goes into a sandbox below the run's scratch folder; returns where each lies.

    Raises:
        Refusal: TASK_CHANGED or DESIGN_CHANGED where a folder is no longer what was admitted; DISK_FULL, WRITE_FAILED.
    """
    base = admitted.run_dir / "scratch" / FOLDER
    shutil.rmtree(base, ignore_errors=True)
    copies: dict[Path, Path] = {}
    try:
        base.mkdir(parents=True)
        for original, digest, reason in _folders(ready):
            copies[original] = copy = base / digest[:32]
            if copy.exists():
                continue
            # the folder itself may be named by a link, which would mean another place from here
            _copy(original.resolve(), copy)
            if not _is(copy, digest):
                raise Refusal(reason, "a folder changed after it was admitted", path=str(original))
    except OSError as fault:
        raise write_refusal(fault, str(base)) from fault
    return copies


def _copy(source: Path, target: Path) -> None:
    # not copytree: of several errors it keeps the texts only, and a full disk must be known by its type
    try:
        mode = source.lstat().st_mode
    except FileNotFoundError:
        return  # gone since it was admitted: the digest of the copy says so
    if stat.S_ISLNK(mode):
        target.symlink_to(source.readlink())
        return
    if stat.S_ISDIR(mode):
        target.mkdir()
        for each in source.iterdir():
            _copy(each, target / each.name)
    elif stat.S_ISREG(mode):
        shutil.copyfile(source, target)
    else:
        return  # a pipe or device came since: no content of what was admitted, and never opened
    target.chmod(plain_mode(mode))


def _is(copy: Path, digest: str) -> bool:
    try:
        return read_tree(copy).digest == digest
    except Refusal:
        return False  # what was admitted could be read


def discard(admitted: Admitted) -> None:
    """Remove the copies."""
    shutil.rmtree(admitted.run_dir / "scratch" / FOLDER, ignore_errors=True)


def _folders(ready: Ready) -> list[tuple[Path, str, Reason]]:
    design = ready.design
    found = [(task.path, task.digest, Reason.TASK_CHANGED) for task in ready.tasks.values()]
    for arm in design.arms:
        files = design.agent_of(arm.name).files
        if files is not None:
            found.append((ready.base / files.path, files.sha256, Reason.DESIGN_CHANGED))
        found += [(ready.base / skill.path, skill.sha256, Reason.DESIGN_CHANGED) for skill in arm.skills]
    return found
