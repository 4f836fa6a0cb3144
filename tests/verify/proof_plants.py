"""Receipts and proofs of consistency made from the written format, and one fault at a time planted in them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from primitives import Body, Signer, canonical, trial_id

RUN_ID = "run" + "a" * 23
STRANGER = Signer(2)
WITNESS = Signer(3, "witness.example")


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def head(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1."""
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256().digest()
    k = below(len(leaves))
    return hashlib.sha256(b"\1" + head(leaves[:k]) + head(leaves[k:])).digest()


def path(m: int, leaves: list[bytes]) -> list[bytes]:
    """RFC 6962, section 2.1.1."""
    if len(leaves) == 1:
        return []
    k = below(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), head(leaves[k:])]
    return [*path(m - k, leaves[k:]), head(leaves[:k])]


def subproof(m: int, leaves: list[bytes], whole: bool = True) -> list[bytes]:
    """RFC 6962, section 2.1.2."""
    if m == len(leaves):
        return [] if whole else [head(leaves)]
    k = below(len(leaves))
    if m <= k:
        return [*subproof(m, leaves[:k], whole), head(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), head(leaves[:k])]


def below(n: int) -> int:
    return 1 << ((n - 1).bit_length() - 1)


def leaf(line: bytes) -> bytes:
    return hashlib.sha256(b"\0" + line).digest()


def lines(count: int, text: str = "line") -> list[bytes]:
    return [f"{text} {i}".encode() for i in range(count)]


def entry(seq: int, trial: Body, **body: Any) -> Body:
    of = trial_id(trial["task"], trial["model"], trial["arm"], trial["epoch"])
    said = {"trial": of, "attempt": f"{of}/1", "grade": "pass", "reason": None, "reward": 0.5, **body}
    time = "2031-01-01T00:00:00.000000Z"
    return {"seq": seq, "prev": "0" * 64, "time": time, "mono": 7, "kind": "trial.final", "body": said}


def note(signer: Signer, size: int | str, root: bytes, origin: str = f"proctor/run/{RUN_ID}") -> bytes:
    return signer.note(f"{origin}\n{size}\n{b64(root)}\n")


@dataclass
class Receipt:
    """A receipt that can still be altered; what is None is worked out when it is made."""

    size: int = 11
    at: int = 6
    trial: Body = field(default_factory=lambda: {"task": "tâche", "model": None, "arm": "base", "epoch": 2})
    entry: Body | None = None
    line: bytes | None = None
    index: int | str | None = None
    hashes: list[bytes] | None = None
    extra: Body = field(default_factory=dict)
    raw_extra: bytes | None = None
    signer: Signer = field(default_factory=Signer)
    make_note: Callable[[Signer, int, bytes], bytes] = note
    spoil: Callable[[bytes], bytes] = lambda data: data

    def make(self) -> bytes:
        line = self.line if self.line is not None else canonical(self.entry or entry(self.at, self.trial))
        rows = lines(self.size)
        rows[self.at] = line
        leaves = [leaf(row) for row in rows]
        anchored = [
            {"anchor": "git", "location": "https://example.org/heads.git", "commit": "c" * 40},
            {"anchor": "drop", "location": "/srv/heads", "commit": None},
        ]
        extra = {
            "line": line.decode(errors="surrogateescape"),
            "trial": self.trial,
            "anchored": anchored,
            "vkey": Signer().vkey,
            **self.extra,
        }
        raw = self.raw_extra if self.raw_extra is not None else canonical(extra)
        hashes = self.hashes if self.hashes is not None else path(self.at, leaves)
        index = self.at if self.index is None else self.index
        text = ["c2sp.org/tlog-proof@v1", f"extra {b64(raw)}", f"index {index}", *map(b64, hashes)]
        before = "\n".join(text).encode() + b"\n\n"
        return self.spoil(before + self.make_note(self.signer, self.size, head(leaves)))


