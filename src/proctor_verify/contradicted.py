"""Times that others give, held against those of the run's entries: receipts of anchors and signatures of witnesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from proctor_verify.checks.heads import witnessed
from proctor_verify.clocks import MINUTE
from proctor_verify.run import Run

# 9999-12-31T23:59:59Z, in seconds since 1970
_LAST = 253_402_300_799


def contradicted(run: Run) -> Iterator[str]:
    """Where receipts and witnesses say another time than entries that their checkpoints cover, or that name them."""
    early = [lead(run.times.get(receipt.of), receipt.ended) for receipt in run.receipts.sound]
    late = [lead(receipt.ended, run.receipts.named_at.get(receipt.path)) for receipt in run.receipts.sound]
    yield from in_words(early, "receipts are dated", "before an entry that their checkpoint covers")
    yield from in_words(late, "receipts are dated", "after the entry that names them")
    signed = [lead(run.times.get(size), when) for size, when in _signed(run)]
    yield from in_words(signed, "signatures of witnesses are dated", "before an entry that they cover")


def in_words(leads: Sequence[timedelta], what: str, where: str) -> Iterator[str]:
    """What is said of such leads, where any is more than a minute."""
    found = [each for each in leads if each > MINUTE]
    if found:
        most = f"{max(found).total_seconds():,.0f}"
        yield f"times: {what} {where}, by up to {most} seconds ({len(found):,}): clocks differ, or times are made up"


def lead(time: str | None, other: str | None) -> timedelta:
    """How much later a time is than another; nothing where one is not known."""
    if not time or not other:
        return timedelta(0)
    return datetime.fromisoformat(time) - datetime.fromisoformat(other)


def _signed(run: Run) -> Iterator[tuple[int, str]]:
    """The size that a witness signed, and when, where its signature says so."""
    for head in witnessed(run):
        for seen in head.seen_by:
            if seen is not None and seen.time is not None:
                yield head.size, datetime.fromtimestamp(min(seen.time, _LAST), UTC).isoformat()
