"""A task folder as a digested listing: what is hashed is what is used.

The digest is SHA-256 over this encoding, which no two different folders share:

    b"proctor-tree-1\\n"
    then for each entry below the folder, sorted by its raw path bytes:
        kind      1 byte    b"d" folder, b"f" file, b"l" symbolic link
        mode      4 bytes   permission bits as below, big-endian; 0 for links, whose bits mean nothing
        path      8 bytes length (big-endian), then the raw bytes, "/" between parts
        content   file: 8 bytes size, then the 32 bytes of the content's SHA-256
                  link: 8 bytes length, then the raw bytes of its target
                  folder: nothing (so an empty folder counts)

Of the permission bits only whether its owner may execute a file counts (0755 or 0644; folders 0755): the rest comes
from the umask of whoever made the copy. Owners and times are left out: a copy of a task is the same task.
`.harborignore` is left out too: it rules what is published, and a file that it names still reaches the sandbox.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

MAX_ENTRIES = 200_000
MAX_LINKS = 40  # as the kernel's own bound on links in one path

_HEADER = b"proctor-tree-1\n"
_CHUNK = 1 << 20


class Kind(Enum):
    """What an entry is; the value is its byte in the digest."""

    FOLDER = b"d"
    FILE = b"f"
    LINK = b"l"


@dataclass(frozen=True)
class Entry:
    """One thing below the folder. `path` is relative, raw bytes; `sha256` is of a file, `target` of a link."""

    path: bytes
    kind: Kind
    mode: int
    size: int = 0
    sha256: bytes | None = None
    target: bytes | None = None

    @property
    def text(self) -> str:
        """The path for records and people; bytes that are not UTF-8 stand as `\\xNN`."""
        return shown(self.path)

    def encoded(self) -> bytes:
        """This entry's part of the digest."""
        head = self.kind.value + self.mode.to_bytes(4, "big") + _sized(self.path)
        if self.kind is Kind.FILE:
            return head + self.size.to_bytes(8, "big") + (self.sha256 or b"")
        if self.kind is Kind.LINK:
            return head + _sized(self.target or b"")
        return head


@dataclass(frozen=True)
class Tree:
    """A folder's entries by path, sorted, and the digest over them (64 hex digits)."""

    root: Path
    entries: Mapping[bytes, Entry]
    digest: str

    def listing(self) -> list[dict[str, str | int]]:
        """One JSON-able row an entry: path, kind, mode (octal), and size and sha256 or target."""
        rows: list[dict[str, str | int]] = []
        for entry in self.entries.values():
            row: dict[str, str | int] = {"path": entry.text, "kind": entry.kind.name.lower(), "mode": f"{entry.mode:o}"}
            if entry.sha256 is not None:
                row |= {"size": entry.size, "sha256": entry.sha256.hex()}
            if entry.target is not None:
                row["target"] = shown(entry.target)
            rows.append(row)
        return rows

    def find(self, path: str | bytes) -> Entry | None:
        """The file or folder at a path, links followed inside the folder; None where there is nothing."""
        found = _follow(self.entries, os.fsencode(path))
        return self.entries.get(found) if found else None

    def has_file(self, path: str) -> bool:
        """Whether a regular file stands there (links followed)."""
        entry = self.find(path)
        return entry is not None and entry.kind is Kind.FILE

    def has_folder(self, path: str) -> bool:
        """Whether a folder stands there (links followed)."""
        entry = self.find(path)
        return entry is not None and entry.kind is Kind.FOLDER

    def below(self, folder: str | bytes) -> list[Entry]:
        """Everything below a folder, at any depth, sorted by path."""
        prefix = os.fsencode(folder).rstrip(b"/")
        return [entry for path, entry in self.entries.items() if path.startswith(prefix + b"/")]

    def digest_below(self, folder: str) -> str:
        """The digest that the tree of that folder alone has."""
        cut = len(os.fsencode(folder)) + 1
        return _digest(dataclasses.replace(entry, path=entry.path[cut:]) for entry in self.below(folder))

    def read(self, path: str, cap: int) -> bytes:
        """The bytes of a file as they were hashed.

        Raises:
            Refusal: TASK_NOT_FOUND (no such file), TASK_UNREADABLE (above `cap` bytes), TASK_CHANGED (the file is no
                longer what was hashed).
        """
        entry = self.find(path)
        if entry is None or entry.kind is not Kind.FILE:
            raise Refusal(Reason.TASK_NOT_FOUND, f"{path} is not a file of the task.", path=str(self.root / path))
        where = self.root / os.fsdecode(entry.path)
        if entry.size > cap:
            raise Refusal(
                Reason.TASK_UNREADABLE,
                f"{path} is larger than such a file can be.",
                path=str(where),
                observed=entry.size,
                required=cap,
            )
        parts: list[bytes] = []
        with _opened(os.fsencode(where)) as fd:
            while sum(map(len, parts)) <= cap and (part := os.read(fd, _CHUNK)):
                parts.append(part)
        data = b"".join(parts)
        if hashlib.sha256(data).digest() != entry.sha256:
            raise Refusal(Reason.TASK_CHANGED, f"{path} changed while the task was being read.", path=str(where))
        return data

    def verify_unchanged(self) -> None:
        """Read the folder again. Raises Refusal TASK_CHANGED naming what differs (at most eight paths)."""
        now = read_tree(self.root)
        if now.digest == self.digest:
            return
        paths = sorted(self.entries.keys() | now.entries.keys())
        differing = [shown(path) for path in paths if self.entries.get(path) != now.entries.get(path)]
        raise Refusal(
            Reason.TASK_CHANGED,
            f"The task is not what was admitted; {len(differing)} path(s) differ: {', '.join(differing[:8])}.",
            path=str(self.root),
            observed=now.digest,
            required=self.digest,
        )