@dataclass
class Growth:
    """A proof of consistency, and the older checkpoint."""

    old: int = 6
    size: int = 11
    said: int | str | None = None
    hashes: list[bytes] | None = None
    signer: Signer = field(default_factory=Signer)
    old_signer: Signer = field(default_factory=Signer)
    old_rows: list[bytes] | None = None
    old_origin: str = f"proctor/run/{RUN_ID}"
    make_note: Callable[[Signer, int, bytes], bytes] = note
    spoil: Callable[[bytes], bytes] = lambda data: data
    spoil_old: Callable[[bytes], bytes] = lambda data: data

    def make(self) -> bytes:
        leaves = [leaf(row) for row in lines(self.size)]
        hashes = self.hashes if self.hashes is not None else subproof(self.old, leaves)
        text = [f"old {self.old if self.said is None else self.said}", *map(b64, hashes)]
        before = "\n".join(text).encode() + b"\n\n"
        return self.spoil(before + self.make_note(self.signer, self.size, head(leaves)))

    def older(self) -> bytes:
        rows = lines(self.old) if self.old_rows is None else self.old_rows
        made = note(self.old_signer, self.old, head([leaf(row) for row in rows]), self.old_origin)
        return self.spoil_old(made)


@dataclass(frozen=True)
class Plant:
    """A fault: the one check that must find it, what it is, and how it comes about."""

    check: str
    what: str
    made: Receipt | Growth
    key: str | None = None

    @property
    def id(self) -> str:
        return f"{self.check}: {self.what}"


def put(old: bytes, new: bytes, count: int = 1) -> Callable[[bytes], bytes]:
    def spoil(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new, count)

    return spoil


def spare_bits(data: bytes) -> bytes:
    """The first hash's last character before its padding with a spare bit set."""
    rows = data.split(b"\n")
    at = next(i for i, row in enumerate(rows) if len(row) == 44 and row.endswith(b"="))
    rows[at] = rows[at][:-2] + bytes([rows[at][-2] + 1]) + b"="
    return b"\n".join(rows)


def drop_line(start: bytes) -> Callable[[bytes], bytes]:
    return lambda data: b"\n".join(row for row in data.split(b"\n") if not row.startswith(start))


def others_only(signer: Signer, size: int, root: bytes) -> bytes:
    return note(WITNESS, size, root)


def with_a_witness(signer: Signer, size: int, root: bytes, witness: Signer = WITNESS) -> bytes:
    own, other = note(signer, size, root), note(witness, size, root)
    return own + other.rpartition(b"\n\n")[2]


def wrongly_witnessed(signer: Signer, size: int, root: bytes) -> bytes:
    own, other = note(signer, size, root), note(WITNESS, size + 1, root)
    return own + other.rpartition(b"\n\n")[2]


def altered(size: int) -> Callable[[Signer, int, bytes], bytes]:
    """Signed over one size, and then another put in."""
    return lambda signer, was, root: note(signer, size, root).replace(b"\n%d\n" % size, b"\n%d\n" % was)


def _flipped(hashes: list[bytes]) -> list[bytes]:
    return [bytes([hashes[0][0] ^ 1]) + hashes[0][1:], *hashes[1:]]


def _right_hashes(receipt: Receipt | None = None) -> list[bytes]:
    receipt = receipt or Receipt()
    rows = lines(receipt.size)
    rows[receipt.at] = receipt.line or canonical(receipt.entry or entry(receipt.at, receipt.trial))
    return path(receipt.at, [leaf(row) for row in rows])


def _extra(**changes: Any) -> Receipt:
    return Receipt(extra=changes)


TRIAL = Receipt().trial
GROWN = subproof(6, [leaf(row) for row in lines(11)])
DEEP = b'{"line":' + b"[" * 5000 + b"]" * 5000 + b"}"
FAR = 2**52

