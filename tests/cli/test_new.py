"""proctor new: a study that works, and nothing overwritten."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from proctor.study import load_study
from proctor.tasks.discover import discover
from proctor.tasks.reading import read_task


def test_what_it_writes_is_a_study_without_a_fault(proctor, tmp_path: Path) -> None:
    said = proctor("new", tmp_path / "my study!")
    assert said.status == 0 and "proctor run" in said.out
    loaded = load_study(tmp_path / "my study!")
    assert not loaded.refusals and loaded.file is not None
    assert loaded.file.study.name == "my-study" and list(loaded.file.arms) == ["plain", "hinted"]
    (found,) = discover([tmp_path / "my study!/tasks"])
    assert found.refusal is None
    task = read_task(found.path)
    assert task.name == "my-study/unique-words" and not task.unknown_keys


def test_its_tests_tell_its_solution_from_nothing(proctor, tmp_path: Path) -> None:
    proctor("new", tmp_path / "study")
    task = tmp_path / "study/tasks/unique-words"
    logs = tmp_path / "logs"
    (logs / "verifier").mkdir(parents=True)
    (logs / "words.txt").write_bytes((task / "environment/words.txt").read_bytes())

    def graded() -> str:
        return (logs / "verifier/reward.txt").read_text().strip()

    def run(script: Path) -> None:
        text = re.sub(r"/(app|logs)/", f"{logs}/", script.read_text())
        subprocess.run(["sh", "-c", text], check=True, timeout=600, capture_output=True)

    run(task / "tests/test.sh")
    assert graded() == "0"
    run(task / "solution/solve.sh")
    run(task / "tests/test.sh")
    assert graded() == "1"


def test_an_empty_folder_is_taken(proctor, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert proctor("new", tmp_path / "empty", "--json").json()["study"] == str(tmp_path / "empty/study.toml")


@pytest.mark.parametrize("name", ["file", "full", "link", "dangling"])
def test_nothing_is_overwritten(proctor, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = sorted(tmp_path.rglob("*"))
    said = proctor("new", tmp_path / name)
    assert said.status == 3 and "would_overwrite" in said.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_that_cannot_be_written(proctor, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = proctor("new", tmp_path / "file/below")
    assert said.status == 2 and "cannot be written" in said.err
