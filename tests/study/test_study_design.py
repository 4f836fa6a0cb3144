"""The frozen design: defaults written out, unused blocks absent, one identity, differences named."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_folder import SMALL, make

from proctor.core.canonical import encode
from proctor.core.ids import trial_id
from proctor.core.prices import PriceRow, Prices
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study import (
    Design,
    FrozenTask,
    ModelDesign,
    Parts,
    Selection,
    diff_designs,
    freeze,
    load_study,
    plan,
    single_task_study,
)
from proctor.study.design import MAX_TRIALS, read_design

TASKS = [FrozenTask(name, hashlib.sha256(name.encode()).hexdigest(), "harbor", f"tasks/{name}") for name in "cab"]

Freeze = Callable[..., Design]


def reread(value: Any, folder: Path) -> Design:
    """Such a design as it is read back from a run's folder."""
    file = folder / "design.json"
    file.write_text(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
    return read_design(file)


def model(name: str) -> ModelDesign:
    prices = Prices("test", (PriceRow("input", 0, "1.000000000000"), PriceRow("output", 0, "2.000000000000")))
    return ModelDesign(name, "practice", "practice-1", "practice", None, None, 100, 60, None, None, None, prices, True)


@pytest.fixture
def frozen(tmp_path: Path) -> Freeze:
    def make_design(text: str = SMALL, **options: Any) -> Design:
        design, refusals = freeze(
            load_study(make(tmp_path, text)), "main", Parts(options.pop("tasks", TASKS)), **options
        )
        assert refusals == [] and design is not None
        return design

    return make_design


def test_the_smallest_design_is_frozen_in_full(tmp_path: Path) -> None:
    (tmp_path / "hello").mkdir()
    design, refusals = freeze(
        single_task_study(tmp_path / "hello", "oracle"),
        "main",
        Parts([FrozenTask("hello", "0" * 64, "harbor", "hello")]),
    )
    assert refusals == [] and design is not None
    assert design.to_json() == {
        "format": 1,
        "study": {"name": "hello", "question": None},
        "stage": {
            "name": "main",
            "type": "standard",
            "epochs": 1,
            "lanes": 1,
            "deadline_sec": None,
            "replacements": 1,
        },
        "draw": {"seed": 0},
        "agent": {"name": "oracle", "settings": {}, "timeout_sec": None},
        "models": [],
        "arms": [{"name": "default"}],
        "tasks": [{"name": "hello", "sha256": "0" * 64, "format": "harbor", "path": "hello"}],
        "sandbox": {
            "kind": "auto",
            "network": "gateway-only",
            "cpus": None,
            "memory_bytes": None,
            "storage_bytes": None,
            "pids": None,
            "rootfs": None,
            "substitute": {},
        },
        "grading": {"solved": "reward >= 1.0", "duplicate_tests": "refuse", "verifier_timeout_sec": None},
        "baseline": "default",
    }
    # An old design keeps its identity in every later version.
    assert design.sha256 == "7671e551a0488aefad34e7e4d0478bd2eac4a90525d35e59d2e3396e9662c764"


def test_arms_are_frozen_with_what_they_change(frozen: Freeze) -> None:
    text = SMALL.replace('skills = "packs/mentor"', 'skills = "packs/mentor"\nprompt = { file = "hint.md" }')
    text += '[arms.skilled.config]\nagent = { env = { LEVEL = "2" }, timeout = "1m" }\nsandbox = { cpus = 2 }\n'
    text += 'metadata = { author = "x" }\n'
    design = frozen(text)
    plain, skilled = design.to_json()["arms"]
    assert plain == {"name": "plain"}
    assert skilled["prompt"] == {"append": "Mind the units.\n", "file": "hint.md"}
    assert [(skill["name"], skill["path"]) for skill in skilled["skills"]] == [
        ("signs", "packs/mentor/signs"),
        ("units", "packs/mentor/units"),
    ]
    assert [file["path"] for file in skilled["skills"][0]["files"]] == ["SKILL.md"]
    assert skilled["config"]["agent"] == {"env": {"LEVEL": "2"}, "timeout": "1m"}
    assert design.agent_of("plain").settings == {"command": "python3 /agent/solve.py", "files": "agent"}
    assert design.agent_of("skilled").settings == {**design.agent.settings, "env": {"LEVEL": "2"}}
    assert design.agent_of("skilled").timeout_sec == 60
    assert design.sandbox_of("skilled") == replace(design.sandbox, cpus=2)
    assert design.arm("skilled").instruct("Do it.\n") == "Do it.\n\nMind the units.\n"
    assert design.arm("plain").instruct("Do it.\n") == "Do it.\n"
    with pytest.raises(KeyError):
        design.arm("none")


def test_an_arm_that_repeats_the_study_changes_nothing(frozen: Freeze) -> None:
    text = SMALL + '[arms.same.config]\nagent = { command = "python3 /agent/solve.py" }\nsandbox = { kind = "auto" }\n'
    arm = frozen(text).arm("same")
    assert arm.agent is None and arm.sandbox is None and arm.is_control


def test_one_skill_folder_is_a_pack_of_one(frozen: Freeze) -> None:
    design = frozen(SMALL.replace("packs/mentor", "packs/mentor/units"))
    assert [(skill.name, skill.path) for skill in design.arm("skilled").skills] == [("units", "packs/mentor/units")]


def test_trees_are_handed_out_by_the_digest_in_the_design(tmp_path: Path) -> None:
    loaded = load_study(make(tmp_path))
    design, _ = freeze(loaded, "main", Parts(TASKS))
    assert design is not None and design.agent.files is not None
    assert loaded.trees[design.agent.files.sha256].read("solve.py", 100) == b"print('solved')\n"
    assert {skill.sha256 for skill in design.arm("skilled").skills} < set(loaded.trees)


@pytest.mark.parametrize(
    ("hypotheses", "baseline"),
    [
        ("", "plain"),
        ('[[hypothesis]]\nid = "H"\nstage = "main"\ncompare = ["plain", "skilled"]\ntest = "mcnemar"\n', "skilled"),
    ],
)
def test_the_baseline(hypotheses: str, baseline: str, frozen: Freeze) -> None:
    assert frozen(SMALL + hypotheses).baseline == baseline


def test_no_arm_without_differences_and_no_hypothesis_is_no_baseline(frozen: Freeze) -> None:
    design = frozen(SMALL.replace("[arms.plain]", '[arms.plain]\nprompt = "Go."'))
    assert design.baseline is None and "baseline" not in design.to_json()


def test_hypotheses_belong_to_their_stage(frozen: Freeze) -> None:
    of = '[[hypothesis]]\nid = "{0}"\nstage = "{0}"\ncompare = ["skilled", "plain"]\ntest = "sign-flip"\n'
    design = frozen(SMALL + "[stages.main]\n[stages.other]\n" + of.format("main") + of.format("other"))
    assert [each.id for each in design.hypotheses] == ["main"]


def test_the_command_line_narrows_and_that_is_recorded(frozen: Freeze) -> None:
    design = frozen(selection=Selection(limit=2, arms=("skilled",)))
    assert [task.name for task in design.tasks] == ["a", "b"]
    assert [arm.name for arm in design.arms] == ["skilled"]
    assert design.to_json()["selection"] == {"limit": 2, "arms": ["skilled"]}
    assert plan(design).planned == {"trials": 2, "blocks": 2}


def test_one_selection_is_one_design_however_it_is_typed(frozen: Freeze) -> None:
    assert frozen(selection=Selection(arms=("skilled", "plain"))) == frozen(
        selection=Selection(arms=("plain", "skilled", "plain"))
    )


SELECTIONS = {
    "unknown stage": ("mian", TASKS, Selection(), Reason.UNKNOWN_NAME, "--stage"),
    "unknown arm": ("main", TASKS, Selection(arms=("plane",)), Reason.UNKNOWN_NAME, "--arm"),
    "unknown model": ("main", TASKS, Selection(models=("moon",)), Reason.UNKNOWN_NAME, "--model"),
    "no task": ("main", [], Selection(), Reason.NOTHING_SELECTED, "tasks"),
    "limit of nothing": ("main", TASKS, Selection(limit=0), Reason.INVALID_VALUE, "--limit"),
    "two tasks of one name": (
        "main",
        [*TASKS, replace(TASKS[0], path="x")],
        Selection(),
        Reason.TASK_DUPLICATE,
        "tasks/c",
    ),
}


@pytest.mark.parametrize("case", SELECTIONS)
def test_what_cannot_be_frozen(case: str, tmp_path: Path) -> None:
    stage, tasks, selection, reason, path = SELECTIONS[case]
    design, refusals = freeze(load_study(make(tmp_path)), stage, Parts(tasks), selection)
    assert design is None
    assert [(refusal.reason, refusal.path) for refusal in refusals] == [(reason, path)]


def test_a_study_that_refuses_is_not_frozen(tmp_path: Path) -> None:
    loaded = load_study(make(tmp_path, SMALL.replace("packs/mentor", "packs/none")))
    assert freeze(loaded, "main", Parts(TASKS)) == (None, list(loaded.refusals))


def test_a_design_reads_back_as_itself(frozen: Freeze, tmp_path: Path) -> None:
    text = SMALL + '[[hypothesis]]\nid = "H"\nstage = "main"\ncompare = ["skilled", "plain"]\ntest = "mcnemar"\n'
    text += '[arms.third]\nprompt = "Go."\n[arms.third.config.sandbox]\ncpus = 0.5\n[stages.main]\ndeadline = "1h"\n'
    design = frozen(text, selection=Selection(limit=3))
    again = reread(design.to_json(), tmp_path)
    assert again == design and again.sha256 == design.sha256
    assert hashlib.sha256(encode(design.to_json())).hexdigest() == design.sha256


DAMAGED: dict[str, tuple[Callable[[dict[str, Any]], Any], Reason]] = {
    "another format": (lambda design: {**design, "format": 2}, Reason.FORMAT_UNKNOWN),
    "no format": (lambda design: {key: design[key] for key in design if key != "format"}, Reason.EVIDENCE_DAMAGED),
    "a field more": (lambda design: {**design, "more": 1}, Reason.EVIDENCE_DAMAGED),
    "a field more inside": (lambda design: {**design, "draw": {"seed": 0, "x": 1}}, Reason.EVIDENCE_DAMAGED),
    "a field less": (lambda design: {key: design[key] for key in design if key != "tasks"}, Reason.EVIDENCE_DAMAGED),
    "a number as text": (lambda design: {**design, "draw": {"seed": "0"}}, Reason.EVIDENCE_DAMAGED),
    "a boolean as number": (lambda design: {**design, "draw": {"seed": False}}, Reason.EVIDENCE_DAMAGED),
    "an unused block": (lambda design: {**design, "selection": None}, Reason.EVIDENCE_DAMAGED),
    "a list": (lambda design: [design], Reason.EVIDENCE_DAMAGED),
    "nothing": (lambda design: None, Reason.EVIDENCE_DAMAGED),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_no_design_is_refused(case: str, frozen: Freeze, tmp_path: Path) -> None:
    damage, reason = DAMAGED[case]
    with pytest.raises(Refusal) as caught:
        reread(damage(frozen().to_json()), tmp_path)
    assert caught.value.reason is reason and caught.value.path == "design.json"


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["format", "study", "stage", "draw", "agent", "models", "arms", "tasks", "sandbox", "grading", "hypotheses"]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_no_json_whatever_ends_in_anything_but_a_refusal(value: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder, pytest.raises(Refusal):
        reread(value, Path(folder))


def test_differences_are_named_field_by_field(frozen: Freeze, tmp_path: Path) -> None:
    before = frozen()
    assert diff_designs(before, before) == []
    (tmp_path / "packs/mentor/units/SKILL.md").write_text("Changed.\n")
    text = SMALL.replace("[arms.plain]\n", "").replace('name = "small"', 'name = "small"\nquestion = "Why?"')
    loaded = load_study(tmp_path)
    (tmp_path / "study.toml").write_text(text + "[arms.plain]\n[stages.main]\nepochs = 2\n[sandbox]\ncpus = 1\n")
    loaded = load_study(tmp_path)
    after, refusals = freeze(loaded, "main", Parts([replace(TASKS[1], sha256="f" * 64), TASKS[2]]))
    assert refusals == [] and after is not None
    changes = diff_designs(before, after)
    assert [change.field for change in changes] == [
        "study.question",
        "stage.epochs",
        "arms (order)",
        "arms[skilled].skills[units].sha256",
        "arms[skilled].skills[units].files[SKILL.md].size",
        "arms[skilled].skills[units].files[SKILL.md].sha256",
        "tasks[a].sha256",
        "tasks[c]",
        "sandbox.cpus",
    ]
    assert (changes[1].was, changes[1].now) == (1, 2)
    assert changes[-2].now == "(absent)"


def test_the_plan_is_the_design_and_nothing_else(frozen: Freeze, tmp_path: Path) -> None:
    design = frozen(SMALL + "[stages.main]\nepochs = 3\nlanes = 4\n[draw]\nseed = 9\n")
    planned = plan(design)
    assert planned == plan(reread(design.to_json(), tmp_path))
    assert planned.planned == {"trials": 18, "blocks": 9} and planned.lanes == 4
    assert [block.index for block in planned.blocks] == list(range(9))
    trials = list(planned.trials())
    assert {(trial.task, trial.arm, trial.epoch) for trial in trials} == {
        (task, arm, epoch) for task in "abc" for arm in ("plain", "skilled") for epoch in (1, 2, 3)
    }
    assert all(trial.id == trial_id(trial.task, None, trial.arm, trial.epoch) for trial in trials)
    assert len({trial.id for trial in trials}) == 18
    assert planned.by_model() == {None: planned.blocks}


def test_models_have_orders_of_their_own(frozen: Freeze) -> None:
    design = replace(frozen(SMALL + "[stages.main]\nepochs = 3\n"), models=(model("moon"), model("sun")))
    by_model = plan(design).by_model()
    assert [block.index for block in by_model["sun"]] == list(range(9, 18))
    orders = [[(block.task, block.epoch) for block in by_model[model]] for model in ("moon", "sun")]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])


@pytest.mark.parametrize("how", ["a device", "a pipe", "a hole"])
def test_what_is_no_design_s_file_is_refused_unread(how: str, tmp_path: Path) -> None:
    file = tmp_path / "design.json"
    if how == "a device":
        file.symlink_to("/dev/zero")
    elif how == "a pipe":
        os.mkfifo(file)
    else:
        file.touch()
        os.truncate(file, 1 << 40)
    with pytest.raises(Refusal) as refused:
        read_design(file)
    assert refused.value.reason is Reason.EVIDENCE_UNREADABLE


def test_a_design_that_is_too_large_is_refused_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_study(make(tmp_path))
    made, _ = freeze(loaded, "main", Parts(TASKS))
    assert made is not None
    written = made.to_bytes()
    parts = sum(map(written.count, (b"{", b"[", b",")))
    for bound, most in (("MAX_DESIGN_BYTES", len(written)), ("MAX_DESIGN_PARTS", parts)):
        with monkeypatch.context() as patched:
            patched.setattr(f"proctor.study.design.{bound}", most)
            assert freeze(loaded, "main", Parts(TASKS))[0] is not None
            patched.setattr(f"proctor.study.design.{bound}", most - 1)
            design, (refusal,) = freeze(loaded, "main", Parts(TASKS))
            assert (design, refusal.reason, refusal.path) == (None, Reason.INVALID_VALUE, "tasks")


def test_a_design_of_too_many_trials_is_refused_before_a_run_and_not_read_after(tmp_path: Path) -> None:
    made, _ = freeze(load_study(make(tmp_path)), "main", Parts(TASKS))
    assert made is not None
    each = made.trials // made.stage.epochs
    assert made.trials == plan(made).planned["trials"]
    file = tmp_path / "design.json"
    for epochs, fits in ((MAX_TRIALS // each, True), (MAX_TRIALS // each + 1, False), (10**15, False)):
        design = replace(made, stage=replace(made.stage, epochs=epochs))
        assert design.is_too_large is not fits
        file.write_bytes(design.to_bytes())
        if fits:
            assert read_design(file) == design
            continue
        with pytest.raises(Refusal) as refused:
            read_design(file)
        assert refused.value.reason is Reason.EVIDENCE_UNREADABLE and "5,000,000" in str(refused.value)


def test_a_design_of_too_many_parts_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "design.json"
    file.write_bytes(b"[" + b",".join([b"0"] * 1_000_001) + b"]")
    with pytest.raises(Refusal) as refused:
        read_design(file)
    assert refused.value.reason is Reason.EVIDENCE_UNREADABLE and "1,000,000 parts" in str(refused.value)
