"""`proctor anchor`: the last checkpoint of a run that is over, pushed to where it does not stand yet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from proctor.admission.admit import token_for
from proctor.admission.anchors import design_places
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.anchors import receipts
from proctor.evidence.anchors.base import CheckpointFile
from proctor.evidence.anchors.places import AnchorKind, BadAddress, Place, drop_place, git_place
from proctor.evidence.anchors.pushing import Patience
from proctor.evidence.anchors.receipts import Receipt
from proctor.evidence.lock import Lock
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.scan import scan
from proctor.evidence.withheld import withheld_refusal
from proctor.runner.again import told_to_do_it_again
from proctor.runner.anchor_last import Last, push_last
from proctor.study.design import read_design

# of one anchor, all tries together, where a person waits for it
DEADLINE_SEC = 300.0


def anchor_run(run: RunFolder, *, git: str | None = None, drop: Path | None = None) -> list[Last]:
    """Push the last checkpoint of a run to its anchors, or to the places named, where it does not stand yet.

    A place of which there is a receipt is looked at. A new one is written of each of the others, but of a place of a
    kind of which the design has another one.

    Args:
        git: the address of a repository; a path starts where the command was typed.
        drop: a folder that is there.

    Raises:
        Refusal: `run_locked` while a process writes it; `run_not_live` where it has no end on the record;
            `invalid_value`, `missing_key` of the places; `evidence_withheld` of a public copy; the evidence cannot be
            read, or not be written.
    """
    token = token_for(run)
    if run.withheld is not None:
        # before a lock is left in what is to stay as it is
        raise withheld_refusal("what anchoring a run needs")
    with told_to_do_it_again("anchor it"):
        lock = Lock.acquire(run, extra={})
    try:
        found = scan(run)
        last = max([*found.named.values(), *found.unnamed], key=lambda made: int(made["size"]))
        if found.torn or not found.ended or last["size"] != found.chain.size:
            raise Refusal(Reason.RUN_NOT_LIVE, "the run has no end on the record: its process died", path=str(run.path))
        own = design_places(run, read_design(run.design_path))
        stand = [receipt for receipt in receipts.standing(run) if receipt.size == last["size"]]
        asked = _asked(own, git, drop) or own
        if not asked:
            raise Refusal(
                Reason.MISSING_KEY,
                "the study has no anchor, and none is named",
                path="anchor",
                remedy="Name one with --git or --drop.",
            )
        had = _had(asked, stand)
        left = [place for place in asked if place not in had]
        pushed = push_last(
            token,
            run,
            CheckpointFile.read(run, token.run_id, last),
            found.fingerprint,
            asked,
            had=had,
            receipted=[place for place in left if _may_have_receipt(place, own, stand)],
            # a folder that is not there does not come by itself while a person waits
            patience=Patience(tries=1) if all(place.kind is AnchorKind.DROP for place in asked) else Patience(),
            deadline_sec=DEADLINE_SEC,
        )
        with told_to_do_it_again("anchor it"):
            return asyncio.run(pushed)
    finally:
        lock.release()


def _asked(own: Sequence[Place], git: str | None, drop: Path | None) -> list[Place]:
    """The places that were named; one that is the design's is that, however it was written."""
    here = Path.cwd()
    try:
        named = [] if git is None else [git_place(git, here)]
    except BadAddress as error:
        message = f"the address {error}"
        raise Refusal(Reason.INVALID_VALUE, message, path="--git", observed=None if error.secret else git) from error
    if drop is not None:
        named.append(drop_place(str(drop.absolute()), here))
    by_address = {(place.kind, place.address): place for place in own}
    return [by_address.get((place.kind, place.address), _whole(place)) for place in named]


def _whole(place: Place) -> Place:
    """With a path that means the same from everywhere."""
    return Place(place.kind, place.address, place.address)


def _had(asked: Sequence[Place], stand: Sequence[Receipt]) -> dict[Place, Receipt]:
    by_place = {(receipt.anchor, receipt.location): receipt for receipt in stand}
    return {place: by_place[key] for place in asked if (key := (place.kind, place.location)) in by_place}


def _may_have_receipt(place: Place, own: Sequence[Place], stand: Sequence[Receipt]) -> bool:
    """A receipt is of the design's own place where it has one of that kind, and there is one of each kind."""
    kinds: set[AnchorKind] = {each.kind for each in own if each != place} | {receipt.anchor for receipt in stand}
    return place.kind not in kinds
