"""study: what a user writes, checked and frozen: the schema of study.toml, arms, design, order, plan."""

from proctor.study.actors import (
    AgentDesign,
    ArmDesign,
    FolderDigest,
    ModelDesign,
    PromptDesign,
    SandboxDesign,
    SkillDesign,
)
from proctor.study.changes import Change, diff_designs
from proctor.study.design import Design, FrozenTask, Selection
from proctor.study.freeze import Parts, freeze
from proctor.study.load import LoadedStudy, load_study, read_study, single_task_study
from proctor.study.plan import Block, Plan, Trial, plan

__all__ = [
    "AgentDesign",
    "ArmDesign",
    "Block",
    "Change",
    "Design",
    "FolderDigest",
    "FrozenTask",
    "LoadedStudy",
    "ModelDesign",
    "Parts",
    "Plan",
    "PromptDesign",
    "SandboxDesign",
    "Selection",
    "SkillDesign",
    "Trial",
    "diff_designs",
    "freeze",
    "load_study",
    "plan",
    "read_study",
    "single_task_study",
]
