"""Disks that do less, or more, than the system's: they fail on request, skip syncs, or log every operation."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.evidence.disk import Appender, Disk

_BLOCK = 512


class UnsyncedAppender(Appender):
    def sync(self) -> None:
        pass


class UnsyncedDisk(Disk):
    """For tests that crash nothing: everything but the syncs."""

    def open_append(self, path: Path, *, new: bool = False) -> Appender:
        opened = super().open_append(path, new=new)
        return UnsyncedAppender(path, opened._descriptor, opened.size)

    def preallocate(self, path: Path, size: int) -> None:
        path.touch()

    def truncate(self, path: Path, size: int) -> None:
        os.truncate(path, size)

    def sync_dir(self, path: Path) -> None:
        pass


class FailingAppender(UnsyncedAppender):
    disk: FailingDisk

    def append(self, data: bytes) -> None:
        try:
            self.disk.step()
        except OSError:
            # A full disk takes what still fits.
            super().append(data[: len(data) // 2])
            raise
        super().append(data)

    def sync(self) -> None:
        self.disk.step()


class FailingDisk(UnsyncedDisk):
    """Every write and sync fails from the one `fail_after` steps ahead on, until `fail_after` is None again."""

    def __init__(self, code: int = errno.ENOSPC) -> None:
        self.code = code
        self.fail_after: int | None = None

    def step(self) -> None:
        if self.fail_after is None:
            return
        if self.fail_after <= 0:
            raise OSError(self.code, "injected")
        self.fail_after -= 1

    def open_append(self, path: Path, *, new: bool = False) -> Appender:
        opened = super().open_append(path, new=new)
        failing = FailingAppender(path, opened._descriptor, opened.size)
        failing.disk = self
        return failing


class StuckAppender(UnsyncedAppender):
    answers: threading.Event

    def sync(self) -> None:
        assert self.answers.wait(timeout=60)


class StuckDisk(UnsyncedDisk):
    """Syncs of files return only while `answers` is set."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()

    def open_append(self, path: Path, *, new: bool = False) -> Appender:
        opened = super().open_append(path, new=new)
        stuck = StuckAppender(path, opened._descriptor, opened.size)
        stuck.answers = self.answers
        return stuck


@dataclass
class Inode:
    durable: bytes = b""
    volatile: bytes = b""


@dataclass
class World:
    """What the log says was on the disk: names that are durable, and those that are not yet, in order of change."""

    names: dict[Path, dict[str, Inode | None]] = field(default_factory=dict)
    changes: dict[Path, list[tuple[str, Inode | None, bool]]] = field(default_factory=dict)

    @classmethod
    def standing(cls, root: Path) -> World:
        """What stands below a folder, all of it durable."""
        world = cls({root: {}})
        for path in sorted(root.rglob("*")):
            folder = path.is_dir()
            world.names[path.parent][path.name] = None if folder else Inode(path.read_bytes())
            if folder:
                world.names[path] = {}
        return world

    def now(self, folder: Path) -> dict[str, Inode | None]:
        seen = dict(self.names.get(folder, {}))
        for name, inode, there in self.changes.get(folder, []):
            if there:
                seen[name] = inode
            else:
                seen.pop(name, None)
        return seen

    def change(self, path: Path, inode: Inode | None, there: bool) -> None:
        self.changes.setdefault(path.parent, []).append((path.name, inode, there))


class LoggingAppender(Appender):
    log: list[tuple[Any, ...]]

    def append(self, data: bytes) -> None:
        super().append(data)
        self.log.append(("append", self.path, bytes(data)))

    def sync(self) -> None:
        self.log.append(("sync", self.path))


class LoggingDisk(UnsyncedDisk):
    """Logs each operation that changes the disk; `log` may hold marks of the test's own, too."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []

    def open_append(self, path: Path, *, new: bool = False) -> Appender:
        opened = super().open_append(path, new=new)
        if new:
            self.log.append(("create", path))
        logging = LoggingAppender(path, opened._descriptor, opened.size)
        logging.log = self.log
        return logging

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self.log.append(("rename", source, target))

    def link(self, source: Path, target: Path) -> None:
        super().link(source, target)
        self.log.append(("link", source, target))

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self.log.append(("unlink", path))

    def truncate(self, path: Path, size: int) -> None:
        super().truncate(path, size)
        self.log.append(("truncate", path, size))

    def make_dir(self, path: Path) -> None:
        super().make_dir(path)
        self.log.append(("make_dir", path))

    def sync_dir(self, path: Path) -> None:
        self.log.append(("sync_dir", path))


def replay(log: list[tuple[Any, ...]], start: World | None = None) -> World:
    """The disk after these operations, durable or not."""
    world = start if start is not None else World()
    for operation, *rest in log:
        match operation, rest:
            case "create", [path]:
                world.change(path, Inode(), True)
            case "make_dir", [path]:
                world.change(path, None, True)
            case "append", [path, data]:
                _inode(world, path).volatile += data
            case "sync", [path]:
                inode = _inode(world, path)
                inode.durable, inode.volatile = inode.durable + inode.volatile, b""
            case "truncate", [path, size]:
                inode = _inode(world, path)
                inode.durable, inode.volatile = (inode.durable + inode.volatile)[:size], b""
            case "link" | "rename", [source, target]:
                world.change(target, _inode(world, source), True)
                if operation == "rename":
                    world.change(source, None, False)
            case "unlink", [path]:
                world.change(path, None, False)
            case "sync_dir", [folder]:
                world.names[folder] = world.now(folder)
                world.changes[folder] = []
    return world


def _inode(world: World, path: Path) -> Inode:
    inode = world.now(path.parent)[path.name]
    assert inode is not None, f"{path} is a folder"
    return inode


def materialise(world: World, root: Path, target: Path, choose: Callable[[int], int]) -> None:
    """Write down what survives: of each folder's unsynced changes the first few, of unsynced bytes some blocks.

    Args:
        choose: given how many there are, how many of them (from 0) are there.
    """

    def write(folder: Path) -> None:
        names = dict(world.names.get(folder, {}))
        changes = world.changes.get(folder, [])
        for name, inode, there in changes[: choose(len(changes))]:
            if there:
                names[name] = inode
            else:
                names.pop(name, None)
        for name, inode in names.items():
            place = target / (folder / name).relative_to(root)
            if inode is None:
                place.mkdir()
                write(folder / name)
            else:
                place.write_bytes(_surviving(inode, choose))

    write(root)


def _surviving(inode: Inode, choose: Callable[[int], int]) -> bytes:
    content = bytearray(inode.durable + inode.volatile[: choose(len(inode.volatile))])
    start = len(inode.durable)
    while start < len(content):
        stop = min(len(content), (start // _BLOCK + 1) * _BLOCK)
        # Later blocks may be there without earlier ones, which then read as zeros.
        if choose(1) == 0:
            content[start:stop] = bytes(stop - start)
        start = stop
    return bytes(content)
