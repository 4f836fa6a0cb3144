"""Finding tasks at paths, and choosing among them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.discover import Found, discover
from proctor.tasks.reading import read_task
from proctor.tasks.selection import duplicates, select
from proctor.tasks.task import Task

Make = Callable[..., Path]


def test_one_record_for_each_thing_found(folder: Make, tmp_path: Path) -> None:
    folder(name="set/b")
    folder(name="set/a")
    folder({"task.md": "x", "task.toml": ""}, name="set/both")
    folder({"task.md": "---\n---\nDo it."}, name="set/deep/er/document", minimal=False)
    folder({"task.yaml": "instruction: x"}, name="set/old", minimal=False)
    folder({"notes.txt": ""}, name="set/nothing/here", minimal=False)
    folder(name="set/.git/hidden")
    folder(name="set/a/environment/inner")
    (tmp_path / "set/README.md").write_text("")
    (tmp_path / "set/again").symlink_to("a")
    paths = [tmp_path / name for name in ("set", "set/a", "set/README.md", "set/nothing", "absent")]
    found = [(str(item.path.relative_to(tmp_path)), item.found, item.format) for item in discover(paths)]
    assert found == [
        ("set/a", Found.TASK, "harbor"),
        ("set/b", Found.TASK, "harbor"),
        ("set/both", Found.TASK, "harbor"),
        ("set/deep/er/document", Found.TASK, "benchflow"),
        ("set/old", Found.LATER_FORMAT, "Terminal-Bench task.yaml"),
        ("set/README.md", Found.PASSED_OVER, None),
        ("set/nothing", Found.NOTHING, None),
        ("absent", Found.NOTHING, None),
    ]
    refused = [item.refusal.reason for item in discover(paths) if item.refusal]
    assert refused == [Reason.TASK_FORMAT_LATER] + [Reason.TASK_NOT_FOUND] * 2


def test_a_named_link_to_a_task_is_a_task(folder: Make, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder(name="real"))
    assert [item.found for item in discover([tmp_path / "link"])] == [Found.TASK]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"task.md": "x"}, Reason.TASK_UNREADABLE),
        ({"task.yaml": "x"}, Reason.TASK_FORMAT_LATER),
        ({"README.md": "x"}, Reason.TASK_NOT_FOUND),
        ({"task.toml": ""}, Reason.TASK_UNREADABLE),
        ({"task.toml": "", "instruction.md": "\n \n"}, Reason.TASK_UNREADABLE),
        ({"task.toml": "", "instruction.md": b"\xff"}, Reason.TASK_UNREADABLE),
        ({"task.toml": "x = " + '"' + "y" * 2**20 + '"', "instruction.md": "x"}, Reason.TASK_UNREADABLE),
        ({"task.toml": "schema_version = '2.0'", "instruction.md": "x"}, Reason.TASK_FORMAT_LATER),
        ({"task.toml": "", "instruction.md": "x", "environment/Dockerfile": "RUN x"}, Reason.TASK_UNREADABLE),
        ({"task.toml": "", "instruction.md": "x", "environment/compose.yml": "["}, Reason.TASK_UNREADABLE),
        (
            {"task.toml": "", "instruction.md": "x", "environment/compose.yml": "services: {main: {build: .}}"},
            Reason.TASK_UNREADABLE,
        ),
        ({"task.toml": "", "instruction.md": "a\x00b"}, Reason.TASK_UNREADABLE),
        ({"task.toml": "", "instruction.md": "x", "environment/Dockerfile": "FROM a\x00"}, Reason.TASK_UNREADABLE),
        ({"task.toml": "", "instruction.md": "x", "tests": "not a folder"}, Reason.TASK_UNSAFE),
    ],
)
def test_what_cannot_be_read_says_why(folder: Make, files: dict[str, str | bytes], reason: Reason) -> None:
    with pytest.raises(Refusal) as refused:
        read_task(folder(files, minimal=False))
    assert refused.value.reason is reason
    assert refused.value.path


@pytest.mark.parametrize("name", ["x" * 300, "a\x00b"])
def test_paths_that_no_system_can_look_up_are_typed(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refusal):
        read_task(tmp_path / name)
    (found,) = discover([tmp_path / name])
    assert found.found is Found.NOTHING and found.refusal is not None


@pytest.mark.parametrize("kind", ["absent", "file"])
def test_no_folder_no_task(tmp_path: Path, kind: str) -> None:
    if kind == "file":
        (tmp_path / kind).write_text("")
    with pytest.raises(Refusal) as refused:
        read_task(tmp_path / kind)
    assert refused.value.reason is Reason.TASK_NOT_FOUND


def test_a_task_of_steps_needs_no_instruction_of_its_own(folder: Make) -> None:
    root = folder({"task.toml": "[[steps]]\nname = 'one'\nmin_reward = {a = 0.5}\n", "instruction.md": None})
    task = read_task(root)
    assert (task.instruction, len(task.toml.steps)) == ("", 1)


@pytest.fixture
def tasks(folder: Make) -> list[Task]:
    metadata = {"org/b": "easy = true\nn = 1", "org/a": "easy = false\nn = 1.0", "other/c": "easy = true\ntags = ['x']"}
    return [
        read_task(folder({"task.toml": f"[task]\nname = '{name}'\n[metadata]\n{text}\n"}, name=name[-1]))
        for name, text in metadata.items()
    ]


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({}, ["org/a", "org/b", "other/c"]),
        ({"include": ["org/*"]}, ["org/a", "org/b"]),
        ({"include": ["*c", "*b"]}, ["org/b", "other/c"]),
        ({"include": ["ORG/*"]}, []),
        ({"ids": ["other/c", "org/a"]}, ["org/a", "other/c"]),
        ({"ids": ["other/c"], "include": ["org/*"]}, []),
        ({"where": {"easy": True}}, ["org/b", "other/c"]),
        ({"where": {"easy": 1}}, []),
        ({"where": {"n": 1}}, ["org/a", "org/b"]),
        ({"where": {"tags": ["x"]}}, ["other/c"]),
        ({"where": {"tags": "x"}}, []),
        ({"slice_": "1:"}, ["org/b", "other/c"]),
        ({"slice_": "0:2", "where": {"easy": True}}, ["org/b", "other/c"]),
        ({"slice_": ":"}, ["org/a", "org/b", "other/c"]),
        ({"slice_": "5:9"}, []),
    ],
)
def test_selection(tasks: list[Task], chosen: dict[str, Any], names: list[str]) -> None:
    assert [task.name for task in select(tasks, **chosen)] == names
    assert [task.name for task in select(reversed(tasks), **chosen)] == names


def test_an_unknown_id_names_the_closest(tasks: list[Task]) -> None:
    with pytest.raises(Refusal) as refused:
        select(tasks, ids=["org/a", "othr/c"])
    assert (refused.value.reason, refused.value.required) == (Reason.UNKNOWN_NAME, "other/c")


@pytest.mark.parametrize("text", ["", "1", "a:b", "-1:", "1:2:3", ":" + "9" * 60])
def test_a_slice_is_two_counts(tasks: list[Task], text: str) -> None:
    with pytest.raises(Refusal) as refused:
        select(tasks, slice_=text)
    assert refused.value.reason is Reason.INVALID_VALUE


def test_two_tasks_of_one_name_are_refused(folder: Make, tasks: list[Task]) -> None:
    twin = read_task(folder({"task.toml": "[task]\nname = 'org/a'\n"}, name="twin"))
    (refusal,) = duplicates([*tasks, twin])
    assert (refusal.reason, len(refusal.observed)) == (Reason.TASK_DUPLICATE, 2)
    assert duplicates(tasks) == []
