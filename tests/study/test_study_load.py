"""Reading study.toml: everything that is wrong is said at once, by type, with its place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_folder import SMALL, WHOLE, make

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study.load import FILE_NAME, LoadedStudy, check_tables, load_study, single_task_study

Problems = list[tuple[Reason, str | None]]


@pytest.fixture
def study(tmp_path: Path) -> Callable[[str], LoadedStudy]:
    return lambda text: load_study(make(tmp_path, text))


def problems(loaded: LoadedStudy) -> Problems:
    return [(refusal.reason, refusal.path) for refusal in loaded.refusals]


def with_lines(table: str, *lines: str) -> str:
    """The small study with lines added to a table of it, or with a new table."""
    head = f"[{table}]\n"
    body = "\n".join(lines) + "\n"
    return SMALL.replace(head, head + body) if head in SMALL else f"{SMALL}\n{head}{body}"


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
    assert sorted(str(refusal.path) for refusal in loaded.refusals) == sorted(
        [
            "agent.expect_version",
            "agent.idle_timeout",
            "agent.name",
            "agent.pacing",
            "anchor",
            "arm_profiles",
            "arms.hinted.environment",
            "arms.hinted.model",
            "arms.hinted.tools",
            "grading.retries",
            "grading.scorer",
            "models",
            "prior_spend",
            "sandbox.kind",
            "sandbox.network",
            "sandbox.protected",
            "scoring",
            "stages.full.after",
            "stages.full.budget",
            "stages.full.capture",
            "stages.full.caps",
            "stages.full.expected_costs",
            "stages.full.fork_at",
            "stages.full.keep_snapshots",
            "stages.full.model_arms",
            "stages.full.models",
            "stages.full.reserves",
            "stages.full.roster",
            "stages.full.type",
            "stopping",
            "tasks.pull",
            "tasks.questions",
            "tools",
        ]
    )


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("tasks", 'pull = "missing"'),
        ("sandbox", 'kind = "auto"'),
        ("grading", 'scorer = "exact"\nretries = 0'),
        ("stages.main", 'roster = "closed"\ntype = "standard"\nmodels = []\ncapture = []\nkeep_snapshots = false'),
        ("scoring", 'judge = "none"'),
    ],
)
def test_a_later_key_at_its_default_is_no_problem(table: str, line: str, study: Callable[[str], LoadedStudy]) -> None:
    assert problems(study(with_lines(table, line))) == []


BAD = {
    "unknown key": ("tasks", "inclde = []", Reason.UNKNOWN_KEY, "tasks.inclde"),
    "unknown table": ("sandboxes", "cpus = 1", Reason.UNKNOWN_KEY, "sandboxes"),
    "unknown key in a quoted place": ('arms."a.b"', "x = 1", Reason.UNKNOWN_KEY, 'arms."a.b".x'),
    "number as text": ("draw", 'seed = "1"', Reason.WRONG_TYPE, "draw.seed"),
    "float as integer": ("stages.main", "epochs = 1.0", Reason.WRONG_TYPE, "stages.main.epochs"),
    "boolean as integer": ("stages.main", "epochs = true", Reason.WRONG_TYPE, "stages.main.epochs"),
    "text as list": ("stages.main", 'arms = "plain"', Reason.WRONG_TYPE, "stages.main.arms"),
    "list as table": ("stages.main", "where = []", Reason.WRONG_TYPE, "stages.main.where"),
    "number in a list of text": ("tasks", "include = ['a', 3]", Reason.WRONG_TYPE, "tasks.include[1]"),
    "negative seed": ("draw", "seed = -1", Reason.INVALID_VALUE, "draw.seed"),
    "seed beyond JSON": ("draw", "seed = 9007199254740992", Reason.INVALID_VALUE, "draw.seed"),
    "no epochs": ("stages.main", "epochs = 0", Reason.INVALID_VALUE, "stages.main.epochs"),
    "more lanes than any machine has": ("stages.main", "lanes = 2000", Reason.INVALID_VALUE, "stages.main.lanes"),
    "no lanes": ("stages.main", "lanes = 0", Reason.INVALID_VALUE, "stages.main.lanes"),
    "duration without unit": ("agent", 'timeout = "180"', Reason.INVALID_VALUE, "agent.timeout"),
    "duration as number": ("agent", "timeout = 180", Reason.WRONG_TYPE, "agent.timeout"),
    "duration of nothing": ("agent", 'timeout = ""', Reason.INVALID_VALUE, "agent.timeout"),
    "duration of zero": ("agent", 'timeout = "0s"', Reason.INVALID_VALUE, "agent.timeout"),
    "duration without end": ("agent", f'timeout = "{"9" * 5000}s"', Reason.INVALID_VALUE, "agent.timeout"),
    "duration in foreign digits": ("agent", 'timeout = "١s"', Reason.INVALID_VALUE, "agent.timeout"),
    "size without unit": ("sandbox", 'memory = "4"', Reason.INVALID_VALUE, "sandbox.memory"),
    "size in decimal unit": ("sandbox", 'memory = "4 GB"', Reason.INVALID_VALUE, "sandbox.memory"),
    "size of part of a byte": ("sandbox", 'memory = "0.3 KiB"', Reason.INVALID_VALUE, "sandbox.memory"),
    "no cpus": ("sandbox", "cpus = 0", Reason.INVALID_VALUE, "sandbox.cpus"),
    "cpus as boolean": ("sandbox", "cpus = true", Reason.WRONG_TYPE, "sandbox.cpus"),
    "slice from the end": ("tasks", 'slice = "-3:"', Reason.INVALID_VALUE, "tasks.slice"),
    "infinite cpus": ("sandbox", "cpus = inf", Reason.INVALID_VALUE, "sandbox.cpus"),
    "cpus that are no number": ("sandbox", "cpus = nan", Reason.INVALID_VALUE, "sandbox.cpus"),
    "unknown network": ("sandbox", 'network = "open"', Reason.INVALID_VALUE, "sandbox.network"),
    "unknown kind": ("sandbox", 'kind = "vm"', Reason.INVALID_VALUE, "sandbox.kind"),
    "root that is not there": ("sandbox", 'rootfs = "roots/none"', Reason.FILE_MISSING, "sandbox.rootfs"),
    "substitute that is not there": (
        "sandbox",
        'substitute = { "python:3" = "roots/none" }',
        Reason.FILE_MISSING,
        'sandbox.substitute."python:3"',
    ),
    "rule that is none": ("grading", 'solved = "reward is good"', Reason.INVALID_VALUE, "grading.solved"),
    "unknown rule for duplicates": (
        "grading",
        'duplicate_tests = "any"',
        Reason.INVALID_VALUE,
        "grading.duplicate_tests",
    ),
    "slice that is none": ("tasks", 'slice = "3"', Reason.INVALID_VALUE, "tasks.slice"),
    "date in where": ("tasks", "where = { day = 2026-01-01 }", Reason.WRONG_TYPE, "tasks.where.day"),
    "one task twice": ("tasks", 'ids = ["a", "a"]', Reason.DUPLICATE_NAME, "tasks.ids"),
    "unknown arm of a stage": ("stages.main", 'arms = ["plane"]', Reason.UNKNOWN_NAME, "stages.main.arms"),
    "one arm twice in a stage": (
        "stages.main",
        'arms = ["plain", "plain"]',
        Reason.DUPLICATE_NAME,
        "stages.main.arms",
    ),
    "no arm in a stage": ("stages.main", "arms = []", Reason.INVALID_VALUE, "stages.main.arms"),
    "no stage": ("stages", "", Reason.INVALID_VALUE, "stages"),
    "name with a space": ("stages.'a b'", "", Reason.INVALID_VALUE, 'stages."a b"'),
    "skill folder that is not there": ("arms.x", 'skills = "packs/none"', Reason.FILE_MISSING, "arms.x.skills"),
    "skill folder without a skill": ("arms.x", 'skills = "tasks"', Reason.FILE_MISSING, "arms.x.skills"),
    "prompt file that is not there": (
        "arms.x",
        'prompt = { file = "no.md" }',
        Reason.FILE_MISSING,
        "arms.x.prompt.file",
    ),
    "prompt of nothing": ("arms.x", "prompt = {}", Reason.INVALID_VALUE, "arms.x.prompt"),
    "prompt twice": ("arms.x", 'prompt = { file = "hint.md", text = "x" }', Reason.INVALID_VALUE, "arms.x.prompt"),
    "prompt as number": ("arms.x", "prompt = 3", Reason.WRONG_TYPE, "arms.x.prompt"),
    "config of the scorer": ("arms.x.config", "grading = {}", Reason.UNKNOWN_KEY, "arms.x.config.grading"),
    "config of unknown key": ("arms.x.config.sandbox", "memry = 1", Reason.UNKNOWN_KEY, "arms.x.config.sandbox.memry"),
    "config of bad value": (
        "arms.x.config.agent",
        "timeout = 3",
        Reason.WRONG_TYPE,
        "arms.x.config.agent.timeout",
    ),
    "config of another agent": (
        "arms.x.config.agent",
        'name = "nop"',
        Reason.INVALID_VALUE,
        "arms.x.config.agent.name",
    ),
    "config of a later value": (
        "arms.x.config.sandbox",
        'kind = "docker"',
        Reason.NOT_IN_THIS_VERSION,
        "arms.x.config.sandbox.kind",
    ),
    "environment variable with a dash": ("agent", 'env = { "A-B" = "1" }', Reason.INVALID_VALUE, "agent.env.A-B"),
    "environment value as number": ("agent", "env = { A = 1 }", Reason.WRONG_TYPE, "agent.env.A"),
    "NUL in a value": ("agent", 'env = { A = "\\u0000" }', Reason.INVALID_VALUE, "agent.env.A"),
    "setting that is NaN": ("agent", "settings = { x = [nan] }", Reason.INVALID_VALUE, "agent.settings"),
    "setting beside its own key": (
        "agent",
        'settings = { files = "x" }',
        Reason.DUPLICATE_NAME,
        "agent.settings.files",
    ),
    "hypothesis on an unknown stage": (
        "[hypothesis]",
        'id = "H"\nstage = "mian"\ncompare = ["skilled", "plain"]\ntest = "mcnemar"',
        Reason.UNKNOWN_NAME,
        "hypothesis[0].stage",
    ),
    "hypothesis on an unknown arm": (
        "[hypothesis]",
        'id = "H"\nstage = "main"\ncompare = ["skiled", "plain"]\ntest = "mcnemar"',
        Reason.UNKNOWN_NAME,
        "hypothesis[0].compare[0]",
    ),
    "hypothesis on one arm": (
        "[hypothesis]",
        'id = "H"\nstage = "main"\ncompare = ["plain", "plain"]\ntest = "mcnemar"',
        Reason.INVALID_VALUE,
        "hypothesis[0].compare",
    ),
    "hypothesis with a test that does not fit": (
        "[hypothesis]",
        'id = "H"\nstage = "main"\nendpoint = "cost"\ncompare = ["skilled", "plain"]\ntest = "mcnemar"',
        Reason.INVALID_VALUE,
        "hypothesis[0].test",
    ),
    "hypothesis on an unknown endpoint": (
        "[hypothesis]",
        'id = "H"\nstage = "main"\nendpoint = "fame"\ncompare = ["skilled", "plain"]\ntest = "sign-flip"',
        Reason.INVALID_VALUE,
        "hypothesis[0].endpoint",
    ),
    "hypothesis without a test": (
        "[hypothesis]",
        'id = "H"\nstage = "main"\ncompare = ["skilled", "plain"]',
        Reason.MISSING_KEY,
        "hypothesis[0].test",
    ),
    "level beyond one": (
        "[hypothesis]",
        'id = "H"\nstage = "main"\ncompare = ["skilled", "plain"]\ntest = "mcnemar"\nalpha = 1.0',
        Reason.INVALID_VALUE,
        "hypothesis[0].alpha",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_one_fault_one_refusal(case: str, study: Callable[[str], LoadedStudy]) -> None:
    table, line, reason, path = BAD[case]
    loaded = study(with_lines(table, line))
    assert problems(loaded) == [(reason, path)]
    encode(loaded.refusals[0].as_record())


LATER_BUT_BAD = {
    "money as number": (
        "stages.main.budget",
        'cap = 1.5\nallocation = "1"',
        "stages.main.budget.cap",
        Reason.MONEY_INVALID,
    ),
    "money below zero": (
        "stages.main.budget",
        'cap = "-1"\nallocation = "1"',
        "stages.main.budget.cap",
        Reason.MONEY_INVALID,
    ),
    "money with an exponent": ("stages.main.caps", 'm = "1e3"', "stages.main.caps.m", Reason.MONEY_INVALID),
    "budget without a cap": ("stages.main.budget", 'allocation = "1"', "stages.main.budget.cap", Reason.MISSING_KEY),
    "cap of an unknown model": ("stages.main.caps", 'moon = "1"', "stages.main.caps", Reason.UNKNOWN_NAME),
    "unknown model": ("stages.main", 'models = ["moon"]', "stages.main.models", Reason.UNKNOWN_NAME),
    "link to nothing": (
        "stages.main",
        f'after = [{{ stage = "early", run = "..", design_sha256 = "{"0" * 64}" }}]',
        "stages.main.after[0].stage",
        Reason.UNKNOWN_NAME,
    ),
    "link to itself": (
        "stages.main",
        f'after = [{{ stage = "main", run = "..", design_sha256 = "{"0" * 64}" }}]',
        "stages.main.after[0].stage",
        Reason.UNKNOWN_NAME,
    ),
    "digest that is none": (
        "stages.main",
        'after = [{ stage = "main", run = "..", design_sha256 = "0" }]',
        "stages.main.after[0].design_sha256",
        Reason.INVALID_VALUE,
    ),
    "boundary twice": (
        "stages.main",
        'capture = ["pre-verify", "pre-verify"]',
        "stages.main.capture",
        Reason.DUPLICATE_NAME,
    ),
    "boundary that is none": ("stages.main", 'capture = ["now"]', "stages.main.capture[0]", Reason.INVALID_VALUE),
    "a bare boundary": ("stages.main", 'capture = "pre-verify"', "stages.main.capture", Reason.WRONG_TYPE),
    "tool of both kinds": ("tools.t", 'python = "a:b"\nprovider_side = "c"', "tools.t", Reason.INVALID_VALUE),
    "unknown tool of an arm": ("arms.x", 'tools = ["calc"]', "arms.x.tools", Reason.UNKNOWN_NAME),
    "profile of an unknown arm": ("arm_profiles.none", "", "arm_profiles.none", Reason.UNKNOWN_NAME),
    "unknown judge": ("scoring", 'judge = "moon"', "scoring.judge", Reason.UNKNOWN_NAME),
    "question set that is not there": ("tasks", 'questions = "none.jsonl"', "tasks.questions", Reason.FILE_MISSING),
}


@pytest.mark.parametrize("case", LATER_BUT_BAD)
def test_what_comes_later_is_checked_already(case: str, study: Callable[[str], LoadedStudy]) -> None:
    table, line, path, reason = LATER_BUT_BAD[case]
    found = [each for each in problems(study(with_lines(table, line))) if each[0] is not Reason.NOT_IN_THIS_VERSION]
    assert found == [(reason, path)]


def test_all_problems_are_said_at_once_and_none_twice(study: Callable[[str], LoadedStudy]) -> None:
    text = SMALL.replace('path = "tasks"', 'path = 3\nwher = 1\nids = ["a", "a"]').replace("packs/mentor", "packs/none")
    text += '[sandbox]\nkind = "docker"\nmemory = "much"\n[stages.main]\narms = ["skiled"]\n[stages.main.budget]\n'
    assert sorted(problems(study(text)), key=str) == sorted(
        [
            (Reason.WRONG_TYPE, "tasks.path"),
            (Reason.UNKNOWN_KEY, "tasks.wher"),
            (Reason.DUPLICATE_NAME, "tasks.ids"),
            (Reason.FILE_MISSING, "arms.skilled.skills"),
            (Reason.NOT_IN_THIS_VERSION, "sandbox.kind"),
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


def break_folder(folder: Path, case: str) -> None:
    if case == "link out of the agent's folder":
        (folder / "agent/out").symlink_to("/etc/hostname")
    elif case == "pipe in the agent's folder":
        os.mkfifo(folder / "agent/pipe")
    elif case == "more files than a design lists":
        for number in range(5_001):
            (folder / f"agent/{number}").touch()
    elif case == "prompt that is not text":
        (folder / "hint.md").write_bytes(b"\xff")
    elif case == "prompt without end":
        (folder / "hint.md").write_bytes(b"x" * (256 * 1024 + 1))
    elif case == "folder as prompt":
        (folder / "hint.md").unlink()
        (folder / "hint.md").mkdir()
    elif case == "folder without a skill in a pack":
        (folder / "packs/mentor/shared").mkdir()
    elif case == "skill with a name of two words":
        (folder / "packs/mentor/signs").rename(folder / "packs/mentor/two words")
    elif case == "link in a skill":
        (folder / "packs/mentor/signs/up").symlink_to("../../..")


BROKEN = {
    "link out of the agent's folder": (Reason.FILE_UNREADABLE, "agent.files"),
    "pipe in the agent's folder": (Reason.FILE_UNREADABLE, "agent.files"),
    "more files than a design lists": (Reason.INVALID_VALUE, "agent.files"),
    "prompt that is not text": (Reason.FILE_UNREADABLE, "arms.skilled.prompt.file"),
    "prompt without end": (Reason.FILE_UNREADABLE, "arms.skilled.prompt.file"),
    "folder as prompt": (Reason.FILE_MISSING, "arms.skilled.prompt.file"),
    "folder without a skill in a pack": (Reason.FILE_MISSING, "arms.skilled.skills"),
    "skill with a name of two words": (Reason.INVALID_VALUE, "arms.skilled.skills"),
    "link in a skill": (Reason.FILE_UNREADABLE, "arms.skilled.skills"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_a_study_brings_must_be_plain_files(case: str, tmp_path: Path) -> None:
    folder = make(tmp_path, SMALL + 'prompt = { file = "hint.md" }\n')
    break_folder(folder, case)
    assert problems(load_study(folder)) == [BROKEN[case]]


def test_an_arm_does_not_repeat_what_the_study_itself_asks(study: Callable[[str], LoadedStudy]) -> None:
    text = with_lines("sandbox", 'kind = "docker"', 'rootfs = "roots/none"')
    text += '[arms.x.config]\nsandbox = { memory = "1 GiB" }\nagent = { timeout = "1m" }\n'
    assert problems(study(text.replace("command = ", "# "))) == [
        (Reason.NOT_IN_THIS_VERSION, "sandbox.kind"),
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
