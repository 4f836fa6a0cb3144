"""One run from its request to its exit status: admit, work, end. `run` and `resume` share every step."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from proctor.admission.admit import Admission, Verdict, admit
from proctor.admission.facts import Request
from proctor.admission.finish import Ending, Interrupted, Stop, admit_or_stop, end_of_hearing, run_to_the_end
from proctor.admission.limits import limits_of
from proctor.admission.spending import Confirm, nobody
from proctor.budget.authority import Authority
from proctor.core.clock import SystemClock
from proctor.core.exits import Exit
from proctor.core.ids import new_run_id
from proctor.core.open_files import allow_many
from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import in_thread
from proctor.evidence.anchors.places import places
from proctor.evidence.keys import OperatorKey, config_dir, load_or_create
from proctor.evidence.runfolder import FileRef
from proctor.gateway.gateway import Gateway
from proctor.report.progress import Progress
from proctor.report.spending import Spend, spend
from proctor.rollout.scratch import clear_dead
from proctor.rollout.tools import Tools
from proctor.rollout.workers import Workers
from proctor.runner.anchoring import Anchoring
from proctor.runner.control import serve, socket_path
from proctor.runner.derived import fold_own, write_derived
from proctor.runner.images import bring_images
from proctor.runner.inputs import Inputs, copied, discard, open_boxes, stage
from proctor.runner.lanes import Lanes
from proctor.runner.waits import shown
from proctor.study import Design


@dataclass(frozen=True)
class Finished:
    """How an invocation ended. `refusals` is empty for an admitted run; `totals` are those of `run.ended`.

    `recorded` is whether a manifest says of the refusals: the folder may be one that holds none.
    """

    exit: Exit
    run: Path
    refusals: tuple[Refusal, ...] = ()
    reason: Reason | None = None
    message: str | None = None
    totals: Mapping[str, int] | None = None
    notices: tuple[str, ...] = ()
    recorded: bool = True


def operator_key() -> tuple[OperatorKey, bool]:
    """The key that signs checkpoints, and whether it was made just now."""
    return load_or_create(config_dir(os.environ))


def execute(
    request: Request, key: OperatorKey, progress: Progress, confirm: Confirm = nobody, stop: Stop | None = None
) -> Finished:
    """Admit and run, or resume; returns when the run's end is on the record.

    `stop` is given by whoever hears signals for this thread, where it is not the main one.
    """
    allow_many()
    return asyncio.run(_execute(request, key, progress, confirm, stop or Stop()))


async def _execute(request: Request, key: OperatorKey, progress: Progress, confirm: Confirm, stop: Stop) -> Finished:
    control = socket_path(new_run_id())
    try:
        admission = await admit_or_stop(
            lambda stop: admit(request, key, stop, control=str(control), confirm=confirm), stop
        )
    except Interrupted:
        return Finished(stop.exit or Exit.INTERRUPTED, request.out, reason=Reason.INTERRUPTED, message=stop.cause)
    if isinstance(admission, Verdict):
        end_of_hearing()
        return Finished(Exit.REFUSED, request.out, admission.refusals)
    session = Session(admission, progress, request, control)
    try:
        status = await run_to_the_end(session.work, session.close, stop)
    except Refusal as refusal:
        return Finished(Exit.INFRASTRUCTURE, request.out, reason=refusal.reason, message=str(refusal))
    return Finished(
        status,
        request.out,
        reason=session.ending.reason,
        message=session.ending.message,
        totals=session.totals,
        notices=(*admission.notices, *session.notices),
    )


class Session:
    """An admitted run while this process writes it."""

    def __init__(self, admission: Admission, progress: Progress, request: Request, control: Path) -> None:
        self._admission = admission
        self._progress = progress
        self._request = request
        self._control = control
        self._anchoring = _anchoring(admission, progress)
        self.ending = Ending(Exit.DONE)
        self.notices: list[str] = []
        self.totals: dict[str, int] | None = None

    async def work(self, stop: Stop) -> Exit:
        """Run what is left, answering on the control socket meanwhile."""
        past, planned = self._admission.past, self._admission.plan.planned["trials"]
        self._progress.begins(planned, past.finals, dict(past.grades))
        for notice in self._admission.notices:
            self._progress.notice(notice)
        # in one thread: told to stop meanwhile, it does all of it all the same
        await in_thread(self._remove_left)
        ungraded = await self._anchoring.beside(self._run_lanes(stop), stop)
        return Exit.DOES_NOT_HOLD if past.grades[GradeState.UNGRADED] + ungraded else Exit.DONE

    def _remove_left(self) -> None:
        """What processes of this run left when they died."""
        self._admission.kind.prune(self._admission.run.scratch, self._admission.token)
        clear_dead(self._admission.run, self._admission.token)

    async def _run_lanes(self, stop: Stop) -> int:
        """Returns how many finals of this opening are ungraded."""
        async with contextlib.AsyncExitStack() as resources:
            lanes = await self._prepare(resources)
            if self._request.prepare_only:
                stop.drain("prepare-only", Exit.DONE, Reason.PREPARED_ONLY)
            handlers = {
                "status": self._status,
                "pause": lambda: _pause(lanes, True),
                "unpause": lambda: _pause(lanes, False),
            }
            async with serve(self._control, handlers):
                await lanes.run(stop)
        return lanes.ungraded

    async def _prepare(self, resources: contextlib.AsyncExitStack) -> Lanes:
        """Copy the inputs, and make what attempts act with."""
        admission, ready, clock = self._admission, self._admission.ready, SystemClock()
        copies = await in_thread(stage, ready, admission.token)
        gateway = Gateway(admission.token, ready.keys, clock)
        resources.push_async_callback(gateway.close)
        workers = await resources.enter_async_context(
            Workers(admission.token, ready.base, withheld=frozenset(ready.keys))
        )
        boxes = await open_boxes(workers, ready.design)
        images = await bring_images(
            admission.kind, ready, partial(copied, copies), admission.token, partial(shown, self._progress)
        )
        gate = self._anchoring.gate
        authority = Authority(admission.token, limits_of(ready.design), admission.journal, admission.past, gate.passed)
        self._progress.tally.money = lambda: _spend(ready.design, authority)
        tools = Tools(
            admission.token,
            admission.kind,
            admission.journal,
            admission.run,
            clock,
            self._progress.phase,
            authority,
            gateway,
            workers,
        )
        lanes = self._request.jobs or ready.design.stage.lanes
        inputs = Inputs(copies, ready, boxes, images)
        return Lanes(ready, inputs, admission.plan, admission.past, tools, self._progress, lanes, gate)

    async def close(self, ending: Ending) -> Exit:
        """Write the derived files and the last entry. The status in it is the one returned."""
        admission = self._admission
        state = await asyncio.to_thread(fold_own, admission.run, admission.ready.design, admission.journal.size)
        planned = admission.plan.planned["trials"]
        files: list[FileRef] = []
        if admission.journal.poisoned is None:
            try:
                admission.journal.release_reserve()
                files = await asyncio.to_thread(
                    write_derived, admission.run, admission.ready.design, admission.plan, state
                )
            except Refusal as refusal:
                # the end itself has its space in reserve
                ending = Ending(Exit.INFRASTRUCTURE, refusal.reason, str(refusal))
        self.ending = ending
        self.totals = state.totals(planned)
        await admission.journal.close(
            {
                "exit_status": int(ending.exit),
                "reason": ending.reason.id if ending.reason else None,
                "complete": state.finals == planned,
                "totals": self.totals,
                "files": [file.as_record() for file in files],
            },
            keep_lock=True,
        )
        try:
            self.notices = await self._anchoring.finish()
        finally:
            admission.journal.let_go()
        for notice in self.notices:
            self._progress.notice(notice)
        self._tidy()
        return ending.exit

    def _tidy(self) -> None:
        discard(self._admission.token)
        try:
            self._admission.run.scratch.rmdir()
        except OSError:
            pass  # kept worlds stand in it, or it never was

    async def _status(self) -> Mapping[str, Any]:
        tally = self._progress.tally
        left = tally.left_sec()
        return {
            "planned": tally.planned,
            "done": tally.done,
            "grades": dict(tally.grades),
            "in_flight": [{"trial": label, "phase": phase} for label, phase in tally.in_flight.items()],
            "superseded": tally.superseded,
            "replaced": tally.replaced,
            "paused": tally.paused,
            "draining": tally.draining,
            "spend": None if (money := tally.spend()) is None else money.as_record(),
            "left_sec": None if left is None else round(left),
            "journal_entries": self._admission.journal.size,
            "anchors": self._anchoring.as_record(),
        }


def _anchoring(admission: Admission, progress: Progress) -> Anchoring:
    """The pushes to the design's anchors; to none where it has none."""
    ready, first = admission.ready, admission.past.admitted
    assert first is not None, "a run that was admitted has its first entry"
    own = ready.design.anchor
    return Anchoring(
        admission.token,
        admission.run,
        admission.journal,
        () if own is None else places(own.git, own.drop, ready.base),
        str(first["key"]["fingerprint"]),
        every_sec=0 if own is None else own.every_sec,
        required=own is not None and own.required,
        notice=progress.notice,
    )


def _spend(design: Design, authority: Authority) -> Spend | None:
    money = authority.by_model()
    charged = {str(model): amounts[0] for model, amounts in money.items()}
    return spend(design, charged, {str(model): amounts[1] for model, amounts in money.items()})


async def _pause(lanes: Lanes, paused: bool) -> Mapping[str, Any]:
    await lanes.pause(paused)
    return {"paused": paused}
