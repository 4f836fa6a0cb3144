"""Parts of a study that run on their own: `[stages.*]`, their money, `[stopping]`, `[anchor]`, `[prior_spend]`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from proctor.core.boundaries import Boundary
from proctor.core.money import ZERO, Usd
from proctor.core.reasons import Reason
from proctor.study.schema.values import (
    Count,
    Duration,
    FolderPath,
    GitAddress,
    Later,
    Many,
    Money,
    Name,
    Names,
    PositiveCount,
    PositiveNumber,
    Scalar,
    Sha256,
    Share,
    Table,
    Text,
    problem,
)

_Boundary = Annotated[Boundary, Field(strict=False)]


class Link(Table):
    """An earlier stage that must have ended, and what must be equal across the link."""

    stage: Name = Field(description="The earlier stage.")
    run: Text = Field(description="Its run folder.")
    design_sha256: Sha256 = Field(description="SHA-256 of its `design.json`.")
    inherit: Many[Text] = Field(
        default=(), description="What must be equal: tasks, draw, tools, a field of [scoring] …"
    )


class Budget(Table):
    """Money of a stage."""

    spent_before: Money = Field(default=ZERO, description="Spent before this stage.")
    allocation: Money = Field(description="Shared out among the models.")
    cap: Money = Field(description="No block is admitted beyond it.")
    margin: Money = Field(default=ZERO, description="Room above the cap that a running block may still use.")
    cap_quantum: Money = Field(default=Usd(10**10), description="Rounding of a model's cap.")
    reserve_quantum: Money = Field(default=Usd(10**9), description="Rounding of a model's reserve.")
    reserve_factor: PositiveNumber = Field(default=3, description="Reserve of a block, in expected costs of a block.")


class Stage(Table):
    """One part of the study, run in its own folder."""

    type: Annotated[Literal["standard", "calibration"], Later("calibration")] = Field(
        default="standard", description="`calibration` opens the next stage or stops it."
    )
    after: Annotated[Many[Link], Later()] = Field(default=(), description="Earlier stages that must have ended.")
    include: Many[Text] | None = Field(default=None, description="Patterns of task names; narrows `[tasks]`.")
    where: dict[str, Scalar] = Field(
        default={}, description="Values that a task's metadata must have; narrows `[tasks]`."
    )
    roster: Annotated[Literal["closed", "open"], Later("open")] = Field(
        default="closed", description="Whether the command line may add models."
    )
    models: Names | None = Field(default=None, description="Models of the stage; all models of the study otherwise.")
    model_arms: Annotated[dict[Name, Names], Later()] = Field(
        default={}, description="Arms of a model that has its own."
    )
    arms: Names | None = Field(default=None, description="Arms of the stage; all arms of the study otherwise.")
    epochs: PositiveCount = Field(default=1, description="How often each task is tried in each arm.")
    fork_at: Annotated[_Boundary | None, Later()] = Field(
        default=None, description="The boundary from which the arms of a block are forked."
    )
    capture: Annotated[Many[_Boundary], Later()] = Field(
        default=(), description="Boundaries to capture in each attempt."
    )
    keep_snapshots: Annotated[bool, Later()] = Field(default=False, description="Export captured worlds.")
    lanes: Annotated[PositiveCount, Field(le=1024)] = Field(default=1, description="Attempts at once, for each model.")
    deadline: Duration | None = Field(
        default=None, description="When a run of the stage, or a resume of it, stops admitting; never by default."
    )
    replacements: Count = Field(
        default=1,
        description="Attempts of a trial that may be replaced after typed infrastructure failures (not for want of an "
        "image).",
    )
    budget: Budget | None = Field(default=None, description="Money of the stage.")
    expected_costs: dict[Name, Money] = Field(default={}, description="Expected cost of each model.")
    caps: dict[Name, Money] = Field(default={}, description="Cap of each model.")
    reserves: dict[Name, Money] = Field(default={}, description="Reserve of a block, for each model.")


class Stopping(Table):
    """A preregistered rule for stopping early."""

    rule: Literal["e-value"] = Field(description="The rule.")
    alpha: Share = Field(default=0.05, description="Its level.")


class Anchor(Table):
    """Where checkpoints are pushed, out of the operator's reach: to one of `git` and `drop` at least."""

    git: GitAddress | None = Field(
        default=None, description="A git repository: a URL, `[user@]host:path` or a path. No passwords."
    )
    drop: FolderPath | None = Field(default=None, description="A folder that is there.")
    every: Duration = Field(default=600, description="How often the newest checkpoint is pushed while a run lives.")
    required: bool = Field(
        default=False, description="Whether nothing starts while an anchor does not have the run's checkpoints."
    )

    @model_validator(mode="after")
    def _somewhere(self) -> Anchor:
        if self.git is None and self.drop is None:
            raise problem(Reason.MISSING_KEY, "names neither `git` nor `drop`", "one of git and drop")
        return self


class PriorSpend(Table):
    """Money spent outside of any run, declared."""

    amount: Money = Field(description="How much.")
    source: Text = Field(description="Where that is written.")
    sha256: Sha256 = Field(description="SHA-256 of what is written there.")
