"""The check of chunk maps: where each piece of a streamed response begins, and when it came."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Any

from proctor_verify.check import Check
from proctor_verify.checks.packs import MAX_FRAME, REMEMBERED, identity, inflated
from proctor_verify.errors import Unreadable
from proctor_verify.journal import Entry
from proctor_verify.run import Run

MAX_CHUNKS = 32_768
_NUMBER = rb"(?:0|[1-9][0-9]{0,15})"
_MAP = re.compile(rb"\[\[0,0\](?:,\[%b,%b\])*\]" % (_NUMBER, _NUMBER))
_PAIR = re.compile(rb"\[([0-9]+),([0-9]+)\]")


class Chunks(Check):
    id = "exchanges.chunks"
    doc = (
        "a chunk map is canonical JSON of at most 32,768 pairs, of which the first is `[0, 0]`; offsets rise within "
        "its response, and times do not fall"
    )
    noun = "chunk maps"
    kinds = ("exchange.ended",)

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        # one map may be large, and named very often
        self._last_of = lru_cache(REMEMBERED)(self._last)

    def entry(self, entry: Entry) -> None:
        ref, response = entry.body["chunks"], entry.body["response"]
        if ref is None or response is None:
            return  # said by exchanges.ended where there is no response
        if self.run.withheld.has_blob(ref["blob"]):
            return
        self.looked += 1
        fault = "is no frame of a pack" if "pack" not in ref else self._fault(ref, response["size"])
        if fault is not None and self.run.withheld.fault is not None:
            self.cannot_tell("what is withheld is not known")
        elif fault is not None:
            self.fail_at(entry, f"the chunk map of {entry.body['exchange']} {fault}")

    def _fault(self, ref: dict[str, Any], size: int) -> str | None:
        found = self._last_of(identity(ref))
        if isinstance(found, int) and found >= size:
            return f"begins a chunk at {found}, and the response has {size} bytes"
        return found if isinstance(found, str) else None

    def _last(self, frame: tuple[Any, ...]) -> int | str | None:
        """Where the last chunk of a map begins; else what is wrong with it, None where another check says so."""
        blob, size, pack, offset, length, encoding, _ = frame
        if size > MAX_FRAME or length > 2 * MAX_FRAME:
            return None  # said by packs.frames
        try:
            stored = self.run.folder.read_part(f"packs/{pack}", offset, length)
        except Unreadable:
            return None  # said by packs.frames
        content = stored if encoding == "raw" else inflated(stored, size)
        if content is None or sha256(content).hexdigest() != blob:
            return None  # said by packs.frames
        if _MAP.fullmatch(content) is None:
            return "is not canonical JSON of pairs that begin with [0,0]"
        pairs = [(int(offset), int(ns)) for offset, ns in _PAIR.findall(content)]
        if len(pairs) > MAX_CHUNKS:
            return f"has {len(pairs)} pairs"
        if any(later[0] <= earlier[0] or later[1] < earlier[1] for earlier, later in pairwise(pairs)):
            return "has offsets that do not rise, or times that fall"
        return pairs[-1][0]
