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
        with pytest.raises(Unreadable):
            theirs.trust_root(root["text"])
        return
    read = theirs.trust_root(root["text"])
    assert read.fingerprint == root["fingerprint"] and read.trusts(theirs.verifier_key(VKEY))


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


@pytest.mark.parametrize(("more", "verdict"), [(0, "not signed"), (1, "no note")])
def test_a_note_beyond_the_bound_is_no_note(more: int, verdict: str) -> None:
    signature = b"\n" + GOOD.rpartition(b"\n\n")[2]
    text = b"a" * (theirs.MAX_NOTE_BYTES - len(signature) - 1 + more) + b"\n"
    assert both(text + signature)[0] == verdict


def test_a_signature_stands_below_a_blank_line_and_ends_with_a_newline() -> None:
    text, _, signature = GOOD.rpartition(b"\n\n")
    assert both(text + b"\n\n" + signature)[0] == "signed"
    assert both(b"\n" + signature) == ("no note", None)
    assert both(GOOD[:-1] + b" ") == ("no note", None)


@pytest.mark.parametrize("name", ["", "a b", "a\u00a0b", "a\x1fb", "x" * (theirs.MAX_NAME + 1)])
def test_a_key_has_a_name_that_a_line_can_hold(name: str) -> None:
    key = theirs.Key(name, theirs.verifier_key(VKEY).raw)
    vkey = f"{name}+{key.hint.hex()}+{VKEY.split('+', 2)[2]}"
    with pytest.raises(Refusal):
        ours.VerifierKey.parse(vkey)
    with pytest.raises(Unreadable):
        theirs.verifier_key(vkey)


def test_a_witness_is_called_as_its_vkey_begins() -> None:
    assert VKEY.startswith(f"{theirs.witness_key(VKEY).label}+")


def test_what_is_no_key_of_a_witness_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "listing"
    path.write_text(f"public key  {VKEY}\n")
    for argument, words in (
        (theirs.verifier_key(VKEY).fingerprint, "a fingerprint is not enough"),
        (str(tmp_path / "nothing"), "nor a file with a public key"),
        (str(path), "something else than one public key"),
    ):
        with pytest.raises(Unreadable, match=words):
            theirs.witness_key(argument)


def test_a_time_has_a_day_where_a_calendar_has_one() -> None:
    assert theirs.date_of(1_924_992_000) == "2031-01-01 00:00:00 UTC"
    assert theirs.date_of(2**63) == "second 9223372036854775808"


def test_a_checkpoint_is_called_by_its_size() -> None:
    assert theirs.origin_of("a-run") == "proctor/run/a-run"
    assert theirs.path_of(42) == f"checkpoints/{theirs.name_of(42)}" == "checkpoints/000000000042.note"


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
