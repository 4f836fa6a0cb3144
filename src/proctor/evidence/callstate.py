"""A record of calls as it stands: one file of chained lines, read from its start, and what it amounts to."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from proctor.core.money import Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.disk import open_regular, unreadable
from proctor.evidence.entries import NO_ENTRY, damaged
from proctor.evidence.kinds import Kind

FORMAT = 1
# entries of such a record, beside those of exchanges and of the ceiling, which are as a run's journal has them
OPENED, MODEL, CLOSED = "gateway.opened", "gateway.model", "gateway.closed"
_FIELDS = frozenset({"seq", "prev", "time", "mono", "kind", "body"})
# A body of a request, as text, is at most some times this; a longer line is none.
_MAX_LINE = 2**30
_SAYS_INPUT = ("input", "cache_read", "cache_write", "cache_write_1h", "audio_in")


@dataclass(slots=True)
class ModelCalls:
    """What one model was asked: `held` is of what is in flight, in picodollars as `charged` is."""

    exchanges: int = 0
    failed: int = 0
    refused: int = 0
    in_flight: int = 0
    input: int = 0
    output: int = 0
    charged: int = 0
    held: int = 0

    def as_record(self) -> dict[str, Any]:
        """For JSON: amounts with 12 decimals."""
        return {
            "exchanges": self.exchanges,
            "failed": self.failed,
            "refused": self.refused,
            "in_flight": self.in_flight,
            "input_tokens": self.input,
            "output_tokens": self.output,
            "charged": str(Usd(self.charged)),
            "held": str(Usd(self.held)),
        }


@dataclass(slots=True)
class CallState:
    """The fold over a record's entries. Feed it every entry in order.

    `charged` is in picodollars by model; `open` has model and hold of each exchange in flight. `offset` and `head` are
    where the next line goes and what it links to, `torn` how many bytes of an unfinished one stand there.
    """

    record: str = ""
    openings: int = 0
    closed: bool = False
    charged: Counter[str] = field(default_factory=Counter)
    overruns: int = 0
    models: dict[str, ModelCalls] = field(default_factory=dict)
    open: dict[str, tuple[str, Usd]] = field(default_factory=dict)
    refused_unnamed: int = 0
    size: int = 0
    head: str = NO_ENTRY
    offset: int = 0
    torn: int = 0

    @property
    def reached(self) -> tuple[Mapping[str, Any], ...]:
        """Nothing: what was said of an earlier opening's budget does not bind another one."""
        return ()

    @property
    def total(self) -> Usd:
        """All that was charged."""
        return Usd(self.charged.total())

    @property
    def owed(self) -> Usd:
        """All that was charged, and the worst case of what is in flight."""
        return Usd(self.charged.total() + sum(held.pico for _, held in self.open.values()))

    def apply(self, kind: str, body: Mapping[str, Any]) -> None:
        """Take the next entry. Raises KeyError, TypeError, ValueError or Refusal: it makes no sense there."""
        if self.openings == 0 and kind != OPENED:
            raise ValueError("the first entry says which gateway it is")
        if kind == OPENED:
            self.record = str(body["record"])
            self.openings += 1
            self.closed = False
        elif kind == CLOSED:
            self.closed = True
        elif kind == Kind.EXCHANGE_ADMITTED.id:
            self._admitted(body)
        elif kind == Kind.EXCHANGE_ENDED.id:
            self._ended(body)
        elif kind == Kind.EXCHANGE_REFUSED.id:
            if body["model"] is None:
                self.refused_unnamed += 1
            else:
                self._of(body["model"]).refused += 1

    def _admitted(self, body: Mapping[str, Any]) -> None:
        exchange, model, held = body["exchange"], body["model"], Usd.parse(body["held"])
        if exchange in self.open:
            raise ValueError(f"{exchange} is in flight already")
        self.open[exchange] = (model, held)
        calls = self._of(model)
        calls.in_flight += 1
        calls.held += held.pico

    def _ended(self, body: Mapping[str, Any]) -> None:
        model, held = self.open.pop(body["exchange"])
        charged = Usd.parse(body["charged"]).pico
        self.charged[model] += charged
        self.overruns += bool(body["overrun"])
        calls = self._of(model)
        calls.in_flight -= 1
        calls.held -= held.pico
        calls.charged += charged
        calls.exchanges += 1
        calls.failed += body["error"] is not None
        usage = body["usage"] or {}
        inputs = sum(usage.get(bucket, 0) for bucket in _SAYS_INPUT)
        calls.input += inputs
        calls.output += sum(usage.values()) - inputs

    def _of(self, model: Any) -> ModelCalls:
        if type(model) is not str:
            raise ValueError(f"{model!r} is no model")
        return self.models.setdefault(model, ModelCalls())


def read_calls(path: Path) -> CallState:
    """What a record amounts to; changes nothing. An unfinished last line is passed over, and counted.

    Raises:
        Refusal: `would_overwrite`: the file is no record of calls; `evidence_damaged` names the line that is not what
            was written; `format_unknown`, `evidence_unreadable`.
    """
    state = CallState()
    try:
        with open_regular(path) as file:
            while line := file.readline(_MAX_LINE):
                if not line.endswith(b"\n") or (b"\0" in line and state.size):
                    state.torn = len(line) + len(file.read())
                    break
                _take(state, line[:-1], f"{path.name}:{state.size + 1}")
                state.offset += len(line)
    except OSError as error:
        raise unreadable("the record", str(path), error) from error
    if state.size == 0 and state.torn:
        raise _no_record(str(path))
    return state


def _take(state: CallState, line: bytes, where: str) -> None:
    try:
        entry = orjson.loads(line)
        good = isinstance(entry, dict) and entry.keys() == _FIELDS and isinstance(entry["body"], dict)
    except orjson.JSONDecodeError:
        good = False
    if state.size == 0 and (not good or entry["kind"] != OPENED):
        raise _no_record(where.rpartition(":")[0])
    if not good or (entry["seq"], entry["prev"]) != (state.size, state.head):
        raise damaged(
            "a line does not follow the one before it", where, required={"seq": state.size, "prev": state.head}
        )
    kind, body = entry["kind"], entry["body"]
    if kind == OPENED and body.get("format") != FORMAT:
        raise Refusal(Reason.FORMAT_UNKNOWN, "the record's format is not known", path=where, required=FORMAT)
    try:
        state.apply(kind, body)
    except (KeyError, TypeError, ValueError, Refusal) as error:
        raise damaged(f"an entry makes no sense there: {error!r}", where) from error
    state.size += 1
    state.head = hashlib.sha256(line).hexdigest()


def _no_record(path: str) -> Refusal:
    return Refusal(
        Reason.WOULD_OVERWRITE,
        "what stands there is no record of calls, and nothing is overwritten",
        path=path,
        remedy="Name a file that does not exist yet, or the record of an earlier gateway.",
    )
