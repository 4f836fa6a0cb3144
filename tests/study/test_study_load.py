"""Reading study.toml: everything that is wrong is said at once, by type, with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_folder import SMALL, WHOLE, make, problems, with_lines

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study.load import FILE_NAME, LoadedStudy, check_tables, load_study, single_task_study


@pytest.fixture
def study(tmp_path: Path) -> Callable[[str], LoadedStudy]:
    return lambda text: load_study(make(tmp_path, text))


def test_a_small_study_loads_by_file_or_folder(tmp_path: Path) -> None:
    by_folder, by_file = load_study(make(tmp_path)), load_study(tmp_path / FILE_NAME)
    assert by_folder == by_file
    assert by_folder.refusals == ()
    assert by_folder.file is not None and by_folder.file.study.name == "small"


def test_every_key_of_the_schema_parses_and_only_what_comes_later_refuses(
    study: Callable[[str], LoadedStudy],
) -> None:
    loaded = study(WHOLE)
    assert loaded.file is not None
    assert {refusal.reason for refusal in loaded.refusals} == {Reason.NOT_IN_THIS_VERSION}
    assert encode([refusal.as_record() for refusal in loaded.refusals])
    assert sorted(str(refusal.path) for refusal in loaded.refusals) == sorted(
        [
            "agent.pacing",
            "arm_profiles",
            "arms.hinted.environment",
            "grading.retries",
            "sandbox.network",
            "sandbox.protected",
            "scoring",
            "stages.full.after",
            "stages.full.capture",
            "stages.full.fork_at",
            "stages.full.keep_snapshots",
            "stages.full.model_arms",
            "stages.full.roster",
            "stages.full.type",
            "stopping",
            "tools.web.price",
            "tools.web.provider_side",
        ]
    )


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("sandbox", "protected = []"),
        ("grading", 'scorer = "exact"\nretries = 0'),
        ("stages.main", 'roster = "closed"\ntype = "standard"\nmodels = []\ncapture = []\nkeep_snapshots = false'),
        ("scoring", 'judge = "none"'),
    ],
)
def test_a_later_key_at_its_default_is_no_problem(table: str, line: str, study: Callable[[str], LoadedStudy]) -> None:
    assert problems(study(with_lines(table, line))) == []


def test_all_problems_are_said_at_once_and_none_twice(study: Callable[[str], LoadedStudy]) -> None:
    text = SMALL.replace('path = "tasks"', 'path = 3\nwher = 1\nids = ["a", "a"]').replace("packs/mentor", "packs/none")
    text += '[sandbox]\nnetwork = "allowlist"\nmemory = "much"\n[stages.main]\narms = ["skiled"]\n'
    text += "[stages.main.budget]\n"
    assert sorted(problems(study(text)), key=str) == sorted(
        [
            (Reason.WRONG_TYPE, "tasks.path"),
            (Reason.UNKNOWN_KEY, "tasks.wher"),
            (Reason.DUPLICATE_NAME, "tasks.ids"),
            (Reason.FILE_MISSING, "arms.skilled.skills"),
            (Reason.NOT_IN_THIS_VERSION, "sandbox.network"),
            (Reason.INVALID_VALUE, "sandbox.memory"),
            (Reason.UNKNOWN_NAME, "stages.main.arms"),
            (Reason.MISSING_KEY, "stages.main.budget.allocation"),
            (Reason.MISSING_KEY, "stages.main.budget.cap"),
        ],
        key=str,
    )


def test_the_closest_known_key_and_name_are_said(study: Callable[[str], LoadedStudy]) -> None:
    unknown_key, unknown_name = study(with_lines("stages.main", 'epoch = 3\narms = ["skiled"]')).refusals
    assert unknown_key.required == "epochs" and "`epochs`" in unknown_key.message
    assert "'skilled'" in unknown_name.message
    (far,) = study(with_lines("draw", "zzz = 1")).refusals
    assert far.required == ["seed"] and "seed" in far.message


def test_what_is_needed_is_named(study: Callable[[str], LoadedStudy]) -> None:
    assert problems(study("")) == [
        (Reason.MISSING_KEY, "study"),
        (Reason.MISSING_KEY, "tasks"),
        (Reason.MISSING_KEY, "agent"),
    ]
    bare = '[study]\nname = "x"\n[tasks]\n[agent]\nname = "command"\n'
    assert problems(study(bare)) == [(Reason.MISSING_KEY, "tasks.path"), (Reason.MISSING_KEY, "agent.command")]


def test_an_arm_does_not_repeat_what_the_study_itself_asks(study: Callable[[str], LoadedStudy]) -> None:
    text = with_lines("sandbox", 'network = "allowlist"', 'rootfs = "roots/none"')
    text += '[arms.x.config]\nsandbox = { memory = "1 GiB" }\nagent = { timeout = "1m" }\n'
    assert problems(study(text.replace("command = ", "# "))) == [
        (Reason.NOT_IN_THIS_VERSION, "sandbox.network"),
        (Reason.MISSING_KEY, "agent.command"),
        (Reason.FILE_MISSING, "sandbox.rootfs"),
    ]


def test_a_pasted_key_is_not_repeated(study: Callable[[str], LoadedStudy]) -> None:
    text = with_lines("models.m", 'provider = "p"', 'model = "m"', 'api_key_env = "sk-not-a-variable"')
    loaded = study(text)
    assert (Reason.INVALID_VALUE, "models.m.api_key_env") in problems(loaded)
    assert not any("sk-not" in json.dumps(refusal.as_record()) for refusal in loaded.refusals)


UNREADABLE = {
    "not TOML": (b"[study\n", "line 1"),
    "a key twice": (b'[study]\nname = "a"\nname = "b"\n', "line 3"),
    "not UTF-8": (b'[study]\nname = "\xff"\n', "line 2"),
    "an integer without end": (b"x = " + b"9" * 5000, ""),
    "arrays without end": (b"x = " + b"[" * 20_000, ""),
    "keys without end": (b"[" + b"a." * 200 + b"a]\n", ""),
    "too large": (b"# " + b"x" * (4 * 2**20), ""),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_study_is_refused(case: str, tmp_path: Path) -> None:
    data, said = UNREADABLE[case]
    (tmp_path / FILE_NAME).write_bytes(data)
    with pytest.raises(Refusal) as caught:
        load_study(tmp_path)
    assert caught.value.reason is Reason.STUDY_UNREADABLE
    assert said in caught.value.message
    assert caught.value.path == str(tmp_path / FILE_NAME)


@pytest.mark.parametrize("name", ["nothing.toml", "empty"])
def test_a_study_that_is_not_there_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refusal) as caught:
        load_study(tmp_path / name)
    assert caught.value.reason is Reason.STUDY_NOT_FOUND


def test_a_path_that_no_system_takes_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        load_study(Path("x" * 5000))
    assert caught.value.reason is Reason.STUDY_UNREADABLE


@pytest.mark.parametrize(
    ("written", "seconds"), [("180s", 180), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("1d1s", 86401)]
)
def test_durations(written: str, seconds: int, study: Callable[[str], LoadedStudy]) -> None:
    loaded = study(with_lines("agent", f'timeout = "{written}"'))
    assert loaded.file is not None and loaded.file.agent.timeout == seconds


@pytest.mark.parametrize(
    ("written", "count"), [("4 GiB", 2**32), ("512 MiB", 2**29), ("1.5KiB", 1536), ("7 B", 7), ("1 TiB", 2**40)]
)
def test_sizes(written: str, count: int, study: Callable[[str], LoadedStudy]) -> None:
    loaded = study(with_lines("sandbox", f'memory = "{written}"'))
    assert loaded.file is not None and loaded.file.sandbox.memory == count


def test_one_task_needs_no_study_file(tmp_path: Path) -> None:
    task = tmp_path / "Some task (1)"
    task.mkdir()
    loaded = single_task_study(task, "command", {"command": ["true"]}, {"memory": "1 GiB"})
    assert loaded.refusals == () and loaded.path is None and loaded.folder == tmp_path
    assert loaded.file is not None
    assert loaded.file.study.name == "Some-task-1"
    assert loaded.file.tasks.path == "Some task (1)"
    assert loaded.file.sandbox.memory == 2**30
    assert problems(single_task_study(tmp_path / "none", "oracle")) == [(Reason.FILE_MISSING, "tasks.path")]
    assert problems(single_task_study(task, "oracle", {"comand": "x"})) == [(Reason.UNKNOWN_KEY, "agent.comand")]


KEYS = st.sampled_from(
    [
        "study",
        "name",
        "tasks",
        "path",
        "agent",
        "arms",
        "stages",
        "main",
        "config",
        "hypothesis",
        "after",
        "sandbox",
        "substitute",
        "where",
        "models",
        "budget",
        "cap",
        "prompt",
        "file",
        "env",
        "x",
        "a.b",
    ]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.datetimes() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["study", "sandbox", "arms", "stages", "tasks", "hypothesis", "agent", "y"]), VALUES
    )
)
def test_no_tables_whatever_end_in_anything_but_refusals(tables: dict[str, Any]) -> None:
    sound = {"study": {"name": "x"}, "tasks": {"path": "."}, "agent": {"name": "nop"}}
    loaded = check_tables({**sound, **tables}, Path("/nonexistent"), None, "0" * 64)
    assert (loaded.file is None) <= bool(loaded.refusals)
    for refusal in loaded.refusals:
        encode(refusal.as_record())
