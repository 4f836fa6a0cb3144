"""The real task folders: each gets the verdict that its index calls for, and those that can run are a study."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from real_runs import ENOUGH_SEC, Proctor, bodies, finals, proctor

from proctor.evidence.kinds import Kind

__all__ = ["proctor"]
pytestmark = pytest.mark.real

IMAGES = ("python:3.13-slim", "ubuntu:24.04", "debian:bookworm-slim")
CREDENTIALS = "tetrabench-credential-boundary"
BOTH = {"oracle": "pass", "nop": "fail"}


@dataclass(frozen=True)
class Right:
    """The right verdict on a folder: in a word, with these reasons and grades."""

    word: str
    reasons: tuple[str, ...] = ()
    grades: Mapping[str, str] | None = None


LATER = Right("refused", ("task_format_later",))
ANYWHERE = {
    "README.md": Right("passed over"),
    "benchflow-acp-smoke": Right("ok", grades=BOTH),
    "data-only/task-md/clean-body-roles-scenes": LATER,
    "data-only/task-md/harbor-parity": LATER,
    "data-only/task-md/multi-scene": LATER,
    "data-only/task-md/nudgebench-team": LATER,
    "data-only/terminal-bench-yaml/hello-world": LATER,
    "data-only/terminal-bench-yaml/hf-model-inference": LATER,
    "data-only/terminal-bench-yaml/parallelize-compute-squares": LATER,
    "data-only/terminal-bench-yaml/pytorch-model-recovery": LATER,
    # its test writes 1 whatever was done
    "digest-alpha": Right("refused", ("task_no_solution", "task_nop_passes"), {"nop": "pass"}),
    "digest-beta": Right("refused", ("task_not_gradable", "task_no_solution")),
    CREDENTIALS: Right("ok", grades=BOTH),
}
ON_THE_HOST = ANYWHERE | {
    "benchflow-demo-task": Right("refused", ("task_needs_docker", "task_no_solution")),
    "skillsbench-lake-warming": Right("refused", ("task_needs_docker",)),
    "tb4-v4-echo": Right("refused", ("task_needs_docker",)),
}
IN_THE_ROOT = ANYWHERE | {
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
def folders(cases: Path) -> Path:
    return cases / "tasks"


@pytest.fixture
def root() -> Path:
    """A Debian root folder with pytest in it; skips where none is named."""
    said = os.environ.get("PROCTOR_TEST_ROOT")
    if not said:
        pytest.skip("PROCTOR_TEST_ROOT names no Debian root folder with python3-pytest")
    return Path(said)


def checked(
    proctor: Proctor, paths: Sequence[Path], *words: object, out: str = "checks"
) -> tuple[int, list[dict[str, Any]]]:
    """What `tasks check` says of the paths."""
    out_path = proctor.home / out
    process = proctor.start("tasks", "check", *paths, "--json", "--out", out_path, *words, stderr=subprocess.PIPE)
    with process:
        said, aside = process.communicate(timeout=ENOUGH_SEC)
    assert said, aside
    return process.returncode, json.loads(said)


def stand_ins(root: Path) -> list[str]:
    return [word for image in IMAGES for word in ("--substitute", f"{image}={root}")]


def judged(record: Mapping[str, Any]) -> Right:
    reasons = tuple(refusal["reason"] for refusal in record["refusals"])
    return Right(record["verdict"], reasons, record["grades"] or None)


def everything(proctor: Proctor, folders: Path, *words: object) -> dict[str, dict[str, Any]]:
    status, records = checked(proctor, sorted(folders.iterdir()), *words)
    assert status == 3
    return {str(Path(record["path"]).relative_to(folders)): record for record in records}


def test_each_folder_gets_its_verdict_on_the_host_s_own_root(proctor: Proctor, folders: Path) -> None:
    records = everything(proctor, folders)
    assert {name: judged(record) for name, record in records.items()} == ON_THE_HOST
    formats = [records[name]["format"] for name, right in ON_THE_HOST.items() if right is LATER]
    assert sorted(formats) == ["BenchFlow task.md"] * 4 + ["Terminal-Bench task.yaml"] * 4


def test_each_folder_gets_its_verdict_where_a_root_stands_in_for_its_image(
    proctor: Proctor, folders: Path, root: Path
) -> None:
    records = everything(proctor, folders, *stand_ins(root))
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
    status, records = checked(proctor, [folders / "data-only"], out="later")
    assert (status, len(records)) == (3, 8)
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
            "task_format_later": 8,
            "task_needs_docker": 3,
            "task_no_solution": 3,
            "task_not_gradable": 1,
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
