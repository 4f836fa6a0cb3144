"""What a public copy says that it leaves out: `withheld.json`, read once in bounded memory, as section 9 has it."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import BinaryIO

from proctor_verify import strictjson
from proctor_verify.errors import Unreadable
from proctor_verify.folder import Folder, NotThere

LIST = "withheld.json"
MAX_BLOBS = 10_000_000
MAX_FILES = 1_000_000
_CHUNK = 1 << 20
# More than any item: a path stands in an entry.
_ITEM = 1 << 17
_DIGEST = 32
_PREFIXES = 1 << 16
_BLOB = re.compile(rb'\{"blob":"([0-9a-f]{64})","size":(0|[1-9][0-9]{0,15})\}')
_FILE = re.compile(rb'\{"path":("(?:[^"\\]|\\.)*"),"sha256":"([0-9a-f]{64})","size":(0|[1-9][0-9]{0,15})\}', re.DOTALL)


class Withheld:
    """The two lists, and which of their items the journal named so far.

    `fault` is what is wrong with the file (`unread` where it could not be opened), None where nothing is; without one,
    nothing is withheld and `is_copy` is false. `bodies` and `size` count what is listed and its bytes.
    """

    def __init__(self) -> None:
        self.is_copy = False
        self.fault: str | None = None
        self.unread = False
        self.bodies = 0
        self.size = 0
        self.files: dict[str, tuple[str, int]] = {}
        # Digests of blobs one after the other, sorted: a run may have millions.
        self._digests = bytearray()
        self._sizes = array("Q")
        # Where the digests begin that have the same first two bytes: nearly all are found at the first look.
        self._starts = array("L")
        self._named = bytearray()
        self._named_files: set[str] = set()

    @classmethod
    def read(cls, folder: Folder) -> Withheld:
        """What the folder's list says."""
        found = cls()
        try:
            stream = folder.open(LIST)
        except NotThere:
            return found
        except Unreadable as error:
            found.is_copy, found.unread, found.fault = True, True, str(error)
            return found
        with stream:
            try:
                found._take(_Text(stream))
            except (Unreadable, OSError) as error:
                # what is withheld is not known: not even what was read of it
                found = cls()
                found.fault = str(error) if isinstance(error, Unreadable) else "cannot be read"
        found.is_copy = True
        found._named = bytearray(len(found._sizes))
        return found

    def caveats(self) -> tuple[str, ...]:
        """What to say of it: nothing where nothing is left out."""
        if not self.is_copy:
            return ()
        if self.fault is not None:
            return (f"what was left out: {LIST} {self.fault}",)
        bodies = "1 body" if self.bodies == 1 else f"{self.bodies:,} bodies"
        are = "is" if self.bodies == 1 else "are"
        return (f"not shown: {bodies} ({self.size:,} bytes) {are} withheld in this copy",)

    def has_blob(self, digest: str) -> bool:
        """Whether a blob of that digest is listed."""
        return bool(self._sizes) and self._find(bytes.fromhex(digest)) is not None

    def has_file(self, path: str) -> bool:
        """Whether a file at that path is listed."""
        return path in self.files

    def name_blob(self, digest: str, size: int) -> bool:
        """An entry has a reference to it: whether it is listed. With another size than the list's it stays unnamed."""
        at = self._find(bytes.fromhex(digest)) if self._sizes else None
        if at is not None and self._sizes[at] == size:
            self._named[at] = 1
        return at is not None

    def name_file(self, path: str, sha256: str, size: int) -> None:
        """An entry names it; with another digest or size than the list's it stays unnamed."""
        if self.files.get(path) == (sha256, size):
            self._named_files.add(path)

    def unnamed(self) -> Iterator[str]:
        """What is listed, and no entry named so."""
        for at, named in enumerate(self._named):
            if not named:
                yield f"blob {self._digest(at).hex()} of {self._sizes[at]:,} bytes"
        yield from (f"file {path}" for path in self.files if path not in self._named_files)

    def _take(self, text: _Text) -> None:
        text.expect(b'{"blobs":[')
        before = b""
        for match in text.items(_BLOB):
            digest = bytes.fromhex(match[1].decode())
            if digest <= before:
                raise Unreadable("lists blobs that are not sorted, each once")
            if len(self._sizes) == MAX_BLOBS:
                raise Unreadable(f"lists more than {MAX_BLOBS:,} blobs")
            before = digest
            self._start_at(int.from_bytes(digest[:2], "big"))
            self._digests += digest
            self._sizes.append(int(match[2]))
            self._count(int(match[2]))
        self._start_at(_PREFIXES)
        text.expect(b'],"files":[')
        last: str | None = None
        for match in text.items(_FILE):
            path = strictjson.loads_canonical(match[1])
            if last is not None and path <= last:
                raise Unreadable("lists files that are not sorted by path, each once")
            if len(self.files) == MAX_FILES:
                raise Unreadable(f"lists more than {MAX_FILES:,} files")
            last = path
            self.files[path] = match[2].decode(), int(match[3])
            self._count(int(match[3]))
        text.expect(b'],"format":1}')
        text.end()

    def _start_at(self, prefix: int) -> None:
        self._starts.extend([len(self._sizes)] * (prefix + 1 - len(self._starts)))

    def _count(self, size: int) -> None:
        self.bodies += 1
        self.size += size

    def _digest(self, at: int) -> bytes:
        return bytes(self._digests[at * _DIGEST : (at + 1) * _DIGEST])

    def _find(self, digest: bytes) -> int | None:
        prefix = int.from_bytes(digest[:2], "big")
        if prefix + 1 >= len(self._starts):
            return None
        low, high = self._starts[prefix], self._starts[prefix + 1]
        at = bisect_left(range(high), digest, low, high, key=self._digest)
        return at if at < high and self._digest(at) == digest else None


class _Text:
    """The file's text, matched from its start on."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._held = b""
        self._at = 0

    def expect(self, words: bytes) -> None:
        if not self._goes_on(words):
            raise Unreadable("is not canonical JSON of exactly blobs, files and format 1")

    def items(self, pattern: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
        """The items of a list whose bracket was read, up to the one that closes it."""
        self._fill()
        if self._held[self._at : self._at + 1] == b"]":
            return
        while True:
            self._fill()
            match = pattern.match(self._held, self._at)
            if match is None:
                raise Unreadable("has an item that is none, or not in canonical form")
            self._at = match.end()
            yield match
            if not self._goes_on(b","):
                return

    def end(self) -> None:
        self._fill()
        if self._at < len(self._held):
            raise Unreadable("goes on after its value")

    def _goes_on(self, words: bytes) -> bool:
        self._fill()
        if not self._held.startswith(words, self._at):
            return False
        self._at += len(words)
        return True

    def _fill(self) -> None:
        while len(self._held) - self._at < _ITEM and (chunk := self._stream.read(_CHUNK)):
            self._held = self._held[self._at :] + chunk
            self._at = 0
