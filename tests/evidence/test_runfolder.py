"""The run folder, its manifests, and its lock."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from disks import FailingDisk
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.lock import Lock, LockInfo, opening, read_lock
from proctor.evidence.runfolder import RunFolder

SOURCES = Path(__file__).resolve().parents[2] / "src"

HOLDER = """
import sys
from pathlib import Path
from proctor.core.refusal import Refusal
from proctor.evidence.lock import Lock
from proctor.evidence.runfolder import RunFolder
try:
    lock = Lock.acquire(RunFolder(Path(sys.argv[1])), extra={"control": "/run/x.sock"})
except Refusal as refusal:
    print(refusal.reason.id, refusal.observed["pid"], flush=True)
else:
    print("held", flush=True)
    sys.stdin.read()
"""


def _holder(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )


def _end(process: subprocess.Popen[str]) -> None:
    with process:
        process.communicate(timeout=600)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_making_a_run_folder_object_touches_nothing(tmp_path: Path) -> None:
    assert not RunFolder(tmp_path / "run").is_admitted()
    assert list(tmp_path.iterdir()) == []


def test_create_makes_parents_and_takes_what_is_there(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "a" / "b")
    run.create()
    run.create()
    assert run.path.is_dir()


@pytest.mark.parametrize("name", ["file", "file/below", "n" * 300])
def test_a_folder_that_cannot_be_made_refuses(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal) as refused:
        RunFolder(tmp_path / name).create()
    assert refused.value.reason is Reason.OUT_UNUSABLE


def test_a_folder_that_cannot_be_looked_into_refuses(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        RunFolder(tmp_path / ("n" * 300)).is_admitted()
    assert refused.value.reason is Reason.OUT_UNUSABLE


def test_a_small_file_is_replaced_whole(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.write_atomic("deep/er/file.json", b"old")
    ref = run.write_atomic("deep/er/file.json", b"new one")
    assert (ref.path, ref.size) == ("deep/er/file.json", 7)
    assert (tmp_path / "deep/er/file.json").read_bytes() == b"new one"
    assert [path.name for path in (tmp_path / "deep/er").iterdir()] == ["file.json"]


@pytest.mark.parametrize(("code", "reason"), [(errno.ENOSPC, Reason.DISK_FULL), (errno.EIO, Reason.WRITE_FAILED)])
def test_a_file_that_cannot_be_written_leaves_the_old_one_and_no_draft(
    tmp_path: Path, code: int, reason: Reason
) -> None:
    disk = FailingDisk(code)
    run = RunFolder(tmp_path, disk=disk)
    run.write_atomic("file.json", b"old")
    for disk.fail_after in (0, 1):
        with pytest.raises(Refusal) as refused:
            run.write_atomic("file.json", b"new one")
        assert (refused.value.reason, refused.value.path) == (reason, "file.json")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file.json": b"old"}


def test_manifests_are_numbered_and_rewritten_once(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert run.manifests() == []
    first = run.new_manifest({"verdict": "pending"})
    second = run.new_manifest({"verdict": "pending"})
    final = first.rewrite({"verdict": "refused"})
    assert (first.path, second.path) == ("manifests/0001.json", "manifests/0002.json")
    assert final == first.file
    assert [(m.file.path, m.pending) for m in run.manifests()] == [(first.path, False), (second.path, True)]
    assert run.manifests()[0].file == final
    with pytest.raises(RuntimeError):
        first.rewrite({"verdict": "admitted"})


def test_invocations_at_once_get_a_manifest_each(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)

    def invoke(number: int) -> str:
        barrier.wait(timeout=600)
        return RunFolder(tmp_path).new_manifest({"number": number}).path

    with ThreadPoolExecutor(8) as threads:
        paths = list(threads.map(invoke, range(8)))
    assert sorted(paths) == [f"manifests/{number:04d}.json" for number in range(1, 9)]
    bodies = {m.file.path: m.body for m in RunFolder(tmp_path).manifests()}
    assert bodies == {path: {"number": number} for number, path in enumerate(paths)}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a":1,"a":2}', b"\xff"])
def test_a_manifest_that_cannot_be_read_has_no_body_and_no_verdict(tmp_path: Path, content: bytes) -> None:
    run = RunFolder(tmp_path)
    run.new_manifest({})
    (tmp_path / "manifests/0001.json").write_bytes(content)
    [manifest] = run.manifests()
    assert (manifest.body, manifest.pending) == (None, True)
    assert run.new_manifest({}).path == "manifests/0002.json"


def test_other_names_are_no_manifests(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.new_manifest({})
    for name in ("1.json", ".0002.json.abc", "0002.json.bak", "abcd.json"):
        (run.manifests_dir / name).write_bytes(b"{}")
    (run.manifests_dir / "0003.json").mkdir()
    (run.manifests_dir / "0004.json").symlink_to("0001.json")
    os.mkfifo(run.manifests_dir / "0005.json")
    assert [manifest.file.path for manifest in run.manifests()] == ["manifests/0001.json"]


def test_of_six_processes_one_writes_and_the_others_are_told_who(tmp_path: Path) -> None:
    processes = [_holder(tmp_path) for _ in range(6)]
    try:
        said = [_line(process) for process in processes]
        holder = processes[said.index("held")]
        assert sorted(said) == ["held", *[f"run_locked {holder.pid}"] * 5]
    finally:
        for process in processes:
            _end(process)


def test_readers_tell_a_live_writer_from_a_dead_one(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert read_lock(run) == LockInfo(live=False)
    process = _holder(tmp_path)
    try:
        assert _line(process) == "held"
        live = read_lock(run)
        assert (live.live, live.pid, live.control, live.same_boot) == (True, process.pid, "/run/x.sock", True)
    finally:
        process.kill()
        _end(process)
    dead = read_lock(run)
    assert (dead.live, dead.pid) == (False, process.pid)
    Lock.acquire(run, extra={}).release()
    assert read_lock(run).pid == os.getpid()


def test_a_writer_that_meets_a_reader_gets_the_lock(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    Lock.acquire(run, extra={}).release()
    stop, reads = threading.Event(), threading.Event()

    def read() -> None:
        while not stop.is_set():
            read_lock(run)
            reads.set()

    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(read)
        try:
            assert reads.wait(600)
            for _ in range(50):
                Lock.acquire(run, extra={}).release()
        finally:
            stop.set()
        reading.result(timeout=600)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", json.dumps({"pid": True, "host": 3}).encode()])
def test_a_lock_that_says_nonsense_is_no_traceback(tmp_path: Path, content: bytes) -> None:
    run = RunFolder(tmp_path)
    run.lock_path.write_bytes(content)
    assert read_lock(run) == LockInfo(live=False)


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    target = tmp_path / "target"
    target.write_text("precious")
    run.lock_path.symlink_to(target)
    with pytest.raises(Refusal):
        Lock.acquire(run, extra={})
    assert target.read_text() == "precious"


def test_an_opening_says_who_writes() -> None:
    facts: dict[str, Any] = opening()
    assert sorted(facts) == ["boot_id", "host", "pid", "version"]
    assert facts["pid"] == os.getpid()


@pytest.mark.parametrize("steps", range(4))
def test_files_that_belong_together_are_written_together_or_not_at_all(steps: int, tmp_path: Path) -> None:
    disk = FailingDisk()
    run = RunFolder(tmp_path, disk=disk)
    run.write_together({"a.json": b"old", "b.json": b"old"})
    disk.fail_after = steps
    with pytest.raises(Refusal) as refused:
        run.write_together({"a.json": b"new", "b.json": b"new"})
    assert (refused.value.reason, refused.value.path) == (Reason.DISK_FULL, "a.json, b.json")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.json": b"old", "b.json": b"old"}
    disk.fail_after = None
    files = run.write_together({"a.json": b"new", "b.json": b"new"})
    assert [(file.path, (tmp_path / file.path).read_bytes()) for file in files] == [
        ("a.json", b"new"),
        ("b.json", b"new"),
    ]
