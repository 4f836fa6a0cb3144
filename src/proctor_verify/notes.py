"""C2SP signed notes (Ed25519 only), the checkpoints in them, and the keys that `--key` and `--witness` name.

Written from the C2SP specifications signed-note, tlog-checkpoint and tlog-cosignature. Stricter in one thing: base64
has one spelling.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from proctor_verify.errors import Unreadable
from proctor_verify.outside import small_file
from proctor_verify.strictbase64 import decoded

MAX_NOTE_BYTES = 262_144
MAX_SIGNATURES = 64
MAX_NAME = 255
MAX_KEY_FILE = 4096

_FINGERPRINT = "sha256:"
_PRIVATE = ("PRIVATE+KEY+", "-----BEGIN")
_ED25519, _COSIGNATURE = b"\x01", b"\x04"
_TIME_BYTES = 8
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
        return self.hint_of(_ED25519)

    def hint_of(self, algorithm: bytes) -> bytes:
        """The same for a signature of another algorithm, which a byte stands for."""
        return sha256(b"%b\n%b%b" % (self.name.encode(), algorithm, self.raw)).digest()[:4]

    @property
    def fingerprint(self) -> str:
        """`sha256:` and 64 hex digits over the raw key."""
        return _FINGERPRINT + sha256(self.raw).hexdigest()


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


class Witnessed(NamedTuple):
    """That a witness signed; `time` is when, by its own clock in seconds since 1970, where its signature says so."""

    time: int | None


@dataclass(frozen=True)
class Witness:
    """A second person's key: it signs as a run's key does, unless it `only_cosigns`, or as a timed cosignature."""

    key: Key
    only_cosigns: bool

    @property
    def label(self) -> str:
        """How its vkey begins: many keys have one name."""
        hint = self.key.hint_of(_COSIGNATURE) if self.only_cosigns else self.key.hint
        return f"{self.key.name}+{hint.hex()}"

    def signed(self, note: Note) -> Witnessed | None:
        """The latest of its signatures; None where there is none, or where any that claims to be its own is wrong."""
        public = Ed25519PublicKey.from_public_bytes(self.key.raw)
        plain, timed = self.key.hint, self.key.hint_of(_COSIGNATURE)
        times: list[int | None] = []
        try:
            for name, hint, signature in note.lines:
                if name == self.key.name and hint == plain and not self.only_cosigns:
                    public.verify(signature, note.text)
                    times.append(None)
                elif name == self.key.name and hint == timed:
                    time = int.from_bytes(signature[:_TIME_BYTES], "big")
                    public.verify(signature[_TIME_BYTES:], b"cosignature/v1\ntime %d\n%b" % (time, note.text))
                    times.append(time)
        except InvalidSignature:
            return None
        return Witnessed(max((time for time in times if time is not None), default=None)) if times else None


@dataclass(frozen=True)
class Checkpoint:
    """A log's name, its number of leaves and its 32-byte root."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...]


def origin_of(run_id: str) -> str:
    """The first line of a run's checkpoints."""
    return f"proctor/run/{run_id}"


def name_of(size: int) -> str:
    """How the file of a checkpoint over so many entries is called."""
    return f"{size:012d}.note"


def path_of(size: int) -> str:
    """Where it stands in a run."""
    return f"checkpoints/{name_of(size)}"


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
    raw = decoded(root)
    if len(raw) != 32:
        raise Unreadable(f"a root of {len(raw)} bytes")
    return Checkpoint(origin, int(size), raw, tuple(extensions))


def verifier_key(text: str) -> Key:
    """Read a vkey: name, hex hint and base64 of the type byte 1 and the key, with `+` between.

    Raises:
        Unreadable: it is none, or not of an Ed25519 key.
    """
    return _typed_key(text, _ED25519)[1]


