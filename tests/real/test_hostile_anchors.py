"""Repositories that would cost whoever looks at them time, memory or disk: a finding or cannot tell, within bounds."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "verify"))

from anchored import AnchoredStory, anchored_story

from proctor_verify import Status, verify
from proctor_verify.places import MAX_HEADS
from proctor_verify.repository import MAX_DISK

MEBI = 1 << 20


@pytest.fixture
def story(tmp_path: Path) -> AnchoredStory:
    made = anchored_story()
    made.write(tmp_path / "run")
    return made


@contextmanager
def imported(path: Path, level: int = 1) -> Iterator[IO[bytes]]:
    """A bare repository, made of what is fed to `git fast-import`; `level` is how hard that tries to make it small."""
    subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True, timeout=60)
    command = [
        "git",
        "-C",
        str(path),
        "-c",
        "core.bigFileThreshold=1m",
        "-c",
        f"core.compression={level}",
        "fast-import",
        "--quiet",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as importing:
        assert importing.stdin is not None
        yield importing.stdin
        importing.stdin.close()
        assert importing.wait(timeout=300) == 0


def commit(to: IO[bytes], story: AnchoredStory, size: int, content: Iterator[bytes]) -> None:
    to.write(b"commit refs/proctor/%b\ncommitter a <b> 1 +0000\ndata 0\n" % story.run_id.encode())
    to.write(b"M 100644 inline checkpoint\ndata %d\n" % size)
    to.writelines(content)
    to.write(b"\n")


def looked(folder: Path, there: Path) -> tuple[Status, str]:
    report = verify(folder, anchors=[str(there)])
    found = next(result for result in report.results if result.check == "anchors.remote")
    return found.status, " ".join([found.seen, *(finding.seen for finding in found.findings)])


def test_as_many_checkpoints_as_nobody_reads(story: AnchoredStory, tmp_path: Path) -> None:
    pushed = [push.note for push in story.made_at("git")]
    with imported(tmp_path / "many.git") as feed:
        for number in range(MAX_HEADS + 1):
            note = pushed[number % len(pushed)]
            commit(feed, story, len(note), iter([note]))
    status, seen = looked(tmp_path / "run", tmp_path / "many.git")
    assert status is Status.CANNOT_TELL and f"more than {MAX_HEADS:,}" in seen


def test_a_file_that_unpacks_to_more_than_fits(story: AnchoredStory, tmp_path: Path) -> None:
    size = 2 * MAX_DISK
    with imported(tmp_path / "zeros.git") as feed:
        commit(feed, story, size, (bytes(MEBI) for _ in range(size // MEBI)))
    status, seen = looked(tmp_path / "run", tmp_path / "zeros.git")
    assert status is Status.FAIL and f"has a checkpoint of {size:,} bytes" in seen


def test_a_file_that_is_too_large_to_fetch(
    story: AnchoredStory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = MAX_DISK // MEBI + 8
    with imported(tmp_path / "large.git", level=0) as feed:
        commit(feed, story, pieces * MEBI, (os.urandom(MEBI) for _ in range(pieces)))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    status, seen = looked(tmp_path / "run", tmp_path / "large.git")
    assert status is Status.CANNOT_TELL and "git fetch ended with" in seen and "MiB of disk" in seen
    assert not any((tmp_path / "scratch").iterdir())


def test_a_message_without_end(story: AnchoredStory, tmp_path: Path) -> None:
    note = story.made_at("git")[0].note
    with imported(tmp_path / "words.git") as feed:
        feed.write(b"commit refs/proctor/%b\ncommitter a <b> 1 +0000\n" % story.run_id.encode())
        feed.write(b"data %d\n" % (64 * MEBI))
        feed.writelines(b"x" * MEBI for _ in range(64))
        feed.write(b"\nM 100644 inline checkpoint\ndata %d\n%b\n" % (len(note), note))
    status, _ = looked(tmp_path / "run", tmp_path / "words.git")
    assert status in (Status.PASS, Status.CANNOT_TELL)
