"""Both programs hold the frozen tree, the published proofs and generated damage to the same verdict."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from merkle_parts import consistency_proof, inclusion_proof
from proctor.core.refusal import Refusal
from proctor.evidence import merkle as ours
from proctor_verify import merkle as theirs

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent.parent / "vectors" / "merkle.json").read_text())
HASHES = [bytes.fromhex(h) for h in VECTORS["leaf_hashes"]]
ROOTS = [bytes.fromhex(h) for h in VECTORS["roots"]]
PROOF = st.lists(st.sampled_from(HASHES + ROOTS) | st.binary(min_size=31, max_size=33), max_size=6)


def included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """What both say."""
    try:
        ours.verify_inclusion(leaf, index, size, proof, root)
    except Refusal:
        verdict = False
    else:
        verdict = True
    assert theirs.included(leaf, index, size, proof, root) is verdict
    return verdict


def consistent(old: int, size: int, old_root: bytes, root: bytes, proof: Sequence[bytes]) -> bool:
    """What both say."""
    try:
        ours.verify_consistency(old, size, old_root, root, proof)
    except Refusal:
        verdict = False
    else:
        verdict = True
    assert theirs.consistent(old, old_root, size, root, proof) is verdict
    return verdict


def test_the_frozen_tree() -> None:
    lines = [bytes.fromhex(leaf) for leaf in VECTORS["leaves"]]
    assert [ours.leaf_hash(x) for x in lines] == [theirs.leaf_hash(x) for x in lines] == HASHES
    for made in (ours.CompactRange(), theirs.CompactRange()):
        roots = [made.root()]
        for leaf in HASHES:
            made.append(leaf)
            roots.append(made.root())
        assert roots == ROOTS
        assert made.size == len(HASHES)
    assert [theirs.root(HASHES[:n]) for n in range(len(ROOTS))] == ROOTS


def test_a_tree_of_subtrees_is_that_of_its_leaves() -> None:
    for start in range(len(HASHES) + 1):
        for end in range(start, len(HASHES) + 1):
            tree = theirs.CompactRange()
            for leaf in HASHES[:start]:
                tree.append(leaf)
            for height, subtree in theirs.subtrees(HASHES[start:end], start):
                assert tree.size % (1 << height) == 0
                tree.append(subtree, height)
            assert (tree.size, tree.root()) == (end, ROOTS[end])
            for leaf in HASHES[end:]:
                tree.append(leaf)
            assert tree.root() == ROOTS[-1]


def damages(proof: list[bytes]) -> list[list[bytes]]:
    """The proof with a hash too many, too few, exchanged or of another length, at each place."""
    cuts = [(proof[:at], proof[at:]) for at in range(len(proof) + 1)]
    found = [[*before, HASHES[0], *after] for before, after in cuts]
    for before, after in cuts[:-1]:
        found += [[*before, *after[1:]], [*before, ROOTS[0], *after[1:]], [*before, after[0][:31], *after[1:]]]
    return found


def test_hashes_that_only_seem_to_fit_show_nothing() -> None:
    inner = theirs.root(HASHES[:2])
    assert not included(inner, 0, 4, [theirs.root(HASHES[2:4])], ROOTS[4])
    assert not included(ROOTS[4], 0, 4, [], ROOTS[4])
    assert not consistent(1, 4, ROOTS[1], ROOTS[2], consistency_proof(HASHES[:2], 1))
    assert not included(HASHES[3], 1, 2, inclusion_proof(HASHES[:4], 3), ROOTS[4])
    assert not consistent(3, 4, ROOTS[7], ROOTS[8], consistency_proof(HASHES[:8], 7))
    assert not included(HASHES[0][:31], 0, 2, [HASHES[0][31:] + HASHES[1]], ROOTS[2])
    assert not consistent(1, 2, HASHES[0][:31], ROOTS[2], [HASHES[0][31:] + HASHES[1]])
    assert not consistent(0, 0, ROOTS[1], ROOTS[1], [])


def test_trees_of_more_leaves_than_a_checkpoint_can_count() -> None:
    leaf, *path = (HASHES * 10)[:64]
    tree = leaf
    for sibling in path:
        tree = hashlib.sha256(b"\1" + tree + sibling).digest()
    assert theirs.included(leaf, 0, 2**63 - 1, path, tree)
    assert not theirs.included(leaf, 0, 2**63, path, tree)


def test_from_the_empty_tree_nothing_is_shown_however_long_it_is_tried() -> None:
    assert not theirs.consistent(0, ROOTS[0], 8, ROOTS[8], [HASHES[0]] * 5_000)


def test_the_frozen_proofs() -> None:
    for case in VECTORS["inclusion"]:
        index, size, proof = case["index"], case["size"], [bytes.fromhex(h) for h in case["proof"]]
        assert included(HASHES[index], index, size, proof, ROOTS[size])
        for damaged in damages(proof):
            assert not included(HASHES[index], index, size, damaged, ROOTS[size])
        assert proof == inclusion_proof(HASHES[:size], index)
    for case in VECTORS["consistency"]:
        old, size, proof = case["old"], case["new"], [bytes.fromhex(h) for h in case["proof"]]
        assert consistent(old, size, ROOTS[old], ROOTS[size], proof)
        for damaged in damages(proof):
            assert not consistent(old, size, ROOTS[old], ROOTS[size], damaged)
        assert proof == consistency_proof(HASHES[:size], old)


@given(st.integers(-1, 14), st.integers(-1, 14), PROOF, st.sampled_from(ROOTS), st.sampled_from(ROOTS))
@example(-1, -1, [], ROOTS[0], ROOTS[0])
@example(0, 0, [], ROOTS[0], ROOTS[0])
@example(2**63, 2**63, [], ROOTS[1], ROOTS[1])
def test_both_say_the_same_of_proofs_of_nothing(
    number: int, size: int, proof: list[bytes], old_root: bytes, root: bytes
) -> None:
    included(HASHES[0], number, size, proof, root)
    consistent(number, size, old_root, root, proof)


@given(st.data())
def test_both_say_the_same_of_damaged_proofs(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, len(HASHES)))
    number = data.draw(st.integers(1, size - 1))
    for proof in (inclusion_proof(HASHES[:size], number), consistency_proof(HASHES[:size], number)):
        start, end = sorted((data.draw(st.integers(0, len(proof))), data.draw(st.integers(0, len(proof)))))
        damaged = proof[:start] + data.draw(PROOF) + proof[end:]
        other = data.draw(st.integers(0, len(HASHES)))
        included(HASHES[number], number, size, damaged, ROOTS[size])
        included(HASHES[number], number, other, proof, ROOTS[other])
        consistent(number, size, ROOTS[number], ROOTS[size], damaged)
        consistent(other, size, ROOTS[other], ROOTS[size], proof)


def test_the_published_proofs(cases: Path) -> None:
    files = sorted((cases / "json" / "merkle").rglob("*.json"))
    assert len(files) == 160
    for file in files:
        case = json.loads(file.read_bytes())
        proof = [base64.b64decode(h) for h in case["proof"] or []]
        raw = {k: base64.b64decode(case.get(k) or "") for k in ("root", "leafHash", "root1", "root2")}
        if "leafIdx" in case:
            verdict = included(raw["leafHash"], case["leafIdx"], case["treeSize"], proof, raw["root"])
        else:
            verdict = consistent(case["size1"], case["size2"], raw["root1"], raw["root2"], proof)
        assert verdict is not case["wantErr"], file
