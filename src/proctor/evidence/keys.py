"""The operator's signing key, which lives in the user's configuration directory and never in a run.

The file `operator.key` holds one line, `PRIVATE+KEY+<name>+<8 hex>+<base64 of 0x01 and the seed>`, the form in which
other tools for signed notes keep theirs.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import notes

KEY_FILE = "operator.key"
KEY_NAME = "proctor-operator"

_PRIVATE = "PRIVATE+KEY+"
_MAX_FILE_BYTES = 4096


@dataclass(frozen=True)
class OperatorKey:
    """The key that signs checkpoints; only its public half is ever shown."""

    verifier: notes.VerifierKey
    private: Ed25519PrivateKey = field(repr=False, compare=False)

    @property
    def vkey(self) -> str:
        """The public key as `<name>+<8 hex>+<base64>`."""
        return str(self.verifier)

    @property
    def fingerprint(self) -> str:
        """`sha256:` and the hex SHA-256 of the raw public key."""
        return self.verifier.fingerprint

    def sign(self, text: str) -> bytes:
        """A signed note over `text`."""
        return notes.sign(text, self.verifier.name, self.private)

    def cosign(self, note: bytes, seconds: int, *, path: str | None = None) -> bytes:
        """As `notes.cosign`."""
        return notes.cosign(note, self.verifier.name, self.private, seconds, path=path)


def config_dir(environ: Mapping[str, str]) -> Path:
    """Where the user's keys are: `$PROCTOR_CONFIG_DIR`, `$XDG_CONFIG_HOME/proctor` or `~/.config/proctor`."""
    if own := environ.get("PROCTOR_CONFIG_DIR"):
        return Path(own)
    shared = Path(environ.get("XDG_CONFIG_HOME", ""))
    # The XDG specification wants relative paths ignored.
    return (shared if shared.is_absolute() else Path.home() / ".config") / "proctor"


def load_or_create(config_dir: Path) -> tuple[OperatorKey, bool]:
    """The operator's key, made on first use; True where this call made it.

    However many processes come first at once, one key is made and all get it.

    Raises:
        Refusal: `key_unreadable` where the file is not a key, others may read it, or it cannot be made.
    """
    path = config_dir / KEY_FILE
    try:
        if not path.exists():
            config_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            private = Ed25519PrivateKey.generate()
            if _publish(path, _private_line(private)):
                return _operator_key(KEY_NAME, private), True
        line = _read_private(path)
    except OSError as error:
        raise Refusal(
            Reason.KEY_UNREADABLE,
            f"the operator's key cannot be read or made: {error.strerror or error}",
            path=str(path),
            remedy="Mend the folder, or name another in PROCTOR_CONFIG_DIR.",
        ) from error
    return _parse_private(line, path), False


def load(path: Path) -> OperatorKey:
    """The key in a file of the form of `operator.key`.

    Raises:
        Refusal: `key_unreadable` where the file is not a key, others may read it, or it cannot be read.
    """
    try:
        return _parse_private(_read_private(path), path)
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else None
        raise Refusal(
            Reason.KEY_UNREADABLE,
            f"the key cannot be read: {words or error}",
            path=str(path),
            remedy="Name the file of a key of yours, as `proctor keys` shows it.",
        ) from error


def _operator_key(name: str, private: Ed25519PrivateKey) -> OperatorKey:
    return OperatorKey(notes.VerifierKey(name, private.public_key().public_bytes_raw()), private)


def _private_line(private: Ed25519PrivateKey) -> bytes:
    key_id = _operator_key(KEY_NAME, private).verifier.key_id.hex()
    seed = base64.b64encode(notes.ED25519 + private.private_bytes_raw()).decode("ascii")
    return f"{_PRIVATE}{KEY_NAME}+{key_id}+{seed}\n".encode()


def _parse_private(line: str, path: Path) -> OperatorKey:
    parts = line.strip().removeprefix(_PRIVATE).split("+", 2)
    try:
        name, key_id, encoded = parts
        raw = base64.b64decode(encoded, validate=True)
        if raw[:1] != notes.ED25519 or not line.startswith(_PRIVATE):
            raise ValueError("not an Ed25519 key")
        key = _operator_key(name, Ed25519PrivateKey.from_private_bytes(raw[1:]))
    except (ValueError, binascii.Error) as error:
        _refuse_private("the operator's key file does not hold a key", path, error)
    if key.verifier.key_id.hex() != key_id:
        _refuse_private("the operator's key does not fit its id", path)
    return key


def _publish(path: Path, content: bytes) -> bool:
    """Put a new file there, whole and durable; False where there is one already."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # A link, unlike a rename, never replaces what another process published first.
        path.hardlink_to(draft)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True


def _read_private(path: Path) -> str:
    content, status = _read_small(path)
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Refusal(
            Reason.KEY_UNREADABLE,
            "the operator's private key is open to other users",
            path=str(path),
            observed=f"mode {stat.S_IMODE(status.st_mode):04o}",
            required="mode 0600",
            remedy=f"chmod 600 {path}; where others could have read it, move it away and let a new one be made.",
        )
    return content


def _read_small(path: Path) -> tuple[str, os.stat_result]:
    # Without O_NONBLOCK a pipe of that name would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        content = os.read(descriptor, _MAX_FILE_BYTES + 1) if stat.S_ISREG(status.st_mode) else None
    finally:
        os.close(descriptor)
    if content is None or len(content) > _MAX_FILE_BYTES:
        raise Refusal(
            Reason.KEY_UNREADABLE,
            "a key is a small regular file",
            path=str(path),
            required=f"at most {_MAX_FILE_BYTES} bytes",
        )
    return content.decode("utf-8", "replace"), status


def _refuse_private(message: str, path: Path, cause: BaseException | None = None) -> NoReturn:
    raise Refusal(
        Reason.KEY_UNREADABLE,
        message,
        path=str(path),
        remedy="Restore it from a copy, or move it away and let a new one be made.",
    ) from cause
