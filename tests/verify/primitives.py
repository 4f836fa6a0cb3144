"""What the written format is made of: canonical JSON, digests, notes, trees, ids, the drawn order."""

from __future__ import annotations

import base64
import hashlib
import json
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
        self._hint = hashlib.sha256(name.encode() + b"\n\x01" + self.raw).digest()[:4]

    @property
    def fingerprint(self) -> str:
        return "sha256:" + sha256(self.raw)

    @property
    def vkey(self) -> str:
        typed = base64.b64encode(b"\x01" + self.raw).decode()
        return f"{self.name}+{self._hint.hex()}+{typed}"

    def note(self, text: str) -> bytes:
        signature = base64.b64encode(self._hint + self._private.sign(text.encode())).decode()
        return f"{text}\n\N{EM DASH} {self.name} {signature}\n".encode()


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


def drawn_blocks(design: Body) -> list[tuple[str, str | None, int]]:
    """Section 9 of the format: (task, model, epoch) by their index."""
    blocks: list[tuple[str, str | None, int]] = []
    for model in [m["name"] for m in design["models"]] or [None]:
        text, number = f"order/{design['stage']['name']}/{model or '-'}", 0
        order = [(t["name"], model, e) for t in design["tasks"] for e in range(1, design["stage"]["epochs"] + 1)]
        for i in range(len(order) - 1, 0, -1):
            while True:
                word = int(sha256(canonical([design["draw"]["seed"], text, number]))[:16], 16)
                number += 1
                if word < 2**64 - 2**64 % (i + 1):
                    break
            j = word % (i + 1)
            order[i], order[j] = order[j], order[i]
        blocks += order
    return blocks
