"""What reasons are about, and what is said of each."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Family(Enum):
    """What a reason is about; also how a run that meets it goes on."""

    COMMAND = "the command line"
    STUDY = "the study"
    TASK = "a task"
    SANDBOX = "the sandbox"
    AGENT = "the agent"
    PROVENANCE = "provenance"
    RUN = "the run folder"
    EVIDENCE = "evidence"
    BUDGET = "money"
    PROVIDER = "a model's provider"
    GATEWAY = "a request that the gateway does not pass on"
    ATTEMPT = "an attempt that ended early"
    UNGRADED = "a grade that could not be given"
    FAIL = "a grade that is fail"


class Words(NamedTuple):
    """What `proctor explain` says. `ends_run`: every other attempt would meet the same, so the run stops at once."""

    family: Family
    summary: str
    remedy: str
    waivable: bool = False
    ends_run: bool = False
