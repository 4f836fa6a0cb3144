"""The schema of `study.toml`: every key, its form, its default and what it means, in one place.

Keys marked `Later` are part of the schema from the first release on, and refuse `not_in_this_version` when they have
another value than their default.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from proctor.study.schema.actors import AgentTable, Arm, ArmProfile, Model, Tool
from proctor.study.schema.stages import Anchor, PriorSpend, Stage, Stopping
from proctor.study.schema.tasks import Draw, Hypothesis, StudyTable, TasksTable
from proctor.study.schema.values import Later, Many, Name, Table, ToolName
from proctor.study.schema.worlds import Grading, SandboxTable, Scoring


class StudyFile(Table):
    """A whole study file."""

    study: StudyTable = Field(description="What the study is.")
    hypothesis: Many[Hypothesis] = Field(default=(), description="Preregistered claims.")
    tasks: TasksTable = Field(description="Which tasks.")
    draw: Draw = Field(default=Draw(), description="How orders are drawn.")
    models: dict[Name, Model] = Field(default={}, description="Models, by name.")
    agent: AgentTable = Field(description="Who works on the tasks.")
    arms: dict[Name, Arm] = Field(
        default={"default": Arm()}, description="Arms, by name; one without differences otherwise."
    )
    tools: dict[ToolName, Tool] = Field(default={}, description="Tools of question sets, by name.")
    arm_profiles: Annotated[dict[Name, ArmProfile], Later()] = Field(
        default={}, description="What must hold of an arm's tools."
    )
    sandbox: SandboxTable = Field(default=SandboxTable(), description="The world of an attempt.")
    grading: Grading = Field(default=Grading(), description="What counts as solved.")
    scoring: Annotated[Scoring, Later()] = Field(default=Scoring(), description="Facts about how answers are judged.")
    stages: dict[Name, Stage] = Field(default={"main": Stage()}, description="Stages, by name, in order.")
    stopping: Annotated[Stopping | None, Later()] = Field(default=None, description="A rule for stopping early.")
    anchor: Anchor | None = Field(default=None, description="Where checkpoints are pushed.")
    prior_spend: PriorSpend | None = Field(default=None, description="Money spent outside of any run.")


__all__ = ["AgentTable", "Arm", "Grading", "Hypothesis", "SandboxTable", "Stage", "StudyFile", "TasksTable"]
