"""What an agent is to proctor: a class that is found by its name, checks its settings, says its version, and acts.

Agents are found through the entry-point group `proctor.agents`, so that an installed package can add its own. A class
is constructed with the settings of its arm before anything runs, and refuses what it cannot take; `act` is called once
for each attempt, in a world that is ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from proctor.agents.bundles import InstalledBundle
from proctor.core.canonical import encode
from proctor.core.models import Door, Message, ModelAccess, ToolBox
from proctor.core.near import closest_hint
from proctor.core.reasons import Reason
from proctor.core.redact import Redactor
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket
from proctor.sandbox.base import Ended, Sandbox

GROUP = "proctor.agents"
# they stand in an entry of each attempt, which has 65,535 bytes for everything
MAX_SETTINGS_BYTES = 32_768
# limits that an agent of ours keeps by itself, as `Ended.limit_hit` names them
LIMITS = {
    "idle": Reason.IDLE_TIMEOUT,
    "steps": Reason.STEP_LIMIT,
    "tokens": Reason.TOKEN_LIMIT,
    "context": Reason.CONTEXT_EXCEEDED,
}


@dataclass(frozen=True)
class SkillPack:
    """One skill folder on the host, put at `/skills/<name>` inside."""

    name: str
    path: Path
    sha256: str


@dataclass(frozen=True)
class Solution:
    """The task's own solution, which is put at `target` inside: only an agent that `needs_solution` is handed it."""

    folder: Path
    script: str
    env: Mapping[str, str] = field(default_factory=dict)
    target: str = "/solution"


@dataclass(frozen=True)
class McpServer:
    """An MCP server that the task gives its agent: `transport` is stdio (with a command) | sse | streamable-http."""

    name: str
    transport: str
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """All that an agent may use in one attempt.

    `output` is the attempt's `agent/` folder on the host, out of the agent's reach; `deadline_sec` is what is left,
    `idle_sec` how long it may do nothing. `redactor` knows the run's keys: nothing goes into `output` before it.
    `model` is for agents outside of the sandbox, `door` for those inside. With `leave_running` what the agent leaves
    running goes on after it, for a verifier that looks at it.
    """

    sandbox: Sandbox
    instruction: str
    workdir: str
    env: Mapping[str, str]
    user: str | None
    output: Path
    deadline_sec: float
    skills: tuple[SkillPack, ...] = ()
    solution: Solution | None = None
    model: ModelAccess | None = None
    redactor: Redactor = field(default_factory=Redactor)
    door: Door | None = None
    idle_sec: float | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    leave_running: bool = False


@dataclass(frozen=True)
class RowTurn:
    """All that an agent may use to answer one question row: no sandbox, and no tool but those in `tools`.

    `target` is the right answer as text, and only an agent that `needs_solution` is handed it.
    """

    messages: tuple[Message, ...]
    tools: ToolBox
    deadline_sec: float
    skills: tuple[SkillPack, ...] = ()
    model: ModelAccess | None = None
    target: str | None = None


@dataclass(frozen=True)
class Answered:
    """What an agent made of a row: its answer, or None where it gave none.

    `exception` where a limit or a fault of its own ended it, `message` what is to be said of that.
    """

    answer: str | None
    exception: Reason | None = None
    message: str | None = None


@dataclass(frozen=True)
class Version:
    """A reported version, or why there is none: absence is decided before anything is compared."""

    value: str | None
    reason: str | None = None

    def as_record(self) -> dict[str, Any]:
        """For the journal."""
        if self.value is None:
            return {"available": False, "value": None, "reason": self.reason}
        return {"available": True, "value": self.value, "reason": None}


@dataclass(frozen=True)
class Abilities:
    """What a kind of agent can do, as its class says.

    `needs_model`: it can do nothing without one; `takes_model`: it can call one; `inside`: it reaches it by
    `Turn.door`, from inside of the sandbox, and not by `Turn.model`. `apis` are the wire formats that it speaks (empty:
    whatever its model does), `marks` the kinds of tokens that its requests make beside those of text, which a price
    must name; `answers_rows` whether it answers question rows. `needs_solution`: it is handed the task's own solution;
    `takes_prompt`: what the task asks is put to it.
    """

    needs_model: bool
    takes_model: bool
    inside: bool = False
    apis: frozenset[str] = frozenset()
    marks: frozenset[Bucket] = frozenset()
    answers_rows: bool = False
    needs_solution: bool = False
    takes_prompt: bool = True


