"""Merkle trees: the definitions of RFC 6962 on one side, what grows with the journal on the other."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merkle_parts import consistency_proof, inclusion_proof
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import merkle

LEAVES = [merkle.leaf_hash(b"line %d" % i) for i in range(200)]


def tree_head(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962, section 2.1, word for word."""
    if not leaves:
        return sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    k = max(2**i for i in range(20) if 2**i < len(leaves))
    return sha256(b"\x01" + tree_head(leaves[:k]) + tree_head(leaves[k:])).digest()


def grown(size: int) -> merkle.CompactRange:
    tree = merkle.CompactRange()
    for leaf in LEAVES[:size]:
        tree.append(leaf)
    return tree


def refused(call: Any, *arguments: Any) -> None:
    with pytest.raises(Refusal) as caught:
        call(*arguments)
    assert caught.value.reason is Reason.EVIDENCE_DAMAGED


def test_hashes_are_those_of_the_rfc() -> None:
    assert merkle.leaf_hash(b"").hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert merkle.EMPTY_ROOT.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert merkle.node_hash(b"l" * 32, b"r" * 32) == sha256(b"\x01" + b"l" * 32 + b"r" * 32).digest()


@pytest.mark.parametrize("size", [*range(34), 63, 64, 65, 127, 200])
def test_a_grown_tree_has_the_root_of_the_definition(size: int) -> None:
    tree = grown(size)
    assert tree.size == size
    assert tree.root() == tree_head(LEAVES[:size]) == merkle.root(LEAVES[:size])


def test_every_proof_of_every_small_tree_holds() -> None:
    for size in range(1, 34):
        leaves = LEAVES[:size]
        root = tree_head(leaves)
        for index in range(size):
            merkle.verify_inclusion(leaves[index], index, size, inclusion_proof(leaves, index), root)
        for old in range(1, size + 1):
            merkle.verify_consistency(old, size, tree_head(leaves[:old]), root, consistency_proof(leaves, old))


@given(st.data())
def test_an_inclusion_proof_shows_that_leaf_at_that_place_and_nothing_else(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 70))
    index = data.draw(st.integers(0, size - 1))
    leaves = LEAVES[:size]
    root, proof = tree_head(leaves), inclusion_proof(leaves, index)
    other = data.draw(st.integers(0, size - 1).filter(lambda i: i != index))
    refused(merkle.verify_inclusion, leaves[other], index, size, proof, root)
    refused(merkle.verify_inclusion, leaves[index], other, size, proof, root)
    refused(merkle.verify_inclusion, leaves[index], index, size, proof, tree_head(LEAVES[: size + 1]))
    refused(merkle.verify_inclusion, leaves[index], index, size, tampered(data, proof), root)


@given(st.data())
def test_a_consistency_proof_shows_those_two_trees_and_nothing_else(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 70))
    old = data.draw(st.integers(1, size - 1))
    old_root, root = tree_head(LEAVES[:old]), tree_head(LEAVES[:size])
    proof = consistency_proof(LEAVES[:size], old)
    rewritten = tree_head([*LEAVES[: old - 1], LEAVES[199]])
    refused(merkle.verify_consistency, old, size, rewritten, root, proof)
    refused(merkle.verify_consistency, old, size, old_root, tree_head(LEAVES[: size + 1]), proof)
    refused(merkle.verify_consistency, old, size, old_root, root, tampered(data, proof))


def test_an_inner_node_is_no_leaf() -> None:
    root, proof = tree_head(LEAVES[:8]), inclusion_proof(LEAVES[:8], 5)
    pair = merkle.node_hash(LEAVES[4], LEAVES[5])
    refused(merkle.verify_inclusion, pair, 5, 8, proof[1:], root)
    refused(merkle.verify_inclusion, root, 0, 8, [], root)


def test_a_proof_for_a_smaller_tree_shows_nothing_of_a_larger_one() -> None:
    proof = consistency_proof(LEAVES[:2], 1)
    merkle.verify_consistency(1, 2, LEAVES[0], tree_head(LEAVES[:2]), proof)
    refused(merkle.verify_consistency, 1, 4, LEAVES[0], tree_head(LEAVES[:2]), proof)


