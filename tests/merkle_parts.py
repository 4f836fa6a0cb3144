"""Proofs over leaves that are all in hand, hash by hash along the paths that the product's own take."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.evidence.merkle import consistency_path, inclusion_path, root


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The audit path of the leaf at `index` in the tree over all `leaves` (hashes), deepest sibling first."""
    return [root(leaves[low:high]) for low, high in inclusion_path(len(leaves), index)]


def consistency_proof(leaves: Sequence[bytes], old_size: int) -> list[bytes]:
    """The proof that the tree over the first `old_size` of `leaves` (hashes) is a prefix of the tree over all."""
    return [root(leaves[low:high]) for low, high in consistency_path(len(leaves), old_size)]
