"""What goes wrong around runs on Docker: engines that die, containers that others kill, images that move, builds that
never end, disks that are full. Each has its word, stops in time, and leaves nothing."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from engine_left import BASE, OnTheEngine, Others, docker, engine_or_skip, others, owner, seen
from engine_relay import Relay, relay
from real_runs import (
    ENOUGH_SEC,
    PASS,
    WORD,
    Proctor,
    bodies,
    ended,
    has_entry,
    outcomes,
    proctor,
    until,
    write_study,
)
from small_disks import fill, mounted

from proctor.evidence.kinds import Kind

__all__ = ["others", "proctor", "relay"]
pytestmark = pytest.mark.real

HELD = "echo right > /app/answer; until [ -e /tmp/go ]; do sleep 0.1; done"
FOUR = {f"t{number}": WORD for number in range(4)}
ALL_PASS = {"trials": 4, "finals": 4, "pass": 4, "fail": 0, "ungraded": 0}


@pytest.fixture(autouse=True)
def engine() -> None:
    engine_or_skip()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path, "48m")


def make_study(
    folder: Path,
    *,
    command: str = "echo right > /app/answer",
    tasks: dict[str, str] | None = None,
    stage: str = "",
    dockerfile: str = f"FROM {BASE}\nWORKDIR /app\n",
    toml: str = "",
    pull: str = "missing",
) -> Path:
    study = write_study(folder, command=command, tasks=tasks, stage=stage)
    text = study.read_text().replace('kind = "namespace"', 'kind = "docker"')
    study.write_text(text.replace('path = "tasks"', f'path = "tasks"\npull = "{pull}"'))
    for task in (folder / "tasks").iterdir():
        (task / "environment/Dockerfile").write_text(dockerfile)
        with (task / "task.toml").open("a") as file:
            file.write(toml)
    return study


def begun(proctor: Proctor, study: Path, run: Path, agents: int) -> subprocess.Popen[str]:
    process = proctor.start("run", study, "--out", run, "--waive", "git_dirty", "--quiet")
    until("agents work", lambda: process.poll() is not None or has_entry(run, Kind.AGENT_STARTED, agents)())
    assert process.poll() is None, process.communicate()[0]
    return process


@contextmanager
def going(engine: OnTheEngine) -> Iterator[None]:
    """Let go of all agents that are held, while the block lasts."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.1):
            with suppress(AssertionError):  # what was listed has gone
                for each in engine.containers():
                    subprocess.run(["docker", "exec", each, "touch", "/tmp/go"], capture_output=True, timeout=600)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def over(process: subprocess.Popen[str]) -> tuple[int, str]:
    with process:
        said = process.communicate(timeout=ENOUGH_SEC)[0]
    return process.returncode, said


def resume(proctor: Proctor, run: Path, *words: str) -> tuple[int, str]:
    return proctor("resume", run, "--waive", "git_dirty", "--json", *words)


def test_an_engine_that_dies_ends_the_run_which_goes_on_when_it_is_back(
    proctor: Proctor, tmp_path: Path, relay: Relay
) -> None:
    run = tmp_path / "run"
    engine = OnTheEngine(run, "none")
    proctor.env["DOCKER_HOST"] = relay.endpoint
    process = begun(proctor, make_study(tmp_path / "study", command=HELD, tasks=FOUR, stage="lanes = 2\n"), run, 2)
    relay.close()
    status, said = over(process)
    assert (status, ended(run)["exit_status"], ended(run)["reason"]) == (5, 5, "docker_unavailable"), said
    assert {body["exception"] for body in bodies(run, Kind.ATTEMPT_ENDED)} <= {"sandbox_lost", "docker_unavailable"}
    assert bodies(run, Kind.TRIAL_FINAL) == []
    proctor.check(run)
    # what it ran ends by itself, for nobody holds it any more
    until("its containers go", lambda: not engine.containers())
    status, said = resume(proctor, run)
    assert (status, "docker_unavailable" in said) == (3, True), said

    relay.open()
    with going(engine):
        status, said = resume(proctor, run)
    assert (status, ended(run)["totals"]) == (0, ALL_PASS), said
    proctor.check(run)
    engine.check()


