"""Whether one checkpoint, known without its run, stands at the places that were named with `--anchor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from proctor_verify.elsewhere import Asked, none_there
from proctor_verify.places import RunName, look_for
from proctor_verify.proves import AT_ONCE, LEFT_OUT
from proctor_verify.standalone import Verdict, cannot_tell, failed, not_applicable, passed

NOT_ASKED = not_applicable("no place was named with --anchor")


class Covered(NamedTuple):
    """How many entries a checkpoint covers, and their root."""

    size: int
    root: bytes


def stands(anchors: Sequence[str], run: RunName, head: Covered, *others: Covered) -> Verdict:
    """Whether `head` stands at each place, and nothing there that contradicts it or the others.

    What stands there must be of that run and signed by its key, whatever it covers.
    """
    if not anchors:
        return NOT_ASKED
    known = {each.size: each.root for each in (*others, head)}
    places = look_for(Asked(tuple(anchors)), run).places
    for place in places:
        for found in place.heads:
            at = f"{place.where}:{found.name}" if found.name else place.where
            if found.fault is not None:
                return failed(found.fault, at)
            if known.get(found.size, found.root) != found.root:
                return failed(f"has another root at {found.size:,} entries", at)
        if place.doubt is not None:
            return cannot_tell(f"{place.where}: {place.doubt}")
        if not place.heads:
            return failed(none_there(place, run.run_id), place.where)
        if all(found.size != head.size for found in place.heads):
            return cannot_tell(f"{place.where} has checkpoints of this run, and none of {head.size:,} entries")
    return passed(f"stands at {', '.join(place.where for place in places)}")


def of_the_time(stands_there: bool) -> tuple[str, ...]:
    """What stays open of a checkpoint that stands at an anchor; of another, that is for its file to say."""
    return (AT_ONCE, LEFT_OUT) if stands_there else ()
