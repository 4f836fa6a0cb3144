"""The check of each attempt's `attempt.json` against the attempt's entries, as section 8 specifies it."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from proctor_verify import strictjson
from proctor_verify.check import Check
from proctor_verify.design import NO_TRIAL
from proctor_verify.errors import Unreadable
from proctor_verify.facts import SUPERSEDED
from proctor_verify.journal import Entry
from proctor_verify.money import Bill
from proctor_verify.prices import usd
from proctor_verify.run import Run
from proctor_verify.schema import BLOB_FIELDS

NAME = "attempt.json"
# there are five steps at most where attempts.phases holds
_MOST_LISTED = 256
_NO_MODEL = {"available": False, "reason": "no model is called through proctor in this run"}
_NO_SNAPSHOT = {"available": False, "reason": "no snapshot is part of the evidence in this version"}
# The last one of each of these kinds stands in the file, under this name.
_LAST = {
    "agent.started": "agent",
    "agent.ended": "agent_ended",
    "verifier.ended": "verifier_ended",
    "attempt.graded": "grade",
}


@dataclass(slots=True)
class _Said:
    """What an open attempt's entries said so far."""

    identity: dict[str, Any]
    last: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(_LAST.values()))
    boundaries: list[str] = field(default_factory=list)
    sandboxes: list[dict[str, Any]] = field(default_factory=list)

    def record(self, ended: dict[str, Any], bill: Bill) -> dict[str, Any]:
        """The content of the file."""
        called = self.identity["model"] is not None
        return {
            "format": 1,
            "identity": self.identity,
            **self.last,
            "boundaries": self.boundaries,
            "sandboxes": self.sandboxes,
            "ended": ended,
            "tokens": bill.tokens if called else _NO_MODEL,
            "cost": _cost(bill) if called else _NO_MODEL,
            "snapshots": _NO_SNAPSHOT,
        }


class Derived(Check):
    id = "attempts.derived"
    doc = (
        "the `attempt.json` that an attempt names is derived, unless that was cut short, and then, byte for byte, what "
        "its entries come to"
    )
    noun = "attempts"
    kinds = ("attempt.admitted", "attempt.boundary", "sandbox.started", *_LAST, "attempt.ended")
    needs_design = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._open: dict[str, _Said] = {}

    def entry(self, entry: Entry) -> None:
        kind, body = entry.kind, entry.body
        attempt = body["attempt"]
        if kind == "attempt.admitted":
            self._open[attempt] = _Said(body)
            return
        said = self._open.get(attempt)
        if said is None:
            return  # said by attempts.admitted, attempts.ended
        if kind == "attempt.ended":
            del self._open[attempt]
            self._compare(entry, said)
        elif kind in _LAST:
            said.last[_LAST[kind]] = _own(entry)
        elif len(said.boundaries) + len(said.sandboxes) == _MOST_LISTED:
            del self._open[attempt]  # said by attempts.phases: it is passed over, for what is open may not grow
        elif kind == "attempt.boundary":
            said.boundaries.append(body["boundary"])
        else:
            said.sandboxes.append(_own(entry))

    def _compare(self, entry: Entry, said: _Said) -> None:
        attempt = self.run.open[entry.body["attempt"]]
        named = attempt.files.get(NAME)
        if named is None or attempt.trial == NO_TRIAL:
            return  # said by attempts.joined where no such trial is planned
        self.looked += 1
        if named.role != "derived":
            if entry.body["outcome"] not in SUPERSEDED:
                self.fail_at(entry, f"ends {attempt.id} as {entry.body['outcome']}, whose {NAME} is {named.role}")
            return
        try:
            wanted = strictjson.encode(said.record(_own(entry), attempt.bill))
        except Unreadable as error:
            self.fail(f"{attempt.folder}/{NAME}", f"cannot hold what the attempt's entries come to: {error}")
            return
        if sha256(wanted).hexdigest() != named.sha256:
            self.fail(f"{attempt.folder}/{NAME}", "is not what the attempt's entries come to")


def _cost(bill: Bill) -> dict[str, Any]:
    return {"charged": usd(bill.charged), "exchanges": bill.exchanges, "estimated": bill.estimated}


def _own(entry: Entry) -> dict[str, Any]:
    """A body without what every entry of the attempt has, and without what stands in a pack."""
    own = dict(entry.body)
    for name in ("attempt", *BLOB_FIELDS.get(entry.kind, ())):
        del own[name]
    return own
