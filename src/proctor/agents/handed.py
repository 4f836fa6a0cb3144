"""An agent whose class is handed over in Python: known by the digest of its file, and kept to its own attempts.

What it raises, what it returns that is no end, and a deadline that it does not keep end its attempt as an agent's own
fault does, with the grade that its work earned by then.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import sys
import time
import traceback
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.agents.base import Agent, Answered, RowTurn, Turn, Version, abilities
from proctor.core.reasons import Reason
from proctor.core.redact import Redactor
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended

MAX_MODULE_BYTES = 16 << 20
# a command that ends at the attempt's own deadline is still reported by the agent itself
GRACE_SEC = 10.0


@dataclass(frozen=True)
class HandedOver:
    """An agent's class with what identifies it: `module:class`, and the SHA-256 (hex) of its module's file.

    Called, it makes the agent as an installed one is made.
    """

    agent_class: type
    reference: str
    sha256: str

    @property
    def acts(self) -> bool:
        """Whether it can work on task folders; if not, it answers question rows."""
        return hasattr(self.agent_class, "act")

    def __call__(self, settings: Mapping[str, Any], base: Path) -> Agent:
        """The agent with these settings.

        Raises:
            Refusal: as its constructor does; AGENT_OPTIONS_INVALID for anything else that it raises.
        """
        try:
            return _Contained(self.agent_class(settings, base), self.agent_class.__name__)
        except Refusal:
            raise
        except Exception as fault:
            # the boundary of a person's own code: why it could not be made is the record
            raise Refusal(
                Reason.AGENT_OPTIONS_INVALID,
                f"{self.reference} cannot be made with these settings: {_told(fault)}",
                path="agent.settings",
                observed=sorted(settings),
            ) from fault


def identify(name: str, agent_class: object) -> HandedOver:
    """What was handed over under that name, if it is an agent that can be found again.

    Raises:
        Refusal: AGENT_INVALID.
    """
    if not isinstance(agent_class, type):
        raise _invalid(name, "is no class", agent_class)
    if getattr(agent_class, "name", None) != name:
        raise _invalid(name, "has another `name`", agent_class, getattr(agent_class, "name", None), name)
    for flag in ("needs_solution", "needs_model"):
        if not isinstance(getattr(agent_class, flag, None), bool):
            raise _invalid(name, f"does not say `{flag}`", agent_class, None, "True or False")
    for flag in ("takes_model", "takes_prompt", "inside"):
        if not isinstance(getattr(agent_class, flag, False), bool):
            raise _invalid(name, f"has a `{flag}` that is no flag", agent_class, None, "True or False")
    apis: object = getattr(agent_class, "apis", frozenset())
    if not isinstance(apis, frozenset) or not all(isinstance(api, str) for api in apis):
        raise _invalid(name, "has `apis` that are no set of words", agent_class, None, "frozenset[str]")
    if not callable(getattr(agent_class, "version", None)):
        raise _invalid(name, "has no `version`", agent_class, None, "def version(self) -> Version")
    verbs = [verb for verb in ("act", "answer") if hasattr(agent_class, verb)]
    for verb in verbs or ["act"]:
        if not inspect.iscoroutinefunction(getattr(agent_class, verb, None)):
            raise _invalid(name, f"has no `async def {verb}`", agent_class)
    reference, file = _place(name, agent_class)
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_MODULE_BYTES + 1)
    except OSError as fault:
        raise _invalid(name, f"stands in a file that cannot be read: {fault.strerror}", agent_class) from fault
    if len(data) > MAX_MODULE_BYTES:
        raise _invalid(name, "stands in a file that is too large", agent_class, None, {"bytes": MAX_MODULE_BYTES})
    return HandedOver(agent_class, reference, hashlib.sha256(data).hexdigest())


def _place(name: str, agent_class: type) -> tuple[str, Path]:
    """How the class is named, and the file of its module; a script is called by its file's name."""
    module = agent_class.__module__
    said = getattr(sys.modules.get(module), "__file__", None)
    if said is None:
        raise _invalid(name, "stands in no file, so that nobody could tell what ran", agent_class)
    file = Path(said)
    return f"{file.stem if module == '__main__' else module}:{agent_class.__qualname__}", file


def _invalid(name: str, what: str, given: object, observed: Any = None, required: Any = None) -> Refusal:
    shown = given.__qualname__ if isinstance(given, type) else type(given).__name__
    return Refusal(
        Reason.AGENT_INVALID,
        f"what was handed over as the agent {name!r} ({shown}) {what}",
        path="agent.name",
        observed=observed,
        required=required,
    )


class _Contained:
    """The agent, whose faults are its own."""

    def __init__(self, agent: Any, shown: str) -> None:
        self._agent = agent
        self._shown = shown
        self._redactor = Redactor()
        self.name: str = agent.name
        self.needs_solution: bool = agent.needs_solution
        able = abilities(type(agent))
        self.needs_model, self.takes_model = able.needs_model, able.takes_model
        self.inside, self.apis, self.takes_prompt = able.inside, able.apis, able.takes_prompt
        self._version = agent.version()
        if not isinstance(self._version, Version):
            raise TypeError(f"`version` returned {type(self._version).__name__}, not Version")

    def version(self) -> Version:
        """As the agent said when it was made."""
        version: Version = self._version
        return version

    async def act(self, turn: Turn) -> Ended:
        """Let it work; its fault is written into the attempt's `agent/error.txt`."""
        began = time.monotonic_ns()
        limit = asyncio.timeout(turn.deadline_sec + GRACE_SEC)
        try:
            async with limit:
                made = await _contained(self._agent.act(turn))
        except TimeoutError:
            return Ended(exit_code=None, signal=9, timed_out=True, duration_ns=time.monotonic_ns() - began)
        if isinstance(made, Ended):
            return made
        trace = self._trace(made)
        await asyncio.to_thread((turn.output / "error.txt").write_text, trace, "utf-8", "backslashreplace")
        return Ended(exit_code=1, signal=None, timed_out=False, duration_ns=time.monotonic_ns() - began)

    async def answer(self, turn: RowTurn) -> Answered:
        """Let it answer; an answer that is no text is none."""
        made = await _contained(self._agent.answer(turn))
        if isinstance(made, Answered) and isinstance(made.answer, str | None):
            return made
        if isinstance(made, Answered):
            made = TypeError(f"`answer` of {self._shown} answered with {type(made.answer).__name__}, not a text")
        return Answered(None, Reason.AGENT_ERROR, self._trace(made))

    def _trace(self, made: object) -> str:
        """What went wrong in a line, then where, without what looks like a key."""
        if not isinstance(made, BaseException):
            return f"{self._shown} returned {type(made).__name__}"
        return self._redactor.text("\n".join([_told(made), *traceback.format_exception(made)]))


async def _contained(acting: Coroutine[Any, Any, Any]) -> Any:
    """What it returns, or what it raises of its own; a refusal, a cancellation and an exit go on."""
    try:
        return await acting
    except Refusal:
        raise
    except Exception as fault:
        # the boundary of a person's own code: the fault is how the agent ended
        return fault


def _told(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}"
