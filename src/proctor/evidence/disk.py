"""Bytes that are really on the disk: the few operations that evidence is written with, each durable or an error.

Everything goes through `Disk`, so that a test can log the operations and replay any prefix of them.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path

from proctor.core.files import NO_SPACE
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_MODE = 0o644


class Appender:
    """A file that only grows; `size` counts every byte handed to the system, durable or not."""

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        self.path = path
        self.size = size
        self._descriptor = descriptor

    def append(self, data: bytes) -> None:
        """Write all of `data` at the end, in the page cache only. Raises OSError."""
        while data:
            written = os.write(self._descriptor, data)
            self.size += written
            data = data[written:]

    def sync(self) -> None:
        """Return once everything appended is durable. Raises OSError."""
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close it, once or more."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


class Disk:
    """The system's files. All methods block and raise OSError."""

    def open_append(self, path: Path, *, new: bool = False) -> Appender:
        """Open to append; with `new` it must not exist. The folder of a new file is not synced here."""
        how = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, how | (_NEW if new else 0), _FILE_MODE)
        return Appender(path, descriptor, os.fstat(descriptor).st_size)

    def write_new(self, path: Path, data: bytes) -> None:
        """Make a file and sync its content, not its name."""
        file = self.open_append(path, new=True)
        try:
            file.append(data)
            file.sync()
        finally:
            file.close()

    def preallocate(self, path: Path, size: int) -> None:
        """Make or extend a file whose bytes are really taken from the disk."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _FILE_MODE)
        try:
            os.posix_fallocate(descriptor, 0, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Move within one file system, replacing the target; the folders are not synced here."""
        source.replace(target)

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name, which must be new; the folder is not synced here."""
        target.hardlink_to(source)

    def unlink(self, path: Path) -> None:
        """Remove a name; the folder is not synced here."""
        path.unlink()

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file, durably."""
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_dir(self, path: Path) -> None:
        """Make one folder; its parent is not synced here."""
        path.mkdir()

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_dirs(self, path: Path) -> None:
        """Make a folder and those above it, durably; one that exists is left alone."""
        if path.is_dir():
            return
        self.make_dirs(path.parent)
        try:
            self.make_dir(path)
        except FileExistsError:
            if not path.is_dir():
                raise
        self.sync_dir(path.parent)

    def put(self, path: Path, data: bytes) -> None:
        """Make or replace a file, whole or not at all, durably; its folder must exist."""
        draft = self._draft(path, data)
        try:
            self.rename(draft, path)
        except OSError:
            self._discard(draft)
            raise
        self.sync_dir(path.parent)

    def put_together(self, folder: Path, files: Mapping[str, bytes]) -> None:
        """`put` for files of one folder, by name: where one of them cannot be written, all stay as they were."""
        drafts: dict[Path, Path] = {}
        try:
            for name, data in files.items():
                drafts[folder / name] = self._draft(folder / name, data)
            for path, draft in drafts.items():
                self.rename(draft, path)
        except OSError:
            for draft in drafts.values():
                self._discard(draft)
            raise
        self.sync_dir(folder)

    def put_new(self, path: Path, data: bytes) -> None:
        """`put` for a name that must be new.

        Raises:
            FileExistsError: it is not.
        """
        draft = self._draft(path, data)
        try:
            # A link, unlike a rename, never replaces.
            self.link(draft, path)
        finally:
            self._discard(draft)
        self.sync_dir(path.parent)

    def _draft(self, path: Path, data: bytes) -> Path:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            self.write_new(draft, data)
        except OSError:
            self._discard(draft)
            raise
        return draft

    def _discard(self, draft: Path) -> None:
        try:
            self.unlink(draft)
        except FileNotFoundError:
            pass


def open_regular(path: Path) -> BufferedReader:
    """Open a file to read, unless it is a link or special: a pipe would wait for a writer. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(descriptor, "rb")


def is_regular(path: Path) -> bool:
    """Whether it is a file, and neither a link nor special. Raises OSError."""
    return stat.S_ISREG(path.lstat().st_mode)


def end_of_data(path: Path, start: int) -> int:
    """Where the last bytes from `start` on end that take room on the disk: a hole may follow. Raises OSError."""
    with open_regular(path) as file:
        descriptor, end = file.fileno(), start
        while True:
            try:
                end = os.lseek(descriptor, os.lseek(descriptor, end, os.SEEK_DATA), os.SEEK_HOLE)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return end
                raise


def write_refusal(error: OSError, path: str) -> Refusal:
    """What a failed write means: `disk_full` or `write_failed`."""
    reason = Reason.DISK_FULL if error.errno in NO_SPACE else Reason.WRITE_FAILED
    return Refusal(reason, f"evidence could not be written: {error.strerror or error}", path=path)


def unreadable(what: str, path: str, error: OSError) -> Refusal:
    """What a failed read means: `evidence_unreadable`."""
    return Refusal(Reason.EVIDENCE_UNREADABLE, f"{what} cannot be read: {error.strerror or error}", path=path)