def test_a_proof_for_a_larger_tree_shows_nothing_of_a_smaller_one() -> None:
    refused(merkle.verify_inclusion, LEAVES[3], 1, 2, inclusion_proof(LEAVES[:4], 3), tree_head(LEAVES[:4]))
    proof = consistency_proof(LEAVES[:8], 7)
    refused(merkle.verify_consistency, 3, 4, tree_head(LEAVES[:7]), tree_head(LEAVES[:8]), proof)


def test_bytes_cannot_move_from_one_hash_to_its_sibling() -> None:
    root = merkle.node_hash(LEAVES[0], LEAVES[1])
    shorter, longer = LEAVES[0][:31], LEAVES[0][31:] + LEAVES[1]
    refused(merkle.verify_inclusion, shorter, 0, 2, [longer], root)
    refused(merkle.verify_consistency, 1, 2, shorter, root, [longer])


def test_two_trees_of_one_size_are_one_tree() -> None:
    merkle.verify_consistency(0, 0, merkle.EMPTY_ROOT, merkle.EMPTY_ROOT, [])
    merkle.verify_consistency(5, 5, LEAVES[0], LEAVES[0], [])
    refused(merkle.verify_consistency, 0, 0, LEAVES[0], LEAVES[0], [])
    refused(merkle.verify_consistency, 5, 5, LEAVES[0], LEAVES[1], [])
    refused(merkle.verify_consistency, 5, 5, LEAVES[0], LEAVES[0], [LEAVES[1]])


def tampered(data: st.DataObject, proof: list[bytes]) -> list[bytes]:
    at = data.draw(st.integers(0, len(proof) - 1))
    bit = bytes([proof[at][0] ^ 1]) + proof[at][1:]
    return data.draw(
        st.sampled_from(
            [
                [*proof[:at], bit, *proof[at + 1 :]],
                [*proof[:at], *proof[at + 1 :]],
                [*proof, proof[at]],
                [*proof[:at], proof[at][:31], *proof[at + 1 :]],
                [proof[0], *proof],
            ]
        )
    )


@pytest.mark.parametrize(("index", "size"), [(1, 1), (-1, 1), (0, 0), (5, 3), (0, 2**63)])
def test_a_leaf_outside_of_the_tree_is_refused(index: int, size: int) -> None:
    refused(merkle.verify_inclusion, LEAVES[0], index, size, [], LEAVES[0])


@pytest.mark.parametrize(("old", "new"), [(2, 1), (-1, 1), (0, 1), (1, 2**63)])
def test_sizes_that_show_nothing_are_refused(old: int, new: int) -> None:
    refused(merkle.verify_consistency, old, new, LEAVES[0], LEAVES[0], [LEAVES[1]])


def test_proofs_are_made_only_of_what_is_there() -> None:
    for index in (-1, 3):
        with pytest.raises(ValueError, match="leaf"):
            merkle.inclusion_path(3, index)
    for old in (0, 4):
        with pytest.raises(ValueError, match="leaves"):
            merkle.consistency_path(3, old)


def test_the_published_proofs(cases: Path) -> None:
    files = sorted((cases / "json" / "merkle").rglob("*.json"))
    assert len(files) == 160
    for file in files:
        case = json.loads(file.read_bytes())
        proof = [base64.b64decode(h) for h in case["proof"] or []]
        raw = {k: base64.b64decode(case.get(k) or "") for k in ("root", "leafHash", "root1", "root2")}
        try:
            if "leafIdx" in case:
                merkle.verify_inclusion(raw["leafHash"], case["leafIdx"], case["treeSize"], proof, raw["root"])
            else:
                merkle.verify_consistency(case["size1"], case["size2"], raw["root1"], raw["root2"], proof)
        except Refusal:
            holds = False
        else:
            holds = True
        assert holds is not case["wantErr"], file
