"""codex: Codex CLI, which asks OpenAI's Responses format and streams."""

from __future__ import annotations

from typing import Any

from proctor.agents.base import McpServer, Turn
from proctor.agents.installed.program import HOME, InstalledAgent, Start, merged, without_nones
from proctor.agents.sources import NpmPart, NpmSource
from proctor.core.models import Door
from proctor.core.wires import RESPONSES

_KEY = "PROCTOR_TOKEN"
# A search that the provider makes has a price of its own, which nothing here bounds.
_DEFAULTS: dict[str, Any] = {"web_search": "disabled"}


class Codex(InstalledAgent):
    """Codex CLI, headless, with its own sandbox and its own questions off: the world is the sandbox."""

    name = "codex"
    source = NpmSource(
        package="@openai/codex",
        version="0.171.0",
        parts=(NpmPart("@openai/codex", "{version}-linux-{arch}", "."),),
        start='exec "$here/vendor/{machine}-unknown-linux-musl/bin/codex" "$@"',
        libc=("static",),
    )
    apis = frozenset({RESPONSES})
    skills = "skills"
    logs = ("sessions",)
    transports = frozenset({"stdio", "streamable-http"})

    def start(self, turn: Turn, door: Door) -> Start:
        """The instruction on standard input; everything else in its configuration file."""
        import tomlkit

        config = merged(_DEFAULTS, self.config, _required(door), {"mcp_servers": _servers(turn.mcp_servers)})
        words = ("exec", "--json", "--color", "never", "--skip-git-repo-check", "-")
        return Start(
            words,
            files={"config.toml": tomlkit.dumps(config).encode()},
            env={"CODEX_HOME": HOME},
            stdin=turn.instruction.encode(),
        )


def _required(door: Door) -> dict[str, Any]:
    """A provider of ours, and not its own one: that would try other ways to it, and other routes."""
    provider = {"name": "proctor", "base_url": f"{door.base_url}/v1", "env_key": _KEY, "wire_api": "responses"}
    config = {
        "model": door.model,
        "model_provider": "proctor",
        "model_reasoning_effort": door.effort,
        "approval_policy": "never",
        "sandbox_mode": "danger-full-access",
        "check_for_update_on_startup": False,
        "analytics": {"enabled": False},
        "feedback": {"enabled": False},
        "otel": {"exporter": "none", "metrics_exporter": "none", "trace_exporter": "none"},
        "model_providers": {"proctor": provider},
    }
    return without_nones(config)


def _servers(servers: tuple[McpServer, ...]) -> dict[str, Any]:
    made = {}
    for server in servers:
        if server.transport == "stdio":
            made[server.name] = {"command": server.command, "args": list(server.args)}
        else:
            made[server.name] = {"url": server.url}
    return made
