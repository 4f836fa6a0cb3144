"""Tasks written from Python are read back as they were meant, or refused before anything stands there."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.api import Refused, write_questions, write_task
from proctor.core.questions import Scorer
from proctor.tasks.questions import read_questions
from proctor.tasks.reading import read_task

TASK: dict[str, Any] = {"instruction": "Do it.\n", "tests": "echo 1 > /logs/verifier/reward.txt\n"}


def listed(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_task_is_read_back(tmp_path: Path) -> None:
    folder = write_task(
        tmp_path / "deep/greeting",
        **TASK,
        solution={"solve.sh": "true\n", "data/answer.bin": b"\x00\xff"},
        environment={"Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n"},
        settings={"agent": {"timeout_sec": 60}, "task": {"name": "birds/greeting"}, "metadata": {"level": "easy"}},
    )
    task = read_task(folder)
    assert (task.name, task.instruction, task.agent.timeout_sec) == ("birds/greeting", "Do it.\n", 60)
    assert task.metadata == {"level": "easy"} and task.unknown_keys == ()
    assert task.has_tests and task.has_solution
    assert (folder / "solution/data/answer.bin").read_bytes() == b"\x00\xff"
    assert (folder / "tests/test.sh").stat().st_mode & 0o111
    assert listed(tmp_path / "deep") == [f"greeting/{name}" for name in listed(folder)]


def test_a_task_is_named_by_its_folder(tmp_path: Path) -> None:
    assert read_task(write_task(tmp_path / "greeting", **TASK)).name == "greeting"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"instruction": " \n"}, "task_unreadable"),
        ({"settings": {"agent": {"timeout_sec": "soon"}}}, "task_unreadable"),
        ({"settings": {"schema_version": "9.0"}}, "task_format_later"),
    ],
)
def test_what_is_no_task_leaves_nothing(tmp_path: Path, more: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused) as refused:
        write_task(tmp_path / "greeting", **{**TASK, **more})
    assert refused.value.reasons == (reason,)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../up", "a/../../b", "", "a//b", "."])
def test_files_stay_below_their_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match="is no path below environment/"):
        write_task(tmp_path / "greeting", **TASK, environment={path: "x"})
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_but_a_task_where_that_is_said(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "greeting", **TASK, environment={"old": "x"})
    with pytest.raises(Refused) as refused:
        write_task(folder, **TASK)
    assert refused.value.reasons == ("would_overwrite",)
    write_task(folder, **TASK, environment={"new": "x"}, replace=True)
    assert listed(folder) == ["environment/new", "instruction.md", "task.toml", "tests/test.sh"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    (tmp_path / "link").symlink_to(folder)
    for other in ("mine", "link"):
        with pytest.raises(Refused) as refused:
            write_task(tmp_path / other, **TASK, replace=True)
        assert refused.value.reasons == ("would_overwrite",)
    assert listed(tmp_path / "mine") == ["thesis.txt"]


def test_a_task_whose_replacement_is_none_stays(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "greeting", **TASK)
    with pytest.raises(Refused):
        write_task(folder, **{**TASK, "instruction": ""}, replace=True)
    assert read_task(folder).instruction == "Do it.\n"


_TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@given(
    prompts=st.lists(_TEXT.filter(str.strip), min_size=1, max_size=5),
    target=_TEXT.filter(lambda text: text.strip() == text),
)
def test_questions_are_read_back(tmp_path_factory: pytest.TempPathFactory, prompts: list[str], target: str) -> None:
    rows = [
        {"id": string.ascii_lowercase[at], "prompt": prompt, "target": target, "metadata": {"at": at}}
        for at, prompt in enumerate(prompts)
    ]
    path = write_questions(tmp_path_factory.mktemp("rows") / "units.jsonl", iter(rows))
    found, refusals = read_questions(path, scorer=Scorer.EXACT, scorer_function=None, check=lambda row: None)
    assert refusals == [] and found is not None
    assert [found.row(name).row for name in found.ids] == rows


def test_questions_are_whole_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        write_questions(tmp_path / "units.jsonl", [{"id": "a"}, {"id": "b", "target": float("nan")}])
    assert refused.value.reasons == ("json_invalid",)
    assert list(tmp_path.iterdir()) == []
    write_questions(tmp_path / "units.jsonl", [{"id": "a"}])
    with pytest.raises(Refused) as refused:
        write_questions(tmp_path / "units.jsonl", [{"id": "b"}])
    assert refused.value.reasons == ("would_overwrite",)
    write_questions(tmp_path / "units.jsonl", [{"id": "b"}], replace=True)
    assert (tmp_path / "units.jsonl").read_text() == '{"id":"b"}\n'
    with pytest.raises(Refused) as refused:
        write_questions(tmp_path / "nowhere/units.jsonl", [])
    assert refused.value.reasons == ("output_unwritable",)
