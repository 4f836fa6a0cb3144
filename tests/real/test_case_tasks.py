"""The real task folders: each gets the verdict that its index calls for, and those that can run are a study."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from case_tasks import ANYWHERE, BOTH, CREDENTIALS, LATER, Right, checked, everything, folders, judged
from real_runs import Proctor, bodies, finals, proctor

from proctor.evidence.kinds import Kind

__all__ = ["folders", "proctor"]
pytestmark = pytest.mark.real

NAMESPACE = ("--sandbox", "namespace")
IMAGES = ("python:3.13-slim", "ubuntu:24.04", "debian:bookworm-slim")
PARITY = "data-only/task-md/harbor-parity"
# one that names a user of its own needs more than one user
OF_USERS = () if os.geteuid() == 0 else ("task_needs_root",)
TOO_MUCH = ("task_needs_gpu", "task_needs_docker", *OF_USERS, "task_needs_docker", "not_in_this_version")
ON_THE_HOST = ANYWHERE | {
    PARITY: Right("refused", TOO_MUCH),
    "benchflow-demo-task": Right("refused", ("task_needs_docker", "task_no_solution")),
    "skillsbench-lake-warming": Right("refused", ("task_needs_docker",)),
    "tb4-v4-echo": Right("refused", ("task_needs_docker",)),
}
IN_THE_ROOT = ANYWHERE | {
    PARITY: Right("refused", TOO_MUCH),
    "benchflow-demo-task": Right("refused", ("task_needs_packages", "task_no_solution")),
    "skillsbench-lake-warming": Right("refused", ("task_needs_packages",)),
    "tb4-v4-echo": Right("ok", grades=BOTH),
}
LACKING = {
    "benchflow-demo-task": ["curl (apt)"],
    "skillsbench-lake-warming": [
        "python3-pip (apt)",
        *(f"{name} (pip)" for name in ("pandas", "numpy", "scipy", "scikit-learn", "factor_analyzer", "pymannkendall")),
    ],
}


@pytest.fixture
def root() -> Path:
    """A Debian root folder with pytest in it; skips where none is named."""
    said = os.environ.get("PROCTOR_TEST_ROOT")
    if not said:
        pytest.skip("PROCTOR_TEST_ROOT names no Debian root folder with python3-pytest")
    return Path(said)


def stand_ins(root: Path) -> list[str]:
    return [word for image in IMAGES for word in ("--substitute", f"{image}={root}")]


def test_each_folder_gets_its_verdict_on_the_host_s_own_root(proctor: Proctor, folders: Path) -> None:
    records = everything(proctor, folders, *NAMESPACE)
    assert {name: judged(record) for name, record in records.items()} == ON_THE_HOST
    formats = [records[name]["format"] for name, right in ON_THE_HOST.items() if right is LATER]
    assert formats == ["Terminal-Bench task.yaml"] * 4
    assert [record["format"] for name, record in records.items() if "/task-md/" in name] == ["benchflow"] * 4


def test_each_folder_gets_its_verdict_where_a_root_stands_in_for_its_image(
    proctor: Proctor, folders: Path, root: Path
) -> None:
    records = everything(proctor, folders, *NAMESPACE, *stand_ins(root))
    assert {name: judged(record) for name, record in records.items()} == IN_THE_ROOT
    lacking = {
        name: refusal["observed"]
        for name, record in records.items()
        for refusal in record["refusals"]
        if refusal["reason"] == "task_needs_packages"
    }
    assert lacking == LACKING
    runs = [Path(run) for record in records.values() if record["verdict"] == "ok" for run in record["runs"]]
    assert len(runs) == 6
    for run in runs:
        proctor.check(run)


def test_a_folder_of_tasks_is_walked_and_plain_files_are_passed_over(proctor: Proctor, folders: Path) -> None:
    status, records = checked(proctor, [folders / "README.md", folders / "benchflow-acp-smoke"])
    assert (status, [record["verdict"] for record in records]) == (0, ["passed over", "ok"])
    status, records = checked(proctor, [folders / "data-only/terminal-bench-yaml"], out="later")
    assert (status, len(records)) == (3, 4)
    assert not (proctor.home / "later").exists()


def test_keys_of_the_host_are_not_in_a_task_that_names_them(proctor: Proctor, folders: Path) -> None:
    written = (folders / CREDENTIALS / "task.toml").read_text().splitlines()
    names = [line.split(" = ")[0] for line in written if "unavailable" in line]
    assert len(names) == 30
    assert {name[:4].upper() for name in names} == {"AWS_", "BOTO", "TIGR"}
    proctor.env |= dict.fromkeys(names, "of-the-host")
    status, (record,) = checked(proctor, [folders / CREDENTIALS])
    assert (status, judged(record)) == (0, Right("ok", grades=BOTH))
    for run in map(Path, record["runs"]):
        written_down = [path for path in run.rglob("*") if path.is_file()]
        assert written_down
        assert [path for path in written_down if b"of-the-host" in path.read_bytes()] == []


def write_study(folder: Path, folders: Path, agent: str, include: Sequence[str], root: Path | None) -> Path:
    folder.mkdir()
    substitutes = "" if root is None else "".join(f'"{image}" = {json.dumps(str(root))}\n' for image in IMAGES)
    (folder / "study.toml").write_text(
        f'[study]\nname = "cases"\n[tasks]\npath = {json.dumps(os.path.relpath(folders, folder))}\n'
        f'include = {json.dumps(list(include))}\n[draw]\nseed = 7\n[agent]\nname = "{agent}"\n'
        f'[sandbox]\nkind = "namespace"\nnetwork = "none"\n[sandbox.substitute]\n{substitutes}'
        '[arms.plain]\n[stages.main]\ntype = "standard"\narms = ["plain"]\nepochs = 2\nlanes = 2\n'
    )
    return folder / "study.toml"


@pytest.mark.parametrize(("agent", "grade"), BOTH.items())
def test_those_that_can_run_are_a_study(proctor: Proctor, folders: Path, root: Path, agent: str, grade: str) -> None:
    include = ["benchflow-acp-*", "v4-echo", "tetrabench-*"]
    study, run = write_study(proctor.home / "study", folders, agent, include, root), proctor.home / "run"
    status, said = proctor("check", study)
    assert status == 0, said
    status, said = proctor("run", study, "--out", run, "--quiet")
    assert status == 0, said
    proctor.check(run)
    assert [final[0] for final in finals(run).values()] == [grade] * 6
    planned = [(body["task"], body["epoch"]) for body in bodies(run, Kind.ATTEMPT_ADMITTED)]
    names = ("benchflow-acp-smoke", CREDENTIALS, "v4-echo")
    assert sorted(planned) == sorted((name, epoch) for name in names for epoch in {epoch for _, epoch in planned})
    assert {body["assurance"] for body in bodies(run, Kind.VERIFIER_ENDED)} == {"isolated"}


@pytest.mark.parametrize(
    ("include", "reasons"),
    {
        ("hello-*",): {"task_format_later": 1},
        ("*",): {
            "not_in_this_version": 1,
            "task_format_later": 4,
            "task_needs_docker": 5,
            "task_needs_gpu": 1,
            "task_no_solution": 6,
            "task_not_gradable": 4,
            **dict.fromkeys(OF_USERS, 1),
        },
        ("nobody",): {"nothing_selected": 1},
    }.items(),
)
def test_a_study_of_what_cannot_run_is_refused_by_type(
    proctor: Proctor, folders: Path, include: tuple[str, ...], reasons: Mapping[str, int]
) -> None:
    study, run = write_study(proctor.home / "study", folders, "oracle", include, None), proctor.home / "run"
    status, said = proctor("run", study, "--out", run, "--quiet")
    assert status == 3, said
    (manifest,) = (run / "manifests").iterdir()
    refusals = [refusal["reason"] for refusal in json.loads(manifest.read_text())["refusals"]]
    assert {reason: refusals.count(reason) for reason in refusals} == reasons
    assert [path.name for path in run.iterdir() if path.name not in ("manifests", "lock")] == []
