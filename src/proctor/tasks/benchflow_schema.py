"""The keys that only `task.md` has. All others are read by Harbor's schema, once these were taken out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import ConfigDict, Field

from proctor.tasks.schema import Inside, Name, Seconds, Table, Text, User
from proctor.tasks.task import Setup

ROOT_KEYS = frozenset(
    {
        *("schema_version", "version", "task", "metadata", "agent", "verifier", "sandbox", "oracle", "solution"),
        *("artifacts", "steps", "reward", "source", "multi_step_reward_strategy", "agents", "scenes", "user"),
        *("benchflow", "name", "image", "profile", "profiles"),
    }
)
_PATHS = {"verifier": ("verifier", "tests"), "oracle": ("oracle", "solution")}
_NUDGES = ("nudges", "teams", "multi_agent")


class _Own(Table):
    """Keys of one table; what is not among them stays where it is."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    @classmethod
    def pop(cls, table: Any) -> dict[str, Any]:
        """Take this table's keys out of another."""
        known = cls.model_fields.keys()
        return {key: table.pop(key) for key in list(table) if key in known} if isinstance(table, dict) else {}


class AgentKeys(_Own):
    """Of `agent`."""

    prompt_prefix: Text = ""


class VerifierKeys(_Own):
    """Of `verifier`."""

    type: Literal["test-script", "llm-judge"] = "test-script"
    service: Name = "main"
    reward_range: list[float] | None = Field(default=None, min_length=2, max_length=2)
    judge: dict[str, Any] = Field(default_factory=dict)
    memory: dict[str, Any] = Field(default_factory=dict)
    hardening: dict[str, Any] = Field(default_factory=dict)
    pytest_plugins: list[Text] = Field(default_factory=list)


class SetupTable(Table):
    """One of `sandbox.setup_commands`; its other keys are not done."""

    command: Text = Field(min_length=1)
    timeout_sec: Seconds = 600.0
    cwd: Inside | None = None
    user: User | None = None

    @property
    def beyond(self) -> list[str]:
        """What of it is not done."""
        return sorted(self.model_extra or ())


class SandboxKeys(_Own):
    """Of `sandbox`."""

    setup_commands: list[SetupTable] = Field(default_factory=list)
    blocked_urls: list[Text] = Field(default_factory=list)
    blocked_hosts: list[Text] = Field(default_factory=list)
    denylist: bool = False

    def setup(self) -> tuple[Setup, ...]:
        """The commands, as the task's world is told them."""
        return tuple(
            Setup(each.command, each.timeout_sec, each.cwd, None if each.user is None else str(each.user))
            for each in self.setup_commands
        )

    def later(self) -> Iterator[str]:
        """What of it is not done."""
        beyond = sorted({key for each in self.setup_commands for key in each.beyond})
        if beyond:
            yield f"sandbox.setup_commands with {', '.join(beyond)}"
        if self.denylist or self.blocked_urls or self.blocked_hosts:
            yield "sandbox.network_mode = denylist"


class BenchflowKeys(Table):
    """`benchflow`: what the format's own runner is told."""

    environment: dict[str, Any] = Field(default_factory=dict)
    verifier: dict[str, Any] = Field(default_factory=dict)
    oracle: dict[str, Any] = Field(default_factory=dict)
    nudges: dict[str, Any] = Field(default_factory=dict)
    teams: dict[str, Any] = Field(default_factory=dict)
    multi_agent: dict[str, Any] = Field(default_factory=dict)

    def later(self) -> Iterator[str]:
        """What of it would make another world, or run other files."""
        if "manifest" in self.environment:
            yield "benchflow.environment.manifest"
        for key, usual in _PATHS.items():
            path = getattr(self, key).get("path")
            if path is not None and str(path).strip("/") not in usual:
                yield f"benchflow.{key}.path = {path}"


class Own(_Own):
    """The whole file's."""

    agent: AgentKeys = AgentKeys()
    verifier: VerifierKeys = VerifierKeys()
    sandbox: SandboxKeys = SandboxKeys()
    benchflow: BenchflowKeys = BenchflowKeys()
    agents: dict[str, Any] = Field(default_factory=dict)
    scenes: list[Any] = Field(default_factory=list)
    user: dict[str, Any] = Field(default_factory=dict)
    reward: dict[str, Any] = Field(default_factory=dict)
    name: Name | None = None
    profiles: tuple[str, ...] = ()

    @classmethod
    def take(cls, raw: dict[str, Any]) -> Own:
        """Take the format's own keys out of a file's values. Raises pydantic's ValidationError."""
        benchflow = raw.pop("benchflow", None) or {}
        sandbox = raw.setdefault("sandbox", {}) if "image" in raw else raw.get("sandbox")
        image = raw.pop("image", None)
        if isinstance(sandbox, dict):
            short = sandbox.pop("image", image)
            if short is not None:
                sandbox.setdefault("docker_image", short)
            if sandbox.get("network_mode") == "denylist":
                sandbox.pop("network_mode")
                sandbox["denylist"] = True
        profiles = [raw.pop(key) for key in ("profile", "profiles") if key in raw]
        return cls.model_validate(
            {
                "agent": AgentKeys.pop(raw.get("agent")),
                "verifier": VerifierKeys.pop(raw.get("verifier")),
                "sandbox": SandboxKeys.pop(sandbox),
                "benchflow": benchflow,
                **{key: raw.pop(key) for key in ("agents", "scenes", "user", "reward", "name") if raw.get(key)},
                "profiles": tuple(
                    str(name) for each in profiles for name in (each if isinstance(each, list) else [each])
                ),
            }
        )

    @property
    def short_name(self) -> str | None:
        """The name that the short form stands for."""
        return self.name if self.name is None or "/" in self.name else f"benchflow/{self.name}"

    def prompted(self) -> Iterator[str]:
        """What only an agent that takes a prompt would see."""
        roles = [key for key in ("agents", "scenes", "user") if getattr(self, key)]
        if roles:
            yield f"several roles ({', '.join(roles)})"
        for key in _NUDGES:
            if getattr(self.benchflow, key):
                yield f"benchflow.{key}"

    def without_effect(self) -> Iterator[str]:
        """Keys with a value that nothing is done with."""
        for key in ("reward_range", "memory", "hardening", "pytest_plugins"):
            if getattr(self.verifier, key):
                yield f"verifier.{key}"
        if self.reward:
            yield "reward"
        yield from (f"benchflow.{key}" for key in sorted(self.benchflow.model_extra or ()))
