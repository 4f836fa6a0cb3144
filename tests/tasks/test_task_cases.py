"""The real task folders, each judged as its index says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from planning import environment_plan, obstacles

from case_copies import copied_case
from proctor.core.reasons import Reason
from proctor.tasks.context import CopyIn
from proctor.tasks.discover import Found, discover
from proctor.tasks.offer import Offer
from proctor.tasks.reading import read_task
from proctor.tasks.recipe import Folder
from proctor.tasks.roots import RootFacts

Offers = Callable[..., Offer]

JUDGED: dict[str, list[Reason]] = {
    "benchflow-acp-smoke": [],
    "benchflow-demo-task": [Reason.TASK_NEEDS_DOCKER, Reason.TASK_NO_SOLUTION],
    "digest-alpha": [Reason.TASK_NO_SOLUTION],
    "digest-beta": [Reason.TASK_NOT_GRADABLE, Reason.TASK_NO_SOLUTION],
    "skillsbench-lake-warming": [Reason.TASK_NEEDS_DOCKER],
    "tb4-v4-echo": [Reason.TASK_NEEDS_DOCKER],
    "tetrabench-credential-boundary": [],
}


@pytest.mark.parametrize(("name", "expected"), JUDGED.items(), ids=JUDGED.keys())
def test_each_folder_on_a_plain_host(cases: Path, offer: Offers, name: str, expected: list[Reason]) -> None:
    task = read_task(cases / "tasks" / name)
    assert [refusal.reason for refusal in obstacles(task, offer())] == expected
    assert task.unknown_keys == ()


def test_every_folder_is_found_and_named(cases: Path) -> None:
    found = discover(sorted((cases / "tasks").iterdir()))
    formats = {item.path.name: item.format for item in found if item.found is Found.TASK}
    assert {name for name, format_ in formats.items() if format_ == "harbor"} == JUDGED.keys()
    assert {name for name, format_ in formats.items() if format_ == "benchflow"} == DOCUMENTS.keys()
    later = [item.format for item in found if item.found is Found.LATER_FORMAT]
    assert later == ["Terminal-Bench task.yaml"] * 4
    assert [item.path.name for item in found if item.found is Found.PASSED_OVER] == ["README.md"]
    assert [item for item in found if item.found is Found.NOTHING] == []


# without tests and solution: they show what a task says, and are no packages that can run
DOCUMENTS: dict[str, list[Reason]] = {
    "clean-body-roles-scenes": [Reason.TASK_NOT_GRADABLE],
    "multi-scene": [Reason.TASK_NOT_GRADABLE, Reason.NOT_IN_THIS_VERSION],
    "nudgebench-team": [Reason.TASK_NOT_GRADABLE, Reason.NOT_IN_THIS_VERSION],
    "harbor-parity": [
        Reason.TASK_NEEDS_GPU,
        Reason.TASK_NEEDS_DOCKER,
        Reason.TASK_NEEDS_DOCKER,
        Reason.NOT_IN_THIS_VERSION,
        Reason.NOT_IN_THIS_VERSION,
    ],
}


@pytest.mark.parametrize(("name", "expected"), DOCUMENTS.items(), ids=DOCUMENTS.keys())
def test_each_document_for_an_agent_that_takes_a_prompt(
    cases: Path, offer: Offers, name: str, expected: list[Reason]
) -> None:
    task = read_task(cases / "tasks/data-only/task-md" / name)
    found = obstacles(task, offer(needs_solution=False, takes_prompt=True, many_users=True))
    assert [refusal.reason for refusal in found] == expected
    assert (task.format, task.unknown_keys) == ("benchflow", ())
    assert "## " not in task.instruction and task.instruction.strip()


def test_prompts_beside_a_document_without_roles_are_no_one_s(cases: Path) -> None:
    task = read_task(cases / "tasks/data-only/task-md/clean-body-roles-scenes")
    assert task.instruction.startswith("Investigate why") and task.later_prompts == ()
    (note,) = task.notes
    assert "prompts/role.reviewer.md" in note and "no agent is given" in note


def test_everything_that_the_two_formats_share_is_read(cases: Path, offer: Offers) -> None:
    task = read_task(cases / "tasks/data-only/task-md/harbor-parity")
    own = task.verifier_environment
    assert own is not None
    assert (task.environment.image, own.image) == ("ghcr.io/example/task:latest", "ghcr.io/example/grader:latest")
    assert (task.agent.user, task.verifier.user, task.agent.allowed_hosts) == ("agent", "root", ["api.example.com"])
    assert task.solution_env == {"SOLUTION_MODE": "oracle"}
    assert [step.name for step in task.toml.steps] == ["scaffold"]
    (note,) = [note for note in task.notes if "nothing is done" in note]
    assert "verifier.hardening" in note and "verifier.pytest_plugins" in note


@pytest.mark.parametrize("name", ["benchflow-acp-smoke", "benchflow-demo-task"])
def test_a_folder_in_both_formats_says_the_same_in_either(cases: Path, tmp_path: Path, name: str) -> None:
    both = read_task(cases / "tasks" / name)
    copied_case(cases / "tasks" / name, tmp_path / name)
    (tmp_path / name / "task.toml").unlink()
    one = read_task(tmp_path / name)
    assert (both.format, one.format, one.name) == ("harbor", "benchflow", name)
    assert one.instruction.strip() == both.instruction.strip()
    assert (one.layout.tests, one.layout.solution) == (both.layout.tests, both.layout.solution)
    assert (one.has_tests, one.has_solution) == (both.has_tests, both.has_solution)
    assert (one.layout.tests_target, one.layout.tests_cwd) == ("/tests", None)
    assert (one.agent.timeout_sec, one.verifier.timeout_sec) == (both.agent.timeout_sec, both.verifier.timeout_sec)
    assert (one.environment.image, one.environment.compose) == (both.environment.image, both.environment.compose)
    assert one.environment.table.memory_mb == both.environment.table.memory_mb
    assert (one.unknown_keys, one.later, one.later_prompts) == ((), (), ())
    assert one.digest != both.digest


def test_acp_smoke_gets_its_directory_from_the_compose_file(cases: Path, offer: Offers) -> None:
    task = read_task(cases / "tasks/benchflow-acp-smoke")
    main = environment_plan(task, offer()).main
    assert (main.image, main.workdir, main.build) == ("ubuntu:24.04", "/app", (Folder(0, "/app"),))
    assert any(note.startswith("task.md stands beside") for note in task.notes)
    assert task.migrated == ("version -> schema_version",)


def test_host_credentials_do_not_leak(cases: Path, offer: Offers) -> None:
    task = read_task(cases / "tasks/tetrabench-credential-boundary")
    templates = task.environment.table.env
    plan = environment_plan(task, offer(host_env={name: f"leak-{name}" for name in templates}))
    assert len(templates) == 30
    assert plan.main.env == dict.fromkeys(templates, "unavailable")
    assert plan.host_variables == ()


def test_echo_runs_where_a_root_with_pytest_is_named(cases: Path, offer: Offers) -> None:
    task = read_task(cases / "tasks/tb4-v4-echo")
    (refusal,) = obstacles(task, offer())
    assert refusal.path == f"{task.path}/tests/Dockerfile:2"
    prepared = RootFacts(Path("/roots/python"), python={"pytest": "7.2.1"}, pythons=frozenset({"3.11"}))
    plan = environment_plan(task, offer(substitutes={"python:3.13-slim": prepared}))
    assert plan.verifier is not None and plan.verifier.base_substituted is not None
    assert (plan.main.root, plan.verifier.root, plan.bring_tests) == (prepared.path, prepared.path, False)
    assert plan.verifier.base_substituted["version_notes"] == [
        "python:3.13-slim: python 3.13 is asked for, the root has 3.11",
        "pytest (pip): 9.1.1 is asked for, the root has 7.2.1",
    ]
    assert plan.verifier.build == (
        CopyIn(task.path / "tests", "/tests"),
        Folder(4, "/app"),
        Folder(4, "/logs/verifier"),
    )
    assert [item.source for item in task.artifacts] == ["/app/answer.txt"]
    bare = RootFacts(Path("/roots/bare"), pythons=frozenset({"3.13"}))
    found = obstacles(task, offer(substitutes={"python:3.13-slim": bare}))
    assert [(item.reason, item.observed) for item in found] == [(Reason.TASK_NEEDS_PACKAGES, ["pytest (pip)"])]


def test_lake_warming_names_all_its_packages(cases: Path, offer: Offers) -> None:
    task = read_task(cases / "tasks/skillsbench-lake-warming")
    root = RootFacts(Path("/r"), dpkg={"python3": "3.12", "python3-pip": "24"}, python={"numpy": "1.26.4"})
    (refusal,) = obstacles(task, offer(substitutes={"ubuntu:24.04": root}))
    assert refusal.reason is Reason.TASK_NEEDS_PACKAGES
    wanted = ["pandas", "scipy", "scikit-learn", "factor_analyzer", "pymannkendall"]
    assert refusal.observed == [f"{name} (pip)" for name in wanted]
