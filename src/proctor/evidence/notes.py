"""C2SP signed notes with Ed25519, and the `tlog-checkpoint` that stands in them.

A note is text, a blank line, and signature lines. Base64 must be canonical here: spare bits that nobody checks would
be bytes of evidence that can be changed unseen.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.merkle import HASH_BYTES

ED25519 = b"\x01"
# C2SP tlog-cosignature, version 1: Ed25519 over a time and a checkpoint
COSIGNATURE = b"\x04"
PUBLIC_KEY_BYTES = 32
MAX_NOTE_BYTES = 262_144
# The specification wants at least 16: a log's own, and those of its witnesses.
MAX_SIGNATURES = 64
MAX_NAME_CHARS = 255

_SIGNATURE_LINE = re.compile(r"— (?P<name>\S+) (?P<base64>[A-Za-z0-9+/]+={0,2})")
_VKEY = re.compile(r"(?P<name>[^+]+)\+(?P<id>[0-9a-f]{8})\+(?P<base64>[A-Za-z0-9+/]+={0,2})", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_SHOWN = 80


@dataclass(frozen=True)
class VerifierKey:
    """A named Ed25519 public key (32 raw bytes); its text form is the vkey."""

    name: str
    public: bytes

    def __post_init__(self) -> None:
        if not is_key_name(self.name) or len(self.public) != PUBLIC_KEY_BYTES:
            raise ValueError(f"{self.name!r} with {len(self.public)} bytes is no Ed25519 verifier key")

    @property
    def key_id(self) -> bytes:
        """The 4 bytes by which a signature line refers to the key: a hint, never a proof."""
        return self.id_of(ED25519)

    def id_of(self, algorithm: bytes) -> bytes:
        """The same for a signature of another algorithm, which a byte stands for."""
        return sha256(self.name.encode() + b"\n" + algorithm + self.public).digest()[:4]

    @property
    def fingerprint(self) -> str:
        """`sha256:` and the hex SHA-256 of the raw public key: the trust root in its shortest form."""
        return "sha256:" + sha256(self.public).hexdigest()

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{_b64(ED25519 + self.public)}"

    @classmethod
    def parse(cls, text: str, *, path: str | None = None) -> VerifierKey:
        """Read `<name>+<8 hex>+<base64 of 0x01 and the public key>`.

        Raises:
            Refusal: `key_unreadable`.
        """
        match = _VKEY.fullmatch(text) if len(text) <= 1024 else None
        raw = _unb64(match["base64"]) if match else None
        if match is None or raw is None or not is_key_name(match["name"]):
            _unreadable("this is no vkey", path, text)
        if raw[:1] != ED25519 or len(raw) != 1 + PUBLIC_KEY_BYTES:
            _unreadable("the vkey is not of an Ed25519 key", path, text)
        key = cls(match["name"], raw[1:])
        if key.key_id.hex() != match["id"]:
            _unreadable("the vkey's id does not fit its name and key", path, text)
        return key


@dataclass(frozen=True)
class Signature:
    """One signature line: who says to have signed, and the raw signature after the key id."""

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True)
class Note:
    """A parsed note; `text` includes its last newline. Nothing in it is to be believed before `verify`."""

    text: str
    signatures: tuple[Signature, ...]

    def verify(self, key: VerifierKey, *, path: str | None = None) -> None:
        """Check that `key` signed the text; lines of other keys are ignored.

        Raises:
            Refusal: `evidence_damaged` where no line is by that key, or any that says so does not verify.
        """
        public = Ed25519PublicKey.from_public_bytes(key.public)
        own = [s for s in self.signatures if (s.name, s.key_id) == (key.name, key.key_id)]
        if not own:
            _damaged("a note is not signed by the key", path, [s.name for s in self.signatures], str(key))
        for line in own:
            try:
                public.verify(line.signature, self.text.encode())
            except InvalidSignature:
                _damaged("a note's signature does not verify", path, line.signature.hex()[:_SHOWN], str(key))


@dataclass(frozen=True)
class Checkpoint:
    """A signed tree head's content: the log's name, its size in leaves and its root (32 bytes)."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """`{origin, size, root}`, the root in hex."""
        return {"origin": self.origin, "size": self.size, "root": self.root.hex()}

    def text(self) -> str:
        """The note text of it."""
        return "\n".join([self.origin, str(self.size), _b64(self.root), *self.extensions]) + "\n"

    @classmethod
    def parse(cls, text: str, *, path: str | None = None) -> Checkpoint:
        """Read the text of a note.

        Raises:
            Refusal: `evidence_damaged`.
        """
        lines = text.split("\n")
        if len(lines) < 4 or lines[-1] != "" or "" in lines[:-1]:
            _damaged("a checkpoint is not three or more lines, none of them empty", path, text[:_SHOWN])
        origin, size, encoded, *extensions = lines[:-1]
        root = _unb64(encoded)
        if not _SIZE.fullmatch(size) or int(size) >= 2**63:
            _damaged("a checkpoint's size is not a count", path, size[:_SHOWN])
        if root is None or len(root) != HASH_BYTES:
            _damaged(f"a checkpoint's root is not {HASH_BYTES} bytes of base64", path, encoded[:_SHOWN])
        return cls(origin, int(size), root, tuple(extensions))


def is_key_name(name: str) -> bool:
    """Whether a key may be called so: not empty, no white space, no `+`, no control characters."""
    if not 0 < len(name) <= MAX_NAME_CHARS or "+" in name or _CONTROL.search(name):
        return False
    return not any(c.isspace() for c in name) and _is_utf8(name)


def sign(text: str, name: str, key: Ed25519PrivateKey) -> bytes:
    """A note over `text` with one signature, by `key` under `name`.

    Raises:
        ValueError: text that cannot be a note's: no last newline, control characters, or too long.
    """
    if not text.endswith("\n") or _CONTROL.search(text) or not _is_utf8(text):
        raise ValueError("a note's text ends in a newline and has no control characters")
    verifier = VerifierKey(name, key.public_key().public_bytes_raw())
    line = f"— {name} {_b64(verifier.key_id + key.sign(text.encode()))}\n"
    note = f"{text}\n{line}".encode()
    if len(note) > MAX_NOTE_BYTES:
        raise ValueError(f"a note has at most {MAX_NOTE_BYTES} bytes")
    return note


def cosign(note: bytes, name: str, key: Ed25519PrivateKey, seconds: int, *, path: str | None = None) -> bytes:
    """A checkpoint's note with one line more: that `key` saw it, `seconds` after 1970.

    Raises:
        Refusal: `evidence_damaged` where that is no note with a checkpoint, or it takes no further signature.
    """
    parsed = parse(note, path=path)
    Checkpoint.parse(parsed.text, path=path)
    verifier = VerifierKey(name, key.public_key().public_bytes_raw())
    signature = key.sign(f"cosignature/v1\ntime {seconds}\n{parsed.text}".encode())
    line = f"— {name} {_b64(verifier.id_of(COSIGNATURE) + seconds.to_bytes(8, 'big') + signature)}\n".encode()
    if len(parsed.signatures) == MAX_SIGNATURES or len(note) + len(line) > MAX_NOTE_BYTES:
        _damaged("a note takes no further signature", path, len(parsed.signatures), MAX_SIGNATURES)
    return note + line


def parse(data: bytes, *, path: str | None = None) -> Note:
    """Take a note apart, without believing any of it.

    Raises:
        Refusal: `evidence_damaged` for what is no note within bounds.
    """
    if len(data) > MAX_NOTE_BYTES:
        _damaged("a note is too long", path, {"bytes": len(data)}, {"bytes": MAX_NOTE_BYTES})
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError as error:
        _damaged("a note is not UTF-8", path, {"offset": error.start})
    if _CONTROL.search(whole):
        _damaged("a note holds control characters", path)
    # The text may have blank lines of its own: the last one is where it ends.
    head, blank, tail = whole.rpartition("\n\n")
    if not blank or not tail.endswith("\n"):
        _damaged("a note is text, a blank line and whole signature lines", path)
    lines = tail[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        _damaged("a note has too many signatures", path, len(lines), MAX_SIGNATURES)
    return Note(head + "\n", tuple(_signature(line, path) for line in lines))


def _signature(line: str, path: str | None) -> Signature:
    match = _SIGNATURE_LINE.fullmatch(line)
    raw = _unb64(match["base64"]) if match else None
    if match is None or raw is None or len(raw) <= 4 or not is_key_name(match["name"]):
        _damaged("a note's signature line is malformed", path, line[:_SHOWN])
    return Signature(match["name"], raw[:4], raw[4:])


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _unb64(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if _b64(raw) == text else None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _damaged(message: str, path: str | None, observed: object = None, required: object = None) -> NoReturn:
    raise Refusal(Reason.EVIDENCE_DAMAGED, message, path=path, observed=observed, required=required)


def _unreadable(message: str, path: str | None, text: str) -> NoReturn:
    shown = text[:_SHOWN].encode("ascii", "backslashreplace").decode()
    raise Refusal(Reason.KEY_UNREADABLE, message, path=path, observed=shown, required="<name>+<8 hex digits>+<base64>")
