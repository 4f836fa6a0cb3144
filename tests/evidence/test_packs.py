"""Blobs: where they go, how they come back, and what is no blob reference."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disks import UnsyncedDisk
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import packs
from proctor.evidence.packs import MAX_FRAME_CONTENT, Blob, Packs
from proctor.evidence.reader import read_blob
from proctor.evidence.runfolder import RunFolder

DIGEST = hashlib.sha256(b"content").hexdigest()
FRAME: dict[str, Any] = {
    "blob": DIGEST,
    "size": 7,
    "pack": "0001.pack",
    "offset": 0,
    "length": 7,
    "encoding": "raw",
    "stored_sha256": DIGEST,
}
FILE: dict[str, Any] = {"blob": DIGEST, "size": 7, "path": f"blobs/{DIGEST[:2]}/{DIGEST}"}


def _open(path: Path) -> tuple[RunFolder, Packs]:
    run = RunFolder(path, disk=UnsyncedDisk())
    run.packs.mkdir(parents=True)
    return run, Packs(run, 0, 0)


def _keep(store: Packs, *contents: bytes) -> list[Blob]:
    staged = store.stage({f"field{index:02}": content for index, content in enumerate(contents)})
    store.take(staged)
    store.flush()
    return [staged.refs[name] for name in sorted(staged.refs)]


@settings(max_examples=40, deadline=None)
@given(groups=st.lists(st.lists(st.binary(max_size=3000), min_size=1, max_size=4), max_size=6))
def test_frames_lie_in_order_without_gaps_and_come_back(
    groups: list[list[bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, store = _open(tmp_path_factory.mktemp("run"))
    end, seen = 0, set()
    for contents in groups:
        for ref, content in zip(_keep(store, *contents), contents, strict=True):
            assert read_blob(run, ref) == content
            assert Blob.parse(ref.as_record()) == ref
            if ref.blob not in seen:
                assert (ref.pack, ref.offset) == ("0001.pack", end)
                end += ref.length
            seen.add(ref.blob)
    store.close()
    pack = run.packs / "0001.pack"
    assert end == (pack.stat().st_size if pack.exists() else 0)


def test_what_was_only_staged_takes_no_place(tmp_path: Path) -> None:
    run, store = _open(tmp_path)
    store.stage({"field": b"never taken"})
    [ref] = _keep(store, b"taken")
    store.close()
    assert ref.offset == 0
    assert (run.packs / "0001.pack").read_bytes() == b"taken"


def test_over_one_mebibyte_a_blob_is_a_file(tmp_path: Path) -> None:
    run, store = _open(tmp_path)
    small, large = _keep(store, bytes(MAX_FRAME_CONTENT), bytes(MAX_FRAME_CONTENT + 1))
    store.close()
    assert (small.pack, large.pack) == ("0001.pack", None)
    assert (tmp_path / large.path).stat().st_size == MAX_FRAME_CONTENT + 1
    assert len(read_blob(run, large)) == MAX_FRAME_CONTENT + 1


def test_a_full_pack_is_followed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "MAX_PACK_BYTES", 10)
    run, store = _open(tmp_path)
    contents = [b"aaaaaa", b"bbbb", b"c", b"longer than a pack", b"d"]
    refs = _keep(store, *contents)
    store.close()
    assert [(ref.pack, ref.offset) for ref in refs] == [
        ("0001.pack", 0),
        ("0001.pack", 6),
        ("0002.pack", 0),
        ("0003.pack", 0),
        ("0004.pack", 0),
    ]
    assert [read_blob(run, ref) for ref in refs] == contents


def test_memory_of_earlier_blobs_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "REMEMBERED", 2)
    _, store = _open(tmp_path)
    first, second, third = _keep(store, b"first", b"second", b"third")
    assert _keep(store, b"second", b"third") == [second, third]
    assert _keep(store, b"first") != [first]
    store.close()


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "text",
        {},
        {**FRAME, "more": 1},
        {key: value for key, value in FRAME.items() if key != "encoding"},
        {**FRAME, "blob": DIGEST.upper()},
        {**FRAME, "blob": DIGEST[:-1]},
        {**FRAME, "size": True},
        {**FRAME, "size": -1},
        {**FRAME, "offset": 0.0},
        {**FRAME, "length": "7"},
        {**FRAME, "pack": "../../etc/passwd"},
        {**FRAME, "pack": "0001.pack\n"},
        {**FRAME, "pack": 1},
        {**FRAME, "encoding": "zstd"},
        {**FRAME, "encoding": []},
        {**FRAME, "stored_sha256": DIGEST[:-1]},
        {**FILE, "path": "../../etc/passwd"},
        {**FILE, "path": f"blobs/00/{DIGEST}"},
    ],
)
def test_what_is_no_blob_reference_is_none(value: Any, tmp_path: Path) -> None:
    assert Blob.parse(value) is None
    with pytest.raises(Refusal) as refused:
        read_blob(RunFolder(tmp_path), value)
    assert refused.value.reason is Reason.EVIDENCE_DAMAGED


@pytest.mark.parametrize(
    ("stored", "encoding"),
    [
        (b"cOntent", "raw"),
        (b"conten", "raw"),
        (b"no gzip", "gzip"),
        (gzip.compress(b"content")[:-3], "gzip"),
        (gzip.compress(b"content") + b"more", "gzip"),
        (gzip.compress(b"content" * 1_000_000), "gzip"),
    ],
    ids=["changed", "short", "no gzip", "cut gzip", "more after the gzip", "bomb"],
)
def test_a_frame_that_is_not_what_was_written_is_damage(tmp_path: Path, stored: bytes, encoding: str) -> None:
    run, _ = _open(tmp_path)
    (run.packs / "0001.pack").write_bytes(stored)
    as_stored = DIGEST if encoding == "raw" else hashlib.sha256(stored).hexdigest()
    blob = Blob(DIGEST, 20_000, "0001.pack", 0, 7 if encoding == "raw" else len(stored), encoding, as_stored)
    with pytest.raises(Refusal) as refused:
        read_blob(run, blob)
    assert (refused.value.reason, refused.value.path) == (Reason.EVIDENCE_DAMAGED, "packs/0001.pack")


def test_a_frame_that_decodes_to_the_same_is_still_not_what_was_written(tmp_path: Path) -> None:
    run, store = _open(tmp_path)
    content = b"the same text again and again\n" * 40
    [ref] = _keep(store, content)
    store.close()
    pack = run.packs / "0001.pack"
    stored = bytearray(pack.read_bytes())
    assert ref.encoding == "gzip"
    # the byte that names an operating system
    stored[9] ^= 0xFF
    pack.write_bytes(stored)
    assert gzip.decompress(stored) == content
    with pytest.raises(Refusal) as refused:
        read_blob(run, ref)
    assert (refused.value.reason, refused.value.required) == (Reason.EVIDENCE_DAMAGED, ref.stored_sha256)


def test_a_blob_whose_file_is_gone_cannot_be_read(tmp_path: Path) -> None:
    run, _ = _open(tmp_path)
    with pytest.raises(Refusal) as refused:
        read_blob(run, FILE)
    assert refused.value.reason is Reason.EVIDENCE_UNREADABLE
