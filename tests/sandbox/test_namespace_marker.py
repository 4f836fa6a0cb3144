"""Whose folders are whose: a live run's are never touched, a dead one's are removed."""

from __future__ import annotations

import json
import signal
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


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1}', "\x00", "[" * 100_000])
def test_what_is_no_marker_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/marker.json").write_text(text)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert marker.prune(tmp_path) == [] and (tmp_path / "folder").is_dir()
    assert marker.prune(tmp_path / "none") == []


def test_a_dead_process_that_nobody_waited_for_leaves_what_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        started = int(stat.read_bytes().rpartition(b")")[2].split()[19])
        left = make(tmp_path / "world", pid=process.pid, started=started)
        assert marker.prune(tmp_path) == [] and left.is_dir()
        process.kill()
        assert marker.prune(tmp_path, 600) == [str(left)]
        assert b") Z " in stat.read_bytes()


def test_what_runs_in_a_dead_runs_world_is_ended_first(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1000"]) as init:
        left = make(tmp_path / "world", pid=dead_pid())
        marker.note_init(left, init.pid)
        assert marker.prune(tmp_path) == [str(left)]
        assert init.wait(600) == -signal.SIGKILL


def test_a_group_that_stays_keeps_the_folder_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marker, "_GROUP_SEC", 0.05)
    group = tmp_path / "group"
    (group / "busy").mkdir(parents=True)
    left = make(tmp_path / "scratch/world", pid=dead_pid(), groups=[str(group)])
    assert marker.prune(tmp_path / "scratch") == [] and (left / "marker.json").is_file()
    (group / "busy").rmdir()
    assert marker.prune(tmp_path / "scratch") == [str(group), str(left)] and not left.exists()


def test_words_name_no_place_of_the_host_but_usr(tmp_path: Path) -> None:
    mounts = [Mount("root", "/", ("/mnt/l/0/root",)), Mount("usr", "/usr", ("/usr", "/mnt/l/0/usr"))]
    said = words(mounts, base="/mnt", share_net=False, shm_bytes=1 << 20)
    assert not any(str(tmp_path) in word or str(Path.cwd()) in word for word in said)
    assert "--unshare-net" in said and said.index("/usr") < said.index("/mnt/l/0/usr")
    assert "--unshare-net" not in words(mounts, base="/mnt", share_net=True, shm_bytes=1 << 20)


def test_a_covered_folder_holds_nothing_that_is_needed() -> None:
    first = covered()
    assert Path(first).is_dir() and covered(Path(first) / "tool/bin") != first


def test_a_process_that_just_ended_is_never_taken_for_our_own_group(tmp_path: Path) -> None:
    """The kernel lists such a process of a group as 0."""
    group = tmp_path / "group"
    group.mkdir()
    (group / "cgroup.procs").write_text("0\n")
    program = (
        "from pathlib import Path\n"
        "from proctor.sandbox.namespace import marker\n"
        "marker._GROUP_SEC = 0.05\n"
        f"marker._end_group(Path({str(group)!r}))\n"
        "print('alive')\n"
    )
    environ = {"PYTHONPATH": str(Path(marker.__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, start_new_session=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
