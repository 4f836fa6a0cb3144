"""The run folder as hostile ground: nothing but plain files is opened, and no link is ever followed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, overload

from proctor_verify.aside import WORTH_IT, InOrder
from proctor_verify.errors import Unreadable

_CHUNK = 256 << 10
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# How deep an attempt's folder lies: many of its files are read one after the other.
_NEAR = 3
# What is judged should be the bytes that were digested: as far as they are few.
_SMALL, _SEEN = 4096, 64
# A hole takes no room, and to hash it takes as long as bytes do. Nobody minds it in files up to this size: some file
# systems keep zeros as holes, and count what they hold late.
MAX_HOLLOW = 64 << 20
_HOLLOW = 1000
_BLOCK = 512
_UNSAFE = frozenset({"", ".", ".."})
_DIRECTORY = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


class NotThere(Unreadable):
    """Nothing stands at the path."""


class NotPlain(Unreadable):
    """What stands at the path is no plain file."""


class Name(NamedTuple):
    """One name in a folder of the run: what it is, and its size where it is a file."""

    name: str
    what: str


class Folder:
    """Reads below one root, component by component, so that no link on the way leads out of it."""

    def __init__(self, root: Path) -> None:
        """Opens the root itself, which may be a link.

        Raises:
            Unreadable: it is no folder, or may not be read.
        """
        try:
            self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            raise Unreadable(_words(error)) from error
        self._near: tuple[list[str], int] | None = None
        self._seen: dict[str, bytes] = {}
        self._part_of: tuple[str, BinaryIO] | None = None

    def close(self) -> None:
        os.close(self._root)
        self._forget()
        if self._part_of is not None:
            self._part_of[1].close()

    def open(self, path: str) -> BinaryIO:
        """A plain file for reading.

        Raises:
            Unreadable: no plain file stands there, or it may not be read.
        """
        *folders, name = _parts(path)
        parent = self._enter(folders)
        try:
            # Asked before opening: to open a FIFO or a device is to act on it.
            mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
            if not stat.S_ISREG(mode):
                raise NotPlain(f"is {_what(mode)}, not a plain file")
            handle = os.open(name, _FILE, dir_fd=parent)
        except OSError as error:
            raise _not_readable(error) from error
        finally:
            os.close(parent)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise NotPlain("is not a plain file")
        return os.fdopen(handle, "rb", buffering=0)

    def read(self, path: str, limit: int) -> bytes:
        """The whole of a plain file of at most `limit` bytes.

        Raises:
            Unreadable: see `open`; or it is longer.
        """
        with self.open(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > limit:
                raise Unreadable(f"is {size:,} bytes long, more than {limit:,}")
            return _read_exactly(stream, limit)

    def read_start(self, path: str, most: int) -> bytes:
        """The first bytes of a plain file, at most so many: those that `digest` saw, where it just did.

        Raises as `open`.
        """
        if (held := self._seen.get(path)) is not None:
            return held[:most]
        with self.open(path) as stream:
            return _read_at_most(stream, most)

    @overload
    def read_part(self, path: str, offset: int, length: int) -> bytes: ...
    @overload
    def read_part(self, path: str, offset: int, length: int, buffer: bytearray | None) -> bytes | memoryview: ...
    def read_part(self, path: str, offset: int, length: int, buffer: bytearray | None = None) -> bytes | memoryview:
        """Bytes of a plain file, fewer where it ends before; the file of the last call stays open for the next.

        They are in the buffer, where there is one.

        Raises as `open`.
        """
        if self._part_of is None or self._part_of[0] != path:
            stream = self.open(path)
            if self._part_of is not None:
                self._part_of[1].close()
            self._part_of = path, stream
        handle = self._part_of[1].fileno()
        try:
            if buffer is None:
                return os.pread(handle, length, offset)
            view = memoryview(buffer)[:length]
            return view[: os.preadv(handle, [view], offset)]
        except OSError as error:
            raise _not_readable(error) from error

    def open_sized(self, path: str, size: int) -> BinaryIO:
        """A plain file of so many bytes, for reading.

        Raises:
            Unreadable: see `open`; or its size is another, or it is large and next to nothing of it is on the disk.
        """
        stream = self.open(path)
        found = os.fstat(stream.fileno())
        stands, held = found.st_size, found.st_blocks * _BLOCK
        fault = None
        if stands != size:
            fault = f"is {stands:,} bytes long, not {size:,}"
        elif stands > MAX_HOLLOW and held * _HOLLOW < stands:
            fault = f"is nearly all hole, and is not read: {held:,} of its {stands:,} bytes take room on the disk"
        if fault is not None:
            stream.close()
            raise Unreadable(fault)
        return stream

    def digest(self, path: str, size: int) -> str:
        """The hex SHA-256 of a plain file that must have `size` bytes.

        Raises as `open_sized`.
        """
        with self.open_sized(path, size) as stream:
            if size > _SMALL:
                return digest_of(stream, size)
            data = _read_at_most(stream, size + 1)
            if len(self._seen) < _SEEN:
                self._seen[path] = data
            return hashlib.sha256(data).hexdigest()

    def look(self, path: str, sha256: str, size: int, order: InOrder, told: Callable[[str | None], None]) -> None:
        """Have told, in its order, what is wrong with a file that must have this digest and size; None for nothing."""
        try:
            if size < WORTH_IT:
                order.tell(told, _difference(self.digest(path, size), sha256))
            else:
                stream = self.open_sized(path, size)
                order.ask(told, partial(_fault_of, stream, sha256, size))
        except Unreadable as error:
            order.tell(told, str(error))

    def names(self, path: str = "") -> Iterator[Name]:
        """What stands in a folder, in no order.

        Raises:
            Unreadable: it is no folder, or may not be read.
        """
        handle = self._enter(_parts(path) if path else [])
        try:
            with os.scandir(handle) as scan:
                for found in scan:
                    # a folder says of these two what they are, without a further call for each name
                    if found.is_file(follow_symlinks=False):
                        yield Name(found.name, "a file")
                    elif found.is_dir(follow_symlinks=False):
                        yield Name(found.name, "a folder")
                    else:
                        yield Name(found.name, _what(found.stat(follow_symlinks=False).st_mode))
        except OSError as error:
            raise _not_readable(error) from error
        finally:
            os.close(handle)

    def _enter(self, folders: list[str]) -> int:
        if self._near is not None and folders[:_NEAR] == self._near[0]:
            return _descend(os.dup(self._near[1]), folders[_NEAR:])
        handle = _descend(os.dup(self._root), folders[:_NEAR])
        if len(folders) >= _NEAR:
            self._forget()
            self._near = folders[:_NEAR], os.dup(handle)
        return _descend(handle, folders[_NEAR:])

    def _forget(self) -> None:
        self._seen.clear()
        if self._near is not None:
            near, self._near = self._near, None
            os.close(near[1])


def digest_of(stream: BinaryIO, size: int) -> str:
    """The hex SHA-256 of the next `size` bytes, or of as many as there are.

    Raises:
        Unreadable: they cannot be read.
    """
    digest, buffer, left = hashlib.sha256(), memoryview(bytearray(min(size, _CHUNK))), size
    try:
        while left and (read := os.readv(stream.fileno(), [buffer[:left]])):
            digest.update(buffer[:read])
            left -= read
    except OSError as error:
        raise _not_readable(error) from error
    return digest.hexdigest()


def _fault_of(stream: BinaryIO, sha256: str, size: int) -> str | None:
    with stream:
        try:
            return _difference(digest_of(stream, size), sha256)
        except Unreadable as error:
            return str(error)


def _difference(digest: str, wanted: str) -> str | None:
    return None if digest == wanted else f"has digest {digest}, not {wanted}"


def _descend(handle: int, folders: list[str]) -> int:
    """The folder below; the one that `handle` is of is closed."""
    for folder in folders:
        try:
            below = os.open(folder, _DIRECTORY, dir_fd=handle)
        except OSError as error:
            raise _not_readable(error) from error
        finally:
            os.close(handle)
        handle = below
    return handle


def is_safe(path: str) -> bool:
    """Whether a path stays inside the run: relative, without `.`, `..`, empty parts or NUL."""
    return "\0" not in path and _UNSAFE.isdisjoint(path.split("/"))


def _parts(path: str) -> list[str]:
    if not is_safe(path):
        raise Unreadable("is not a plain relative path")
    return path.split("/")


def _read_exactly(stream: BinaryIO, limit: int) -> bytes:
    data = _read_at_most(stream, limit + 1)
    if len(data) > limit:
        raise Unreadable(f"grew beyond {limit:,} bytes while it was read")
    return data


def _read_at_most(stream: BinaryIO, most: int) -> bytes:
    chunks: list[bytes] = []
    left = most
    try:
        while left > 0 and (chunk := stream.read(min(left, _CHUNK))):
            chunks.append(chunk)
            left -= len(chunk)
    except OSError as error:
        raise _not_readable(error) from error
    return b"".join(chunks)


def _what(mode: int) -> str:
    for test, word in (
        (stat.S_ISREG, "a file"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if test(mode):
            return word
    return "a device"


def _not_readable(error: OSError) -> Unreadable:
    missing = isinstance(error, FileNotFoundError)
    return NotThere("is not there") if missing else Unreadable(f"cannot be read: {_words(error)}")


def _words(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
