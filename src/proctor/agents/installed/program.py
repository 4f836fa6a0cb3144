"""What installed agents share: a bundle that worlds are shown, settings, an attested version, one run to its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from proctor.agents.base import Turn, Version
from proctor.agents.bundles import VERSION, InstalledBundle, find_bundle, version_in
from proctor.agents.environment import variables
from proctor.agents.sources import Source
from proctor.agents.watching import run_watched
from proctor.core.models import Door
from proctor.core.near import closest_hint
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import in_thread
from proctor.sandbox.base import Ended, Exec, PutItem

# The program's own folder: written by nothing else, made anew for each attempt, and no part of the task's result.
HOME = "/agent/home"
KNOWN = ("config", "env", "version")
# $0 holds the shells of which it needs one
_ATTEST = """\
[ -z "$0" ] || for shell in $0 -; do
  if [ "$shell" = - ]; then echo "it needs one of: $0"; exit 1; fi
  if command -v "$shell" >/dev/null; then break; fi
done
exec "$@\""""
_ATTEST_SEC = 120.0
_SAID_BYTES = 4_096
# a stream of events holds every result of every tool
_OUTPUT_BYTES = 64 << 20
_LOG_BYTES, _LOG_FILES = 64 << 20, 500


@dataclass(frozen=True)
class Start:
    """How the program is started in one attempt.

    `words` follow those that start it, `files` are put into its own folder (path in it, content), `stdin` is what it
    reads; `env` comes over that of the task, and the study's own over both.
    """

    words: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""


