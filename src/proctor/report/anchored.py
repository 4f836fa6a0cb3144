"""Where a run is anchored, and up to which entry: as its receipts say, which only what stands there can prove."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from proctor.evidence.anchors import receipts
from proctor.evidence.anchors.places import AnchorKind
from proctor.report.reading import Reading
from proctor.report.text import count, moment, safe


def anchored(reading: Reading) -> list[dict[str, Any]]:
    """What each anchor of the design, and each other one that was pushed to, holds: as `receipts.held`.

    Raises:
        Refusal: the receipts cannot be read.
    """
    own = reading.design.anchor
    named = [] if own is None else [(AnchorKind.GIT, own.git), (AnchorKind.DROP, own.drop)]
    places = [(kind, text) for kind, text in named if text is not None]
    return receipts.held(places, receipts.standing(reading.run))


def anchored_lines(held: Iterable[Mapping[str, Any]], entries: int) -> list[str]:
    """For people, one line for each place; `entries` are those of the journal."""
    return [_line(each, entries) for each in held]


def _line(each: Mapping[str, Any], entries: int) -> str:
    where = safe(f"{each['anchor']} {each['location']}")
    has = "nothing yet"
    if each["size"] is not None:
        has = f"{each['size']:,} of {count(entries, 'entry', 'entries')}, {moment(each['time'])}"
    # a live run alone says how its pushes go
    failing = f"; its last push failed ({safe(each['failing'])})" if each.get("failing") else ""
    waiting = "; nothing starts until it takes a checkpoint" if each.get("waited_for") else ""
    return f"{where}: {has}{failing}{waiting}"
