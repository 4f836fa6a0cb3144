"""claude-code: Claude Code, which asks Anthropic's messages format and streams."""

from __future__ import annotations

import json
from typing import Any

from proctor.agents.base import McpServer, Turn
from proctor.agents.installed.program import HOME, InstalledAgent, Start, merged, without_nones
from proctor.agents.sources import NpmPart, NpmSource
from proctor.core.models import Door
from proctor.core.usage import Bucket
from proctor.core.wires import ANTHROPIC

# Its calls in the background go to the trial's model as well: one that nobody named would be refused.
_MODELS = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_FABLE_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
)
_QUIET = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_FEEDBACK_COMMAND",
    "DISABLE_TELEMETRY",
)
# A search that the provider makes has a price of its own, which nothing here bounds.
_DEFAULTS: dict[str, Any] = {"permissions": {"deny": ["WebSearch"]}}
_START = """\
if [ -e /lib64/ld-linux-x86-64.so.2 ] || [ -e /lib/ld-linux-aarch64.so.1 ]; then exec "$here/glibc/claude" "$@"; fi
for loader in /lib/ld-musl-*.so.1; do [ -e "$loader" ] && exec "$here/musl/claude" "$@"; done
exec "$here/lib/{loader}" --library-path "$here/lib" "$here/glibc/claude" "$@\""""


class ClaudeCode(InstalledAgent):
    """Claude Code, headless, without permission prompts: the world is the sandbox."""

    name = "claude-code"
    source = NpmSource(
        package="@anthropic-ai/claude-code",
        version="2.1.332",
        parts=(
            NpmPart("@anthropic-ai/claude-code-linux-{arch}", "{version}", "glibc", loaded="claude"),
            NpmPart("@anthropic-ai/claude-code-linux-{arch}-musl", "{version}", "musl"),
        ),
        start=_START,
        libc=("glibc", "musl", "own"),
    )
    shells = ("bash", "zsh")
    apis = frozenset({ANTHROPIC})
    # it has the provider keep the beginning of every conversation
    marks = frozenset({Bucket.CACHE_WRITE})
    skills = "skills"
    logs = ("projects",)
    transports = frozenset({"stdio", "sse", "streamable-http"})

    def start(self, turn: Turn, door: Door) -> Start:
        """The instruction on standard input; settings and servers in files of its own folder."""
        words = ("--print", "--verbose", "--output-format", "stream-json", "--dangerously-skip-permissions")
        servers = json.dumps({"mcpServers": {server.name: _server(server) for server in turn.mcp_servers}})
        env = {
            **dict.fromkeys(_MODELS, door.model),
            **dict.fromkeys(_QUIET, "1"),
            "CLAUDE_CONFIG_DIR": HOME,
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(door.max_output_tokens),
            "CLAUDE_CODE_EFFORT_LEVEL": door.effort,
            # without it there is no working without prompts as root
            "IS_SANDBOX": "1",
        }
        return Start(
            (*words, "--model", door.model, "--strict-mcp-config", "--mcp-config", f"{HOME}/servers.json"),
            files={
                "servers.json": servers.encode(),
                "settings.json": json.dumps(merged(_DEFAULTS, self.config)).encode(),
            },
            env=without_nones(env),
            stdin=turn.instruction.encode(),
        )


def _server(server: McpServer) -> dict[str, Any]:
    if server.transport == "stdio":
        return {"type": "stdio", "command": server.command, "args": list(server.args)}
    return {"type": "http" if server.transport == "streamable-http" else server.transport, "url": server.url}
