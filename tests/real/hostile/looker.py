"""Looks for words that must not be findable, in all that can be read: files, processes, the kernel's own folders.

The words come reversed, so that this program and what starts it do not hold them. Prints JSON: for each word, by its
number, the places where it was found; and how much was looked at.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FILE_BYTES = 1 << 20
# the host's programs: tens of thousands of files that are shown on purpose, so the names and links in it are enough
_NAMES_ONLY = ("/usr/",)
_ENDLESS = ("/proc/kmsg", "/proc/kcore", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/dev/")
_OTHERS = ("environ", "cmdline", "maps", "mountinfo", "mounts", "stack", "wchan", "comm", "cgroup", "auxv", "status")


def main(said: dict[str, Any]) -> None:
    """Look again and again, for a sibling may come later."""
    words = [word[::-1].encode() for word in said["reversed"]]
    found: dict[int, set[str]] = {number: set() for number in range(len(words))}
    looked = 0
    until = time.monotonic() + said["seconds"]
    tops = ["/"]
    while True:
        for place, text in everything(tops, said["ways"]):
            looked += 1
            for number, word in enumerate(words):
                if word in text:
                    found[number].add(place)
        if time.monotonic() >= until:
            break
        tops = ["/proc", "/tmp", "/dev/shm", "/app", "/run"]
    places = {number: sorted(where) for number, where in found.items() if where}
    print(json.dumps({"found": places, "looked": looked, "reached": reached(said["paths"], said["ways"])}))


def everything(tops: list[str], ways: list[str]) -> Iterator[tuple[str, bytes]]:
    """Names, links and contents, below the root and below every other way to one."""
    for top in tops:
        yield from tree(top)
    for number in processes():
        for name in _OTHERS:
            yield from content(f"/proc/{number}/{name}")
        for folder in ("fd", "map_files", "task", "ns"):
            yield from names(f"/proc/{number}/{folder}")
    for way in ways:
        yield from names(way)


def processes() -> list[str]:
    """Those that are listed, and those that are not but may be there."""
    listed = [path.name for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [*listed, *map(str, range(1, 200)), "self", "thread-self"]


def names(folder: str) -> Iterator[tuple[str, bytes]]:
    try:
        listed = list(Path(folder).iterdir())
    except OSError:
        return
    for path in listed:
        yield str(path), os.fsencode(path.name)
        try:
            yield str(path), os.fsencode(path.readlink())
        except OSError:
            continue


def tree(top: str) -> Iterator[tuple[str, bytes]]:
    pending = [top]
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            yield entry.path, os.fsencode(entry.name)
            try:
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISLNK(info.st_mode):
                    yield entry.path, os.fsencode(Path(entry.path).readlink())
                elif stat.S_ISDIR(info.st_mode):
                    if not entry.path.startswith("/proc/") or not entry.name.isdecimal():
                        pending.append(entry.path)
                elif stat.S_ISREG(info.st_mode) and not entry.path.startswith((*_NAMES_ONLY, *_ENDLESS)):
                    yield from content(entry.path)
            except OSError:
                continue


def content(path: str) -> Iterator[tuple[str, bytes]]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        yield path, os.read(fd, _FILE_BYTES)
    except OSError:
        return
    finally:
        os.close(fd)


def reached(paths: list[str], ways: list[str]) -> list[str]:
    """Which paths of the host can be opened or listed, straight and by every way around."""
    found = []
    for path in (word[::-1] for word in paths):
        for way in ("", *ways):
            try:
                Path(way + path).stat()
            except OSError:
                continue
            found.append(way + path)
    return found


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
