"""Where agents work and how they are judged: `[sandbox]`, `[grading]`, `[scoring]`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proctor.core.network import Network
from proctor.core.sandboxes import SandboxChoice
from proctor.grading.grade import Assurance
from proctor.grading.solved import DuplicateTests
from proctor.study.schema.values import (
    Count,
    Duration,
    Later,
    Many,
    Name,
    PositiveCount,
    PositiveNumber,
    Size,
    Solved,
    Table,
    Text,
)


class Protected(Table):
    """A path whose use is restricted, and tried from inside before the run."""

    path: Text = Field(description="Absolute path inside.")
    allow: Many[Literal["execute"]] = Field(
        default=("execute",), description="What stays allowed; read, copy, hash and tracing are denied."
    )


class SandboxTable(Table):
    """The world of an attempt. Where a task says something too, the stricter wins and both are recorded."""

    kind: Annotated[SandboxChoice, Field(strict=False)] = Field(
        default=SandboxChoice.AUTO,
        description="`auto` takes the namespace sandbox where it can run every selected task, else Docker.",
    )
    network: Annotated[Network, Field(strict=False), Later("allowlist")] = Field(
        default=Network.GATEWAY_ONLY, description="What the agent may reach."
    )
    cpus: PositiveNumber | None = Field(
        default=None, description="Processors; fractions allowed. The task's own otherwise."
    )
    memory: Size | None = Field(default=None, description="Memory. The task's own otherwise.")
    storage: Size | None = Field(default=None, description="Bytes that may be written. The task's own otherwise.")
    pids: PositiveCount | None = Field(default=None, description="Processes and threads at once.")
    rootfs: Text | None = Field(
        default=None, description="Folder of a root file system, the lowest layer instead of the host's `/usr`."
    )
    substitute: dict[str, Text] = Field(
        default={},
        description="Images that tasks name, and the root folders (for `docker`: images) that stand in for them; "
        "recorded.",
    )
    protected: Annotated[Many[Protected], Later()] = Field(default=(), description="Paths whose use is restricted.")


class Grading(Table):
    """What counts as solved, and how the verifier is run."""

    solved: Solved = Field(default="reward >= 1.0", description="What counts as solved.")
    assurance: Annotated[Assurance, Field(strict=False)] = Field(
        default=Assurance.ISOLATED,
        description="Where the verifier runs: in a fork of the agent's files in which nothing of it runs; in the "
        "agent's own world, emptied of its processes; or there with what it left running, for tasks that deliver that.",
    )
    scorer: Annotated[Literal["exact", "choice", "regex", "number", "json", "python", "judge"], Later("judge")] = Field(
        default="exact", description="How question rows are scored; a row may override it."
    )
    scorer_function: Text | None = Field(
        default=None, description="Of the scorer `python`: `module:function`, or the name of an installed scorer."
    )
    scorer_timeout: Duration = Field(default=30, description="Deadline of one call of the scorer `python`.")
    duplicate_tests: Annotated[DuplicateTests, Field(strict=False)] = Field(
        default=DuplicateTests.REFUSE,
        description="Two test rows of one name, where the grade comes from the tests: ungraded, or the last counts.",
    )
    verifier_timeout: Duration | None = Field(
        default=None, description="Deadline of the verifier; the task's own otherwise, and the stricter where both are."
    )
    retries: Annotated[Count, Later()] = Field(default=0, description="How often an ungraded verifier is run again.")


class Scoring(Table):
    """Facts about how answers are judged, which a later stage can inherit."""

    build: Text | None = Field(default=None, description="Version of the judged set.")
    exclusions: Text | None = Field(default=None, description="File of tasks left out, with reasons.")
    baseline_exclusions: Text | None = Field(default=None, description="File of tasks left out of the reference.")
    supplementary_exclusions: Text | None = Field(default=None, description="File of tasks left out in addition.")
    disputed: Text | None = Field(default=None, description="File of disputed items.")
    adjudication: Text | None = Field(default=None, description="File of decisions on disputed items.")
    adjudicator: Text | None = Field(default=None, description="Who decided them.")
    judge: Name = Field(default="none", description="The model that judges, or none.")
    sources: Many[Text] = Field(default=(), description="Sources that answers may be checked against.")
