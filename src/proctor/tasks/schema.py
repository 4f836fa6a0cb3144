"""The shape of Harbor's `task.toml` (schema 1.4): what each key may hold. Unknown keys are kept, never fatal."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

NetworkMode = Literal["public", "no-network", "allowlist"]

_HOSTNAME = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
_ENV_NAME = re.compile(r"[^=\x00]+")


def _host(value: str) -> str:
    host = value.strip().lower().rstrip(".")
    if _HOSTNAME.fullmatch(host):
        return host
    try:
        ipaddress.ip_network(host, strict=False)
    except ValueError:
        raise ValueError("a host is a host name, *.name, an IP address or a CIDR, never a URL or a port") from None
    return host


def _env(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not _ENV_NAME.fullmatch(name) or "\x00" in text:
            raise ValueError(f"{name!r} cannot be an environment variable")
    return value


def _inside(value: str) -> str:
    if not value.startswith("/") or "\x00" in value or ".." in value.split("/"):
        raise ValueError("a path inside is absolute, without ..")
    return value


Text = Annotated[str, StringConstraints(pattern=r"\A[^\x00]*\z")]
Name = Annotated[str, StringConstraints(pattern=r"\A[^\x00-\x1f\x7f]{1,256}\z")]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Moment = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Env = Annotated[dict[str, str], AfterValidator(_env)]
Hosts = list[Annotated[str, AfterValidator(_host)]]
Inside = Annotated[str, AfterValidator(_inside)]
User = Name | Annotated[int, Field(ge=0)]


class Table(BaseModel):
    """A table of the file: strict types, frozen, unknown keys kept aside."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class NetworkTable(Table):
    """What a phase may reach; a list of hosts without a mode means `allowlist`."""

    network_mode: NetworkMode | None = None
    allowed_hosts: Hosts = []

    @model_validator(mode="after")
    def _one_policy(self) -> NetworkTable:
        if self.allowed_hosts and self.network_mode not in (None, "allowlist"):
            raise ValueError(f"allowed_hosts needs network_mode = 'allowlist', not {self.network_mode!r}")
        return self

    @property
    def mode(self) -> NetworkMode | None:
        """The mode in words of the field; None where the table says nothing."""
        return "allowlist" if self.allowed_hosts else self.network_mode


class AuthorTable(Table):
    """One author."""

    name: Text
    email: Text | None = None


class TaskTable(Table):
    """`[task]`."""

    name: Name | None = None
    version: Text | None = None
    description: Text = ""
    authors: list[AuthorTable | Text] = []
    keywords: list[Text] = []


class HealthcheckTable(Table):
    """`healthcheck`, as Docker means it; times in seconds."""

    command: Text
    interval_sec: Seconds = 5.0
    timeout_sec: Seconds = 30.0
    start_period_sec: Moment = 0.0
    start_interval_sec: Seconds = 5.0
    retries: int = Field(default=3, ge=0)


class McpServerTable(Table):
    """One of `mcp_servers`."""

    name: Name
    transport: Literal["sse", "streamable-http", "stdio"] = "sse"
    url: Text | None = None
    command: Text | None = None
    args: list[Text] = []

    @model_validator(mode="after")
    def _reachable(self) -> McpServerTable:
        if self.transport == "stdio" and not self.command:
            raise ValueError("a stdio server needs a command")
        if self.transport != "stdio" and not self.url:
            raise ValueError(f"a server over {self.transport} needs a url")
        return self


class EnvironmentTable(NetworkTable):
    """`[environment]` and `[verifier.environment]`; megabytes are 2**20 bytes, as Docker counts them."""

    build_timeout_sec: Seconds = 600.0
    docker_image: Name | None = None
    os: Text = "linux"
    cpus: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    memory_mb: int | None = Field(default=None, gt=0)
    storage_mb: int | None = Field(default=None, gt=0)
    gpus: int = Field(default=0, ge=0)
    gpu_types: list[Text] | None = None
    tpu: dict[str, Any] | None = None
    mcp_servers: list[McpServerTable] = []
    skills_dir: Inside | None = None
    healthcheck: HealthcheckTable | None = None
    workdir: Inside | None = None
    env: Env = {}

    @property
    def memory_bytes(self) -> int | None:
        """The memory limit in bytes."""
        return None if self.memory_mb is None else self.memory_mb << 20

    @property
    def storage_bytes(self) -> int | None:
        """The disk limit in bytes."""
        return None if self.storage_mb is None else self.storage_mb << 20


class AgentTable(NetworkTable):
    """`[agent]`; no timeout means no limit."""

    timeout_sec: Seconds | None = None
    user: User | None = None


class CollectTable(Table):
    """One of `[[verifier.collect]]`: a command run before artifacts are taken."""

    command: Text
    service: Name = "main"
    timeout_sec: Seconds | None = None
    user: User | None = None


class VerifierTable(NetworkTable):
    """`[verifier]`. A table `environment` implies the mode `separate`."""

    timeout_sec: Seconds = 600.0
    env: Env = {}
    user: User | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: EnvironmentTable | None = None
    collect: list[CollectTable] = []

    @model_validator(mode="after")
    def _one_mode(self) -> VerifierTable:
        if self.environment is not None and self.environment_mode == "shared":
            raise ValueError("[verifier.environment] needs environment_mode = 'separate'")
        return self


class SolutionTable(Table):
    """`[solution]`."""

    env: Env = {}


class Artifact(Table):
    """One declared artifact; a bare string is its `source`. No destination: it stays at its source's path."""

    source: Text = Field(min_length=1)
    destination: Text | None = None
    exclude: list[Text] = []
    service: Name = "main"

    @field_validator("source", "destination")
    @classmethod
    def _stays(cls, value: str | None) -> str | None:
        if value is not None and ".." in value.split("/"):
            raise ValueError("a path of an artifact has no ..")
        return value


class StepTable(Table):
    """One of `[[steps]]`; recognised, so that a task of several steps is named as such."""

    name: Name
    agent: AgentTable = AgentTable()
    verifier: VerifierTable = VerifierTable()
    min_reward: float | dict[str, float] | None = None
    healthcheck: HealthcheckTable | None = None
    artifacts: list[Artifact] = []


class TaskToml(Table):
    """The whole file."""

    schema_version: Text = "1.4"
    task: TaskTable = TaskTable()
    metadata: dict[str, Any] = {}
    source: Text | None = None
    artifacts: list[Artifact] = []
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    agent: AgentTable = AgentTable()
    verifier: VerifierTable = VerifierTable()
    environment: EnvironmentTable = EnvironmentTable()
    solution: SolutionTable = SolutionTable()
    steps: list[StepTable] = []
