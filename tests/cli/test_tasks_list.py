"""proctor tasks list: a line for each thing found, and why what looks like a task is none."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, file, text in (
        ("good", "task.toml", '[task]\nname = "mine/good\\u001b"\n'),
        ("good", "instruction.md", "Do it.\n"),
        ("later", "task.yaml", "instruction: x\n"),
        ("broken", "task.toml", "[task\n"),
    ):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / file).write_text(text)
    return tmp_path


def test_a_line_for_each_thing_found(proctor, folder: Path) -> None:
    (folder / "good/task.toml").write_text('[task]\nname = "mine/good"\n')
    said = proctor("tasks", "list", folder)
    head, *rows = said.out.splitlines()
    assert head.split() == ["name", "is", "digest", "path"]
    listed = {row.split("/")[-1]: row for row in rows}
    assert listed.keys() == {"good", "later", "broken"}
    assert listed["good"].startswith("mine/good ") and "harbor" in listed["good"]
    assert "Terminal-Bench task.yaml, for a later version" in listed["later"]
    assert said.status == 3 and said.err.count("refused: ") == 1 and "refused: task_unreadable" in said.err


def test_a_name_that_steers_a_terminal_is_no_name(proctor, folder: Path) -> None:
    said = proctor("tasks", "list", folder / "good")
    assert said.status == 3 and "\x1b" not in said.out + said.err
