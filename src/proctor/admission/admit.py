"""Admission: the boundary before which nothing happens.

parse → manifest on disk → probes → all guards → verdict → for an admitted run, entry 0 of the journal → effects
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from proctor.admission.admitted import admitted_of, first_request, last_named, require_manifests
from proctor.admission.facts import Facts, FolderFacts, Request
from proctor.admission.finish import Stop
from proctor.admission.gather import Gathered, gather
from proctor.admission.guards import REGISTRY
from proctor.admission.ready import Ready
from proctor.admission.spending import AtMost, Confirm, at_most, nobody
from proctor.core.clock import SystemClock
from proctor.core.exits import Exit
from proctor.core.ids import new_run_id
from proctor.core.money import Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted, seal_admitted, seal_probe
from proctor.evidence.disk import unreadable
from proctor.evidence.ended_files import held
from proctor.evidence.fold import RunState
from proctor.evidence.journal import Journal
from proctor.evidence.keys import OperatorKey
from proctor.evidence.kinds import FORMAT, Kind
from proctor.evidence.lock import Lock, opening
from proctor.evidence.reader import read_entries
from proctor.evidence.recovery import require_room
from proctor.evidence.runfolder import ManifestHandle, RunFolder
from proctor.evidence.scan import scan
from proctor.sandbox.base import SandboxKind
from proctor.study import Design, Plan, plan
from proctor.study.design import read_design

PROBE_DEADLINE_SEC = 20.0


@dataclass(frozen=True)
class Verdict:
    """What admission decided. `refusals` is empty iff the run may act; `manifest` is the manifest's final body."""

    refusals: tuple[Refusal, ...]
    manifest: Mapping[str, Any]
    gathered: Gathered | None = None


@dataclass(frozen=True)
class Admission:
    """An admitted run: the token, the open journal, what is ready, and what earlier openings left."""

    token: Admitted
    run: RunFolder
    journal: Journal
    ready: Ready
    plan: Plan
    kind: SandboxKind
    past: RunState
    notices: tuple[str, ...]


def check(request: Request) -> Verdict:
    """All gates, no effects: what `admit` would say of a new run, with nothing written."""
    request = _dated(request)
    run = RunFolder(request.out)
    facts = FolderFacts(admitted=run.is_admitted())
    gathered, _ = _told(gather(request, facts, None, seal_probe(PROBE_DEADLINE_SEC)))
    return _judge(request, gathered, _head(request))