def read_tree(root: Path) -> Tree:
    """Walk and hash a folder. Links are recorded, never followed out; special files are never opened.

    Raises:
        Refusal: TASK_NOT_FOUND (no folder there), TASK_UNSAFE (a link that leads out or in a circle, a socket, a
            device, a pipe), TASK_UNREADABLE (no permission, or more than `MAX_ENTRIES` entries).
    """
    if not stat.S_ISDIR(mode_of(root)):
        raise Refusal(Reason.TASK_NOT_FOUND, "There is no folder at that path.", path=str(root))
    root = root.resolve()
    found: list[Entry] = []
    _walk(os.fsencode(root), found)
    entries = {entry.path: entry for entry in sorted(found, key=lambda entry: entry.path)}
    for entry in entries.values():
        if entry.kind is Kind.LINK and _follow(entries, entry.path) is None:
            raise Refusal(
                Reason.TASK_UNSAFE,
                f"The link {entry.text} leads out of the task's folder or in a circle.",
                path=str(root / os.fsdecode(entry.path)),
                observed=shown(entry.target or b""),
            )
    return Tree(root=root, entries=entries, digest=_digest(entries.values()))


def mode_of(path: Path) -> int:
    """What stands at a path, links followed, as `st_mode`; 0 for nothing. Raises Refusal TASK_UNREADABLE."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL byte in the path
        return 0
    except OSError as error:
        raise _unreadable(os.fsencode(path), error) from error


def plain_mode(mode: int) -> int:
    """The permission bits that count of a file's or folder's `st_mode`, and that a copy is given."""
    return 0o755 if stat.S_ISDIR(mode) or mode & stat.S_IXUSR else 0o644


def shown(path: bytes) -> str:
    """Raw path bytes as text that always encodes as UTF-8; foreign bytes stand as `\\xNN`."""
    return path.decode("utf-8", "backslashreplace")


def _digest(entries: Iterable[Entry]) -> str:
    digest = hashlib.sha256(_HEADER)
    for entry in entries:
        digest.update(entry.encoded())
    return digest.hexdigest()


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def _walk(root: bytes, found: list[Entry]) -> None:
    todo = [b""]
    while todo:
        folder = todo.pop()
        where = posixpath.join(root, folder)
        with _opened(where, os.O_DIRECTORY) as fd:
            with os.scandir(fd) as listing:
                names = [os.fsencode(child.name) for child in listing]
            if len(found) + len(names) > MAX_ENTRIES:
                message = "The folder holds too many files for a task."
                raise Refusal(Reason.TASK_UNREADABLE, message, path=shown(root), required=MAX_ENTRIES)
            for name in names:
                entry = _entry(fd, name, posixpath.join(folder, name), where)
                found.append(entry)
                if entry.kind is Kind.FOLDER:
                    todo.append(entry.path)


def _entry(folder: int, name: bytes, path: bytes, where: bytes) -> Entry:
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            return Entry(path, Kind.FOLDER, plain_mode(info.st_mode))
        if stat.S_ISLNK(info.st_mode):
            return Entry(path, Kind.LINK, 0, target=os.readlink(name, dir_fd=folder))
    except OSError as error:
        raise _unreadable(posixpath.join(where, name), error) from error
    if not stat.S_ISREG(info.st_mode):
        raise Refusal(Reason.TASK_UNSAFE, f"{shown(path)} is a special file.", path=shown(posixpath.join(where, name)))
    digest = hashlib.sha256()
    size = 0
    with _opened(posixpath.join(where, name)) as fd:
        mode = plain_mode(os.fstat(fd).st_mode)
        while chunk := os.read(fd, _CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return Entry(path, Kind.FILE, mode, size=size, sha256=digest.digest())


@contextmanager
def _opened(where: bytes, flags: int = 0) -> Iterator[int]:
    """A regular file or folder open for reading; a pipe or link put there meanwhile can neither hang nor mislead."""
    try:
        fd = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags)
        try:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise Refusal(Reason.TASK_UNSAFE, "A file became a special file while it was read.", path=shown(where))
            yield fd
        finally:
            os.close(fd)
    except OSError as error:
        raise _unreadable(where, error) from error


def _unreadable(where: bytes, error: OSError) -> Refusal:
    return Refusal(
        Reason.TASK_UNREADABLE, f"Cannot be read: {error.strerror}.", path=shown(where), observed=error.errno
    )


def _follow(entries: Mapping[bytes, Entry], path: bytes) -> bytes | None:
    """The path with all links resolved below the root, b"." for the root itself, None where it leaves or circles.

    A link whose target does not exist inside resolves to that absent path: dangling, but not leading out.
    """
    todo = [part for part in path.split(b"/") if part not in (b"", b".")][::-1]
    done: list[bytes] = []
    links = 0
    while todo:
        part = todo.pop()
        if part == b"..":
            if not done:
                return None
            done.pop()
            continue
        done.append(part)
        entry = entries.get(b"/".join(done))
        if entry is None or entry.kind is not Kind.LINK:
            continue
        links += 1
        target = entry.target or b""
        if links > MAX_LINKS or target.startswith(b"/"):
            return None
        done.pop()
        todo.extend(part for part in reversed(target.split(b"/")) if part not in (b"", b"."))
    return b"/".join(done) or b"."
