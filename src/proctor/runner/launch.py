"""From what was typed to requests: which stages, which run folders, which key. One request for each stage."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.admission.facts import Request
from proctor.admission.finish import Stop, listen_again
from proctor.admission.gather import RUNS
from proctor.admission.spending import Confirm, nobody
from proctor.core.exits import Exit
from proctor.core.files import NO_SPACE, last_name
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.sandboxes import SandboxChoice
from proctor.evidence.keys import OperatorKey
from proctor.evidence.lock import read_lock
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.withheld import withheld_refusal
from proctor.report.progress import Progress
from proctor.runner.control import ask
from proctor.runner.session import Finished, execute, operator_key
from proctor.study import read_study


@dataclass(frozen=True)
class Launch:
    """The words of `run`, `check` and `tasks check`.

    From Python also `tables` of a study that no file holds (`study` is its folder then), and classes of agents by name.
    """

    command: str
    study: Path | None = None
    task: Path | None = None
    agent: str | None = None
    program: str | None = None
    files: Path | None = None
    network: str | None = None
    sandbox: str | None = None
    assurance: str | None = None
    rootfs: Path | None = None
    substitute: tuple[str, ...] = ()
    stage: str | None = None
    out: Path | None = None
    limit: int | None = None
    models: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    jobs: int | None = None
    waive: tuple[str, ...] = ()
    prepare_only: bool = False
    keep: bool = False
    tables: Mapping[str, Any] | None = None
    agents: Mapping[str, type] = field(default_factory=dict)


def launch(
    how: Launch, *, quiet: bool, say: Callable[[str], None], confirm: Confirm = nobody, waits: bool = False
) -> list[Finished]:
    """Run every stage that was asked for, in order, until one does not end well.

    `waits` has told what takes its time, such as the building of an image, although it is `quiet`.
    """
    key, made = operator_key()
    if made:
        say(f"made a signing key for you: {key.fingerprint} (see `proctor keys`)")
    finished = []
    for request in requests(how) if how.task is None else [_of_task(how, how.task)]:
        finished.append(run_one(request, key, quiet, confirm, waits=waits))
        if finished[-1].exit not in (Exit.DONE, Exit.DOES_NOT_HOLD):
            break
    return finished


def _of_task(how: Launch, task: Path) -> Request:
    # said of the path as it was typed, before a folder for its refusal is made in the name of a typing error
    if not task.is_dir():
        raise Refusal(Reason.TASK_NOT_FOUND, "There is no task folder at that path.", path=str(task))
    name = f"{task.resolve().name}-{how.agent or 'oracle'}"
    return _request(how, None, how.out or free_folder(runs_folder(Path.cwd()) / name))


def requests(how: Launch) -> Iterator[Request]:
    """One request for each stage of a study; one that cannot be read gives one, so that the refusal has its record."""
    assert how.study is not None
    beside = how.study if how.study.is_dir() else how.study.parent
    name, stages = _stages(how, how.study, beside)
    base = runs_folder(beside)
    for stage in stages:
        if how.out is None:
            out = base / name / stage
        else:
            out = how.out if len(stages) == 1 else how.out / stage
        yield _request(how, stage, out)


def runs_folder(beside: Path) -> Path:
    """Where runs go: `PROCTOR_RUNS`, else `runs` beside the study."""
    said = os.environ.get("PROCTOR_RUNS")
    return Path(said) if said else beside / RUNS


def _stages(how: Launch, study: Path, beside: Path) -> tuple[str, list[str]]:
    fallback = (last_name(beside) or "study", [how.stage or "main"])
    try:
        loaded = read_study(study, how.tables)
    except Refusal as refusal:
        if refusal.reason is Reason.STUDY_NOT_FOUND and how.out is None and not study.exists() and not study.suffix:
            # a folder that is not there: its refusal would stand in one made beside it, where nobody would look
            raise
        return fallback
    if loaded.file is None:
        return fallback
    return loaded.file.study.name, [how.stage] if how.stage else list(loaded.file.stages)


def free_folder(base: Path) -> Path:
    """The first free numbered folder below `base`: a single task is tried again and again.

    It is made here, empty, so that of several starts at once each gets its own.

    Raises:
        Refusal: OUT_UNUSABLE, DISK_FULL.
    """
    above = RunFolder(base)
    above.create()
    number = 1
    while True:
        folder = base / f"{number:03d}"
        try:
            above.disk.make_dir(folder)
            above.disk.sync_dir(base)
        except FileExistsError:
            number += 1
        except OSError as fault:
            reason = Reason.DISK_FULL if fault.errno in NO_SPACE else Reason.OUT_UNUSABLE
            raise Refusal(reason, f"no run folder can be made: {fault.strerror}", path=str(folder)) from fault
        else:
            return folder


def _request(how: Launch, stage: str | None, out: Path) -> Request:
    settings: dict[str, Any] = {"command": how.program} if how.program is not None else {}
    if how.files is not None:
        settings["files"] = str(how.files.absolute())
    said = {"network": how.network, "kind": how.sandbox}
    sandbox: dict[str, Any] = {key: value for key, value in said.items() if value is not None}
    if how.rootfs is not None:
        sandbox["rootfs"] = str(how.rootfs.absolute())
    if how.substitute:
        pairs = [pair.partition("=") for pair in how.substitute]
        # of a Docker sandbox they are images, and no folders
        folders = how.sandbox != SandboxChoice.DOCKER
        sandbox["substitute"] = {image: str(Path(root).absolute()) if folders else root for image, _, root in pairs}
    return Request(
        command=how.command,
        out=out,
        study=how.study,
        task=how.task,
        agent=how.agent,
        stage=stage,
        limit=how.limit,
        models=how.models,
        arms=how.arms,
        jobs=how.jobs,
        waive=how.waive,
        keep=how.keep,
        prepare_only=how.prepare_only,
        settings=settings,
        sandbox=sandbox,
        grading={} if how.assurance is None else {"assurance": how.assurance},
        tables=how.tables,
        agents=how.agents,
    )


def resume(
    run: Path,
    *,
    study: Path | None,
    jobs: int | None,
    waive: tuple[str, ...],
    quiet: bool,
    say: Callable[[str], None],
    confirm: Confirm = nobody,
    agents: Mapping[str, type] | None = None,
    stop: Stop | None = None,
) -> Finished | None:
    """Go on with a run; None where it is live and was only told to go on after a pause.

    Raises:
        Refusal: a live run that is not paused answers RUN_LOCKED by its lock, a public copy EVIDENCE_WITHHELD.
    """
    folder = RunFolder(run)
    if folder.withheld is not None:
        raise withheld_refusal("what a run needs to go on")
    lock = read_lock(folder)
    if lock.live and lock.control is not None:
        control = Path(lock.control)
        if _is_paused(control):
            ask(control, "unpause")
            say("the run goes on")
            return None
    request = Request(command="resume", out=run, study=study, jobs=jobs, waive=waive, agents=agents or {})
    return run_one(request, operator_key()[0], quiet, confirm, stop)


def _is_paused(control: Path) -> bool:
    try:
        return bool(ask(control, "status").get("paused"))
    except Refusal as refusal:
        if refusal.reason is not Reason.RUN_NOT_LIVE:
            raise
        return False  # its process begins or ends just now: the lock says who holds it


def run_one(
    request: Request,
    key: OperatorKey,
    quiet: bool,
    confirm: Confirm = nobody,
    stop: Stop | None = None,
    *,
    waits: bool = False,
) -> Finished:
    """One request, to its end; `stop` as `execute` takes it, `waits` as `launch` does."""
    listen_again()
    with Progress(sys.stderr, quiet=quiet, waits=waits) as progress:
        try:
            return execute(request, key, progress, confirm, stop)
        except Refusal as refusal:
            return Finished(Exit.REFUSED, request.out, (refusal,), recorded=False)
