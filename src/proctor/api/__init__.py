"""proctor from Python: load or make a study, check it, run it, and read what came of it. docs/api.md shows each.

Everything goes through the doors that the command line goes through: the same guards, records and files. What is
refused raises `Refused`.
"""

from __future__ import annotations

from proctor.admission.spending import AtMost
from proctor.agents.base import Agent, Answered, RowAgent, RowTurn, SkillPack, Solution, Turn, Version
from proctor.api.arguments import Agree, Names
from proctor.api.group import Group
from proctor.api.refused import Refused
from proctor.api.run import Run
from proctor.api.study import Checked, Study
from proctor.api.trial import Attempt, Trial
from proctor.api.verifying import Finding, Verification
from proctor.api.writing import write_questions, write_task
from proctor.core.exits import Exit
from proctor.core.models import Answer, Finish, Message, ModelAccess, Role, ToolBox, ToolCall, ToolSpec
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.report.comparing import Comparison
from proctor.sandbox.base import Ended, Exec, Fetched, PutItem, Sandbox

__all__ = [
    "Agent",
    "Agree",
    "Answer",
    "Answered",
    "AtMost",
    "Attempt",
    "Checked",
    "Comparison",
    "Ended",
    "Exec",
    "Exit",
    "Fetched",
    "Finding",
    "Finish",
    "Group",
    "Message",
    "ModelAccess",
    "Names",
    "PutItem",
    "Reason",
    "Refusal",
    "Refused",
    "Role",
    "RowAgent",
    "RowTurn",
    "Run",
    "Sandbox",
    "SkillPack",
    "Solution",
    "Study",
    "ToolBox",
    "ToolCall",
    "ToolSpec",
    "Trial",
    "Turn",
    "Verification",
    "Version",
    "write_questions",
    "write_task",
]
