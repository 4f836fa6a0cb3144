"""The real task folders on Docker: each builds or takes its image, passes with its solution and fails without one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from case_tasks import ANYWHERE, BOTH, Right, checked, everything, folders, judged
from each_kind import kind_or_skip
from real_runs import Proctor, bodies, finals, proctor

from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe
from proctor.evidence.kinds import Kind

__all__ = ["folders", "proctor"]
pytestmark = pytest.mark.real

DOCKER = ("--sandbox", "docker")
LAKE = "skillsbench-lake-warming"
ECHO = "tb4-v4-echo"
DEMO = "benchflow-demo-task"
ON_DOCKER = ANYWHERE | {
    "data-only/task-md/harbor-parity": Right("refused", ("task_needs_gpu", "not_in_this_version")),
    "data-only/task-md/clean-body-roles-scenes": Right(
        "refused", ("image_missing", "task_not_gradable", "task_no_solution")
    ),
    "data-only/task-md/multi-scene": Right("refused", ("image_missing", "task_not_gradable", "task_no_solution")),
    "data-only/task-md/nudgebench-team": Right("refused", ("image_missing", "task_not_gradable", "task_no_solution")),
    "digest-beta": Right("refused", ("image_missing", "task_not_gradable", "task_no_solution")),
}
# what the task's own lines install, so that they have nothing left to fetch
LAKE_BASE = "proctor-test/lake-base:1"
LAKE_PACKAGES = (
    *("pandas==2.2.3", "numpy==1.26.4", "scipy==1.14.1", "scikit-learn==1.5.2"),
    *("factor_analyzer==0.5.1", "pymannkendall==1.4.3", "pytest==9.0.2", "pytest-json-ctrf==0.3.6"),
)


@pytest.fixture(autouse=True)
def engine() -> None:
    """Skips where no engine has the images that the folders begin with."""
    kind = kind_or_skip("docker")
    found = kind.images(["debian:bookworm-slim", "ubuntu:24.04", "python:3.13-slim"], seal_probe(30), pull="never")
    absent = [name for name, image in found.items() if isinstance(image, Refusal)]
    if absent:
        pytest.skip(f"the engine lacks {absent}: .ci/images.sh makes them")


def fetches(line: str, base: str) -> None:
    """Skip where a build on this engine cannot fetch what a folder's own build installs."""
    made = subprocess.run(
        ["docker", "run", "--rm", base, "sh", "-c", line], capture_output=True, text=True, timeout=600
    )
    if made.returncode:
        pytest.skip(f"no packages can be fetched in containers here: {made.stderr[-300:]}")


@pytest.fixture
def lake_base(tmp_path: Path) -> str:
    """An image that holds what the folder installs; skips where it cannot be made."""
    (tmp_path / "Dockerfile").write_text(f"FROM python:3.13-slim\nRUN pip install -q {' '.join(LAKE_PACKAGES)}\n")
    made = subprocess.run(
        ["docker", "build", "-q", "-t", LAKE_BASE, str(tmp_path)], capture_output=True, text=True, timeout=1200
    )
    if made.returncode:
        pytest.skip(f"the packages cannot be fetched here: {made.stderr[-300:]}")
    return LAKE_BASE


def test_each_folder_gets_its_verdict(proctor: Proctor, folders: Path) -> None:
    records = everything(proctor, folders, *DOCKER, without=(LAKE, ECHO, DEMO))
    assert {name: judged(record) for name, record in records.items()} == ON_DOCKER
    for record in records.values():
        for run in map(Path, record["runs"] if record["verdict"] == "ok" else ()):
            proctor.check(run)


def test_a_separate_verifier_is_its_own_build(proctor: Proctor, folders: Path) -> None:
    fetches("pip download -q --no-deps -d /tmp/x pytest==9.1.1", "python:3.13-slim")
    status, (record,) = checked(proctor, [folders / ECHO], *DOCKER)
    assert (status, judged(record)) == (0, Right("ok", grades=BOTH))
    for run in map(Path, record["runs"]):
        proctor.check(run)
        started = bodies(run, Kind.SANDBOX_STARTED)
        assert [body["role"] for body in started] == ["agent", "verifier"]
        assert len({body["facts"]["image"] for body in started}) == 2
        assert [body["from_snapshot"] for body in started] == [False, False]


def test_a_folder_without_a_solution_still_fails_with_nothing(proctor: Proctor, folders: Path) -> None:
    fetches("apt-get update -qq && apt-get install -y -qq curl", "ubuntu:24.04")
    status, (record,) = checked(proctor, [folders / DEMO], *DOCKER)
    assert (status, judged(record)) == (3, Right("refused", ("task_no_solution",), {"nop": "fail"}))


def test_a_build_starts_from_the_image_that_the_study_names_instead(
    proctor: Proctor, folders: Path, lake_base: str
) -> None:
    status, (record,) = checked(proctor, [folders / LAKE], *DOCKER, "--substitute", f"ubuntu:24.04={lake_base}")
    assert (status, judged(record)) == (0, Right("ok", grades=BOTH)), record
    for run in map(Path, record["runs"]):
        proctor.check(run)
        (record_of, *_) = [body["base_substituted"] for body in bodies(run, Kind.SANDBOX_STARTED)]
        assert (record_of["image"], record_of["root"], record_of["explicit"]) == ("ubuntu:24.04", lake_base, True)


@pytest.mark.parametrize(("agent", "grade"), BOTH.items())
def test_those_that_need_nothing_are_a_study(proctor: Proctor, folders: Path, agent: str, grade: str) -> None:
    study, run = proctor.home / "study", proctor.home / "run"
    study.mkdir()
    (study / "study.toml").write_text(
        f'[study]\nname = "cases"\n[tasks]\npath = {json.dumps(os.path.relpath(folders, study))}\n'
        f'include = ["benchflow-acp-*", "tetrabench-*"]\n[draw]\nseed = 7\n[agent]\nname = "{agent}"\n'
        '[sandbox]\nkind = "docker"\nnetwork = "none"\n'
        '[arms.plain]\n[stages.main]\ntype = "standard"\narms = ["plain"]\nepochs = 2\nlanes = 2\n'
    )
    status, said = proctor("run", study, "--out", run, "--quiet")
    assert status == 0, said
    proctor.check(run)
    assert [final[0] for final in finals(run).values()] == [grade] * 4
    assert {body["assurance"] for body in bodies(run, Kind.VERIFIER_ENDED)} == {"isolated"}
