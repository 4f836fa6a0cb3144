"""Who signed a note, as its lines say it, and what names a key: at the edges of the rules."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from primitives import Signer

from proctor_verify import notes
from proctor_verify.errors import Unreadable
from proctor_verify.notes import Note, Witnessed

TEXT = "proctor/run/a\n1\n" + base64.b64encode(bytes(32)).decode() + "\n"
MINE, OTHER = Signer(7, "witness.example"), Signer(8, "another.example")
ALIAS = Signer(7, "another.example")
Line = tuple[str, bytes, bytes]


def plain(signer: Signer) -> Line:
    return notes.parse(signer.note(TEXT)).lines[0]


def timed(signer: Signer, time: int) -> Line:
    return notes.parse(signer.cosigned(OTHER.note(TEXT), time)).lines[1]


def spoilt(line: Line) -> Line:
    name, hint, signature = line
    return name, hint, signature[:-1] + bytes([signature[-1] ^ 1])


def called(name: str, line: Line) -> Line:
    return name, *line[1:]


def note(*lines: Line) -> Note:
    return Note(TEXT.encode(), lines)


KEY = notes.verifier_key(MINE.vkey)

SIGNED: list[tuple[list[Line], bool]] = [
    ([], False),
    ([plain(MINE)], True),
    ([plain(OTHER)], False),
    ([plain(OTHER), plain(MINE)], True),
    ([plain(MINE), plain(MINE)], True),
    ([spoilt(plain(MINE))], False),
    ([plain(MINE), spoilt(plain(MINE))], False),
    ([plain(MINE), spoilt(plain(OTHER))], True),
    # a line that has the name or the hint of a key alone is another's
    ([plain(MINE), called(MINE.name, spoilt(plain(OTHER)))], True),
    ([plain(MINE), called(OTHER.name, spoilt(plain(MINE)))], True),
    ([called(OTHER.name, plain(MINE))], False),
    ([plain(ALIAS)], False),
    ([timed(MINE, 5)], False),
]


@pytest.mark.parametrize(("lines", "is_signed"), SIGNED)
def test_who_signed_a_note(lines: list[Line], is_signed: bool) -> None:
    assert note(*lines).signed_by(KEY) is is_signed


WITNESSED: list[tuple[list[Line], Witnessed | None, Witnessed | None]] = [
    ([], None, None),
    ([plain(OTHER)], None, None),
    ([plain(MINE)], Witnessed(None), None),
    ([timed(MINE, 5)], Witnessed(5), Witnessed(5)),
    ([timed(MINE, 0)], Witnessed(0), Witnessed(0)),
    ([timed(MINE, 5), timed(MINE, 9)], Witnessed(9), Witnessed(9)),
    ([timed(MINE, 9), timed(MINE, 5)], Witnessed(9), Witnessed(9)),
    ([plain(MINE), timed(MINE, 5), plain(OTHER)], Witnessed(5), Witnessed(5)),
    ([spoilt(plain(MINE))], None, None),
    ([timed(MINE, 5), spoilt(plain(MINE))], None, Witnessed(5)),
    ([plain(MINE), spoilt(timed(MINE, 5))], None, None),
    ([timed(MINE, 5), spoilt(timed(MINE, 5))], None, None),
    ([called(OTHER.name, plain(MINE)), called(OTHER.name, timed(MINE, 5))], None, None),
    ([plain(MINE), called(OTHER.name, spoilt(plain(MINE)))], Witnessed(None), None),
    ([timed(MINE, 5), called(OTHER.name, spoilt(timed(MINE, 9)))], Witnessed(5), Witnessed(5)),
    ([timed(MINE, 5), called(MINE.name, timed(OTHER, 9))], Witnessed(5), Witnessed(5)),
]


@pytest.mark.parametrize(("lines", "by_either", "by_cosigner"), WITNESSED)
def test_what_a_witness_signed(lines: list[Line], by_either: Witnessed | None, by_cosigner: Witnessed | None) -> None:
    assert notes.witness_key(MINE.vkey).signed(note(*lines)) == by_either
    assert notes.witness_key(MINE.cosigner_vkey).signed(note(*lines)) == by_cosigner


def test_witnesses_are_called_as_their_vkeys_begin() -> None:
    for vkey in (MINE.vkey, MINE.cosigner_vkey):
        assert vkey.startswith(f"{notes.witness_key(f' {vkey} ').label}+")
    assert not notes.witness_key(MINE.vkey).only_cosigns and notes.witness_key(MINE.cosigner_vkey).only_cosigns


def vkey_of(name: str, typed: bytes, hint: Callable[[str], str] = str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass") + b"\n" + typed).hexdigest()[:8]
    return f"{name}+{hint(digest)}+{base64.b64encode(typed).decode()}"


@pytest.mark.parametrize("name", ["a", "x" * notes.MAX_NAME, "\ud7ff", "\ue000", "a!~", "\u00e9"])
def test_names_that_a_key_may_have(name: str) -> None:
    assert notes.verifier_key(vkey_of(name, b"\1" + MINE.raw)).name == name


@pytest.mark.parametrize(
    "name", ["", "x" * (notes.MAX_NAME + 1), "\ud800", "\udfff", "a\x1fb", "a b", "\u2003", "a\x1b", "\0"]
)
def test_names_that_no_key_may_have(name: str) -> None:
    with pytest.raises(Unreadable):
        notes.verifier_key(vkey_of(name, b"\1" + MINE.raw))


def test_what_is_no_key_of_one_who_signs_runs() -> None:
    for typed in (b"\4" + MINE.raw, b"\2" + MINE.raw, b"\1" + MINE.raw[1:], b"\1" + MINE.raw + b"a", b""):
        with pytest.raises(Unreadable, match="not of an Ed25519 key"):
            notes.verifier_key(vkey_of("a", typed))
    with pytest.raises(Unreadable, match="do not fit"):
        notes.verifier_key(vkey_of("a", b"\1" + MINE.raw, str.upper))
    with pytest.raises(Unreadable):
        notes.verifier_key(f"a+{'0' * 8}+{'A' * 5_000}")
    with pytest.raises(Unreadable, match="not of an Ed25519 key"):
        notes.witness_key(vkey_of("a", b"\2" + MINE.raw))


def test_a_trust_root_is_a_fingerprint_a_vkey_or_a_file(tmp_path: Path) -> None:
    by_digits = notes.trust_root(f" {MINE.fingerprint}\n")
    assert by_digits.key is None and by_digits.trusts(KEY) and by_digits.trusts(notes.verifier_key(ALIAS.vkey))
    assert not by_digits.trusts(notes.verifier_key(OTHER.vkey))
    by_vkey = notes.trust_root(MINE.vkey)
    assert by_vkey.trusts(KEY) and not by_vkey.trusts(notes.verifier_key(ALIAS.vkey))
    assert not notes.TrustRoot("sha256:", KEY).trusts(KEY)
    for digits in (
        MINE.fingerprint[:-1],
        f"{MINE.fingerprint}0",
        MINE.fingerprint[:-1] + "g",
        MINE.fingerprint.upper(),
    ):
        with pytest.raises(Unreadable):
            notes.trust_root(digits)
    path = tmp_path / "key"
    path.write_text(f"{MINE.vkey}\n")
    assert notes.trust_root(str(path)) == by_vkey
    path.write_text(f"  {MINE.vkey}".ljust(notes.MAX_KEY_FILE))
    assert notes.trust_root(str(path)) == by_vkey


@pytest.mark.parametrize(
    "name", ["a+0123456", "a+0123456+x", "a+012345678+x", "a+0123456g+x", "+01234567+x", "a b+01234567+x", "a+01234567"]
)
def test_what_looks_like_no_vkey_is_the_name_of_a_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Unreadable, match="nor a file with a public key"):
        notes.trust_root(name)
    Path(name).write_text(MINE.vkey)
    assert notes.trust_root(name).key == KEY
    Path(name).write_text(name)
    with pytest.raises(Unreadable, match="something else than one public key"):
        notes.trust_root(name)


def test_what_is_no_key_is_told_by_what_it_is(tmp_path: Path) -> None:
    listing = tmp_path / "listing"
    listing.write_text(f"fingerprint  {MINE.fingerprint}\npublic key   {MINE.vkey}\n")
    private = tmp_path / "operator.key"
    private.write_text("PRIVATE+KEY+proctor-operator+00000000+AA==\n")
    for argument, words in (
        (str(listing), "holds something else than one public key"),
        (MINE.fingerprint.removeprefix("sha256:"), "put sha256: before them"),
        (MINE.fingerprint.removeprefix("sha256:").upper(), "put sha256: before them"),
        (MINE.fingerprint.upper(), "all in lower case"),
        (f"SHA256:{MINE.fingerprint.removeprefix('sha256:')}", "all in lower case"),
        (str(private), "this is a private key, which stays with its owner"),
        (private.read_text(), "this is a private key, which stays with its owner"),
        (MINE.vkey[:-1] + ("B" if MINE.vkey.endswith("A") else "A"), "mistyped, or cut: its parts do not fit"),
        (MINE.vkey[:-4], "or mistyped, or cut"),
        ("nothing there", "No such file"),
    ):
        with pytest.raises(Unreadable, match=words.replace("(", r"\(").replace(")", r"\)")):
            notes.trust_root(argument)
    for argument in (MINE.fingerprint, MINE.fingerprint.upper(), MINE.fingerprint.removeprefix("sha256:")):
        with pytest.raises(Unreadable, match="a fingerprint is not enough for a witness"):
            notes.witness_key(argument)
    with pytest.raises(Unreadable, match="neither a public key"):
        notes.witness_key("nothing there")


def parsed(data: bytes) -> Note | None:
    try:
        return notes.parse(data)
    except Unreadable:
        return None


def test_a_note_at_its_bounds() -> None:
    signature = MINE.note("x\n").rpartition(b"\n\n")[2]
    most = b"a" * (notes.MAX_NOTE_BYTES - len(signature) - 2)
    assert parsed(most + b"\n\n" + signature) is not None and parsed(most + b"a\n\n" + signature) is None
    for text in (b"a", b"a\n\nb", b"\xc3\xa9 "):
        found = parsed(text + b"\n\n" + signature)
        assert found is not None and found.text == text + b"\n" and len(found.lines) == 1
    for text in (b"a\x1f", b"a\t", b"a\x00", b"\xff", b"a\r"):
        assert parsed(text + b"\n\n" + signature) is None
    assert parsed(b"\n\n" + signature) is not None and parsed(b"a\n\n" + signature[:-1] + b"x") is None
    assert parsed(b"a\n" + signature) is None and parsed(b"\n" + signature) is None
    assert parsed(b"a\n\n" + signature[:-1]) is None and parsed(b"a\n\n") is None and parsed(b"a\n\n\n") is None
    assert parsed(b"a\n\n" + signature * notes.MAX_SIGNATURES) is not None
    assert parsed(b"a\n\n" + signature * (notes.MAX_SIGNATURES + 1)) is None


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("\N{EM DASH} a AAAAAAA=", True),
        ("\N{EM DASH} a AAAAAA==", False),
        ("\N{EM DASH} a AAAAAAB=", False),
        ("\N{EM DASH} a ", False),
        ("\N{EM DASH} a", False),
        ("\N{EM DASH}  AAAAAAA=", False),
        ("\N{EM DASH} a+ AAAAAAA=", False),
        ("a AAAAAAA=", False),
        ("- a AAAAAAA=", False),
    ],
)
def test_a_signature_line(line: str, reads: bool) -> None:
    assert (parsed(f"text\n\n{line}\n".encode()) is not None) is reads


ROOT = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        (f"o\n0\n{ROOT}\n", True),
        (f"o\n{2**63 - 1}\n{ROOT}\nmore\nand more\n", True),
        (f"o\n{2**63}\n{ROOT}\n", False),
        (f"o\n1{'0' * 19}\n{ROOT}\n", False),
        (f"o\n{'1' * 5_000}\n{ROOT}\n", False),
        (f"o\n01\n{ROOT}\n", False),
        (f"o\n-1\n{ROOT}\n", False),
        (f"o\n\u0661\n{ROOT}\n", False),
        (f"o\n\u00b2\n{ROOT}\n", False),
        (f"o\nx\n{ROOT}\n", False),
        (f"o\n\n{ROOT}\n", False),
        (f"\n1\n{ROOT}\n", False),
        (f"o\n1\n{ROOT}\n\n", False),
        (f"o\n1\n{ROOT}", False),
        (f"o\n1\n{ROOT}\nmore", False),
        ("o\n1\n", False),
        ("o\n", False),
        ("", False),
        (f"o\n1\n{base64.b64encode(bytes(31)).decode()}\n", False),
        (f"o\n1\n{base64.b64encode(bytes(33)).decode()}\n", False),
    ],
)
def test_what_a_checkpoint_is(text: str, reads: bool) -> None:
    if not reads:
        with pytest.raises(Unreadable):
            notes.checkpoint(text.encode())
        return
    origin, size, _, *rest = text.split("\n")
    found = notes.checkpoint(text.encode())
    assert (found.origin, str(found.size), found.root) == (origin, size, bytes(32))
    assert list(found.extensions) == rest[:-1]


@pytest.mark.parametrize("name", ["k" * 64, "beef"])
def test_a_file_s_name_may_look_like_half_a_fingerprint(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(f"{MINE.vkey}\n")
    assert notes.trust_root(name) == notes.trust_root(MINE.vkey)


def test_a_fingerprint_s_digits_alone_are_told() -> None:
    with pytest.raises(Unreadable, match="digits of a fingerprint"):
        notes.trust_root("A" * 64)
