"""What a task says of its world holds on Docker: users, folders, variables, health, builds and who brings the tests."""

from __future__ import annotations

import json
import shutil
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from case_tasks import BOTH, Right, checked, judged
from each_kind import kind_or_skip
from real_runs import Proctor, bodies, proctor

from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe
from proctor.evidence.kinds import Kind

__all__ = ["proctor"]
pytestmark = pytest.mark.real

DOCKER = ("--sandbox", "docker")
BASE = "debian:bookworm-slim"
WRITES_ONE = "echo 1 > /logs/verifier/reward.txt\n"
# passes iff the solution wrote what the tests expect
TESTS = """\
    set -e
    echo 0 > /logs/verifier/reward.txt
    test "$(cat answer)" = "{answer}"
    echo 1 > /logs/verifier/reward.txt
    """


@pytest.fixture(autouse=True)
def engine() -> None:
    kind = kind_or_skip("docker")
    found = kind.images([BASE, "busybox:latest"], seal_probe(30), pull="never")
    absent = [name for name, image in found.items() if isinstance(image, Refusal)]
    if absent:
        pytest.skip(f"the engine lacks {absent}: .ci/images.sh makes them")


def write(folder: Path, files: Mapping[str, str], *, answer: str = "right", solve: str = "echo right > answer") -> Path:
    whole = {
        "task.toml": "",
        "instruction.md": "Write the answer.\n",
        "tests/test.sh": TESTS.format(answer=answer),
        "solution/solve.sh": solve,
        **files,
    }
    for name, text in whole.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    return folder


def passes(proctor: Proctor, task: Path, *words: str) -> dict[str, Any]:
    """The record of a task that passes with its solution and fails without it."""
    status, (record,) = checked(proctor, [task], *DOCKER, *words)
    assert (status, judged(record)) == (0, Right("ok", grades=BOTH)), json.dumps(record, indent=1)
    for run in map(Path, record["runs"]):
        proctor.check(run)
    return record


USERS = f"FROM {BASE}\nRUN useradd -m dev && useradd judge\nWORKDIR /srv/app\nRUN chown dev:dev .\nUSER dev\n"


@pytest.mark.parametrize(
    ("toml", "agent", "verifier"),
    [
        ("", "dev", "dev"),
        ("[agent]\nuser = 'root'\n", "root", "dev"),
        ("[verifier]\nuser = 'root'\n", "dev", "root"),
        ("[agent]\nuser = 'dev'\n[verifier]\nuser = 'judge'\n", "dev", "judge"),
    ],
)
def test_users_and_the_working_directory_are_the_image_s_unless_the_task_says(
    proctor: Proctor, tmp_path: Path, toml: str, agent: str, verifier: str
) -> None:
    tests = TESTS.format(answer=f"{agent} /srv/app") + f'test "$(id -un) $(pwd)" = "{verifier} /srv/app"\n'
    late = tests.replace(WRITES_ONE, "", 1) + WRITES_ONE
    files = {"environment/Dockerfile": USERS, "task.toml": toml, "tests/test.sh": late}
    passes(proctor, write(tmp_path / "one", files, solve='echo "$(id -un) $(pwd)" > answer'))


def test_an_image_without_bash_and_without_users_works(proctor: Proctor, tmp_path: Path) -> None:
    files = {"environment/Dockerfile": "FROM busybox:latest\nRUN rm /etc/passwd\nWORKDIR /w\n"}
    passes(proctor, write(tmp_path / "one", files))


def test_variables_of_the_task_stand_above_the_image_s(proctor: Proctor, tmp_path: Path) -> None:
    proctor.env |= {"FROM_HOST": "host", "SOME_TOKEN": "secret"}
    files = {
        "environment/Dockerfile": f"FROM {BASE}\nWORKDIR /w\nENV A=image B=image\n",
        "task.toml": "[environment.env]\nB = 'task'\nC = '${FROM_HOST:-x}'\nD = '${SOME_TOKEN:-none}'\n",
    }
    solve = 'echo "$A $B $C $D" > answer'
    record = passes(proctor, write(tmp_path / "one", files, answer="image task host none", solve=solve))
    for run in map(Path, record["runs"]):
        assert [path for path in run.rglob("*") if path.is_file() and b"secret" in path.read_bytes()] == []


@pytest.mark.parametrize("workdir", ["", "workdir = '/made'\n"])
def test_loose_files_are_put_into_the_working_directory(proctor: Proctor, tmp_path: Path, workdir: str) -> None:
    files = {"task.toml": f"[environment]\ndocker_image = '{BASE}'\n{workdir}", "environment/sub/data": "right\n"}
    passes(proctor, write(tmp_path / "one", files, solve="cp sub/data answer"))


def test_a_world_is_ready_when_its_health_check_says_so(proctor: Proctor, tmp_path: Path) -> None:
    check = "test -e /tmp/again || { touch /tmp/again; false; }"
    files = {
        "environment/Dockerfile": f"FROM {BASE}\nWORKDIR /w\n",
        "task.toml": f"[environment.healthcheck]\ncommand = '{check}'\ninterval_sec = 0.1\nretries = 2\n",
    }
    passes(proctor, write(tmp_path / "one", files, solve="test -e /tmp/again && echo right > answer"))


def test_a_compose_file_of_main_builds_and_says_how_it_runs(proctor: Proctor, tmp_path: Path) -> None:
    compose = "services: {main: {build: ., working_dir: /c, user: nobody, environment: {A: '1'}}}"
    files = {
        "environment/Dockerfile": f"FROM {BASE}\nRUN mkdir -m 777 /c\n",
        "environment/docker-compose.yaml": compose,
        "task.toml": "[environment]\ndocker_image = 'absent:never'\n",
    }
    solve = 'echo "$(id -un) $(pwd) $A" > answer'
    passes(proctor, write(tmp_path / "one", files, answer="nobody /c 1", solve=solve))