@pytest.mark.parametrize("how", ["kill", "rm", "stop"])
def test_a_container_that_others_end_is_a_lost_sandbox_and_tried_again(
    proctor: Proctor, tmp_path: Path, how: str
) -> None:
    run = tmp_path / "run"
    engine = OnTheEngine(run, "none")
    process = begun(proctor, make_study(tmp_path / "study", command=HELD), run, 1)
    (container,) = engine.containers()
    docker(*{"kill": ["kill"], "rm": ["rm", "-f"], "stop": ["stop", "-t", "0"]}[how], container)
    until("the other one works", lambda: process.poll() is not None or has_entry(run, Kind.AGENT_STARTED, 2)())
    with going(engine):
        status, said = over(process)
    assert (status, outcomes(run)) == (0, {"infrastructure": 1, "completed": 1}), said
    lost = [body for body in bodies(run, Kind.ATTEMPT_ENDED) if body["outcome"] == "infrastructure"]
    assert [body["exception"] for body in lost] == ["sandbox_lost"]
    proctor.check(run)
    engine.check()


@pytest.fixture
def moving(others: Others) -> Iterator[str]:
    """The name of an image that the tests move."""
    name = f"proctor-test-{secrets.token_hex(4)}:1"
    others.image({"proctor-test": "first"}, tag=name)
    yield name
    subprocess.run(["docker", "rmi", "-f", name], capture_output=True, timeout=60)


def test_a_name_that_moves_changes_nothing_for_a_run_that_began(
    proctor: Proctor, tmp_path: Path, moving: str, others: Others
) -> None:
    run, toml = tmp_path / "run", f'[environment]\ndocker_image = "{moving}"\nworkdir = "/app"\n'
    study = make_study(tmp_path / "study", toml=toml)
    assert proctor("run", study, "--out", run, "--waive", "git_dirty", "--prepare-only")[0] == 0
    first = others.images[0]
    second = others.image({"proctor-test": "second"}, tag=moving)
    status, said = resume(proctor, run)
    assert status == 0, said
    assert {body["facts"]["image"] for body in bodies(run, Kind.SANDBOX_STARTED) if body["role"] == "agent"} == {first}
    proctor.check(run)

    other = tmp_path / "other"
    status, said = proctor("run", study, "--out", other, "--waive", "git_dirty", "--quiet")
    assert status == 0, said
    assert {body["facts"]["image"] for body in bodies(other, Kind.SANDBOX_STARTED) if body["role"] == "agent"} == {
        second
    }


def test_a_name_that_moved_from_an_image_that_is_gone_refuses(
    proctor: Proctor, tmp_path: Path, moving: str, others: Others
) -> None:
    run, toml = tmp_path / "run", f'[environment]\ndocker_image = "{moving}"\nworkdir = "/app"\n'
    study = make_study(tmp_path / "study", toml=toml)
    assert proctor("run", study, "--out", run, "--waive", "git_dirty", "--prepare-only")[0] == 0
    first = others.images[0]
    others.image({"proctor-test": "second"}, tag=moving)
    docker("rmi", "-f", first)
    before = (run / "journal.jsonl").read_bytes()
    status, said = resume(proctor, run)
    assert (status, "image_moved" in said, first in said) == (3, True, True), said
    assert (run / "journal.jsonl").read_bytes() == before
    proctor.check(run)


def test_a_build_that_never_ends_has_its_time_and_leaves_nothing(proctor: Proctor, tmp_path: Path) -> None:
    mark, run = f"mark{secrets.token_hex(6)}", tmp_path / "run"
    engine = OnTheEngine(run, mark)
    study = make_study(
        tmp_path / "study",
        dockerfile=f"FROM {BASE}\nENV MARK={mark}\nRUN echo so far so good && sleep 1000\n",
        toml="[environment]\nbuild_timeout_sec = 10.0\n",
        stage="replacements = 0\n",
    )
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--quiet")
    assert status == 1, said
    (body,) = bodies(run, Kind.ATTEMPT_ENDED)
    assert (body["outcome"], body["exception"]) == ("infrastructure", "image_build_failed")
    assert "so far so good" in body["message"] and "10 s" in body["message"]
    proctor.check(run)
    engine.check()


def test_an_image_that_is_not_here_and_is_not_to_be_pulled_refuses(proctor: Proctor, tmp_path: Path) -> None:
    toml = '[environment]\ndocker_image = "proctor-test/absent:never"\n'
    study = make_study(tmp_path / "study", toml=toml, pull="never")
    status, said = proctor("run", study, "--out", tmp_path / "run", "--waive", "git_dirty", "--json")
    assert (status, "image_missing" in said) == (3, True), said
    assert not (tmp_path / "run/journal.jsonl").exists()


