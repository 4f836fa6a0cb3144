"""Who works where, as a frozen design has it: agents, tools, models and sandboxes, and the arms that change them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proctor.core.prices import Prices

# What stands at a field that a design leaves out where it was not used.
ABSENT_IF_UNUSED = {"absent_if_unused": True}
# an empty list says something: none of them
ABSENT_IF_NONE = {"absent_if_none": True}


@dataclass(frozen=True)
class FolderDigest:
    """A folder that goes into the sandbox: the digest of its tree, and what it lists (path, kind, mode …)."""

    path: str
    sha256: str
    files: tuple[dict[str, str | int], ...]


@dataclass(frozen=True)
class FunctionDesign:
    """A Python function: `module:function` or an entry point's name, and the digest of its module's file."""

    name: str
    sha256: str


@dataclass(frozen=True)
class BundleDesign:
    """The program of an agent that runs inside: its version, and the digest of its files."""

    version: str
    sha256: str


@dataclass(frozen=True)
class AgentDesign:
    """Who works: `settings` are what the agent's class takes; `files` is the folder that `settings.files` names.

    `code` is the class, as `module:class`, of an agent that was handed over in Python and is not installed; `bundle`
    is the program of one that was installed for use inside.
    """

    name: str
    settings: dict[str, Any]
    timeout_sec: int | None
    files: FolderDigest | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    code: FunctionDesign | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    bundle: BundleDesign | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    expect_version: str | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    idle_timeout_sec: int | None = field(default=None, metadata=ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class ToolDesign:
    """A tool of question rows: a function in worker processes, `pool` of them for each model."""

    name: str
    python: FunctionDesign
    pool: int


@dataclass(frozen=True)
class ModelDesign:
    """One model as it is called. `api` is chat | responses | anthropic | gemini | practice; `rpm`, `tpm` null where
    unlimited.

    `synthetic` says that no model was called: its answers, and its costs, are made up by rules. `context_window` is in
    tokens; `mutations` are the changes that requests of agents inside may undergo.
    """

    name: str
    provider: str
    model: str
    api: str
    base_url: str | None
    effort: str | None
    max_output_tokens: int
    request_timeout_sec: int
    api_key_env: str | None
    rpm: int | None
    tpm: int | None
    price: Prices
    synthetic: bool = field(default=False, metadata=ABSENT_IF_UNUSED)
    context_window: int | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    mutations: tuple[str, ...] = field(default=(), metadata=ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class ArmModel:
    """Model settings that an arm changes; null where it leaves the model's own."""

    effort: str | None
    max_output_tokens: int | None


@dataclass(frozen=True)
class SandboxDesign:
    """The world; null where the study says nothing and the task's own value stands."""

    kind: str
    network: str
    cpus: int | float | None
    memory_bytes: int | None
    storage_bytes: int | None
    pids: int | None
    rootfs: str | None
    substitute: dict[str, str]


@dataclass(frozen=True)
class PromptDesign:
    """Text put after the task's instruction, a blank line between; `file` is where the study keeps it."""

    append: str
    file: str | None = field(default=None, metadata=ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class SkillDesign:
    """One skill, put at `/skills/<name>`."""

    name: str
    path: str
    sha256: str
    files: tuple[dict[str, str | int], ...]


@dataclass(frozen=True)
class ArmDesign:
    """One arm: its differences. `config` is as the study writes it; `agent` and `sandbox` are the whole result."""

    name: str
    prompt: PromptDesign | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    skills: tuple[SkillDesign, ...] = field(default=(), metadata=ABSENT_IF_UNUSED)
    config: dict[str, Any] = field(default_factory=dict, metadata=ABSENT_IF_UNUSED)
    agent: AgentDesign | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    sandbox: SandboxDesign | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    tools: tuple[str, ...] | None = field(default=None, metadata=ABSENT_IF_NONE)
    model: ArmModel | None = field(default=None, metadata=ABSENT_IF_UNUSED)

    @property
    def is_control(self) -> bool:
        """Whether it differs from the study in nothing (facts about it aside)."""
        changed = self.prompt or self.skills or self.agent or self.sandbox or self.model
        return not changed and self.tools is None

    def instruct(self, instruction: str) -> str:
        """The task's instruction as this arm's agent is handed it: unchanged, or with the arm's text after it."""
        return f"{instruction.rstrip()}\n\n{self.prompt.append}" if self.prompt else instruction