async def admit(
    request: Request, key: OperatorKey, stop: Stop, *, control: str, confirm: Confirm = nobody
) -> Admission | Verdict:
    """Admit a run or a resume, or refuse it with its manifest on disk.

    Args:
        request: as declared.
        key: signs the checkpoints.
        stop: says why this is cancelled, if it is; told when the verdict is about to be final.
        control: path of the control socket, for the lock.
        confirm: asks somebody whether the run may cost that much, after all guards agree; where it may cost real
            money only.

    Returns:
        The admission, or the verdict that refuses.

    Raises:
        Refusal: the folder cannot hold a manifest (OUT_UNUSABLE, DISK_FULL, WRITE_FAILED), or the journal could not
            be opened after the verdict.
    """
    request = _dated(request)
    run = RunFolder(request.out)
    resuming = request.command == "resume"
    if resuming and not (run.is_admitted() or run.manifests_dir.is_dir()):
        raise Refusal(Reason.RUN_NOT_FOUND, "there is no run folder there", path=str(request.out))
    run.create()
    lock, locked = _lock(run, control)
    manifest: ManifestHandle | None = None
    head = _head(request)
    with contextlib.ExitStack() as unless_admitted:
        if lock is not None:
            unless_admitted.callback(lock.release)
        try:
            # whoever does not hold the lock, or comes too late, says no from its first byte on: the holder may bind
            # what it finds pending, and a death before the verdict must not leave doubt in a run that is sound
            facts, frozen, past = await asyncio.to_thread(_look, run, resuming, locked)
            early = _judge(request, Gathered(Facts(request, facts), {}), head)
            # in the place of a manifest that is missing it would keep its copy from being put back
            after = last_named(run) if facts.evidence is not None else 0
            manifest = run.new_manifest(early.manifest if early.refusals else head, after=after)
            if past is not None and past.admitted is not None:
                request = request.resumed(first_request(run, past.admitted))
                head = {**head, "requested": request.as_record()}
            if resuming and past is None:
                gathered = Gathered(Facts(request, facts), {})
            else:
                gathered = await asyncio.to_thread(gather, request, facts, frozen, seal_probe(PROBE_DEADLINE_SEC))
            gathered, spending = _told(gathered)
            verdict = _judge(request, gathered, head)
            if spending is not None and spending.is_real and not (verdict.refusals or request.prepare_only):
                gathered = replace(gathered, facts=replace(gathered.facts, agreed=await confirm(spending)))
                verdict = _judge(request, gathered, head)
            stop.admitted = True
            bound = manifest.rewrite(verdict.manifest)
            if verdict.refusals or lock is None:
                return verdict
            assert gathered.design is not None and gathered.ready is not None and gathered.kind is not None
            design = gathered.design
            drawn = plan(design)
            opened = {
                "manifest": bound.named(),
                "abandoned": _abandoned(run, past, manifest),
                "opening": opening(),
                "key": {"vkey": key.vkey, "fingerprint": key.fingerprint},
            }
            if resuming and past is not None:
                journal = await Journal.reopen(run, lock=lock, key=key, resumed_body=opened)
            else:
                journal = await _create(run, lock, key, design, drawn, opened)
        except asyncio.CancelledError:
            if manifest is not None and not stop.admitted:
                manifest.rewrite(_interrupted(head, stop))
            raise
        unless_admitted.pop_all()
    token = _token(run, journal.run_id, design.sha256)
    past = RunState.of(read_entries(run.journal_path, validate=False))
    said = tuple(gathered.probes.get("notices", ()))
    return Admission(token, run, journal, gathered.ready, drawn, gathered.kind, past, said)


async def _create(
    run: RunFolder, lock: Lock, key: OperatorKey, design: Design, drawn: Plan, opened: Mapping[str, Any]
) -> Journal:
    run.write_atomic("design.json", design.to_bytes())
    run_id = new_run_id()
    first = {
        **opened,
        "format": FORMAT,
        "run_id": run_id,
        "study": design.study.name,
        "stage": design.stage.name,
        "design_sha256": design.sha256,
        "planned": drawn.planned,
    }
    return await Journal.create(run, lock=lock, key=key, run_id=run_id, first=(Kind.RUN_ADMITTED, first))


def _told(gathered: Gathered) -> tuple[Gathered, AtMost | None]:
    """With what the run can cost at most among the probes and the notices, where it can cost anything."""
    spending = None if gathered.design is None else at_most(gathered.facts, gathered.design)
    if spending is None:
        return gathered, None
    notices = [*gathered.probes.get("notices", ()), spending.sentence()]
    probes = {**gathered.probes, "spending": spending.as_record(), "notices": notices}
    return replace(gathered, probes=probes), spending


def _head(request: Request) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "command": request.command,
        "requested": request.as_record(),
        "started": SystemClock().utc(),
        "verdict": "pending",
        "exit_status": None,
        "refusals": [],
        "waivers": {"requested": list(request.waive), "used": []},
        "probes": {},
        "design_sha256": None,
    }


