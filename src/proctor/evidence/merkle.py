"""The Merkle tree over the journal's lines: RFC 6962 with SHA-256, sections 2.1 to 2.1.2.

A tree is held as a compact range: the roots of its perfect subtrees, largest first, one for each bit of its size.
That is all an append or a root needs; the leaves are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NoReturn

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

Range = tuple[int, int]

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()

_MAX_SIZE = 2**63 - 1


def leaf_hash(data: bytes) -> bytes:
    """The 32-byte hash of a leaf; `data` is the line without its newline."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The 32-byte hash of an inner node over its two children."""
    return sha256(b"\x01" + left + right).digest()


class CompactRange:
    """A growing tree in O(log size) memory; an append costs O(log size) at most and two hashes on average."""

    __slots__ = ("_peaks", "_size")

    def __init__(self) -> None:
        self._size = 0
        self._peaks: list[bytes] = []

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return self._size

    def append(self, leaf: bytes) -> None:
        """Add a leaf by its hash."""
        peaks, carried, full = self._peaks, leaf, self._size
        while full & 1:
            carried = sha256(b"\x01" + peaks.pop() + carried).digest()
            full >>= 1
        peaks.append(carried)
        self._size += 1

    def root(self) -> bytes:
        """The tree's root, 32 bytes."""
        if not self._peaks:
            return EMPTY_ROOT
        *larger, root = self._peaks
        for peak in reversed(larger):
            root = node_hash(peak, root)
        return root


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes in order."""
    tree = CompactRange()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root()


def inclusion_path(size: int, index: int) -> list[Range]:
    """The ranges of leaves whose roots are the audit path of leaf `index` in a tree of `size`, deepest sibling first.

    Raises:
        ValueError: no such leaf.
    """
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} of a tree of {size}")
    path: list[Range] = []
    low, high = 0, size
    while high - low > 1:
        middle = low + split(high - low)
        if index < middle:
            path.append((middle, high))
            high = middle
        else:
            path.append((low, middle))
            low = middle
    return path[::-1]


def consistency_path(size: int, old_size: int) -> list[Range]:
    """The ranges of leaves whose roots prove that the tree of `old_size` leaves is a prefix of that of `size`.

    Raises:
        ValueError: `old_size` is 0 or more than `size`.
    """
    if not 0 < old_size <= size:
        raise ValueError(f"the first {old_size} of {size} leaves")
    path: list[Range] = []
    low, high, whole_old_tree = 0, size, True
    while old_size < high:
        middle = low + split(high - low)
        if old_size <= middle:
            path.append((middle, high))
            high = middle
        else:
            path.append((low, middle))
            low, whole_old_tree = middle, False
    if not whole_old_tree:
        path.append((low, high))
    return path[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], expected_root: bytes) -> None:
    """Check that the leaf with hash `leaf` stands at `index` of the tree of `size` leaves with that root.

    Raises:
        Refusal: `evidence_damaged`, the proof does not show it.
    """
    _check_hashes([leaf, expected_root, *proof])
    if not 0 <= index < size <= _MAX_SIZE:
        _damaged("an inclusion proof is for no leaf of the tree", observed={"index": index, "size": size})
    computed, node, last = leaf, index, size - 1
    for sibling in proof:
        if last == 0:
            _damaged("an inclusion proof is too long", observed={"hashes": len(proof)})
        if node & 1 or node == last:
            computed = node_hash(sibling, computed)
            node, last = _skip_levels_without_sibling(node, last)
        else:
            computed = node_hash(computed, sibling)
        node, last = node >> 1, last >> 1
    if last != 0:
        _damaged("an inclusion proof is too short", observed={"hashes": len(proof)})
    if computed != expected_root:
        _damaged("an inclusion proof leads to another root", observed=computed.hex(), required=expected_root.hex())


def verify_consistency(old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> None:
    """Check that the tree of `old_size` leaves is a prefix of that of `new_size`; from the empty tree nothing follows.

    Raises:
        Refusal: `evidence_damaged`, the proof does not show it.
    """
    sizes = {"old": old_size, "new": new_size}
    if not 0 <= old_size <= new_size <= _MAX_SIZE:
        _damaged("a consistency proof is for sizes that do not grow", observed=sizes)
    if old_size == new_size:
        if proof or old_root != new_root or (old_size == 0 and old_root != EMPTY_ROOT):
            _damaged("two trees of one size have one root and an empty proof", observed=sizes)
        return
    if old_size == 0 or not proof:
        _damaged("a consistency proof is empty, or starts from the empty tree", observed=sizes)
    _check_hashes([old_root, new_root, *proof])
    # The root of an old tree that is perfect is a node of the new one, and left out of the proof.
    hashes = list(proof) if old_size & (old_size - 1) else [old_root, *proof]
    node, last = old_size - 1, new_size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    old_computed = new_computed = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            _damaged("a consistency proof is too long", observed={"hashes": len(proof)})
        if node & 1 or node == last:
            old_computed = node_hash(sibling, old_computed)
            new_computed = node_hash(sibling, new_computed)
            node, last = _skip_levels_without_sibling(node, last)
        else:
            new_computed = node_hash(new_computed, sibling)
        node, last = node >> 1, last >> 1
    if last != 0:
        _damaged("a consistency proof is too short", observed={"hashes": len(proof)})
    if old_computed != old_root or new_computed != new_root:
        _damaged("a consistency proof leads to other roots", observed=[old_computed.hex(), new_computed.hex()])


def _skip_levels_without_sibling(node: int, last: int) -> tuple[int, int]:
    while node and not node & 1:
        node, last = node >> 1, last >> 1
    return node, last


def split(size: int) -> int:
    """How many leaves the left subtree of a tree of `size`, at least 2, has: the largest power of two below it."""
    return 1 << ((size - 1).bit_length() - 1)


def _check_hashes(hashes: Sequence[bytes]) -> None:
    if any(len(h) != HASH_BYTES for h in hashes):
        _damaged(f"a hash in a proof is not {HASH_BYTES} bytes long", observed=[len(h) for h in hashes][:80])


def _damaged(message: str, *, observed: object = None, required: object = None) -> NoReturn:
    raise Refusal(Reason.EVIDENCE_DAMAGED, message, observed=observed, required=required)