def witness_key(argument: str) -> Witness:
    """What `--witness` means: a vkey, of type 1 or of a cosigner (4), or the name of a file with one in it.

    Raises:
        Unreadable: none of these.
    """
    argument = argument.strip()
    if argument.lower().removeprefix(_FINGERPRINT) != argument.lower() or _are_digits(argument):
        raise Unreadable("a fingerprint is not enough for a witness: give the public key (vkey)")
    algorithm, key = _typed_key(_vkey_in(argument, "a public key (vkey)"), _ED25519 + _COSIGNATURE)
    return Witness(key, only_cosigns=algorithm == _COSIGNATURE)


def date_of(seconds: int) -> str:
    """Seconds since 1970 as a day and time in UTC; as they are where no calendar has them."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"second {seconds}"


def trust_root(argument: str) -> TrustRoot:
    """What `--key` means: `sha256:…`, a vkey, or the name of a file with a vkey in it.

    Raises:
        Unreadable: none of these.
    """
    argument = argument.strip()
    if argument.lower().startswith(_FINGERPRINT):
        digits = argument.removeprefix(_FINGERPRINT)
        if len(digits) != 64 or not _HEX.issuperset(digits):
            raise Unreadable("a fingerprint is sha256: and 64 hex digits, all in lower case")
        return TrustRoot(argument)
    if _are_digits(argument):
        raise Unreadable(f"these are the digits of a fingerprint: put {_FINGERPRINT} before them, in lower case")
    key = verifier_key(_vkey_in(argument, "a public key (vkey), nor a fingerprint (sha256:…)"))
    return TrustRoot(key.fingerprint, key)


def _typed_key(text: str, algorithms: bytes) -> tuple[bytes, Key]:
    name, _, rest = text.partition("+")
    hint, _, encoded = rest.partition("+")
    if not _may_be_a_name(name):
        raise Unreadable("this is no vkey")
    typed = decoded(encoded)
    if len(typed) != 33 or typed[0] not in algorithms:
        raise Unreadable("the public key (vkey) is not of an Ed25519 key, or mistyped, or cut")
    key = Key(name, typed[1:])
    if key.hint_of(typed[:1]).hex() != hint:
        raise Unreadable("the public key (vkey) is mistyped, or cut: its parts do not fit each other")
    return typed[:1], key


def _vkey_in(argument: str, else_than: str) -> str:
    if _looks_like_a_vkey(argument):
        return argument
    _refuse_private(argument)
    try:
        text = _text_of(small_file(argument, MAX_KEY_FILE)).strip()
    except Unreadable as error:
        raise Unreadable(f"neither {else_than}, nor a file with a public key: it {error}") from error
    _refuse_private(text)
    if not _looks_like_a_vkey(text):
        raise Unreadable("the file holds something else than one public key (vkey)")
    return text


def _refuse_private(text: str) -> None:
    if text.startswith(_PRIVATE):
        raise Unreadable(
            "this is a private key, which stays with its owner: give the line `public key` of `proctor keys`, or the "
            "fingerprint"
        )


def _are_digits(argument: str) -> bool:
    """Whether this is a fingerprint without what it begins with."""
    return len(argument) == 64 and _HEX.issuperset(argument.lower())


def _looks_like_a_vkey(text: str) -> bool:
    name, _, rest = text.partition("+")
    hint, plus, _ = rest.partition("+")
    return bool(name) and not any(map(str.isspace, name)) and len(hint) == 8 and _HEX.issuperset(hint) and plus == "+"


def _signature_line(line: str) -> tuple[str, bytes, bytes]:
    name, _, encoded = line.removeprefix(_SIGNATURE_START).partition(" ")
    if not line.startswith(_SIGNATURE_START) or not _may_be_a_name(name):
        raise Unreadable("a signature line that is none")
    raw = decoded(encoded)
    if len(raw) < 5:
        raise Unreadable("a signature line without a signature")
    return name, raw[:4], raw[4:]


def _may_be_a_name(name: str) -> bool:
    if not 1 <= len(name) <= MAX_NAME or "+" in name:
        return False
    return all(
        character >= "!" and not character.isspace() and not 0xD800 <= ord(character) < 0xE000 for character in name
    )


def _text_of(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"byte {error.start} is not UTF-8") from None
