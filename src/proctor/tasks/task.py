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

TESTS = "tests/test.sh"
SOLUTION = "solution/solve.sh"


@dataclass(frozen=True)
class Environment:
    """A folder of the task that describes a world (`environment`, or `tests` for a verifier's own).

    At most one of image and build counts: `image` names a prebuilt one, and then `recipe` is not followed. With none
    of image, recipe and compose the folder's loose files go into the working directory.
    """

    folder: str
    table: EnvironmentTable
    recipe: Recipe | None
    compose: Compose | None
    ignore: Ignore

    @property
    def image(self) -> str | None:
        """The prebuilt image, unless the compose file asks for the build."""
        if self.table.docker_image is not None:
            return self.table.docker_image
        if self.compose is not None and not (self.compose.builds and self.recipe is not None):
            return self.compose.image
        return None

    @property
    def describes(self) -> bool:
        """Whether it says anything of a world by itself."""
        return self.image is not None or self.recipe is not None or self.compose is not None


@dataclass(frozen=True)
class Task:
    """One task. `instruction` is what the agent gets; `instruction_sha256` is of the file as it stands.

    `verifier_environment` is set iff the verifier is separate: it runs in a world of its own, to which only artifacts
    travel; `solution_script` and
    `tests_script` are paths inside the task, None where the task has none.
    """

    name: str
    tree: Tree
    format: str
    instruction: str
    instruction_sha256: str | None
    toml: TaskToml
    environment: Environment
    verifier_environment: Environment | None
    solution_script: str | None
    tests_script: str | None
    metadata: Mapping[str, Any]
    unknown_keys: tuple[UnknownKey, ...]
    migrated: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The folder, absolute."""
        return self.tree.root

    @property
    def digest(self) -> str:
        """SHA-256 over the folder (64 hex digits), as `tree` documents it."""
        return self.tree.digest

    @property
    def agent(self) -> AgentTable:
        """`[agent]`."""
        return self.toml.agent

    @property
    def verifier(self) -> VerifierTable:
        """`[verifier]`."""
        return self.toml.verifier

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
