"""Folders with a task.md run: their own folders inside, their set-up, their verdicts, on every kind of sandbox."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from case_tasks import BOTH, Right, checked, folders, judged
from each_kind import kind_or_skip
from real_runs import Proctor, bodies, proctor

from case_copies import copied_case
from proctor.evidence.kinds import Kind

__all__ = ["folders", "proctor"]
pytestmark = pytest.mark.real


@pytest.fixture(params=["namespace", "docker"])
def kind(request: pytest.FixtureRequest) -> str:
    kind_or_skip(request.param)
    return str(request.param)


PACKAGE = {
    "task.md": """\
        ---
        schema_version: "1.3"
        task: {name: example/hello}
        agent: {timeout_sec: 60}
        verifier: {timeout_sec: 60, env: {WANTED: wanted.txt}}
        sandbox:
          setup_commands:
          - command: echo ready >state
          - {command: echo set >/opt/up, cwd: /}
        oracle: {env: {WORD: hello}}
        ---
        Write `hello` into out.txt.
        """,
    "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /work\n",
    # from where its tests lie, and with what the set-up left
    "verifier/test.sh": """\
        cat /work/state /opt/up && test "$(pwd)" = /verifier && cmp "$WANTED" /work/out.txt
        if [ $? = 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
        """,
    "verifier/wanted.txt": "hello\n",
    "oracle/solve.sh": '. /oracle/word.sh; word "$WORD" > out.txt\n',
    "oracle/word.sh": 'word() { echo "$1"; }\n',
}


def write_package(folder: Path, files: Mapping[str, str] = PACKAGE) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    return folder


def test_a_package_passes_with_its_oracle_and_fails_with_nothing(proctor: Proctor, tmp_path: Path, kind: str) -> None:
    status, (record,) = checked(proctor, [write_package(tmp_path / "hello")], "--sandbox", kind)
    assert (status, judged(record), record["format"]) == (0, Right("ok", grades=BOTH), "benchflow")
    for run in map(Path, record["runs"]):
        proctor.check(run)
        # what the oracle and the tests are brought as is no change of the agent's to the system
        (graded,) = bodies(run, Kind.ATTEMPT_GRADED)
        assert [said for said in graded["disclosures"] if "what the agent changed" in said] == []


def test_rewards_that_do_not_agree_are_no_grade(proctor: Proctor, tmp_path: Path, kind: str) -> None:
    both = "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 0}' > /logs/verifier/reward.json\n"
    package = write_package(tmp_path / "hello", {**PACKAGE, "verifier/test.sh": both})
    status, (record,) = checked(proctor, [package], "--sandbox", kind)
    assert (status, record["grades"]) == (3, {"oracle": "ungraded", "nop": "ungraded"})


def test_a_set_up_that_fails_is_no_world(proctor: Proctor, tmp_path: Path, kind: str) -> None:
    text = PACKAGE["task.md"].replace("echo ready >state", "exit 3")
    package = write_package(tmp_path / "hello", {**PACKAGE, "task.md": text})
    status, (record,) = checked(proctor, [package], "--sandbox", kind)
    assert (status, set(record["grades"].values())) == (3, {"ungraded"})
    assert {refusal["observed"]["reason"] for refusal in record["refusals"]} == {"sandbox_start_failed"}


def test_case_folders_in_both_formats_run_as_documents_too(
    proctor: Proctor, tmp_path: Path, folders: Path, kind: str
) -> None:
    for name in ("benchflow-acp-smoke", "benchflow-demo-task"):
        copied_case(folders / name, tmp_path / name)
        (tmp_path / name / "task.toml").unlink()
    # the demo has no solution, and installs a package that only a build can
    (tmp_path / "benchflow-demo-task/environment/Dockerfile").write_text("FROM ubuntu:24.04\nWORKDIR /app\n")
    paths = [tmp_path / "benchflow-acp-smoke", tmp_path / "benchflow-demo-task"]
    status, records = checked(proctor, paths, "--sandbox", kind)
    assert status == 3
    assert [(judged(record), record["format"]) for record in records] == [
        (Right("ok", grades=BOTH), "benchflow"),
        (Right("refused", ("task_no_solution",), {"nop": "fail"}), "benchflow"),
    ]
