"""Receipts and cosignatures read from any bytes: what they are, or that they are none, and never anything else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from anchored import anchored_story, git_id
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from primitives import Signer, canonical

from proctor.core.refusal import Refusal
from proctor.evidence import notes as ours
from proctor_verify import notes as theirs
from proctor_verify.anchors import Receipt, object_id, read_receipt
from proctor_verify.errors import Unreadable

SEED = bytes(range(32))
NAME = "witness.example"
TEXT = "proctor/run/a\n1\n" + "A" * 43 + "=\n"
NOTE = Signer().note(TEXT)
RAW = Ed25519PrivateKey.from_private_bytes(SEED).public_key().public_bytes_raw()


@pytest.fixture(scope="module")
def receipts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    story = anchored_story()
    story.write(tmp_path_factory.mktemp("run"))
    return {push.anchor: push.made(story) for push in story.pushes[:2]}


def read(data: bytes, anchor: str) -> Receipt | None:
    try:
        return read_receipt(data, 1, anchor)
    except Unreadable:
        return None


@given(data=st.data())
def test_what_is_read_of_a_damaged_receipt_has_one_spelling(receipts: dict[str, bytes], data: st.DataObject) -> None:
    anchor = data.draw(st.sampled_from(sorted(receipts)))
    damaged = bytearray(receipts[anchor])
    at = data.draw(st.integers(0, len(damaged)))
    damaged[at : at + data.draw(st.integers(0, 4))] = data.draw(
        st.binary(max_size=4) | st.sampled_from([b"{", b'"', b"9"])
    )
    if read(bytes(damaged), anchor) is not None:
        assert canonical(json.loads(damaged)) == damaged


@given(data=st.data())
def test_a_field_of_any_value_is_a_receipt_or_none(receipts: dict[str, bytes], data: st.DataObject) -> None:
    anchor = data.draw(st.sampled_from(sorted(receipts)))
    body = json.loads(receipts[anchor])
    value = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("ab=+/0:\n", max_size=8)
    values = value | st.lists(value, max_size=2) | st.dictionaries(st.sampled_from(["ref", "path", "x"]), value)
    body[data.draw(st.sampled_from(sorted(body)))] = data.draw(values)
    read(canonical(body), anchor)


@given(st.binary(max_size=200))
def test_objects_have_the_ids_that_git_gives_them(content: bytes) -> None:
    assert object_id(b"blob", content, 40) == git_id(b"blob", content)


def test_an_object_that_everybody_knows() -> None:
    assert object_id(b"tree", b"", 40) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert object_id(b"tree", b"", 64) == "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"


@given(seconds=st.integers(0, 2**64 - 1), names=st.lists(st.sampled_from(["a", "b.example/w1", "ß"]), max_size=3))
def test_what_one_program_cosigns_the_other_reads(seconds: int, names: list[str]) -> None:
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    note = NOTE
    for name in names:
        note = ours.cosign(note, name, key, 5)
    note = ours.cosign(note, NAME, key, seconds)
    read_back = theirs.parse(note)
    for only in (True, False):
        assert theirs.Witness(theirs.Key(NAME, RAW), only).signed(read_back) == theirs.Witnessed(seconds)
        assert theirs.Witness(theirs.Key("stranger", RAW), only).signed(read_back) is None
        assert theirs.Witness(theirs.Key(NAME, bytes(32)), only).signed(read_back) is None
    assert read_back.signed_by(theirs.Key("test-operator", Signer().raw))
    assert isinstance(theirs.date_of(seconds), str)


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_no_bit_of_a_cosigned_note_can_change(at: int, bit: int) -> None:
    note = bytearray(ours.cosign(NOTE, NAME, Ed25519PrivateKey.from_private_bytes(SEED), 1_924_992_000))
    # the operator's own line is not the witness's to sign
    text, line = note.index(b"\n\n") + 1, note.rindex("— ".encode())
    places = [*range(text), *range(line, len(note))]
    note[places[at % len(places)]] ^= 1 << bit
    try:
        parsed = theirs.parse(bytes(note))
    except Unreadable:
        return
    assert theirs.Witness(theirs.Key(NAME, RAW), only_cosigns=True).signed(parsed) is None


def test_the_published_cosignature_is_a_line_of_its_own_kind(cases: Path) -> None:
    note = theirs.parse((cases / "json/notes/cosigned.checkpoint").read_bytes())
    name, _, signature = note.lines[1]
    assert (name, len(signature)) == ("witness.example.com/w1", 72)
    assert theirs.date_of(int.from_bytes(signature[:8], "big")) == "2023-03-20 12:25:47 UTC"


def test_a_note_takes_64_signatures() -> None:
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    note = NOTE
    for _ in range(63):
        note = ours.cosign(note, NAME, key, 5)
    assert len(theirs.parse(note).lines) == 64
    with pytest.raises(Refusal):
        ours.cosign(note, NAME, key, 5)
