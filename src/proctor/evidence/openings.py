"""How a journal is opened and ended: what is written first, and last. All of it blocks, on the journal's thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core.outcomes import Outcome
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import recovery, reserve
from proctor.evidence.checkpoints import Signer
from proctor.evidence.entries import JOURNAL, Chain, damaged, make_line
from proctor.evidence.keys import OperatorKey
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Packs
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.scan import Scan, scan
from proctor.evidence.writer import Draft, Stamps, Writer


def create(run: RunFolder, key: OperatorKey, run_id: str, stamps: Stamps, first: Draft) -> Writer:
    """Put entry 0 in place, whole, and the first checkpoint.

    Raises:
        Refusal: `run_exists`, `entry_too_large`.
        OSError: the disk's.
    """
    if run.is_admitted():
        raise Refusal(Reason.RUN_EXISTS, "a run was admitted there already", path=str(run.path))
    chain = Chain()
    line = make_line(chain, first.time, first.mono, first.kind, first.body)
    run.disk.make_dirs(run.checkpoints)
    run.disk.make_dirs(run.packs)
    reserve.hold(run)
    run.disk.put(run.journal_path, line + b"\n")
    chain.advance(line)
    writer = Writer(run, Signer(run, key, run_id), chain, Packs(run, 0, 0))
    writer.checkpoint(stamps)
    return writer


def reopen(run: RunFolder, key: OperatorKey, stamps: Stamps, resumed_body: Mapping[str, Any]) -> Writer:
    """Check all, mend, and write down how this opening begins: in one group.

    Raises:
        Refusal: `evidence_damaged` and others of `scan`, with nothing changed.
        OSError: the disk's.
    """
    found = scan(run)
    recovery.require_room(run, found)
    reserve.release(run)
    run.disk.make_dirs(run.checkpoints)
    run.disk.make_dirs(run.packs)
    quarantined = recovery.set_aside(run, found)
    reserve.hold(run)
    entries = [(Kind.RUN_RESUMED, {**resumed_body, "previous_ended": found.ended})]
    if quarantined or found.open or not found.ended:
        entries.append((Kind.RUN_RECOVERED, {"quarantined": quarantined, "lost": list(found.open)}))
    entries += recovery.last_words(run, found, Outcome.LOST, Reason.LOST)
    entries += _unnamed(found)
    writer = _writer(run, Signer(run, key, found.run_id), found)
    writer.commit([stamps.draft(kind, body) for kind, body in entries])
    return writer


def finish(run: RunFolder, writer: Writer) -> None:
    """Make the last checkpoint, and give back what was reserved. Raises OSError."""
    reserve.release(run)
    writer.finish()


def finish_after(run: RunFolder, writer: Writer, stamps: Stamps, reason: Reason, ended: Draft | None) -> None:
    """End a run whose writer failed: cut back to what is durable, and write the last entries on a fresh handle.

    Args:
        reason: why; attempts in flight end as `interrupted` with it.
        ended: the `run.ended`; without one, the next opening says what happened.

    Raises:
        Refusal: `evidence_damaged`, what was durable is not there any more.
        OSError: the disk's, again.
    """
    durable = writer.durable
    try:
        writer.close()
    except OSError:
        # Nothing is expected of that handle any more.
        pass
    reserve.release(run)
    run.disk.truncate(run.journal_path, durable.offset)
    found = scan(run)
    if (found.chain.size, found.chain.head) != (durable.size, durable.head):
        raise damaged("the journal is not what was written", JOURNAL, found.chain.size, durable.size)
    recovery.cut_off(run, found)
    if ended is None:
        return
    entries = [*recovery.last_words(run, found, Outcome.INTERRUPTED, reason)]
    entries += _unnamed(found)
    last = _writer(run, writer.signer, found)
    try:
        last.commit([*(stamps.draft(kind, body) for kind, body in entries), ended])
        last.finish()
    finally:
        last.close()
    writer.durable, writer.newest = last.durable, last.newest


def _unnamed(found: Scan) -> list[tuple[Kind, dict[str, Any]]]:
    """What names the checkpoints and then the receipts that stand and that no entry names."""
    named = [(Kind.CHECKPOINT_MADE, body) for body in found.unnamed]
    return [*named, *((Kind.CHECKPOINT_ANCHORED, body) for body in found.unanchored)]


def _writer(run: RunFolder, signer: Signer, found: Scan) -> Writer:
    return Writer(run, signer, found.chain, Packs(run, *found.last_pack()))
