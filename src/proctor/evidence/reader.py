"""Reading a run: its entries in order, and the content of blobs. Never changes anything."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.disk import open_regular, unreadable
from proctor.evidence.entries import JOURNAL, MAX_LINE_BYTES, Entry, Links, damaged, own_line, parse_line
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Blob
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.withheld import withheld_refusal

# More than a writer has in flight: what goes on for so long without a newline has no further line in it.
MAX_UNFINISHED = 64 * 1024 * 1024
MAX_BLOB_BYTES = 4 * 1024 * 1024 * 1024

_CHUNK = 1024 * 1024
_GZIP = 16 + zlib.MAX_WBITS


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """The terminated lines of a journal, without newlines; a line that is too long comes cut, but still too long.

    Stops where no newline comes for `MAX_UNFINISHED` bytes: a file may claim any size.
    """
    rest, unfinished = b"", 0
    while unfinished <= MAX_UNFINISHED and (chunk := file.read(_CHUNK)):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        unfinished = 0 if lines else unfinished + len(chunk)
        # Of a line that is too long, what goes beyond is not kept.
        rest = rest[: MAX_LINE_BYTES + 1]


def read_entries(path: Path, *, validate: bool = True) -> Iterator[Entry]:
    """The entries of a journal in order, in constant memory; stops before a last line that is not finished.

    Args:
        path: the journal's file.
        validate: check sequence and chain too; each line is read strictly in any case.

    Raises:
        Refusal: `evidence_damaged` names the line; `run_not_found`, `evidence_unreadable`.
    """
    chain = Links() if validate else None
    try:
        with open_regular(path) as file:
            for number, line in enumerate(read_lines(file), start=1):
                yield parse_line(line, number, chain=chain)
                if chain is not None:
                    chain.advance(line)
    except FileNotFoundError as error:
        raise Refusal(Reason.RUN_NOT_FOUND, "there is no journal", path=str(path)) from error
    except OSError as error:
        raise unreadable("the journal", JOURNAL, error) from error


def read_own(path: Path, entries: int) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """Kinds and bodies of the first so many entries, for the journal's own writer: six times as fast.

    What it opened was read strictly then, and what came since it wrote itself.

    Raises:
        Refusal: `evidence_unreadable`.
    """
    try:
        with open_regular(path) as file:
            yield from (own_line(line) for line in islice(read_lines(file), entries))
    except OSError as error:
        raise unreadable("the journal", JOURNAL, error) from error


def read_blob(run: RunFolder, ref: Blob | dict[str, Any]) -> bytes:
    """The content of a blob, checked against its digest.

    Args:
        ref: a reference, parsed or as it stands in an entry.

    Raises:
        Refusal: `evidence_damaged`, `evidence_unreadable`; `evidence_withheld` where a public copy leaves it out.
    """
    blob = ref if isinstance(ref, Blob) else Blob.parse(ref)
    if blob is None or blob.size > MAX_BLOB_BYTES or blob.length > blob.size:
        raise damaged("this is no blob reference", JOURNAL, observed=repr(ref)[:200])
    try:
        return _content(run, blob)
    except Refusal:
        if run.withheld is not None and blob.blob in run.withheld.blobs:
            raise withheld_refusal(f"a body of {blob.size:,} bytes", blob.path) from None
        raise


def shown_blob(run: RunFolder, ref: Blob | dict[str, Any]) -> bytes | None:
    """As `read_blob`, for who can do without: None where a public copy leaves it out.

    Raises:
        Refusal: `evidence_damaged`, `evidence_unreadable`.
    """
    try:
        return read_blob(run, ref)
    except Refusal as refusal:
        if refusal.reason is not Reason.EVIDENCE_WITHHELD:
            raise
        return None


def _content(run: RunFolder, blob: Blob) -> bytes:
    try:
        with open_regular(run.path / blob.path) as file:
            file.seek(blob.offset)
            stored = file.read(blob.length if blob.pack is not None else blob.size)
    except OSError as error:
        raise unreadable("a blob", blob.path, error) from error
    if blob.pack is not None:
        _check_digest(blob, stored, blob.stored_sha256)
    content = _unpacked(blob, stored)
    _check_digest(blob, content, blob.blob)
    return content


def _check_digest(blob: Blob, data: bytes, required: str) -> None:
    digest = hashlib.sha256(data).hexdigest()
    if digest != required:
        raise damaged("a blob is not what was written", blob.path, observed=digest, required=required)


def _unpacked(blob: Blob, stored: bytes) -> bytes:
    if blob.encoding == "raw":
        return stored
    unpacker = zlib.decompressobj(_GZIP)
    try:
        content = unpacker.decompress(stored, blob.size + 1)
    except zlib.error as error:
        raise damaged(f"a frame is not gzip: {error}", blob.path) from error
    if not unpacker.eof or unpacker.unused_data:
        raise damaged("a frame is more or less than one gzip stream of its size", blob.path)
    return content