class InstalledAgent(ABC):
    """An unmodified program in the sandbox, which reaches its model by the door of its attempt.

    Settings: `version` (which of the installed ones; the newest), `env` (table of strings), `config` (keys of the
    program's own configuration file, in its own words).
    """

    name: ClassVar[str]
    source: ClassVar[Source]
    version_words: ClassVar[tuple[str, ...]] = ("--version",)
    # a world has to have one of these; empty for a program that is content with any sh
    shells: ClassVar[tuple[str, ...]] = ()
    # what it takes skills from, in its own folder; None for a program that knows none
    skills: ClassVar[str | None] = None
    # what of its own folder is brought out after it
    logs: ClassVar[tuple[str, ...]] = ()
    transports: ClassVar[frozenset[str]] = frozenset()
    needs_solution = False
    needs_model = True
    takes_model = True
    inside = True
    apis: frozenset[str]

    def __init__(self, settings: Mapping[str, Any], base: Path) -> None:
        unknown = sorted(set(settings) - set(KNOWN))
        if unknown:
            what = f"does not know {unknown[0]!r}{closest_hint(unknown[0], KNOWN)}"
            raise self._invalid(what, "agent", unknown, list(KNOWN))
        version = settings.get("version")
        if version is not None and not (isinstance(version, str) and VERSION.fullmatch(version)):
            raise self._invalid("has a version that is none", "agent.version", version, "as it is installed")
        self.env = self._table(settings, "env")
        if not all(isinstance(value, str) for value in self.env.values()):
            raise self._invalid("takes strings in `env`", "agent.env", sorted(self.env), "a table of strings")
        self.config = self._table(settings, "config")
        self.installed: InstalledBundle = find_bundle(self.name, version)

    @abstractmethod
    def start(self, turn: Turn, door: Door) -> Start:
        """How it is started to work on the task."""

    def version(self) -> Version:
        """The installed one; `attest` says what runs."""
        return Version(self.installed.version)

    async def attest(self, turn: Turn) -> Version:
        """Have the program in the world say its version.

        Raises:
            Refusal: BUNDLE_UNUSABLE where it cannot run there; as `Sandbox.exec` does.
        """
        said = turn.output / "version.txt"
        ended = await turn.sandbox.exec(
            Exec(
                ("sh", "-c", _ATTEST, " ".join(self.shells), *self.installed.entry, *self.version_words),
                stdout=said,
                env=dict(turn.env),
                user=turn.user,
                output_cap=_SAID_BYTES,
                deadline_sec=min(_ATTEST_SEC, turn.deadline_sec),
            )
        )
        text = await in_thread(_text, said)
        if ended.start_error is not None or ended.exit_code != 0:
            raise Refusal(
                Reason.BUNDLE_UNUSABLE,
                f"the program of {self.name!r} cannot run in this sandbox: {ended.start_error or text.strip()[-500:]}",
                path="agent.name",
                observed={"status": ended.exit_code, "signal": ended.signal, "libc": list(self.installed.libc)},
            )
        version = version_in(text)
        return Version(version) if version is not None else Version(None, "it says none: see version.txt")

    async def act(self, turn: Turn) -> Ended:
        """Start the program with its own folder, and wait for its end; bring its logs out.

        Raises:
            Refusal: MODEL_NEEDED without a door, AGENT_UNSUITABLE for a server that it cannot use; family SANDBOX.
        """
        door = turn.door
        if door is None:
            raise Refusal(Reason.MODEL_NEEDED, f"{self.name} was handed no model")
        self._see_servers(turn)
        start = self.start(turn, door)
        pointed = variables(door.api, door.base_url, door.token, door.model)
        await turn.sandbox.put(self._items(turn, start))
        ended = await run_watched(
            turn,
            Exec(
                (*self.installed.entry, *start.words),
                stdout=turn.output / "stdout.txt",
                stderr=turn.output / "stderr.txt",
                cwd=turn.workdir,
                env={**turn.env, **pointed, **start.env, **self.env},
                user=turn.user,
                stdin=start.stdin,
                output_cap=_OUTPUT_BYTES,
                deadline_sec=turn.deadline_sec,
                leave_running=turn.leave_running,
            ),
        )
        await self._fetch_logs(turn)
        return ended

    def _items(self, turn: Turn, start: Start) -> list[PutItem]:
        items = [PutItem(HOME, mode=0o700, owner=turn.user, fresh=True)]
        for path, content in start.files.items():
            items.append(PutItem(f"{HOME}/{path}", content=content, mode=0o600, owner=turn.user))
        if self.skills is not None and turn.skills:
            items.append(PutItem(f"{HOME}/{self.skills}", mode=0o755, owner=turn.user))
            items += [PutItem(f"{HOME}/{self.skills}/{pack.name}", source=pack.path) for pack in turn.skills]
        return items

    async def _fetch_logs(self, turn: Turn) -> None:
        paths = [f"{HOME}/{path}" for path in self.logs]
        fetched = await turn.sandbox.get(paths, turn.output, cap_bytes=_LOG_BYTES, cap_files=_LOG_FILES)
        skipped = "".join(f"{each.path!r}: {each.skipped}\n" for each in fetched if each.skipped)
        if skipped:
            await in_thread((turn.output / "logs-skipped.txt").write_text, skipped, "utf-8", "backslashreplace")

    def _see_servers(self, turn: Turn) -> None:
        for server in turn.mcp_servers:
            if server.transport not in self.transports:
                raise Refusal(
                    Reason.AGENT_UNSUITABLE,
                    f"{self.name} cannot use the MCP server {server.name!r} that the task gives it",
                    observed=server.transport,
                    required=sorted(self.transports),
                )

    def _table(self, settings: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = settings.get(key, {})
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise self._invalid(f"takes a table as `{key}`", f"agent.{key}", repr(value)[:80], "a table")
        return dict(value)

    def _invalid(self, what: str, path: str, observed: Any, required: Any) -> Refusal:
        message = f"the agent {self.name!r} {what}"
        return Refusal(Reason.AGENT_OPTIONS_INVALID, message, path=path, observed=observed, required=required)


def merged(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables over each other, the last one on top, key by key at every depth."""
    made: dict[str, Any] = {}
    for table in tables:
        for key, value in table.items():
            under = made.get(key)
            if isinstance(under, Mapping) and isinstance(value, Mapping):
                value = merged(under, value)
            made[key] = value
    return made


def without_nones(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table without what is not said."""
    return {key: value for key, value in table.items() if value is not None}


def _text(path: Path) -> str:
    return path.read_bytes()[:_SAID_BYTES].decode("utf-8", "replace") if path.exists() else ""
