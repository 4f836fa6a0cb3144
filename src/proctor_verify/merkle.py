"""RFC 6962 Merkle trees, written from section 2.1 of the RFC as it states them: by recursion on the first subtree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

_EMPTY = sha256().digest()


def leaf_hash(line: bytes) -> bytes:
    """The hash of a leaf over a journal line without its newline."""
    return sha256(b"\0" + line).digest()


def _parent(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


class CompactRange:
    """A tree's root while its leaves stream by: a binary counter with the root of one perfect subtree at each 1."""

    def __init__(self) -> None:
        self.size = 0
        self._at_height: list[bytes | None] = []

    def append(self, subtree: bytes, height: int = 0) -> None:
        """Count one more perfect subtree in, by its root: of height 0 a leaf hash, of height n 2^n of them.

        The size so far is a multiple of what it holds, as it is where `subtrees` gives it.
        """
        self.size += 1 << height
        at_height = self._at_height
        at_height.extend([None] * (height + 1 - len(at_height)))
        while (left := at_height[height]) is not None:
            subtree = _parent(left, subtree)
            at_height[height] = None
            height += 1
            at_height.extend([None] * (height + 1 - len(at_height)))
        at_height[height] = subtree

    def root(self) -> bytes:
        """The root over all leaves so far."""
        result: bytes | None = None
        for subtree in self._at_height:
            if subtree is not None:
                result = subtree if result is None else _parent(subtree, result)
        return _EMPTY if result is None else result


def subtrees(leaves: Sequence[bytes], index: int) -> list[tuple[int, bytes]]:
    """The largest perfect subtrees that the leaf hashes from an index on make up, in order: height and root of each."""
    lefts: list[tuple[int, bytes]] = []
    rights: list[tuple[int, bytes]] = []
    level, height = list(leaves), 0
    while level:
        if index & 1:
            lefts.append((height, level.pop(0)))
            index += 1
        if len(level) & 1:
            rights.append((height, level.pop()))
        level = [sha256(b"\1" + left + right).digest() for left, right in zip(level[::2], level[1::2], strict=True)]
        index, height = index >> 1, height + 1
    return lefts + rights[::-1]


def root(leaves: Iterable[bytes]) -> bytes:
    """The root over leaf hashes, level by level; a node without a sibling moves up as it is."""
    level = list(leaves)
    if not level:
        return _EMPTY
    while len(level) > 1:
        pairs = [_parent(left, right) for left, right in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], tree_root: bytes) -> bool:
    """Whether `proof` shows the leaf hash at `index` of the tree of `size` leaves with that root."""
    if not 0 <= index < size < 2**63 or not _are_hashes([leaf, *proof]):
        return False
    return _root_over_path(leaf, index, size, proof) == tree_root


def consistent(old_size: int, old_root: bytes, size: int, tree_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that the old tree is a prefix of the tree of `size` leaves.

    Trees of one size have one root and an empty proof; from the empty tree nothing can be shown.
    """
    if not 0 <= old_size <= size < 2**63:
        return False
    if old_size == size:
        return not proof and old_root == tree_root and (size > 0 or tree_root == _EMPTY)
    if old_size == 0 or not _are_hashes([old_root, *proof]):
        return False
    return _roots_over_subproof(old_size, size, proof, old_root) == (old_root, tree_root)


def _root_over_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    if size == 1:
        return None if path else leaf
    if not path:
        return None
    first, sibling, rest = _first_subtree(size), path[-1], path[:-1]
    if index < first:
        left = _root_over_path(leaf, index, first, rest)
        return left and _parent(left, sibling)
    right = _root_over_path(leaf, index - first, size - first, rest)
    return right and _parent(sibling, right)


def _roots_over_subproof(
    old: int, size: int, proof: Sequence[bytes], known: bytes | None
) -> tuple[bytes, bytes] | None:
    """The roots of the old and of the whole part; `known` is the old root while the old tree lies whole in here."""
    if old == size:
        if known is not None:
            return None if proof else (known, known)
        return (proof[0], proof[0]) if len(proof) == 1 else None
    if not proof:
        return None
    first, sibling = _first_subtree(size), proof[-1]
    if old <= first:
        roots = _roots_over_subproof(old, first, proof[:-1], known)
        return roots and (roots[0], _parent(roots[1], sibling))
    roots = _roots_over_subproof(old - first, size - first, proof[:-1], None)
    return roots and (_parent(sibling, roots[0]), _parent(sibling, roots[1]))


def _first_subtree(size: int) -> int:
    power = 1
    while power * 2 < size:
        power *= 2
    return power


def _are_hashes(values: Sequence[bytes]) -> bool:
    return all(len(value) == 32 for value in values)
