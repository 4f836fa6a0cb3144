"""One attempt's job, decided from a study and a task: the stricter wins, and each gets what is its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from fake_worlds import FakeWorld
from launching import Place, ready_of
from proctor.agents.base import McpServer
from proctor.core.exits import Exit
from proctor.core.network import Network
from proctor.core.tokens import seal_admitted
from proctor.evidence.fold import NextAttempt
from proctor.rollout.job import Artifact, Command, Healthcheck, Job
from proctor.runner.inputs import Inputs, stage
from proctor.runner.jobs import make_job
from proctor.sandbox.base import Limits, PutItem
from proctor.study import plan

MB = 1 << 20


@dataclass
class Wish:
    """What a study and a task say; the rest is as small as can be."""

    task: str = ""
    sandbox: str = ""
    agent: str = 'name = "nop"'
    grading: str = ""
    arms: str = "[arms.a]\n"
    files: Mapping[str, str] | None = None

    def write(self, folder: Path) -> Path:
        """The study of the one task `t`, below that folder."""
        task = folder / "tasks/t"
        files = {
            "task.toml": self.task,
            "instruction.md": "Do it.\n",
            "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\nENV COLOUR=red\nCOPY data /data\n",
            "environment/data/one": "1\n",
            "tests/test.sh": "true\n",
            "solution/solve.sh": "true\n",
            **(self.files or {}),
        }
        for name, text in files.items():
            (task / name).parent.mkdir(parents=True, exist_ok=True)
            (task / name).write_text(text)
        names = [line[6:-1] for line in self.arms.splitlines() if line.startswith("[arms.") and "." not in line[6:-1]]
        study = folder / "study.toml"
        study.write_text(
            f'[study]\nname = "s"\n[tasks]\npath = "tasks"\n[draw]\nseed = 7\n[agent]\n{self.agent}\n'
            f'[sandbox]\nkind = "namespace"\n{self.sandbox}\n[grading]\n{self.grading}\n{self.arms}\n'
            f'[stages.main]\ntype = "standard"\narms = {names}\n'.replace("'", '"')
        )
        return study


Make = Callable[[Wish], dict[str, Job]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@pytest.fixture
def make(place: Place) -> Make:
    """The jobs of a study of one task, by arm."""

    def jobs(wish: Wish) -> dict[str, Job]:
        study, run = wish.write(place.folder / "study"), place.folder / "run"
        run.mkdir()
        ready = ready_of(study, run)
        token = seal_admitted(run_id="a" * 26, run_dir=run, design_sha256=ready.design.sha256, label="proctor-test")
        inputs = Inputs(stage(ready, token), ready, {})
        # nothing of the study is needed any more
        shutil.rmtree(study.parent / "tasks")
        found = {
            trial.arm: make_job(ready, inputs, trial, NextAttempt(0, None, None))
            for trial in plan(ready.design).trials()
        }
        return {arm: job for arm, job in found.items() if isinstance(job, Job)}

    return jobs


@pytest.mark.parametrize(
    ("task", "study", "wanted"),
    [
        ("", "", Limits()),
        ("cpus = 2\nmemory_mb = 64\nstorage_mb = 32", "", Limits(2, 64 * MB, 32 * MB)),
        ("", 'cpus = 1.5\nmemory = "1MiB"\nstorage = "2MiB"\npids = 9', Limits(1.5, MB, 2 * MB, 9)),
        ("cpus = 2\nmemory_mb = 64\nstorage_mb = 32", 'cpus = 1\nmemory = "1GiB"\nstorage = "1MiB"\npids = 9',
         Limits(1, 64 * MB, MB, 9)),
    ],
    ids=["none", "the task's", "the study's", "the stricter of each"],
)  # fmt: skip
def test_limits(make: Make, task: str, study: str, wanted: Limits) -> None:
    assert make(Wish(task=f"[environment]\n{task}\n", sandbox=study))["a"].world.limits == wanted


@pytest.mark.parametrize(
    ("task", "study", "agent", "verifier"),
    [
        (None, None, None, 600),
        (30, None, 30, 30),
        (None, 40, 40, 40),
        (30, 40, 30, 30),
        (50, 40, 40, 40),
    ],
)
def test_timeouts(make: Make, task: int | None, study: int | None, agent: float | None, verifier: float) -> None:
    said = "" if task is None else f"timeout_sec = {task}.0"
    wish = Wish(task=f"[agent]\n{said}\n[verifier]\n{said}\n")
    if study is not None:
        wish.agent += f'\ntimeout = "{study}s"'
        wish.grading = f'verifier_timeout = "{study}s"'
    job = make(wish)["a"]
    assert (job.agent_timeout_sec, job.tests.timeout_sec) == (agent, verifier)


@pytest.mark.parametrize(
    ("task", "study", "agent", "verifier"),
    [
        (None, "none", Network.NONE, Network.NONE),
        ("public", "none", Network.NONE, Network.NONE),
        ("public", "public", Network.PUBLIC, Network.PUBLIC),
        (None, "public", Network.PUBLIC, Network.PUBLIC),
        # the way to a model is the study's; a verifier has no use for it
        ("no-network", "public", Network.GATEWAY_ONLY, Network.NONE),
        ("public", "gateway-only", Network.GATEWAY_ONLY, Network.NONE),
    ],
)
def test_networks(make: Make, task: str | None, study: str, agent: Network, verifier: Network) -> None:
    said = "" if task is None else f'network_mode = "{task}"'
    job = make(Wish(task=f"[environment]\n{said}\n", sandbox=f'network = "{study}"'))["a"]
    assert (job.world.network, job.tests.network) == (agent, verifier)


def test_the_world_is_made_of_copies(make: Make, place: Place) -> None:
    job = make(Wish(task='[environment]\nworkdir = "/work"\n[environment.env]\nSIZE = "3"\n'))["a"]
    assert (job.world.workdir, job.world.env) == ("/work", {"COLOUR": "red", "SIZE": "3"})
    sources = [step.source for step in job.world.steps if isinstance(step, PutItem) and step.source]
    assert job.tests.folder is not None and job.solution is not None
    for path in (*sources, job.tests.folder, job.solution.folder):
        assert path.is_relative_to(place.folder / "run/scratch/inputs") and path.exists()
    assert [(source.name, (source / "one").read_text()) for source in sources if source.is_dir()] == [("data", "1\n")]


def test_an_arm_has_its_skills_and_its_text_and_others_have_not(make: Make, place: Place) -> None:
    pack = place.folder / "study/pack/house"
    pack.mkdir(parents=True)
    (pack / "SKILL.md").write_text("Well.\n")
    jobs = make(
        Wish(
            agent='name = "command"\ncommand = "true"',
            arms='[arms.plain]\n[arms.rich]\nskills = "pack"\nprompt = "Be brief."\n',
        )
    )
    assert (jobs["plain"].skills, jobs["plain"].instruction) == ((), "Do it.\n")
    (skill,) = jobs["rich"].skills
    assert (skill.name, (skill.path / "SKILL.md").read_text()) == ("house", "Well.\n")
    assert skill.path.is_relative_to(place.folder / "run/scratch/inputs")
    assert jobs["rich"].instruction == "Do it.\n\nBe brief."


def test_who_runs_as_whom(make: Make) -> None:
    job = make(
        Wish(
            task='[agent]\nuser = "www-data"\n[verifier]\nuser = 33\n[[verifier.collect]]\ncommand = "date"\nuser = 7\n'
            '[[verifier.collect]]\ncommand = "id"\ntimeout_sec = 5.0\n'
        )
    )["a"]
    assert (job.agent_user, job.tests.user) == ("www-data", "33")
    assert job.collect == (
        Command(("sh", "-c", "date"), "/app", "7", 600.0),
        Command(("sh", "-c", "id"), "/app", None, 5.0),
    )


def test_variables_go_to_whom_they_are_for(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_HOST", "here")
    job = make(
        Wish(
            agent='name = "oracle"',
            task='[environment.env]\nE = "${OF_HOST}"\n[verifier.env]\nV = "${NOWHERE:-else}"\n'
            '[solution.env]\nS = "s"\n',
        )
    )["a"]
    assert job.world.env == {"COLOUR": "red", "E": "here"}
    assert job.tests.env == {"V": "else"}
    assert job.solution is not None and job.solution.env == {"S": "s"}


def test_artifacts_keep_their_place_or_get_the_one_that_is_said(make: Make) -> None:
    task = (
        'artifacts = ["/app/answer", "notes.txt", '
        '{ source = "/app/out", destination = "/in", exclude = ["*.tmp"] }, { source = "/x", destination = "y" }]\n'
    )
    job = make(Wish(task=task))["a"]
    assert job.separate is None
    assert job.artifacts == (
        Artifact("/app/answer", "/app/answer"),
        Artifact("/app/notes.txt", "/app/notes.txt"),
        Artifact("/app/out", "/in", ("*.tmp",)),
        Artifact("/x", "/app/y"),
    )


def test_a_separate_verifier_has_a_world_of_its_own(make: Make) -> None:
    dockerfile = "FROM debian:bookworm-slim\nCOPY . /tests/\nWORKDIR /judge\n"
    job = make(
        Wish(
            task='artifacts = ["/app/answer"]\n[environment]\nmemory_mb = 64\nnetwork_mode = "public"\n[verifier]\n'
            'environment_mode = "separate"\n[verifier.environment]\nmemory_mb = 8\nnetwork_mode = "no-network"\n'
            '[verifier.environment.healthcheck]\ncommand = "true"\nretries = 2\n',
            sandbox='network = "public"\nmemory = "32MiB"',
            files={"tests/Dockerfile": dockerfile},
        )
    )["a"]
    assert job.separate is not None
    assert (job.world.limits.memory_bytes, job.separate.limits.memory_bytes) == (32 * MB, 8 * MB)
    assert (job.world.network, job.separate.network, job.tests.network) == (
        Network.PUBLIC,
        Network.NONE,
        Network.NONE,
    )
    assert (job.world.workdir, job.separate.workdir) == ("/app", "/judge")
    assert (job.world.env, job.separate.env) == ({"COLOUR": "red"}, {})
    assert (job.world.healthcheck, job.separate.healthcheck) == (None, Healthcheck("true", 5.0, 30.0, 2))
    # its own build brings the tests
    assert job.tests.folder is None
    assert [step.target for step in job.separate.steps if isinstance(step, PutItem) and step.source] == ["/tests"]


def test_the_servers_of_a_task_are_its_agent_s(make: Make) -> None:
    servers = '[{name = "m", url = "http://x"}, {name = "n", transport = "stdio", command = "c", args = ["-x"]}]'
    job = make(Wish(task=f"[environment]\nmcp_servers = {servers}\n"))["a"]
    assert job.mcp_servers == (McpServer("m", "sse", "http://x"), McpServer("n", "stdio", None, "c", ("-x",)))


@pytest.mark.parametrize(("agent", "handed"), [("oracle", True), ("nop", False), ("command", False)])
def test_only_the_oracle_is_handed_the_solution(
    place: Place, monkeypatch: pytest.MonkeyPatch, agent: str, handed: bool
) -> None:
    brought: list[PutItem] = []
    put = FakeWorld.put

    async def watched(world: FakeWorld, items: list[PutItem]) -> None:
        brought.extend(items)
        await put(world, items)

    monkeypatch.setattr(FakeWorld, "put", watched)
    extra = '\ncommand = "true"' if agent == "command" else ""
    study = Wish(agent=f'name = "{agent}"{extra}').write(place.folder / "study")
    assert place.launch(study=study, out=place.folder / "run")[0].exit is Exit.DONE
    sources = [item.source for item in brought if item.source is not None]
    assert any(source.name == "tests" for source in sources)
    assert any(source.name == "solution" for source in sources) is handed
    assert ("/solution" in {item.target for item in brought}) is handed
