"""C2SP signed notes (Ed25519 only), the checkpoints in them, and the trust root that `--key` names.

Written from the C2SP specifications signed-note and tlog-checkpoint. Stricter in one thing: base64 has one spelling.
"""

from __future__ import annotations

import base64
import os
import stat
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from proctor_verify.errors import Unreadable

MAX_NOTE_BYTES = 262_144
MAX_SIGNATURES = 64
MAX_NAME = 255
MAX_KEY_FILE = 4096

_HEX = frozenset("0123456789abcdef")
_SIGNATURE_START = "\N{EM DASH} "


@dataclass(frozen=True)
class Key:
    """A public key and the name that goes with it."""

    name: str
    raw: bytes

    @property
    def hint(self) -> bytes:
        """What a signature line starts with when it is by this key."""
        return sha256(b"%b\n\x01%b" % (self.name.encode(), self.raw)).digest()[:4]

    @property
    def fingerprint(self) -> str:
        """`sha256:` and 64 hex digits over the raw key."""
        return "sha256:" + sha256(self.raw).hexdigest()


@dataclass(frozen=True)
class TrustRoot:
    """Who is trusted; `key` where the whole of it is known."""

    fingerprint: str
    key: Key | None = None

    def trusts(self, key: Key) -> bool:
        """Whether that key is the one."""
        return self.fingerprint == key.fingerprint and self.key in (None, key)


@dataclass(frozen=True)
class Note:
    """The signed text, and for each signature line its name, hint and raw signature."""

    text: bytes
    lines: tuple[tuple[str, bytes, bytes], ...]

    def signed_by(self, key: Key) -> bool:
        """Whether a line is by `key`, and all that claim to be are right."""
        claimed = [signature for name, hint, signature in self.lines if name == key.name and hint == key.hint]
        public = Ed25519PublicKey.from_public_bytes(key.raw)
        try:
            for signature in claimed:
                public.verify(signature, self.text)
        except InvalidSignature:
            return False
        return bool(claimed)


@dataclass(frozen=True)
class Checkpoint:
    """A log's name, its number of leaves and its 32-byte root."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...]


def parse(data: bytes) -> Note:
    """Split a note; nothing in it is verified by that.

    Raises:
        Unreadable: this is no note.
    """
    if len(data) > MAX_NOTE_BYTES:
        raise Unreadable(f"a note of {len(data)} bytes")
    if any(byte < 0x20 and byte != 0x0A for byte in set(data)):
        raise Unreadable("a note with control characters")
    _text_of(data)
    border = data.rfind(b"\n\n")
    signed, signatures = data[: border + 1], data[border + 2 :]
    if border < 0 or not signatures.endswith(b"\n"):
        raise Unreadable("a note without a blank line and signatures after it")
    lines = _text_of(signatures[:-1]).split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise Unreadable(f"a note with {len(lines)} signatures")
    return Note(signed, tuple(map(_signature_line, lines)))


def checkpoint(text: bytes) -> Checkpoint:
    """Read a note's text as a checkpoint.

    Raises:
        Unreadable: it is none.
    """
    origin, *rest = _text_of(text).split("\n")
    if len(rest) < 3 or rest.pop() != "" or not origin or not all(rest):
        raise Unreadable("a checkpoint is lines of text, at least three, none empty")
    size, root, *extensions = rest
    if not size.isdecimal() or len(size) > 19 or str(int(size)) != size or int(size) >= 2**63:
        raise Unreadable(f"{size[:40]!r} is no tree size")
    decoded = _base64(root)
    if len(decoded) != 32:
        raise Unreadable(f"a root of {len(decoded)} bytes")
    return Checkpoint(origin, int(size), decoded, tuple(extensions))


def verifier_key(text: str) -> Key:
    """Read a vkey: name, hex hint and base64 of the type byte 1 and the key, with `+` between.

    Raises:
        Unreadable: it is none, or not of an Ed25519 key.
    """
    name, _, rest = text.partition("+")
    hint, _, encoded = rest.partition("+")
    if len(text) > 1024 or not _may_be_a_name(name):
        raise Unreadable("this is no vkey")
    typed = _base64(encoded)
    if len(typed) != 33 or typed[0] != 1:
        raise Unreadable("the vkey is not of an Ed25519 key")
    key = Key(name, typed[1:])
    if key.hint.hex() != hint:
        raise Unreadable("the vkey's parts do not fit each other")
    return key


def trust_root(argument: str) -> TrustRoot:
    """What `--key` means: `sha256:…`, a vkey, or the name of a file with a vkey in it.

    Raises:
        Unreadable: none of these.
    """
    argument = argument.strip()
    if argument.startswith("sha256:"):
        digits = argument.removeprefix("sha256:")
        if len(digits) != 64 or not _HEX.issuperset(digits):
            raise Unreadable("a fingerprint is sha256: and 64 lower-case hex digits")
        return TrustRoot(argument)
    key = verifier_key(argument if _looks_like_a_vkey(argument) else _small_file(argument))
    return TrustRoot(key.fingerprint, key)


def _looks_like_a_vkey(text: str) -> bool:
    name, _, rest = text.partition("+")
    hint, plus, _ = rest.partition("+")
    return bool(name) and not any(map(str.isspace, name)) and len(hint) == 8 and _HEX.issuperset(hint) and plus == "+"


def _small_file(name: str) -> str:
    try:
        # A pipe of that name must not make the verifier wait.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = os.read(descriptor, MAX_KEY_FILE + 1) if regular else b""
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise Unreadable("neither a vkey, nor a fingerprint, nor a file that can be read") from error
    if not regular or len(content) > MAX_KEY_FILE:
        raise Unreadable("a key file is a small regular file")
    return _text_of(content).strip()


def _signature_line(line: str) -> tuple[str, bytes, bytes]:
    name, _, encoded = line.removeprefix(_SIGNATURE_START).partition(" ")
    if not line.startswith(_SIGNATURE_START) or not _may_be_a_name(name):
        raise Unreadable("a signature line that is none")
    raw = _base64(encoded)
    if len(raw) < 5:
        raise Unreadable("a signature line without a signature")
    return name, raw[:4], raw[4:]


def _may_be_a_name(name: str) -> bool:
    if not 1 <= len(name) <= MAX_NAME or "+" in name:
        return False
    return all(
        character >= " " and not character.isspace() and not 0xD800 <= ord(character) < 0xE000 for character in name
    )


def _base64(text: str) -> bytes:
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        raise Unreadable("not base64") from None
    if base64.b64encode(raw).decode() != text:
        raise Unreadable("base64 with spare bits set")
    return raw


def _text_of(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"byte {error.start} is not UTF-8") from None
