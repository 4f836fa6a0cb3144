"""What attempts act with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proctor.budget.authority import Authority
from proctor.core.clock import Clock
from proctor.core.tokens import Admitted
from proctor.evidence.journal import Journal
from proctor.evidence.runfolder import RunFolder
from proctor.gateway.gateway import Gateway
from proctor.rollout.workers import Workers
from proctor.sandbox.base import SandboxKind


@dataclass(frozen=True)
class Tools:
    """The token of the run, its journal and folder, the kind of sandbox, the clock; `on_phase` shows progress.

    `authority` is asked before money is spent, `gateway` calls models, `workers` run the functions that a study names.
    """

    admitted: Admitted
    kind: SandboxKind
    journal: Journal
    run: RunFolder
    clock: Clock
    on_phase: Callable[[str, str], None]
    authority: Authority
    gateway: Gateway
    workers: Workers