def test_a_world_whose_image_has_no_shell_says_so(proctor: Proctor, tmp_path: Path, others: Others) -> None:
    name = f"proctor-test-{secrets.token_hex(4)}:empty"
    others.images.append(docker("import", "-", name, stdin=bytes(10240)))
    toml = f'[environment]\ndocker_image = "{name}"\n'
    study, run = make_study(tmp_path / "study", toml=toml, stage="replacements = 0\n"), tmp_path / "run"
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--quiet")
    assert status == 1, said
    (body,) = bodies(run, Kind.ATTEMPT_ENDED)
    assert (body["exception"], "sh" in body["message"]) == ("sandbox_start_failed", True), body
    OnTheEngine(run, "none").check()


def test_a_run_folder_whose_disk_is_full_ends_on_the_record(proctor: Proctor, small_disk: Path) -> None:
    run = small_disk / "run"
    engine = OnTheEngine(run, "none")
    study = make_study(
        proctor.home / "study", command=f"{HELD}; head -c 300000 /dev/urandom", tasks=FOUR, stage="lanes = 2\n"
    )
    process = begun(proctor, study, run, 2)
    fill(small_disk / "others")
    with going(engine):
        status, said = over(process)
    assert (status, ended(run)["exit_status"], ended(run)["reason"]) == (5, 5, "disk_full"), said
    engine.check()
    (small_disk / "others").unlink()
    with going(engine):
        status, said = resume(proctor, run)
    assert (status, ended(run)["totals"]) == (0, ALL_PASS), said
    proctor.check(run)
    engine.check()


def test_a_run_that_lives_keeps_what_it_has_while_others_begin_and_are_pruned(proctor: Proctor, tmp_path: Path) -> None:
    slow, quick = tmp_path / "slow", tmp_path / "quick"
    process = begun(proctor, make_study(tmp_path / "long", command=HELD, tasks=FOUR, stage="lanes = 2\n"), slow, 2)
    study = make_study(tmp_path / "short")
    # however long the others take, it is not over before
    process.send_signal(signal.SIGSTOP)
    try:
        assert proctor("run", study, "--out", quick, "--waive", "git_dirty", "--quiet")[0] == 0
        assert proctor("prune", quick) == (0, f"{quick}: 0 things removed\n")
        status, said = proctor("prune", slow)
        assert (status, "run_locked" in said) == (3, True), said
    finally:
        process.send_signal(signal.SIGCONT)
    with going(OnTheEngine(slow, "none")):
        assert over(process)[0] == 0
    assert (outcomes(slow), ended(slow)["totals"]) == ({"completed": 4}, ALL_PASS)
    for run in (slow, quick):
        proctor.check(run)
        OnTheEngine(run, "none").check()


def test_a_world_that_is_kept_is_there_until_somebody_removes_it(proctor: Proctor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    engine = OnTheEngine(run, "none")
    study = make_study(tmp_path / "study", command="echo right > /app/answer; echo mine > /srv/of-the-agent")
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--quiet", "--keep")
    assert status == 0, said
    (kept,) = engine.images()
    try:
        assert proctor("prune", run) == (0, f"{run}: 0 things removed\n")
        # what another run removes at its start is of dead runs, as this one is
        assert proctor("run", study, "--out", tmp_path / "other", "--waive", "git_dirty", "--quiet")[0] == 0
        trial = bodies(run, Kind.TRIAL_FINAL)[0]["trial"]
        with proctor.start("shell", run, trial[:8], stdin=subprocess.PIPE) as process:
            said = process.communicate("cat /srv/of-the-agent; exit 3\n", timeout=ENOUGH_SEC)[0]
        assert (process.returncode, said) == (3, "mine\n")
        assert engine.left() == [kept]
    finally:
        docker("rmi", "-f", kept)


def test_a_run_removes_at_its_start_what_dead_runs_left(proctor: Proctor, tmp_path: Path, others: Others) -> None:
    ours = {"proctor.run": "proctor-x", "proctor.scratch": "/elsewhere/scratch/a"}
    dead = {**ours, "proctor.owner": owner(1, started=0)}
    container, image = others.container(dead, start=False), others.image(dead)
    others.containers.remove(container)
    others.images.remove(image)
    others.image(dead, tag=f"proctor-kept:{others.word}")
    for living in (owner(os.getpid()), owner(1, host="elsewhere", started=0), owner(1, numbers="pid:[1]", started=0)):
        others.container({**ours, "proctor.owner": living})
        others.image({**ours, "proctor.owner": living})
    status, said = proctor(
        "run", make_study(tmp_path / "study", tasks={"one": PASS}), "--out", tmp_path / "run", "--quiet"
    )
    assert status == 0, said
    assert container not in [each["Id"] for each in seen("ps", "-aq", "--no-trunc")]
    assert image not in [each["Id"] for each in seen("images", "-q", "--no-trunc")]
    assert others.stand()
