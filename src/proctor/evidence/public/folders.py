"""Where a copy reads and where it writes: nothing but plain files, no link followed, everything durable."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from proctor.evidence.disk import Disk, unreadable
from proctor.evidence.entries import damaged

_CHUNK = 1 << 20
# Every folder is entered from the top, which keeps links out, and costs the square of the depth.
_DEEPEST = 200
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# In a run's own folder, and no evidence.
_BESIDE = frozenset({"lock", "scratch"})


class Source:
    """A run folder that is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, relative: str) -> BinaryIO:
        """A file of the run, entered folder by folder.

        Raises:
            Refusal: `evidence_damaged`: it is missing, or no plain file, or a link leads to it; `evidence_unreadable`.
        """
        parts = relative.split("/")
        if "\0" in relative or not all(part not in ("", ".", "..") for part in parts):
            raise damaged("an entry names a path that leads out of its place", relative[:200])
        try:
            with _entered(self.path, parts[:-1]) as folder:
                # asked before opening: to open a FIFO or a device is to act on it
                if not stat.S_ISREG(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode):
                    raise damaged("what stands in the place of a file is none", relative)
                descriptor = os.open(parts[-1], _FILE, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise damaged("a file that the run names is missing, or a link leads to it", relative) from error
        except OSError as error:
            raise unreadable("the run", relative, error) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise damaged("what stands in the place of a file is none", relative)
        return os.fdopen(descriptor, "rb", buffering=0)

    def names(self, relative: str) -> list[str]:
        """Names of plain files in a folder of the run, sorted, but for those that begin with a dot; none without one.

        Raises as `files`.
        """
        return sorted(name for name, _ in self._listed(relative, folders=[]))

    def files(self) -> Iterator[tuple[str, int]]:
        """Path and size of every file that could be evidence, as they stand, in no order.

        Raises:
            Refusal: `evidence_damaged` names what is neither a file nor a folder; `evidence_unreadable`.
        """
        pending = [""]
        while pending:
            folder = pending.pop()
            if folder.count("/") > _DEEPEST:
                raise damaged("folders nest too deeply to be searched", folder[:200])
            below: list[str] = []
            for name, size in self._listed(folder, below):
                yield f"{folder}{name}", size
            pending += [f"{folder}{name}/" for name in below]

    def _listed(self, folder: str, folders: list[str]) -> Iterator[tuple[str, int]]:
        """Names and sizes of files in a folder; names of folders are added to `folders`."""
        try:
            with _entered(self.path, folder.split("/")[:-1] if folder else []) as entered, os.scandir(entered) as names:
                for name in names:
                    if name.name.startswith(".") or (not folder and name.name in _BESIDE):
                        continue
                    seen = name.stat(follow_symlinks=False)
                    if stat.S_ISDIR(seen.st_mode):
                        folders.append(name.name)
                    elif stat.S_ISREG(seen.st_mode):
                        yield name.name, seen.st_size
                    else:
                        raise damaged("a link or a special file stands in the run", f"{folder}{name.name}")
        except FileNotFoundError:
            return
        except OSError as error:
            raise unreadable("the run", folder or ".", error) from error


class Target:
    """The folder that a copy is written to; modes are those of new files, whatever the run's are. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def new(self, relative: str) -> Iterator[BinaryIO]:
        """A new file, durable when the block ends; its folders are made."""
        path = self.path / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    def size(self, relative: str) -> int | None:
        """How many bytes of it were written; None where it was not."""
        try:
            return (self.path / relative).stat().st_size
        except FileNotFoundError:
            return None

    def sync_folders(self) -> None:
        """Make every name below durable."""
        for folder, _, _ in os.walk(self.path):
            Disk().sync_dir(Path(folder))


def copied(relative: str, source: BinaryIO, target: BinaryIO, most: int) -> tuple[str, int]:
    """Copy all that follows; SHA-256 (hex) and size of it. Raises OSError of the target.

    Raises:
        Refusal: `evidence_damaged`: there are more bytes than `most`; `evidence_unreadable`.
    """
    if (stands := os.fstat(source.fileno()).st_size) > most:
        raise damaged("a file is longer than it can be", relative, stands, most)
    digest, size = hashlib.sha256(), 0
    while size <= most and (chunk := _read(relative, source)):
        digest.update(chunk)
        target.write(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def read_at(relative: str, source: BinaryIO, offset: int, length: int) -> bytes:
    """Bytes of a file that is open, fewer where it ends before.

    Raises:
        Refusal: `evidence_unreadable`.
    """
    try:
        return os.pread(source.fileno(), length, offset)
    except OSError as error:
        raise unreadable("the run", relative, error) from error


def _read(relative: str, source: BinaryIO) -> bytes:
    try:
        return source.read(_CHUNK)
    except OSError as error:
        raise unreadable("the run", relative, error) from error


@contextmanager
def _entered(root: Path, folders: list[str]) -> Iterator[int]:
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)
