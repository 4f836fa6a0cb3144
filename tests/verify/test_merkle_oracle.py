"""A third party's trees as an oracle: pymerkle, whose trees are those of RFC 6962, with its prefixes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pymerkle import InmemoryTree
from pymerkle.proof import InvalidProof, verify_consistency, verify_inclusion

from merkle_parts import consistency_proof, inclusion_proof
from proctor.core.refusal import Refusal
from proctor.evidence import merkle as ours
from proctor_verify import merkle as theirs

CONTENTS = st.lists(st.binary(max_size=40), min_size=1, max_size=120)


def tree_of(contents: list[bytes]) -> InmemoryTree:
    tree = InmemoryTree(algorithm="sha256")
    for content in contents:
        tree.append_entry(content)
    return tree


def leaves_of(contents: list[bytes]) -> list[bytes]:
    return [ours.leaf_hash(content) for content in contents]


def refuses(call: object, *arguments: object) -> bool:
    assert callable(call)
    try:
        call(*arguments)
    except (Refusal, InvalidProof):
        return True
    return False


@given(CONTENTS)
def test_leaves_and_roots_are_the_same(contents: list[bytes]) -> None:
    tree, leaves = tree_of(contents), leaves_of(contents)
    assert [theirs.leaf_hash(content) for content in contents] == leaves
    assert [tree.get_leaf(n) for n in range(1, len(leaves) + 1)] == leaves
    for size in (1, len(leaves) // 2, len(leaves)):
        if size:
            assert tree.get_root(size) == ours.root(leaves[:size]) == theirs.root(leaves[:size])


@settings(deadline=None)
@given(CONTENTS, st.data())
def test_proofs_of_inclusion_are_the_same_and_believed_by_all(contents: list[bytes], data: st.DataObject) -> None:
    tree, leaves = tree_of(contents), leaves_of(contents)
    size = data.draw(st.integers(1, len(leaves)))
    index = data.draw(st.integers(0, size - 1))
    proof = tree.prove_inclusion(index + 1, size)
    path, root = inclusion_proof(leaves[:size], index), tree.get_root(size)
    assert proof.path == [leaves[index], *path]
    ours.verify_inclusion(leaves[index], index, size, path, root)
    assert theirs.included(leaves[index], index, size, path, root)
    verify_inclusion(leaves[index], root, proof, index=index + 1, size=size)

    wrong = ours.leaf_hash(data.draw(st.binary(max_size=4)))
    fits = wrong == leaves[index]
    assert theirs.included(wrong, index, size, path, root) == fits
    assert refuses(ours.verify_inclusion, wrong, index, size, path, root) == (not fits)
    assert refuses(verify_inclusion, wrong, root, proof) == (not fits)


@settings(deadline=None)
@given(CONTENTS, st.data())
def test_proofs_of_consistency_are_believed_by_all(contents: list[bytes], data: st.DataObject) -> None:
    tree, leaves = tree_of(contents), leaves_of(contents)
    size = data.draw(st.integers(1, len(leaves)))
    old = data.draw(st.integers(1, size))
    proof = tree.prove_consistency(old, size)
    path = consistency_proof(leaves[:size], old)
    before, after = tree.get_root(old), tree.get_root(size)
    # its own proofs have other nodes of the same trees: what they show is compared
    ours.verify_consistency(old, size, before, after, path)
    assert theirs.consistent(old, before, size, after, path)
    verify_consistency(before, after, proof, prior_size=old, later_size=size)

    others = tree_of([*contents[: old - 1], b"another", *contents[old:]])
    other = others.get_root(old)
    fits = other == before
    assert theirs.consistent(old, other, size, after, path) == fits
    assert refuses(ours.verify_consistency, old, size, other, after, path) == (not fits)
    assert refuses(verify_consistency, other, after, proof) == (not fits)
