"""A build's context: which files are in its archive, and that the same files give the same bytes."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.docker.context import archive


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first = fill(tmp_path / "one", "Dockerfile", "b/c", "a", "z/y/x")
    second = fill(tmp_path / "two", "z/y/x", "a", "b/c", "Dockerfile")
    os.utime(second / "a", (5, 5))
    for folder in (first, second):
        (folder / "a").chmod(0o755)
        (folder / "link").symlink_to("b/c")
    assert b"".join(archive(first, {})) == b"".join(archive(second, {}))
    (second / "a").chmod(0o644)
    assert b"".join(archive(first, {})) != b"".join(archive(second, {}))


def test_members_are_sorted_and_nobodys(tmp_path: Path) -> None:
    fill(tmp_path, "Dockerfile", "b/c", "a")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with tarfile.open(fileobj=io.BytesIO(b"".join(archive(tmp_path, {})))) as found:
        assert found.getnames() == ["Dockerfile", "a", "b", "b/c", "link"]
        assert {(member.uid, member.gid, member.mtime) for member in found} == {(0, 0, 946_684_800)}
        assert found.getmember("link").linkname == "/etc/passwd"


def test_special_files_are_refused_and_unreadable_ones_named(tmp_path: Path) -> None:
    fill(tmp_path, "Dockerfile")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refusal) as refused:
        list(archive(tmp_path, {}))
    assert refused.value.reason is Reason.PATH_UNSAFE and "pipe" in refused.value.message
    with pytest.raises(Refusal) as refused:
        list(archive(tmp_path / "none", {}))
    assert refused.value.reason is Reason.FILE_UNREADABLE


def test_other_files_can_stand_instead(tmp_path: Path) -> None:
    fill(tmp_path, "Dockerfile", "a")
    with tarfile.open(fileobj=io.BytesIO(b"".join(archive(tmp_path, {"a": b"x" * 513, "new": b""})))) as found:
        assert sorted(found.getnames()) == ["Dockerfile", "a", "new"]
        said = {name: file.read() for name in found.getnames() if (file := found.extractfile(name)) is not None}
    assert said == {"Dockerfile": b"Dockerfile", "a": b"x" * 513, "new": b""}
