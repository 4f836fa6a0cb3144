"""What is asked and what is attempted: `[study]`, `[[hypothesis]]`, `[tasks]`, `[draw]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from proctor.core.canonical import MAX_SAFE_INTEGER
from proctor.core.claims import ClaimTest, Direction
from proctor.core.sandboxes import Pull
from proctor.study.schema.values import (
    AnyText,
    Endpoint,
    Form,
    Many,
    Name,
    Pair,
    Scalar,
    Share,
    Slice,
    Table,
    Text,
)


class StudyTable(Table):
    """What the study is."""

    name: Name = Field(description="Name of the study, in evidence and reports.")
    question: AnyText | None = Field(default=None, description="What the study wants to know, in one sentence.")


class Hypothesis(Table):
    """One preregistered claim: one endpoint, one test, one direction, one decision rule."""

    id: Name = Field(description="Short name, such as H1.")
    stage: Name = Field(description="The stage whose trials decide it.")
    endpoint: Endpoint = Field(default="solved", description="What is compared.")
    compare: Pair = Field(description="Treatment and baseline, in this order.")
    test: Annotated[ClaimTest, Field(strict=False)] = Field(
        description="`mcnemar`: exact, for solved and test endpoints; `sign-flip`: permutation of paired differences."
    )
    direction: Annotated[Direction, Field(strict=False)] = Field(
        default=Direction.TWO_SIDED, description="Where the treatment is expected, against the baseline."
    )
    alpha: Share = Field(default=0.05, description="Significance level.")


class TasksTable(Table):
    """Which tasks: folders, question sets, or both."""

    path: Text | None = Field(default=None, description="Folder of task folders, or one task folder.")
    questions: Text | None = Field(default=None, description="A question set, one JSON object a line.")
    include: Many[Text] = Field(default=("*",), description="Patterns of task names; a task needs to fit one.")
    ids: Many[Text] | None = Field(default=None, description="Exactly these tasks, by name.")
    where: dict[str, Scalar] = Field(default={}, description="Values that a task's metadata must have.")
    slice: Slice | None = Field(default=None, description="A part of what is left, in order of names.")
    pull: Annotated[Pull, Field(strict=False)] = Field(
        default=Pull.MISSING, description="When images are pulled, by their digest; for the sandbox `docker`."
    )


class Draw(Table):
    """How orders are drawn."""

    seed: Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER), Form("a whole number, from 0, below 2^53")] = Field(
        default=0, description="Seed of every order stream."
    )
