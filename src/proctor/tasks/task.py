"""A task as read: everything a run needs to know of it, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.tasks.compose import Compose
from proctor.tasks.context import Ignore
from proctor.tasks.recipe import Recipe
from proctor.tasks.schema import AgentTable, Artifact, EnvironmentTable, TaskToml, VerifierTable
from proctor.tasks.toml_reader import UnknownKey
from proctor.tasks.tree import Tree

TEST_SCRIPT = "test.sh"
SOLVE_SCRIPT = "solve.sh"


@dataclass(frozen=True)
class Layout:
    """Where a format keeps its parts, as folders of the task, and where they are put inside.

    `file` is the one that describes the task, `tests_cwd` where the tests start (None: in the working directory).
    """

    file: str = "task.toml"
    tests: str = "tests"
    tests_target: str = "/tests"
    tests_cwd: str | None = None
    solution: str = "solution"
    solution_target: str = "/solution"

    @property
    def test_script(self) -> str:
        """The tests' program, as a path in the task."""
        return f"{self.tests}/{TEST_SCRIPT}"

    @property
    def solve_script(self) -> str:
        """The solution's program, as a path in the task."""
        return f"{self.solution}/{SOLVE_SCRIPT}"


@dataclass(frozen=True)
class Setup:
    """A command that the task wants run in its world before anyone works in it. `user` None is root."""

    command: str
    timeout_sec: float
    cwd: str | None = None
    user: str | None = None


@dataclass(frozen=True)
class Environment:
    """A folder of the task that describes a world (`environment`, or `tests` for a verifier's own).

    At most one of image and build counts: `image` names a prebuilt one, and then `recipe` is not followed. With none
    of image, recipe and compose the folder's loose files go into the working directory. `file` is where `table` stands.
    """

    folder: str
    file: str
    table: EnvironmentTable
    recipe: Recipe | None
    compose: Compose | None
    ignore: Ignore
    setup: tuple[Setup, ...] = ()

    @property
    def image(self) -> str | None:
        """The prebuilt image, unless the compose file asks for the build."""
        if self.compose is not None and self.compose.builds and self.recipe is not None:
            return None
        return self.table.docker_image or (self.compose.image if self.compose is not None else None)

    @property
    def followed(self) -> Recipe | None:
        """The recipe, where it counts."""
        return self.recipe if self.image is None else None

    @property
    def describes(self) -> bool:
        """Whether it says anything of a world by itself."""
        return self.image is not None or self.recipe is not None or self.compose is not None


@dataclass(frozen=True)
class Task:
    """One task. `instruction` is what the agent gets.

    `verifier_environment` is set iff the verifier is separate: it runs in a world of its own, to which only artifacts
    travel.

    `toml` holds every format's values in Harbor's terms. `later` is what the task uses and this version does not run
    for any agent, `later_prompts` what it does not run for agents that take a prompt; `services` are other services
    than `main` that a phase of the task needs.
    """

    name: str
    tree: Tree
    format: str
    layout: Layout
    instruction: str
    toml: TaskToml
    environment: Environment
    verifier_environment: Environment | None
    metadata: Mapping[str, Any]
    unknown_keys: tuple[UnknownKey, ...]
    migrated: tuple[str, ...]
    notes: tuple[str, ...]
    later: tuple[str, ...] = ()
    later_prompts: tuple[str, ...] = ()
    services: frozenset[str] = frozenset()

    @property
    def path(self) -> Path:
        """The folder, absolute."""
        return self.tree.root

    @property
    def digest(self) -> str:
        """SHA-256 over the folder (64 hex digits), as `tree` documents it."""
        return self.tree.digest

    @property
    def has_solution(self) -> bool:
        """Whether it brings a program that solves it."""
        return self.tree.has_file(self.layout.solve_script)

    @property
    def has_tests(self) -> bool:
        """Whether it brings a program that tests it."""
        return self.tree.has_file(self.layout.test_script)

    @property
    def agent(self) -> AgentTable:
        """`[agent]`."""
        return self.toml.agent

    @property
    def verifier(self) -> VerifierTable:
        """`[verifier]`."""
        return self.toml.verifier

    @property
    def where(self) -> str:
        """The file that describes the task, on the host."""
        return str(self.path / self.layout.file)

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """Declared artifacts."""
        return tuple(self.toml.artifacts)

    @property
    def solution_env(self) -> Mapping[str, str]:
        """`[solution].env`, as templates."""
        return self.toml.solution.env

    def verify_unchanged(self) -> None:
        """Read the folder again. Raises Refusal TASK_CHANGED naming what differs."""
        self.tree.verify_unchanged()