STAGES = f"""\
    ARG BASE={BASE}
    FROM $BASE AS build
    RUN echo right > /made
    FROM build AS again
    FROM {BASE}
    COPY --from=again /made /w/data
    COPY --from=busybox:latest /bin/busybox /bin/small
    COPY kept dropped* /w/
    COPY . /all/
    WORKDIR /w
    """


def test_stages_patterns_and_ignored_files_are_the_builder_s(proctor: Proctor, tmp_path: Path) -> None:
    files = {
        "environment/Dockerfile": STAGES,
        "environment/.dockerignore": "# logs\ndropped*\n**/*.log\n!deep/kept.log\nout/\nDockerfile*\n.dockerignore\n",
        "environment/kept": "k",
        "environment/dropped.txt": "d",
        "environment/deep/kept.log": "k",
        "environment/deep/a.log": "d",
        "environment/out/x/y": "d",
    }
    listed = 'test "$(cd /all && find . -mindepth 1 | sort | xargs)" = "./deep ./deep/kept.log ./kept"'
    solve = f"test -x /bin/small && test -e kept && test ! -e dropped.txt && {listed} && cp data answer"
    task = write(tmp_path / "one", files, solve=solve)
    (task / "environment/Dockerfile").rename(task / "environment/Dockerfile.plain")
    (task / "environment/Dockerfile").symlink_to("Dockerfile.plain")
    passes(proctor, task)


@pytest.mark.parametrize("copies", [True, False])
def test_a_separate_verifier_s_build_brings_the_tests_or_is_brought_them(
    proctor: Proctor, tmp_path: Path, copies: bool
) -> None:
    copy = "COPY . /tests/\n" if copies else ""
    files = {
        "task.toml": 'artifacts = ["/w/answer"]\n[verifier]\nenvironment_mode = "separate"\n',
        "environment/Dockerfile": f"FROM {BASE}\nWORKDIR /w\n",
        "tests/Dockerfile": f"FROM {BASE}\nWORKDIR /w\n{copy}RUN touch /of-the-verifier\n",
        "tests/test.sh": "test -e /of-the-verifier || exit 1\n" + textwrap.dedent(TESTS.format(answer="right")),
    }
    record = passes(proctor, write(tmp_path / "one", files))
    for run in map(Path, record["runs"]):
        assert len({body["facts"]["image"] for body in bodies(run, Kind.SANDBOX_STARTED)}) == 2


def test_an_image_that_is_named_for_the_verifier_has_its_tests_in_it(proctor: Proctor, tmp_path: Path) -> None:
    context, image = tmp_path / "context", "proctor-test/judge:1"
    context.mkdir()
    (context / "Dockerfile").write_text(f"FROM {BASE}\nCOPY test.sh /tests/\nWORKDIR /of-the-verifier\n")
    wanted = 'test "$(cat /w/answer) $(pwd)" = "right /of-the-verifier"'
    (context / "test.sh").write_text(f"echo 0 > /logs/verifier/reward.txt\n{wanted} || exit 1\n{WRITES_ONE}")
    made = subprocess.run(["docker", "build", "-q", "-t", image, context], capture_output=True, timeout=600)
    assert made.returncode == 0, made.stderr
    files = {
        "task.toml": f"artifacts = ['/w/answer']\n[verifier.environment]\ndocker_image = '{image}'\n",
        "environment/Dockerfile": f"FROM {BASE}\nWORKDIR /w\n",
    }
    task = write(tmp_path / "one", files)
    shutil.rmtree(task / "tests")
    passes(proctor, task)


def test_a_build_that_fails_says_what_it_printed_last(proctor: Proctor, tmp_path: Path) -> None:
    files = {"environment/Dockerfile": f"FROM {BASE}\nRUN echo the-reason && exit 7\n"}
    status, (record,) = checked(proctor, [write(tmp_path / "one", files)], *DOCKER)
    assert status == 3
    for run in map(Path, record["runs"]):
        ended = bodies(run, Kind.ATTEMPT_ENDED)
        assert {body["exception"] for body in ended} == {"image_build_failed"}
        assert all("the-reason" in body["message"] for body in ended)
        assert bodies(run, Kind.SANDBOX_STARTED) == []


@pytest.mark.parametrize(
    ("dockerfile", "reason"),
    [
        ("FROM debian:bookworm-slim\nRUN <<EOF\ntouch /x\nEOF\n", "build_unsupported"),
        ("FROM debian:bookworm-slim\nRUN --mount=type=cache,target=/c touch /x\n", "build_unsupported"),
        ("FROM proctor-test/absent:never\n", "image_missing"),
        ("FROM $NOTHING\n", "task_unreadable"),
    ],
)
def test_what_cannot_be_built_refuses_before_anything_is_made(
    proctor: Proctor, tmp_path: Path, dockerfile: str, reason: str
) -> None:
    task = write(tmp_path / "one", {"environment/Dockerfile": dockerfile})
    status, (record,) = checked(proctor, [task], *DOCKER)
    assert (status, judged(record)) == (3, Right("refused", (reason,)))


def test_an_image_that_the_study_names_instead_is_the_base_of_a_build(proctor: Proctor, tmp_path: Path) -> None:
    files = {"environment/Dockerfile": "FROM org/absent:1\nRUN echo right > /made\nWORKDIR /w\n"}
    task = write(tmp_path / "one", files, solve="cp /made answer")
    record = passes(proctor, task, "--substitute", f"org/absent:1={BASE}")
    for run in map(Path, record["runs"]):
        for body in bodies(run, Kind.SANDBOX_STARTED):
            assert body["base_substituted"]["root"] == BASE
