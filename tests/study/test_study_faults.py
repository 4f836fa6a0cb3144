"""One fault in a study file, one refusal: each bad input by its name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from study_folder import SMALL, make, problems, with_lines

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.study.load import LoadedStudy, load_study


@pytest.fixture
def study(tmp_path: Path) -> Callable[[str], LoadedStudy]:
    return lambda text: load_study(make(tmp_path, text))


BAD = {
    "unknown key": ("tasks", "inclde = []", Reason.UNKNOWN_KEY, "tasks.inclde"),
    "unknown table": ("sandboxes", "cpus = 1", Reason.UNKNOWN_KEY, "sandboxes"),
    "unknown key in a quoted place": ('arms."a.b"', "x = 1", Reason.UNKNOWN_KEY, 'arms."a.b".x'),
    "tool that no provider takes": ('tools."a.b"', 'python = "m:f"', Reason.INVALID_VALUE, 'tools."a.b"'),
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
        'network = "allowlist"',
        Reason.NOT_IN_THIS_VERSION,
        "arms.x.config.sandbox.network",
    ),
    "config of another kind": (
        "arms.x.config.sandbox",
        'kind = "docker"',
        Reason.INVALID_VALUE,
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


SEEN = {
    "a boolean": ("draw", "seed = true", "true", "a whole number"),
    "a text": ("draw", 'seed = "2"', '"2"', "a whole number"),
    "a word": ("sandbox", 'network = "open"', '"open"', '"none", "gateway-only", "allowlist" or "public"'),
    "a number": ("stages.main", "epochs = 0", "0", "greater than or equal to 1"),
    "a date": ("draw", "seed = 2026-11-30", "2026-11-30", "a whole number"),
    "a moment": ("draw", "seed = 2026-11-30T01:02:03Z", "2026-11-30T01:02:03+00:00", "a whole number"),
    "a list": ("draw", "seed = [true, 'é', 1.5]", '[true, "é", 1.5]', "a whole number"),
    "a table": ("draw", "seed = { a = false, 'b c' = inf }", '{a = false, "b c" = inf}', "a whole number"),
}


@pytest.mark.parametrize("case", SEEN)
def test_values_are_told_as_the_file_writes_them(case: str, study: Callable[[str], LoadedStudy]) -> None:
    table, line, observed, required = SEEN[case]
    (refusal,) = study(with_lines(table, line)).refusals
    assert (refusal.observed, refusal.required) == (observed, required)
    assert refusal.message.endswith(f"must be {required}")


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


def break_folder(folder: Path, case: str) -> None:
    if case == "link out of the agent's folder":
        (folder / "agent/out").symlink_to("/etc/hostname")
    elif case == "pipe in the agent's folder":
        os.mkfifo(folder / "agent/pipe")
    elif case == "more files than a design lists":
        for number in range(10):
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
def test_what_a_study_brings_must_be_plain_files(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.study.folders.MAX_LISTED", 10)
    folder = make(tmp_path, SMALL + 'prompt = { file = "hint.md" }\n')
    break_folder(folder, case)
    assert problems(load_study(folder)) == [BROKEN[case]]
