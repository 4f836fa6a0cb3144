"""Users of a container by name, read from its tables, which an agent may have replaced by anything."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.docker.engine import Engine, EngineError
from proctor.sandbox.docker.paths import KERNEL, look, stand, within
from proctor.sandbox.docker.tarstream import END, Kind, Malformed, TarReader, header, padding

_MOST_READ = 4 << 20
# a line of 64 KiB is more than the engine's reader takes
_MOST_LINE = 60_000
_PLAIN = {"/etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n", "/etc/group": b"root:x:0:\n"}


async def disarm(engine: Engine, container: str, *, deep: bool = False) -> list[str]:
    """Put a plain table in the place of one that would hold up or fail who reads it; which they were.

    The engine reads both for each command, in the container and without a deadline: a pipe there ends every command.
    With `deep` what is in them is looked at too.

    Raises EngineError.
    """
    seen = await asyncio.gather(*(_is_trap(engine, container, path, deep) for path in _PLAIN))
    traps = [path for path, trap in zip(_PLAIN, seen, strict=True) if trap]
    if not traps:
        return []
    body = b"".join(_plain_table(path, _PLAIN[path]) for path in traps) + END
    async with engine.answer(
        "PUT",
        f"containers/{container}/archive",
        params={"path": "/"},
        data=io.BytesIO(body),
        content_type="application/x-tar",
    ):
        return traps


async def _is_trap(engine: Engine, container: str, path: str, deep: bool) -> bool:
    try:
        seen = await stand(engine, container, path)
        if seen is not None and seen.kind is Kind.LINK:
            if not seen.to or any(within(seen.to, folder) for folder in KERNEL):
                return True
            path = seen.to
            seen = await stand(engine, container, path)
    except EngineError as fault:
        if fault.status is None:
            raise
        return True  # links without end
    if seen is None:
        return False
    if seen.kind is not Kind.FILE or seen.size > _MOST_READ:
        return True
    return deep and any(len(line) > _MOST_LINE for line in (await _content(engine, container, path)).split(b"\n"))


async def _content(engine: Engine, container: str, path: str) -> bytes:
    """What is in a file, up to a bound; nothing of what is none. Raises EngineError."""
    async with engine.answer("GET", f"containers/{container}/archive", params={"path": path}) as response:
        archive = TarReader(response.content)
        text = b""
        try:
            entry = await archive.next()
            while entry is not None and len(text) <= _MOST_READ and (data := await archive.read()):
                text += data
        except Malformed:
            return b""
        return text


def _plain_table(path: str, content: bytes) -> bytes:
    head = header(path.lstrip("/"), Kind.FILE, mode=0o644, uid=0, gid=0, mtime=0, size=len(content))
    return head + content + padding(len(content))


class Tables:
    """The passwd and group tables of one container, read when first needed."""

    def __init__(self, engine: Engine, container: str) -> None:
        self._engine = engine
        self._container = container
        self._read: dict[str, list[list[str]]] = {}

    async def ids(self, owner: str) -> tuple[int, int]:
        """User and group of `name`, `uid`, `name:group` or `uid:gid`.

        Raises:
            Refusal: INVALID_VALUE for a name that is not known inside.
            EngineError: it cannot be asked.
        """
        who, _, group = owner.partition(":")
        if who in ("0", "root"):
            uid, gid = 0, 0
        else:
            uid, gid = await self._user(who)
        return uid, await self._group(group) if group else gid

    async def _user(self, who: str) -> tuple[int, int]:
        rows = await self._rows("/etc/passwd", 4)
        row = next((row for row in rows if row[0] == who), None)
        if row is None and _is_id(who):
            row = next((row for row in rows if row[2] == who), [who, "", who, "0"])
        if row is None or not (_is_id(row[2]) and _is_id(row[3])):
            raise Refusal(Reason.INVALID_VALUE, f"user {who!r}: not in /etc/passwd", observed=who)
        return int(row[2]), int(row[3])

    async def _group(self, group: str) -> int:
        if _is_id(group):
            return int(group)
        for row in await self._rows("/etc/group", 3):
            if row[0] == group and _is_id(row[2]):
                return int(row[2])
        raise Refusal(Reason.INVALID_VALUE, f"group {group!r}: not in /etc/group", observed=group)

    async def _rows(self, path: str, columns: int) -> Sequence[list[str]]:
        if path not in self._read:
            text = (await self._text(path)).decode("utf-8", "surrogateescape")
            rows = [line.split(":") for line in text.split("\n")]
            self._read[path] = [row for row in rows if len(row) >= columns]
        return self._read[path]

    async def _text(self, path: str) -> bytes:
        seen = await look(self._engine, self._container, path)
        if seen is not None and seen.kind is Kind.LINK:
            path = seen.to
            seen = await look(self._engine, self._container, path)
        if seen is None or seen.kind is not Kind.FILE or seen.size > _MOST_READ:
            return b""
        return await _content(self._engine, self._container, path)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) < 2**32 - 1