def _judge(request: Request, gathered: Gathered, head: Mapping[str, Any]) -> Verdict:
    refusals = REGISTRY.run(gathered.facts)
    waived = [refusal for refusal in refusals if refusal.waivable and refusal.reason.id in request.waive]
    standing = tuple(refusal for refusal in refusals if refusal not in waived)
    manifest = {
        **head,
        "verdict": "refused" if standing else "admitted",
        "exit_status": int(Exit.REFUSED) if standing else None,
        "refusals": [refusal.as_record() for refusal in refusals],
        "waivers": {
            "requested": list(request.waive),
            "used": sorted({refusal.reason.id for refusal in waived}),
        },
        "probes": dict(gathered.probes),
        "design_sha256": gathered.design.sha256 if gathered.design else None,
    }
    return Verdict(standing, manifest, gathered)


def _interrupted(head: Mapping[str, Any], stop: Stop) -> dict[str, Any]:
    refusal = Refusal(Reason.INTERRUPTED, f"the admission was interrupted by {stop.cause}")
    status = int(stop.exit or Exit.INTERRUPTED)
    return {**head, "verdict": "refused", "exit_status": status, "refusals": [refusal.as_record()]}


def _lock(run: RunFolder, control: str) -> tuple[Lock | None, Refusal | None]:
    try:
        return Lock.acquire(run, extra={"control": control}), None
    except Refusal as refusal:
        if refusal.reason is not Reason.RUN_LOCKED:
            raise
        return None, refusal


def _look(run: RunFolder, resuming: bool, locked: Refusal | None) -> tuple[FolderFacts, Design | None, RunState | None]:
    """The run folder as it is, its frozen design, and its state."""
    facts = FolderFacts(admitted=run.is_admitted(), locked=locked)
    if not resuming or not facts.admitted or locked is not None:
        return facts, None, None
    try:
        found = scan(run)
        require_room(run, found)
        # what is torn behind them is set aside when the journal is opened
        whole = islice(read_entries(run.journal_path, validate=False), found.chain.size)
        past = RunState.of(held(run, whole))
        design = read_design(run.design_path)
        if past.admitted is None or past.admitted["design_sha256"] != design.sha256:
            raise Refusal(
                Reason.EVIDENCE_DAMAGED, "design.json is not the design that was admitted", path="design.json"
            )
        require_manifests(run, past.bound)
    except Refusal as refusal:
        return FolderFacts(admitted=True, evidence=refusal), None, None
    except OSError as error:
        return FolderFacts(admitted=True, evidence=unreadable("the run", str(run.path), error)), None, None
    complete = past.finals == plan(design).planned["trials"]
    # the process may have died between the last entry and the checkpoint over it: that is left to do
    closed = past.ended is not None and bool(past.ended["complete"]) and found.covered
    charged = Usd(past.charged.total())
    ended = past.ended is not None
    return FolderFacts(admitted=True, complete=complete and closed, charged=charged, ended=ended), design, past


def token_for(run: RunFolder) -> Admitted:
    """The token of a run that was admitted before, for what its operator does by hand (a shell in a kept world).

    Raises:
        Refusal: RUN_NOT_FOUND, or the evidence cannot be read.
    """
    if not run.is_admitted():
        raise Refusal(Reason.RUN_NOT_FOUND, "no admitted run is in this folder", path=str(run.path))
    first = admitted_of(run)
    return _token(run, str(first["run_id"]), str(first["design_sha256"]))


def _token(run: RunFolder, run_id: str, design_sha256: str) -> Admitted:
    return seal_admitted(run_id=run_id, run_dir=run.path, design_sha256=design_sha256, label=f"proctor-{run_id}")


def _dated(request: Request) -> Request:
    """The request, priced by today's table; a resume takes the day of its run's own first manifest instead."""
    return replace(request, priced_on=request.priced_on or SystemClock().utc()[:10])


def _abandoned(run: RunFolder, past: RunState | None, own: ManifestHandle) -> list[dict[str, str]]:
    """Manifests of invocations that died between their first write and their entry."""
    bound = past.bound if past is not None else {}
    return [
        manifest.file.named()
        for manifest in run.manifests()
        if manifest.file.path != own.path and manifest.file.path not in bound and manifest.is_open
    ]
