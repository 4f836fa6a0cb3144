"""Both programs read the frozen notes, the published ones and damaged ones with the same result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.refusal import Refusal
from proctor.evidence import keys
from proctor.evidence import notes as ours
from proctor_verify import notes as theirs
from proctor_verify.errors import Unreadable

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent.parent / "vectors" / "notes.json").read_text())
VKEY: str = VECTORS["vkey"]
GOOD = next(case["note"] for case in VECTORS["notes"] if case["name"] == "a witness's signature too").encode()


def our_verdict(data: bytes, vkey: str) -> tuple[str, Any]:
    try:
        note = ours.parse(data)
    except Refusal:
        return "no note", None
    try:
        note.verify(ours.VerifierKey.parse(vkey))
        verdict = "signed"
    except Refusal:
        verdict = "not signed"
    try:
        head = ours.Checkpoint.parse(note.text)
    except Refusal:
        return verdict, False
    return verdict, (head.origin, head.size, head.root, head.extensions)


def their_verdict(data: bytes, vkey: str) -> tuple[str, Any]:
    try:
        note = theirs.parse(data)
    except Unreadable:
        return "no note", None
    verdict = "signed" if note.signed_by(theirs.verifier_key(vkey)) else "not signed"
    try:
        head = theirs.checkpoint(note.text)
    except Unreadable:
        return verdict, False
    return verdict, (head.origin, head.size, head.root, head.extensions)


def both(data: bytes, vkey: str = VKEY) -> tuple[str, Any]:
    """The verdict, and the checkpoint's parts, False for none, None where there is no note."""
    found = our_verdict(data, vkey)
    assert their_verdict(data, vkey) == found
    return found


@pytest.mark.parametrize("case", VECTORS["notes"], ids=lambda case: case["name"])
def test_a_note_is_judged_as_it_says(case: dict[str, Any]) -> None:
    verdict, head = both(case["note"].encode())
    assert verdict == case["verdict"]
    assert (None if head is None else bool(head)) is case["checkpoint"]


def test_the_vectors_key_signs_the_same_note_again() -> None:
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    name = VKEY.split("+")[0]
    text, _ = VECTORS["notes"][0]["note"].split("\n\n")
    assert ours.sign(text + "\n", name, private).decode() == VECTORS["notes"][0]["note"]


@pytest.mark.parametrize("root", VECTORS["trust_roots"], ids=lambda root: root["name"])
def test_a_trust_root_is_read_as_it_says(root: dict[str, Any]) -> None:
    if root["fingerprint"] is None:
        with pytest.raises(Refusal):
            keys.parse_trust_root(root["text"])
        with pytest.raises(Unreadable):
            theirs.trust_root(root["text"])
        return
    mine, other = keys.parse_trust_root(root["text"]), theirs.trust_root(root["text"])
    assert mine.fingerprint == other.fingerprint == root["fingerprint"]
    assert mine.trusts(ours.VerifierKey.parse(VKEY))
    assert other.trusts(theirs.verifier_key(VKEY))


def test_a_trust_root_may_be_a_file_with_a_vkey(tmp_path: Path) -> None:
    path = tmp_path / "c++ and more+key.vkey"
    path.write_text(f"{VKEY}\n")
    key = theirs.trust_root(str(path)).key
    assert key == theirs.verifier_key(VKEY)
    assert key is not None and key.fingerprint == ours.VerifierKey.parse(VKEY).fingerprint
    stranger = theirs.Key(key.name, bytes(32))
    assert not theirs.trust_root(str(path)).trusts(stranger)
    assert not theirs.trust_root(key.fingerprint).trusts(stranger)
    path.write_bytes(b" " * 5000)
    with pytest.raises(Unreadable):
        theirs.trust_root(str(path))


def test_a_note_beyond_the_bound_is_no_note() -> None:
    assert both(b"a\n" * theirs.MAX_NOTE_BYTES) == ("no note", None)


@given(st.data())
def test_a_damaged_note_is_judged_alike_and_never_as_signed_with_other_text(data: st.DataObject) -> None:
    damaged = bytearray(GOOD)
    at = data.draw(st.integers(0, len(damaged)))
    length = data.draw(st.integers(0, 3))
    damaged[at : at + length] = data.draw(
        st.binary(max_size=3)
        | st.sampled_from([b"\n", b"\n\n", b"=", b" ", "—".encode(), "\u00a0".encode(), b"+", b"\x1f"])
    )
    verdict, head = both(bytes(damaged))
    if verdict == "signed":
        assert head == both(GOOD)[1]


@given(st.text(alphabet="— ab+/=\n\u00a0\u2028\x1f019", max_size=40).map(str.encode) | st.binary(max_size=60))
def test_any_bytes_are_judged_alike(data: bytes) -> None:
    both(data)
    both(b"o\n1\n" + data)
    both(b"text\n\n" + "— a ".encode() + data)


@given(st.text(max_size=40) | st.text(alphabet="ab+/=0 \u00a0", max_size=60) | st.sampled_from(VKEY))
def test_both_read_the_same_vkeys(text: str) -> None:
    for tried in (text, VKEY + text, text + VKEY, VKEY.replace("/", text, 1)):
        try:
            mine = str(ours.VerifierKey.parse(tried))
        except Refusal:
            with pytest.raises(Unreadable):
                theirs.verifier_key(tried)
        else:
            key = theirs.verifier_key(tried)
            assert mine == tried and (key.name, key.fingerprint) == (
                ours.VerifierKey.parse(tried).name,
                ours.VerifierKey.parse(tried).fingerprint,
            )


def test_the_published_notes(cases: Path) -> None:
    folder = cases / "json" / "notes"
    vkey = (folder / "example.vkey").read_text().strip()
    assert both((folder / "example.note").read_bytes(), vkey) == ("signed", False)
    assert both((folder / "poem.note").read_bytes()) == ("not signed", False)
    sofa = both((folder / "behind-the-sofa.checkpoint").read_bytes())
    assert sofa == both((folder / "cosigned.checkpoint").read_bytes())
    assert sofa[1][:2] == ("example.com/behind-the-sofa", 20852163)