FORM = {
    "CRLF": Receipt(spoil=lambda data: data.replace(b"\n", b"\r\n")),
    "another version": Receipt(spoil=put(b"@v1", b"@v2")),
    "no extra": Receipt(spoil=drop_line(b"extra ")),
    "no index": Receipt(spoil=drop_line(b"index ")),
    "index before extra": Receipt(
        spoil=lambda d: b"\n".join([d.split(b"\n")[i] for i in (0, 2, 1)] + d.split(b"\n")[3:])
    ),
    "no blank line": Receipt(spoil=put(b"\n\nproctor", b"\nproctor")),
    "two blank lines": Receipt(spoil=put(b"\n\nproctor", b"\n\n\nproctor")),
    "nothing after the blank line": Receipt(make_note=lambda signer, size, root: b""),
    "a checkpoint without a signature": Receipt(make_note=lambda s, n, r: note(s, n, r).partition(b"\n\n")[0] + b"\n"),
    "a checkpoint that is cut": Receipt(spoil=lambda data: data[:-1]),
    "a checkpoint of no run": Receipt(make_note=lambda s, n, r: note(s, n, r, "example.org/log")),
    "a root that is short": Receipt(make_note=lambda s, n, r: note(s, n, r[:31])),
    "a size with a zero before it": Receipt(make_note=lambda s, n, r: note(s, f"0{n}", r)),
    "an index with a zero before it": Receipt(index="06"),
    "an index below zero": Receipt(index="-6"),
    "an index in other digits": Receipt(index="٦"),
    "an index beyond bounds": Receipt(index=str(2**63)),
    "65 hashes": Receipt(hashes=[b"h" * 32] * 65),
    "64 hashes": Receipt(hashes=[b"h" * 32] * 64),
    "a hash of 31 bytes": Receipt(hashes=[b"h" * 31, *_right_hashes()[1:]]),
    "a hash with spare bits": Receipt(spoil=spare_bits),
    "a hash that is no base64": Receipt(spoil=put(b"=\n\nproctor", b"!\n\nproctor")),
    "extra that is no base64": Receipt(spoil=put(b"extra ", b"extra *")),
    "extra that is no JSON": Receipt(raw_extra=b"{"),
    "extra that is deep": Receipt(raw_extra=DEEP),
    "extra with a key twice": Receipt(raw_extra=b'{"line":"","line":""}'),
    "extra with spaces": Receipt(raw_extra=b'{"line": ""}'),
    "extra that is a list": Receipt(raw_extra=b"[]"),
    "another field": _extra(more=1),
    "no key": Receipt(raw_extra=canonical({"line": "", "trial": TRIAL, "anchored": []})),
    "a key that is none": _extra(vkey="none"),
    "an epoch of 0": Receipt(extra={"trial": {**TRIAL, "epoch": 0}}),
    "an epoch that is true": Receipt(extra={"trial": {**TRIAL, "epoch": True}}),
    "a trial without a model": _extra(trial={"task": "t", "arm": "a", "epoch": 1}),
    "a folder with a commit": _extra(anchored=[{"anchor": "drop", "location": "x", "commit": "c" * 40}]),
    "a repository without one": _extra(anchored=[{"anchor": "git", "location": "x", "commit": None}]),
    "an anchor that is not known": _extra(anchored=[{"anchor": "tape", "location": "x", "commit": None}]),
    "more bytes than allowed": Receipt(extra={"line": "x" * 1_048_576}),
}
SIGNED = {
    "another signed it": Receipt(signer=STRANGER),
    "another signed it, whom it names": Receipt(signer=STRANGER, extra={"vkey": STRANGER.vkey}),
    "only others signed it": Receipt(make_note=others_only),
    "signed over another size": Receipt(make_note=altered(10)),
    "the same key under another name": Receipt(extra={"vkey": Signer(1, "elsewhere").vkey}),
}
INCLUDED = {
    "the index of its neighbour": Receipt(index=7, entry=entry(7, TRIAL)),
    "an index as great as the size": Receipt(index=11, entry=entry(11, TRIAL)),
    "an index far beyond": Receipt(index=FAR, entry=entry(FAR, TRIAL)),
    "a tree of nothing": Receipt(make_note=lambda s, n, r: note(s, 0, hashlib.sha256().digest())),
    "another root": Receipt(make_note=lambda s, n, r: note(s, n, hashlib.sha256(r).digest())),
    "a greater tree": Receipt(make_note=lambda s, n, r: note(s, n + 6, r)),
    "a hash that was changed": Receipt(hashes=_flipped(_right_hashes())),
    "a hash too few": Receipt(hashes=_right_hashes()[:-1]),
    "a hash too many": Receipt(hashes=[*_right_hashes(), b"h" * 32]),
    "no hashes": Receipt(hashes=[]),
    "hashes in another order": Receipt(hashes=_right_hashes()[::-1]),
    "a reward that was changed": Receipt(extra={"line": canonical(entry(6, TRIAL, reward=1)).decode()}),
}
RECORD = {
    "names no attempt": Receipt(
        entry=entry(6, TRIAL, attempt=None, grade="ungraded", reason="not_graded", reward=None)
    ),
    "an entry of another kind": Receipt(entry={**entry(6, TRIAL), "kind": "run.paused", "body": {}}),
    "the same fields in another kind": Receipt(entry={**entry(6, TRIAL), "kind": "trial.finished"}),
    "a grade that there is not": Receipt(entry=entry(6, TRIAL, grade="passed")),
    "a field too many": Receipt(entry=entry(6, TRIAL, note="x")),
    "a field of the entry too many": Receipt(entry={**entry(6, TRIAL), "more": 1}),
    "no body": Receipt(entry={**entry(6, TRIAL), "body": None}),
    "another place in the journal": Receipt(entry=entry(5, TRIAL)),
    "another trial": Receipt(extra={"trial": {**TRIAL, "epoch": 3}}),
    "a trial of another model": Receipt(extra={"trial": {**TRIAL, "model": ""}}),
    "a line with spaces": Receipt(line=canonical(entry(6, TRIAL)).replace(b'":', b'": ')),
    "a line that is no JSON": Receipt(line=b"a line"),
    "a line that is a list": Receipt(line=b"[]"),
    "a line that is deep": Receipt(line=b"[" * 5000 + b"]" * 5000),
    "a line that is too long": Receipt(entry=entry(6, TRIAL, reason="x" * 70_000)),
}
GROWTH_FORM = {
    "CRLF": Growth(spoil=lambda data: data.replace(b"\n", b"\r\n")),
    "a size with a zero before it": Growth(said="06"),
    "a size that is none": Growth(said="six"),
    "no blank line": Growth(spoil=put(b"\n\nproctor", b"\nproctor")),
    "a hash with spare bits": Growth(spoil=spare_bits),
    "64 hashes": Growth(hashes=[b"h" * 32] * 64),
    "a hash of 33 bytes": Growth(hashes=[b"h" * 33]),
    "a checkpoint of no run": Growth(make_note=lambda s, n, r: note(s, n, r, "example.org/log")),
    "an older checkpoint that is none": Growth(spoil_old=lambda data: data[:-1]),
}
GROWTH_SIGNED = {
    "another signed the newer": Growth(signer=STRANGER),
    "another signed the older": Growth(old_signer=STRANGER),
    "only others signed the newer": Growth(make_note=others_only),
}
GROWTH_CONSISTENT = {
    "the older is of another run": Growth(old_origin="proctor/run/other"),
    "the older covers another number": Growth(said=5),
    "the older had other entries": Growth(old_rows=lines(6, "other")),
    "a hash that was changed": Growth(hashes=_flipped(GROWN)),
    "a hash too few": Growth(hashes=GROWN[:-1]),
    "a hash too many": Growth(hashes=[*GROWN, b"h" * 32]),
    "no hashes": Growth(hashes=[]),
    "from nothing": Growth(old=0, hashes=[]),
    "an older that is greater": Growth(old=12, hashes=GROWN),
    "a newer root that is another": Growth(make_note=lambda s, n, r: note(s, n, hashlib.sha256(r).digest())),
}
PLANTS = [
    Plant(check, what, made)
    for check, faults in {
        "receipt.form": FORM,
        "receipt.signed": SIGNED,
        "receipt.included": INCLUDED,
        "receipt.record": RECORD,
        "proof.form": GROWTH_FORM,
        "proof.signed": GROWTH_SIGNED,
        "proof.consistent": GROWTH_CONSISTENT,
    }.items()
    for what, made in faults.items()
]
SOUND: dict[str, Receipt | Growth] = {
    "a receipt": Receipt(),
    "a receipt with a witness's signature": Receipt(make_note=with_a_witness),
    "a receipt of a tree of one": Receipt(size=1, at=0),
    "a receipt that is anchored nowhere": _extra(anchored=[]),
    "a receipt of an ungraded trial": Receipt(
        entry=entry(6, TRIAL, grade="ungraded", reason="not_graded", reward=None)
    ),
    "a checkpoint with extensions": Receipt(
        make_note=lambda s, n, r: s.note(f"proctor/run/{RUN_ID}\n{n}\n{b64(r)}\nmore of it\n")
    ),
    "a proof of consistency": Growth(),
    "of trees of one size": Growth(old=11),
    "of a perfect tree": Growth(old=8),
    "from the first entry": Growth(old=1),
}
