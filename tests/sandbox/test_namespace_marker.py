"""Whose folders are whose: a live run's are never touched, a dead one's are removed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.sandbox.namespace import marker
from proctor.sandbox.namespace.command import Mount, covered, words


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


def make(folder: Path, **changes: object) -> Path:
    (folder / "u/root").mkdir(parents=True)
    marker.write(folder, "label", ())
    path = folder / "marker.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


@pytest.mark.parametrize(
    "changes", [{"pid": dead_pid()}, {"boot": "another boot"}, {"pid": 1, "started": -1}, {"started": 1}]
)
def test_what_a_dead_process_left_is_removed(tmp_path: Path, changes: dict[str, object]) -> None:
    group = tmp_path / "group"
    group.mkdir()
    left = make(tmp_path / "scratch/run/world", **changes, groups=[str(group)])
    assert marker.prune(tmp_path / "scratch") == [str(group), str(left)]
    assert not left.exists() and not group.exists()


@pytest.mark.parametrize("changes", [{}, {"host": "another host", "pid": 1}])
def test_what_may_live_stays(tmp_path: Path, changes: dict[str, object]) -> None:
    left = make(tmp_path / "world", **changes)
    assert marker.prune(tmp_path) == [] and left.is_dir()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1}', "\x00"])
def test_what_is_no_marker_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/marker.json").write_text(text)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert marker.prune(tmp_path) == [] and (tmp_path / "folder").is_dir()
    assert marker.prune(tmp_path / "none") == []


def test_words_name_no_place_of_the_host_but_usr(tmp_path: Path) -> None:
    mounts = [Mount("root", "/", ("/mnt/l/0/root",)), Mount("usr", "/usr", ("/usr", "/mnt/l/0/usr"))]
    said = words(mounts, base="/mnt", share_net=False, shm_bytes=1 << 20)
    assert not any(str(tmp_path) in word or str(Path.cwd()) in word for word in said)
    assert "--unshare-net" in said and said.index("/usr") < said.index("/mnt/l/0/usr")
    assert "--unshare-net" not in words(mounts, base="/mnt", share_net=True, shm_bytes=1 << 20)


def test_a_covered_folder_holds_nothing_that_is_needed() -> None:
    first = covered()
    assert Path(first).is_dir() and covered(Path(first) / "tool/bin") != first