class Agent(Protocol):
    """One kind of agent, with the settings of one arm; its attributes are those of `Abilities`."""

    name: str
    needs_solution: bool
    needs_model: bool
    takes_model: bool
    inside: bool
    apis: frozenset[str]

    def version(self) -> Version:
        """What this agent says it is."""
        ...

    async def act(self, turn: Turn) -> Ended:
        """Work on the task until done or until the deadline; nothing of it runs after this returns.

        Raises:
            Refusal: the sandbox failed (family SANDBOX), or the agent could not be started (AGENT_START_FAILED).
        """
        ...


@runtime_checkable
class Installed(Protocol):
    """An agent whose program is brought into its world as a bundle, and asked there for its version."""

    installed: InstalledBundle

    async def attest(self, turn: Turn) -> Version:
        """What the program says it is, asked in the turn's world before its first prompt."""
        ...


class RowAgent(Protocol):
    """An agent that can answer question rows; one without `answer` cannot."""

    async def answer(self, turn: RowTurn) -> Answered:
        """Answer the row.

        Raises:
            Refusal: as `ModelAccess.ask` does.
        """
        ...


class AgentClass(Protocol):
    """How an agent is made; `base` is the folder that relative paths of the settings start from.

    Raises:
        Refusal: AGENT_OPTIONS_INVALID, FILE_MISSING.
    """

    def __call__(self, settings: Mapping[str, Any], base: Path) -> Agent: ...


def installed_agents() -> dict[str, EntryPoint]:
    """Every agent that is installed here, by name."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def make_agent(name: str, settings: Mapping[str, Any], base: Path, handed: AgentClass | None = None) -> Agent:
    """The agent of that name with these settings: of the class that was handed over, or an installed one.

    Raises:
        Refusal: UNKNOWN_AGENT, AGENT_OPTIONS_INVALID, FILE_MISSING.
    """
    known = installed_agents()
    if handed is None and name not in known:
        raise Refusal(
            Reason.UNKNOWN_AGENT,
            f"there is no agent named {name!r}{closest_hint(name, known)}",
            path="agent.name",
            observed=name,
            required=sorted(known),
        )
    if len(encode(dict(settings))) > MAX_SETTINGS_BYTES:
        raise Refusal(
            Reason.AGENT_OPTIONS_INVALID,
            "the agent's settings are larger than a journal entry can hold",
            path="agent",
            observed=len(encode(dict(settings))),
            required=MAX_SETTINGS_BYTES,
            remedy="Put long programs and prompts into `files`.",
        )
    agent_class: AgentClass = known[name].load() if handed is None else handed
    return agent_class(settings, base)


def agent_abilities(name: str, handed: type | None = None) -> Abilities | None:
    """What the agent of that name can do; None where there is none."""
    point = installed_agents().get(name)
    if handed is not None:
        return abilities(handed)
    return None if point is None else abilities(point.load())


def abilities(agent_class: Any) -> Abilities:
    """What a class says of itself. One that says only whether it needs a model takes it from outside, in any format."""
    needs_model = bool(agent_class.needs_model)
    return Abilities(
        needs_model=needs_model,
        takes_model=bool(getattr(agent_class, "takes_model", needs_model)),
        inside=bool(getattr(agent_class, "inside", False)),
        apis=frozenset(getattr(agent_class, "apis", ())),
        marks=frozenset(getattr(agent_class, "marks", ())),
        answers_rows=hasattr(agent_class, "answer"),
        needs_solution=bool(agent_class.needs_solution),
        takes_prompt=bool(getattr(agent_class, "takes_prompt", True)),
    )


def no_settings(name: str, settings: Mapping[str, Any]) -> None:
    """For agents that take none. Raises Refusal AGENT_OPTIONS_INVALID."""
    if settings:
        raise Refusal(
            Reason.AGENT_OPTIONS_INVALID,
            f"the agent {name!r} takes no settings",
            path="agent",
            observed=sorted(settings),
            required=[],
        )
