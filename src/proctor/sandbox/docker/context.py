"""A build's context as one archive that is the same for the same files, without what `.dockerignore` leaves out."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from proctor.core.files import read_regular
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.docker.tarstream import END, PIECE, Kind, header, padding

_IGNORE = ".dockerignore"
_IGNORE_CAP = 1 << 20
# one for all files: images do not differ by when a folder was copied. Not 0, for archives of many kinds begin in 1980.
_MTIME = 946_684_800


@dataclass(frozen=True)
class Ignore:
    """The rules of one `.dockerignore`, in order: the last that matches a path, or a folder above it, decides."""

    rules: tuple[tuple[re.Pattern[str], bool], ...]

    @classmethod
    def parse(cls, text: str) -> Ignore:
        """Read the rules. Raises re.error for a pattern that is none."""
        rules = []
        for line in text.removeprefix("\ufeff").splitlines():
            pattern = line.strip()
            if not pattern or line.startswith("#"):
                continue
            again = pattern.startswith("!")
            cleaned = _cleaned(pattern[1:].strip() if again else pattern)
            if cleaned:
                rules.append((re.compile(_regex(cleaned)), again))
        return cls(tuple(rules))

    def leaves_out(self, path: str) -> bool:
        """Whether a path of the context (`a/b`) is left out."""
        above = [str(parent) for parent in PurePosixPath(path).parents][:-1]
        out = False
        for pattern, again in self.rules:
            if again == out and any(pattern.fullmatch(each) for each in (path, *above)):
                out = not again
        return out

    @property
    def takes_back(self) -> bool:
        """Whether some rule takes back what another leaves out: folders left out are then looked into."""
        return any(again for _, again in self.rules)


def _cleaned(pattern: str) -> str:
    parts: list[str] = []
    for part in pattern.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", ".", ".."):
            parts.append(part)
    return "/".join(parts)


def _regex(pattern: str) -> str:
    out = ""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**", at):
            at += 2
            if pattern.startswith("/", at):
                at += 1
            out += ".*" if at >= len(pattern) else "(?:.*/)?"
            continue
        if char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "\\" and at + 1 < len(pattern):
            at += 1
            out += re.escape(pattern[at])
        elif char == "[" and "]" in pattern[at + 2 :]:
            end = pattern.index("]", at + 2)
            out += pattern[at : end + 1]
            at = end
        else:
            out += re.escape(char)
        at += 1
    return out


def archive(context: Path, dockerfile: str) -> Iterator[bytes]:
    """The archive's bytes. The Dockerfile and `.dockerignore` are in it whatever the rules say.

    Raises:
        Refusal: FILE_UNREADABLE, INVALID_VALUE for a `.dockerignore` that cannot be read as one.
    """
    try:
        ignore = _ignore(context, dockerfile)
        always = {dockerfile, _IGNORE}
        for path, inner, info in _walk(context, ignore, always):
            yield from _entry(path, inner, info)
        yield END
    except OSError as fault:
        raise Refusal(
            Reason.FILE_UNREADABLE, f"a file of a build cannot be read: {fault}", path=str(fault.filename)
        ) from fault


def _ignore(context: Path, dockerfile: str) -> Ignore:
    for name in (f"{dockerfile}{_IGNORE}", _IGNORE):
        if (context / name).is_file():
            data = read_regular(context / name, _IGNORE_CAP)
            try:
                return Ignore.parse((data or b"").decode("utf-8"))
            except (UnicodeDecodeError, re.error) as fault:
                raise Refusal(
                    Reason.INVALID_VALUE, f"{name} cannot be read: {fault}", path=str(context / name)
                ) from fault
    return Ignore(())


def _walk(context: Path, ignore: Ignore, always: set[str]) -> Iterator[tuple[Path, str, os.stat_result]]:
    pending: list[tuple[Path, str]] = [(context, "")]
    needed = {str(parent) for name in always for parent in PurePosixPath(name).parents}
    while pending:
        path, inner = pending.pop()
        info = path.lstat()
        out = bool(inner) and inner not in always and ignore.leaves_out(inner)
        if inner and not (out and inner not in needed):
            yield path, inner, info
        if stat.S_ISDIR(info.st_mode) and (not out or ignore.takes_back or inner in needed):
            children: Sequence[Path] = sorted(path.iterdir(), key=lambda child: os.fsencode(child.name), reverse=True)
            pending += [(child, f"{inner}/{child.name}" if inner else child.name) for child in children]


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
