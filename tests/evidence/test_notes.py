"""Signed notes and checkpoints: what was signed verifies, and one changed byte anywhere does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import notes

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = notes.VerifierKey("tests.example/key", PRIVATE.public_key().public_bytes_raw())
HEAD = notes.Checkpoint("proctor/run/abc", 13, bytes(range(32)))
NOTE_TEXT = st.lists(st.text(st.characters(exclude_categories=["Cs"], min_codepoint=0x20)), min_size=1).map(
    lambda lines: "\n".join(lines) + "\n"
)


@given(NOTE_TEXT)
def test_what_was_signed_verifies_and_comes_back(text: str) -> None:
    note = notes.parse(notes.sign(text, KEY.name, PRIVATE))
    note.verify(KEY)
    assert note.text == text
    assert [(s.name, s.key_id, len(s.signature)) for s in note.signatures] == [(KEY.name, KEY.key_id, 64)]


@given(
    st.integers(0, 2**63 - 1),
    st.binary(min_size=32, max_size=32),
    st.lists(st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs"]), min_size=1)),
)
def test_a_checkpoint_comes_back(size: int, root: bytes, extensions: list[str]) -> None:
    head = notes.Checkpoint("proctor/run/abc", size, root, tuple(extensions))
    assert notes.Checkpoint.parse(head.text()) == head


def test_the_form_is_the_published_one() -> None:
    text, line = notes.sign(HEAD.text(), KEY.name, PRIVATE).decode().split("\n\n")
    assert text == "proctor/run/abc\n13\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    assert line.startswith("— tests.example/key ") and line.endswith("=\n")


def test_no_byte_of_a_signed_checkpoint_can_be_changed_dropped_or_doubled() -> None:
    good = notes.sign(HEAD.text(), KEY.name, PRIVATE)
    for at in range(len(good)):
        for bad in (
            *(good[:at] + bytes([good[at] ^ (1 << bit)]) + good[at + 1 :] for bit in range(8)),
            good[:at] + good[at + 1 :],
            good[:at] + good[at : at + 1] + good[at:],
        ):
            if bad == good:
                continue
            with pytest.raises(Refusal) as caught:
                notes.parse(bad).verify(KEY)
            assert caught.value.reason is Reason.EVIDENCE_DAMAGED


@given(st.binary(max_size=200) | st.text(alphabet="— ab+/=\n\u00a0", max_size=60).map(str.encode))
def test_any_bytes_are_a_note_or_a_refusal_that_can_be_recorded(data: bytes) -> None:
    try:
        notes.Checkpoint.parse(notes.parse(data).text)
    except Refusal as refused:
        assert refused.reason is Reason.EVIDENCE_DAMAGED
        encode(refused.as_record())


def test_another_key_of_the_same_name_did_not_sign() -> None:
    note = notes.parse(notes.sign(HEAD.text(), KEY.name, PRIVATE))
    stranger = notes.VerifierKey(
        KEY.name, Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key().public_bytes_raw()
    )
    with pytest.raises(Refusal, match="not signed") as caught:
        note.verify(stranger, path="checkpoints/000000000013.note")
    assert caught.value.path == "checkpoints/000000000013.note"


def test_a_note_longer_than_the_bound_is_refused_unread() -> None:
    with pytest.raises(Refusal, match="too long"):
        notes.parse(b"a\n" * notes.MAX_NOTE_BYTES)
    with pytest.raises(ValueError, match="at most"):
        notes.sign("a" * notes.MAX_NOTE_BYTES + "\n", KEY.name, PRIVATE)


@pytest.mark.parametrize("text", ["", "no newline", "tab\there\n", "nul\0\n", "carriage\r\n", "\ud800\n"])
def test_a_text_that_can_be_no_note_is_not_signed(text: str) -> None:
    with pytest.raises(ValueError, match="note's text"):
        notes.sign(text, KEY.name, PRIVATE)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u00a0b", "a\nb", "\ud800", "a" * 256, "a\x1bb"])
def test_a_name_that_a_key_cannot_have_is_not_signed_with(name: str) -> None:
    with pytest.raises(ValueError, match="verifier key"):
        notes.sign("text\n", name, PRIVATE)


def test_the_published_examples(cases: Path) -> None:
    folder = cases / "json" / "notes"
    key = notes.VerifierKey.parse((folder / "example.vkey").read_text().strip())
    assert key.key_id.hex() == "530d903a"
    example = notes.parse((folder / "example.note").read_bytes())
    example.verify(key)
    assert example.text == "This is an example message.\n"
    with pytest.raises(Refusal):
        example.verify(KEY)
    poem = notes.parse((folder / "poem.note").read_bytes())
    assert poem.text.endswith("sole:\n\ned è subito sera.\n") and len(poem.signatures) == 1
    sofa = notes.parse((folder / "behind-the-sofa.checkpoint").read_bytes())
    cosigned = notes.parse((folder / "cosigned.checkpoint").read_bytes())
    assert [s.name for s in cosigned.signatures] == ["example.com/behind-the-sofa", "witness.example.com/w1"]
    assert len(cosigned.signatures[1].signature) == 72
    head = notes.Checkpoint.parse(cosigned.text)
    assert head == notes.Checkpoint.parse(sofa.text)
    assert (head.origin, head.size, head.extensions) == ("example.com/behind-the-sofa", 20852163, ())
