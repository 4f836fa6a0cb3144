"""The list of a public copy, as the second program reads it: in pieces, exactly, and whatever stands there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plants_withheld import LIST, withhold
from primitives import Body, canonical, sha256
from stories import full_story

from proctor_verify import Report, Status, verify
from proctor_verify.folder import Folder
from proctor_verify.withheld import Withheld

_DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)
_SIZES = st.integers(0, 2**53 - 1)
_PATHS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40)


def _written(folder: Path, blobs: dict[str, int], files: dict[str, tuple[str, int]]) -> bytes:
    value = {
        "blobs": [{"blob": blob, "size": size} for blob, size in sorted(blobs.items())],
        "files": [{"path": path, "sha256": sha, "size": size} for path, (sha, size) in sorted(files.items())],
        "format": 1,
    }
    (folder / LIST).write_bytes(canonical(value))
    return canonical(value)


def _read(folder: Path) -> Withheld:
    opened = Folder(folder)
    try:
        return Withheld.read(opened)
    finally:
        opened.close()


@settings(max_examples=60, deadline=None)
@given(
    blobs=st.dictionaries(_DIGESTS, _SIZES, max_size=20),
    files=st.dictionaries(_PATHS, st.tuples(_DIGESTS, _SIZES), max_size=8),
    cut=st.integers(0, 10**6),
)
def test_what_is_listed_is_read_and_nothing_else(
    blobs: dict[str, int], files: dict[str, tuple[str, int]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("copy")
    data = _written(folder, blobs, files)
    found = _read(folder)
    assert (found.fault, found.bodies) == (None, len(blobs) + len(files))
    assert found.size == sum(blobs.values()) + sum(size for _, size in files.values())
    assert found.files == files
    assert all(found.name_blob(blob, size) for blob, size in blobs.items())
    assert not found.has_blob(sha256(data))
    for path, (digest, size) in files.items():
        found.name_file(path, digest, size)
    assert list(found.unnamed()) == []

    (folder / LIST).write_bytes(data[: cut % len(data)])
    assert _read(folder).fault is not None


def test_a_list_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    blobs = {sha256(b"%d" % number): number for number in range(30_000)}
    assert len(_written(tmp_path, blobs, {})) > 2 << 20
    found = _read(tmp_path)
    assert (found.fault, found.bodies) == (None, 30_000)
    assert all(found.has_blob(blob) for blob in list(blobs)[:100])
    assert sum(1 for _ in found.unnamed()) == 30_000


_HOSTILE = {
    "nothing": b"",
    "zeros": bytes(1 << 22),
    "deep": b"[" * 1_000_000,
    "a list of numbers": b'{"blobs":[1],"files":[],"format":1}',
    "a true size": b'{"blobs":[{"blob":"%s","size":true}],"files":[],"format":1}' % (b"0" * 64),
    "a size of a million digits": b'{"blobs":[{"blob":"%s","size":%s}]' % (b"0" * 64, b"9" * 1_000_000),
    "a path without an end": b'{"blobs":[],"files":[{"path":"' + b"x" * 5_000_000,
    "a lone surrogate": rb'{"blobs":[],"files":[{"path":"\ud800","sha256":"%s","size":1}],"format":1}' % (b"0" * 64),
    "no UTF-8": b'{"blobs":[],"files":[{"path":"\xff","sha256":"%s","size":1}],"format":1}' % (b"0" * 64),
    "a path spelt in another way": rb'{"blobs":[],"files":[{"path":"\u0061","sha256":"%s","size":1}],"format":1}'
    % (b"0" * 64),
    "twice": b'{"blobs":[],"files":[],"format":1}{"blobs":[],"files":[],"format":1}',
    "a comma more": b'{"blobs":[],"files":[],"format":1,}',
}


def _report(folder: Path) -> Report:
    full_story().write(folder)
    withhold(folder)
    return verify(folder, full_story().signer.fingerprint)


def _of(report: Report, check: str) -> Status:
    return next(result.status for result in report.results if result.check == check)


@pytest.mark.parametrize("what", _HOSTILE)
def test_a_list_that_is_none(what: str, tmp_path: Path) -> None:
    _report(tmp_path)
    (tmp_path / LIST).write_bytes(_HOSTILE[what])
    report = verify(tmp_path, full_story().signer.fingerprint)
    assert report.failed() == ["withheld.named"]
    assert _of(report, "packs.frames") is Status.CANNOT_TELL


def test_something_else_in_the_place_of_the_list(tmp_path: Path) -> None:
    _report(tmp_path)
    for make in (os.mkfifo, Path.mkdir, lambda path: path.symlink_to("design.json")):
        (tmp_path / LIST).unlink(missing_ok=True)
        make(tmp_path / LIST)
        report = verify(tmp_path, full_story().signer.fingerprint)
        assert report.failed() == ["files.unlisted"]
        assert _of(report, "withheld.named") is Status.CANNOT_TELL
        if (tmp_path / LIST).is_dir() and not (tmp_path / LIST).is_symlink():
            (tmp_path / LIST).rmdir()


def test_a_run_without_a_list_is_no_copy(tmp_path: Path) -> None:
    full_story().write(tmp_path)
    report = verify(tmp_path, full_story().signer.fingerprint)
    assert _of(report, "withheld.named") is Status.NOT_APPLICABLE
    assert not any("withheld" in caveat for caveat in report.caveats)


def test_a_copy_that_leaves_nothing_out_is_sound(tmp_path: Path) -> None:
    full_story().write(tmp_path)
    empty: Body = {"blobs": [], "files": [], "format": 1}
    (tmp_path / LIST).write_bytes(canonical(empty))
    report = verify(tmp_path, full_story().signer.fingerprint)
    assert report.exit_status == 0
    assert "not shown: 0 bodies (0 bytes) are withheld in this copy" in report.caveats
