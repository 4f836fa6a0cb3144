"""What one attempt is: everything that was decided before it, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.agents.base import Agent, McpServer, SkillPack, Solution, Version
from proctor.core.ids import trial_label
from proctor.core.models import Message, ToolBox
from proctor.core.network import Network
from proctor.core.outcomes import Outcome
from proctor.core.questions import Question
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.grade import Assurance, Grade
from proctor.grading.solved import DuplicateTests, SolvedRule
from proctor.sandbox.base import ImageFacts, Limits, PutItem
from proctor.study.actors import ModelDesign

# a message may quote what an agent wrote, and an entry has 65,535 bytes for everything
MOST_SAID = 2_000


@dataclass(frozen=True)
class Healthcheck:
    """A command that must succeed before the world counts as ready; times in seconds."""

    command: str
    interval_sec: float
    timeout_sec: float
    retries: int
    start_period_sec: float = 0.0


@dataclass(frozen=True)
class Command:
    """One command of a world's making, or one that gathers artifacts. `user` None is root."""

    argv: tuple[str, ...]
    cwd: str
    user: str | None
    timeout_sec: float


@dataclass(frozen=True)
class Artifact:
    """What travels out of the agent's world: a path inside, where it lands, and glob patterns left out of it."""

    source: str
    destination: str
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorldPlan:
    """One sandbox to be: its root, what is done to it in order before it is ready, and how commands run in it.

    `image` is what it is made from, for a kind that has images; or why that could not be brought here.
    """

    root: Path | None
    substituted: Mapping[str, Any] | None
    workdir: str
    env: Mapping[str, str]
    user: str | None
    steps: tuple[PutItem | Command, ...]
    limits: Limits
    network: Network
    healthcheck: Healthcheck | None = None
    image: ImageFacts | Refusal | None = None


@dataclass(frozen=True)
class Tests:
    """The task's tests: a host folder (None where the verifier's own world brings them), its script, how it runs.

    They lie at `target` inside; `cwd` None is the working directory.
    """

    folder: Path | None
    script: str
    env: Mapping[str, str]
    user: str | None
    timeout_sec: float
    network: Network
    target: str = "/tests"
    cwd: str | None = None


@dataclass(frozen=True, kw_only=True)
class Try:
    """What every attempt is, whatever is attempted: which trial's, whose turn it is, and the model that it may call."""

    attempt: str
    trial: str
    number: int
    block: int
    task: str
    model: str | None
    arm: str
    epoch: int
    folder: str
    agent: Agent
    settings: Mapping[str, Any]
    skills: tuple[SkillPack, ...]
    agent_timeout_sec: float | None
    rule: SolvedRule
    model_design: ModelDesign | None = None
    supersedes: str | None = None
    replaces: str | None = None

    @property
    def label(self) -> str:
        """For people."""
        return trial_label(self.task, self.model, self.arm, self.epoch, self.number)

    def as_entry(self) -> dict[str, Any]:
        """The body of `attempt.admitted`, but for the attempt's id."""
        return {
            "trial": self.trial,
            "number": self.number,
            "block": self.block,
            "task": self.task,
            "model": self.model,
            "arm": self.arm,
            "epoch": self.epoch,
            "folder": self.folder,
            "supersedes": self.supersedes,
            "replaces": self.replaces,
        }

    def agent_entry(self, version: Version) -> dict[str, Any]:
        """The body of `agent.started`, but for the attempt's id and the instruction; `version` as attested."""
        return {
            "agent": self.agent.name,
            "version": version.as_record(),
            "settings": dict(self.settings),
            "skills": [{"name": pack.name, "sha256": pack.sha256} for pack in self.skills],
            "timeout_sec": self.agent_timeout_sec,
        }


@dataclass(frozen=True, kw_only=True)
class Job(Try):
    """One attempt at a task folder.

    `separate` is the verifier's own world, into which only `artifacts` travel; None means a fork of the agent's
    world as it stood at pre-verify.
    """

    world: WorldPlan
    separate: WorldPlan | None
    instruction: str
    solution: Solution | None
    agent_user: str | None
    tests: Tests
    artifacts: tuple[Artifact, ...]
    collect: tuple[Command, ...]
    duplicate_tests: DuplicateTests
    hidden: tuple[Path, ...]
    assurance: Assurance = Assurance.ISOLATED
    idle_sec: float | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    keep: bool = False

    @property
    def apart(self) -> tuple[str, ...]:
        """Folders inside that are expected to change."""
        solution = () if self.solution is None else (self.solution.target,)
        return (self.world.workdir, self.tests.target, *solution)

    @property
    def stays(self) -> bool:
        """Whether what the agent leaves running goes on until the tests end."""
        return self.assurance is Assurance.LIVE

    @property
    def forks(self) -> bool:
        """Whether the verifier runs in a fork of the agent's world."""
        return self.separate is None and self.assurance is Assurance.ISOLATED


@dataclass(frozen=True, kw_only=True)
class RowJob(Try):
    """One attempt at a question row: `messages` are what the agent is asked, `tools` what it may call.

    `functions` has the SHA-256 of each scorer function's file, by the function's name.
    """

    question: Question
    messages: tuple[Message, ...]
    tools: ToolBox
    functions: Mapping[str, str]
    scorer_timeout_sec: float


@dataclass(frozen=True)
class Result:
    """What an attempt came to. `exception` stands beside the grade: a timed-out attempt that was graded is graded."""

    outcome: Outcome
    grade: Grade | None
    exception: Reason | None = None
    message: str | None = None
    timing: Mapping[str, int] = field(default_factory=dict)

    def as_entry(self) -> dict[str, Any]:
        """The body of `attempt.ended`."""
        said = None if self.message is None else self.message.encode("utf-8", "backslashreplace").decode()
        return {
            "outcome": self.outcome.value,
            "exception": self.exception.id if self.exception else None,
            "message": said if said is None else said[:MOST_SAID],
            "timing": dict(self.timing),
        }
