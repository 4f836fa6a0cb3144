"""A build's context as one archive that is the same for the same files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.docker.tarstream import END, PIECE, Kind, header, padding

# one for all files: images do not differ by when a folder was copied. Not 0, for archives of many kinds begin in 1980.
_MTIME = 946_684_800


def archive(context: Path, instead: Mapping[str, bytes]) -> Iterator[bytes]:
    """The archive's bytes, with other files `instead` of those of the folder. Raises Refusal.

    FILE_UNREADABLE, PATH_UNSAFE.
    """
    try:
        for path, inner, info in _walk(context):
            if inner not in instead:
                yield from _entry(path, inner, info)
        for inner, content in sorted(instead.items()):
            yield header(inner, Kind.FILE, mode=0o644, uid=0, gid=0, mtime=_MTIME, size=len(content))
            yield content + padding(len(content))
        yield END
    except OSError as fault:
        raise Refusal(
            Reason.FILE_UNREADABLE, f"a file of a build cannot be read: {fault}", path=str(fault.filename)
        ) from fault


def _walk(context: Path) -> Iterator[tuple[Path, str, os.stat_result]]:
    pending = [context]
    while pending:
        path = pending.pop()
        info = path.lstat()
        if path != context:
            yield path, path.relative_to(context).as_posix(), info
        if stat.S_ISDIR(info.st_mode):
            pending += sorted(path.iterdir(), key=lambda child: os.fsencode(child.name), reverse=True)


def _entry(path: Path, inner: str, info: os.stat_result) -> Iterator[bytes]:
    mode = stat.S_IMODE(info.st_mode) & 0o777
    if stat.S_ISLNK(info.st_mode):
        yield header(inner, Kind.LINK, mode=0o777, uid=0, gid=0, mtime=_MTIME, to=str(path.readlink()))
    elif stat.S_ISDIR(info.st_mode):
        yield header(inner, Kind.FOLDER, mode=mode, uid=0, gid=0, mtime=_MTIME)
    elif stat.S_ISREG(info.st_mode):
        yield header(inner, Kind.FILE, mode=mode, uid=0, gid=0, mtime=_MTIME, size=info.st_size)
        with path.open("rb") as file:
            left = info.st_size
            while left:
                data = file.read(min(left, PIECE))
                if not data:
                    raise Refusal(Reason.FILE_UNREADABLE, "a file got shorter while it was read", path=str(path))
                left -= len(data)
                yield data
        if info.st_size % 512:
            yield padding(info.st_size)
    else:
        raise Refusal(Reason.PATH_UNSAFE, f"{path} is neither file, folder nor link", path=str(path))
