"""What the written format is made of: canonical JSON, digests, notes, trees, ids, the drawn order."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from itertools import count, permutations
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KEY_NAME = "test-operator"
Body = dict[str, Any]


def canonical(value: Any) -> bytes:
    """Enough of RFC 8785 for what these tests write: keys of the basic plane, short numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Signer:
    """An Ed25519 key that signs notes."""

    def __init__(self, seed: int = 1, name: str = KEY_NAME) -> None:
        self.name = name
        self._private = Ed25519PrivateKey.from_private_bytes(seed.to_bytes(32, "big"))
        self.raw = self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self._hint = self._hint_of(b"\x01")

    def _hint_of(self, algorithm: bytes) -> bytes:
        return hashlib.sha256(self.name.encode() + b"\n" + algorithm + self.raw).digest()[:4]

    @property
    def fingerprint(self) -> str:
        return "sha256:" + sha256(self.raw)

    @property
    def vkey(self) -> str:
        typed = base64.b64encode(b"\x01" + self.raw).decode()
        return f"{self.name}+{self._hint.hex()}+{typed}"

    def sign(self, data: bytes) -> bytes:
        return self._private.sign(data)

    def note(self, text: str) -> bytes:
        signature = base64.b64encode(self._hint + self._private.sign(text.encode())).decode()
        return f"{text}\n\N{EM DASH} {self.name} {signature}\n".encode()

    @property
    def cosigner_vkey(self) -> str:
        """Of a key that signs as C2SP tlog-cosignature has it."""
        typed = base64.b64encode(b"\x04" + self.raw).decode()
        return f"{self.name}+{self._hint_of(bytes([4])).hex()}+{typed}"

    def cosigned(self, note: bytes, time: int) -> bytes:
        """A note with one signature more: a timed cosignature, version 1."""
        text = note.rpartition(b"\n\n")[0] + b"\n"
        signature = self._private.sign(b"cosignature/v1\ntime %d\n" % time + text)
        line = base64.b64encode(self._hint_of(b"\x04") + time.to_bytes(8, "big") + signature).decode()
        return note + f"\N{EM DASH} {self.name} {line}\n".encode()


class Tree:
    """RFC 6962 over leaves, a stack of perfect subtrees by size."""

    def __init__(self) -> None:
        self._stack: list[tuple[int, bytes]] = []

    def add(self, leaf: bytes) -> None:
        size, top = 1, hashlib.sha256(b"\0" + leaf).digest()
        while self._stack and self._stack[-1][0] == size:
            top = hashlib.sha256(b"\1" + self._stack.pop()[1] + top).digest()
            size *= 2
        self._stack.append((size, top))

    def root(self) -> bytes:
        tops = [top for _, top in self._stack]
        root = tops.pop() if tops else hashlib.sha256().digest()
        while tops:
            root = hashlib.sha256(b"\1" + tops.pop() + root).digest()
        return root


def trial_id(task: str, model: str | None, arm: str, epoch: int) -> str:
    return sha256(canonical([task, model, arm, epoch]))[:16]


def money(picodollars: int) -> str:
    """12 decimals."""
    digits = str(picodollars).zfill(13)
    return f"{digits[:-12]}.{digits[-12:]}"


def picodollars(amount: str) -> int:
    return int(amount.replace(".", ""))


def cost(rows: list[Body], usage: Body) -> str:
    """Section 4: of each bucket the row with the greatest start that is below the tokens that go in; rounded up."""
    inputs = sum(usage.get(bucket, 0) for bucket in ("input", "cache_read", "cache_write", "cache_write_1h"))
    total = 0
    for bucket, tokens in usage.items():
        found = [row for row in rows if row["bucket"] == bucket and row["above_inputs"] < max(inputs, 1)]
        total += tokens * picodollars(max(found, key=lambda row: row["above_inputs"])["usd_per_million"])
    return money(-(-total // 10**6))


def worst_case(rows: list[Body], inputs: int, outputs: int) -> str:
    """Section 4, the slow way: the dearest of all numbers of tokens that may go in, and of all buckets."""
    buckets = {row["bucket"] for row in rows}
    within = {inputs, *(start for row in rows if 0 < (start := row["above_inputs"]) < inputs)}
    return max(
        cost(rows, {one: tokens, other: outputs})
        for tokens in within
        for one in buckets - {"output", "reasoning"}
        for other in buckets & {"output", "reasoning"}
    )


Place = tuple[str, str | None, int]


def drawn_blocks(design: Body) -> list[Place]:
    """Section 9 of the format: (task, model, epoch) by their index."""
    return [place for place, _ in drawn_order(design)]


def drawn_order(design: Body) -> list[tuple[Place, list[str]]]:
    """Section 9 of the format: (task, model, epoch) by their index, each with its arms as they run."""
    blocks: list[tuple[Place, list[str]]] = []
    arms = [arm["name"] for arm in design["arms"]]
    for model in [m["name"] for m in design["models"]] or [None]:
        words = _words(design["draw"]["seed"], f"order/{design['stage']['name']}/{model or '-'}")
        order = [(t["name"], model, e) for t in design["tasks"] for e in range(1, design["stage"]["epochs"] + 1)]
        _shuffle(order, words)
        bases, start = [arms], 0
        if 2 <= len(arms) <= 4:
            bases = [[arms[0], *rest] for rest in permutations(arms[1:])]
            _shuffle(bases, words)
        elif len(arms) > 4:
            bases = [list(arms)]
            _shuffle(bases[0], words)
        if len(arms) > 1:
            start = _below(len(arms), words)
        for p, place in enumerate(order):
            base, turn = bases[p // len(arms) % len(bases)], (start + p) % len(arms)
            blocks.append((place, base[turn:] + base[:turn]))
    return blocks


def _words(seed: int, text: str) -> Iterator[int]:
    return (int(sha256(canonical([seed, text, n]))[:16], 16) for n in count())


def _below(k: int, words: Iterator[int]) -> int:
    return next(word for word in words if word < 2**64 - 2**64 % k) % k


def _shuffle(items: list[Any], words: Iterator[int]) -> None:
    for i in range(len(items) - 1, 0, -1):
        j = _below(i + 1, words)
        items[i], items[j] = items[j], items[i]
