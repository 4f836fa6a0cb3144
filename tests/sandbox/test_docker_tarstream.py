"""Archives as streams: what Python's and our own writers make is read back, and what is damaged is refused."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.sandbox.docker.tarstream import END, Entry, Kind, Malformed, TarReader, header, padding


class Bytes:
    """A source that gives at most `most` bytes at once."""

    def __init__(self, data: bytes, most: int = 1 << 20) -> None:
        self._file, self._most = io.BytesIO(data), most

    async def read(self, n: int = -1) -> bytes:
        return self._file.read(min(n, self._most) if n >= 0 else self._most)


async def entries(data: bytes, most: int = 1 << 20) -> list[tuple[Entry, bytes]]:
    reader = TarReader(Bytes(data, most))
    found = []
    while (entry := await reader.next()) is not None:
        content = b""
        while piece := await reader.read():
            content += piece
        found.append((entry, content))
    return found


NAMES = st.binary(min_size=1, max_size=300).map(
    lambda raw: (
        "/".join(part for part in raw.replace(b"\0", b"x").decode("utf-8", "surrogateescape").split("/") if part) or "x"
    )
)


@given(
    st.lists(st.tuples(NAMES, st.binary(max_size=2000), st.integers(0, 0o7777), st.integers(0, 2**31)), max_size=6),
    st.integers(1, 700),
)
@settings(max_examples=60, deadline=None)
async def test_what_is_written_is_read_back(files: list[tuple[str, bytes, int, int]], most: int) -> None:
    data = b"".join(
        header(name, Kind.FILE, mode=mode, uid=uid, gid=uid, mtime=1, size=len(content))
        + content
        + padding(len(content))
        for name, content, mode, uid in files
    )
    found = await entries(data + END, most)
    assert [(entry.name, content, entry.mode, entry.uid, entry.gid) for entry, content in found] == [
        (name, content, mode, uid, uid) for name, content, mode, uid in files
    ]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
async def test_what_others_write_is_read(form: int) -> None:
    long = "d" * 90 + "/" + "n" * 60
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as archive:
        for name, kind in (
            ("folder", tarfile.DIRTYPE),
            ("pipe", tarfile.FIFOTYPE),
            ("device", tarfile.CHRTYPE),
            ("again", tarfile.LNKTYPE),
            ("link", tarfile.SYMTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "to/where" if kind in (tarfile.LNKTYPE, tarfile.SYMTYPE) else ""
            archive.addfile(info)
        info = tarfile.TarInfo(long)
        info.size = 5
        archive.addfile(info, io.BytesIO(b"12345"))
    found = await entries(made.getvalue())
    assert [(entry.name.rstrip("/"), entry.kind, entry.to) for entry, _ in found] == [
        ("folder", Kind.FOLDER, ""),
        ("pipe", Kind.SPECIAL, ""),
        ("device", Kind.SPECIAL, ""),
        ("again", Kind.HARD_LINK, "to/where"),
        ("link", Kind.LINK, "to/where"),
        (long, Kind.FILE, ""),
    ]
    assert found[-1][1] == b"12345"


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
async def test_long_and_large_things_are_read(form: int) -> None:
    name, to = "n" * 3000 + "ü", "t" * 2000
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.uid = tarfile.SYMTYPE, to, 2**31
    huge = tarfile.TarInfo("huge")
    huge.size = 2**41
    data = info.tobuf(form, "utf-8", "surrogateescape") + huge.tobuf(form)
    reader = TarReader(Bytes(data))
    first = await reader.next()
    assert first is not None and (first.name, first.to, first.uid) == (name, to, 2**31)
    second = await reader.next()
    assert second is not None and second.size == reader.left == 2**41


async def test_what_is_not_read_is_passed_over() -> None:
    data = header("a", Kind.FILE, mode=0, uid=0, gid=0, mtime=0, size=700) + b"x" * 700 + padding(700)
    data += header("b", Kind.FOLDER, mode=0, uid=0, gid=0, mtime=0) + END
    reader = TarReader(Bytes(data, 100))
    assert (await reader.next() or data) and reader.left == 700
    second = await reader.next()
    assert second is not None and (second.name, second.kind) == ("b/", Kind.FOLDER)
    assert await reader.next() is None


WHOLE = header("a", Kind.FILE, mode=0o644, uid=0, gid=0, mtime=0, size=700) + b"x" * 700 + padding(700) + END


@pytest.mark.parametrize("cut", [1, 511, 513, 1211, 1213, 1535])
async def test_what_breaks_off_is_malformed(cut: int) -> None:
    with pytest.raises(Malformed):
        await entries(WHOLE[:cut])


@given(st.binary(max_size=3000))
@settings(max_examples=80, deadline=None)
async def test_any_bytes_are_an_archive_or_malformed(data: bytes) -> None:
    try:
        found = await entries(data)
    except Malformed:
        return
    assert found == []  # no header of noise has a sum that fits


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
@settings(max_examples=120, deadline=None)
async def test_one_wrong_byte_is_malformed_or_content(at: int, by: int) -> None:
    damaged = bytearray(WHOLE)
    damaged[at] = (damaged[at] + by) % 256
    try:
        found = await entries(bytes(damaged))
    except Malformed:
        return
    assert at >= 512 or not found or found[0][1] == b"x" * 700


@pytest.mark.parametrize(
    "records",
    [
        b"5 a=b\n",
        b"x path=a\n",
        b"99 path=a\n",
        b" path=a\n",
        b"7 path\n",
        b"0 a=b\n",
        b"34 size=" + b"9" * 25 + b"\n",
        b"11 size=-1\n",
    ],
)
async def test_extended_headers_that_lie_are_malformed(records: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = b"x", len(records)
    data = info.tobuf(tarfile.USTAR_FORMAT) + records + padding(len(records))
    with pytest.raises(Malformed):
        await entries(data + WHOLE)


async def test_names_without_bound_are_malformed() -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = b"L", 2**30
    with pytest.raises(Malformed):
        await entries(info.tobuf(tarfile.GNU_FORMAT) + b"n" * 4096)
