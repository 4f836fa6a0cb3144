"""command: a given program, run inside the sandbox.

The instruction reaches it on standard input and in the file that `PROCTOR_INSTRUCTION` names; its own files are put
at `/agent`, skill packs at `/skills/<name>`. It starts in the task's working directory as the task's agent user.
Where its trial has a model, variables point it at the gateway, which answers in the provider's own format: the
provider's SDKs need nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.agents.base import Turn, Version
from proctor.agents.environment import variables
from proctor.agents.watching import run_watched
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended, Exec, PutItem

INSTRUCTION = "/agent/instruction.md"
KNOWN = ("command", "env", "files", "version")


class Command:
    """The agent that runs the program that the study names.

    Settings: `command` (list of words, or one string for `sh -c`), `files` (a folder beside the study), `env`
    (table of strings), `version` (what the study calls this program).
    """

    name = "command"
    needs_solution = False
    needs_model = False
    takes_model = True
    inside = True
    apis: frozenset[str] = frozenset()

    def __init__(self, settings: Mapping[str, Any], base: Path) -> None:
        unknown = sorted(set(settings) - set(KNOWN))
        if unknown:
            raise _invalid(f"the command agent does not know {', '.join(unknown)}", "agent", unknown, list(KNOWN))
        self._argv = _words(settings.get("command"))
        self._env = _strings(settings.get("env", {}))
        self._files = _folder(settings.get("files"), base)
        self._version: str | None = settings.get("version")
        if self._version is not None and not isinstance(self._version, str):
            raise _invalid("a version is a string", "agent.version", self._version, "a string")

    def version(self) -> Version:
        """What the study calls the program: nothing is guessed where it says nothing."""
        if self._version is None:
            return Version(None, "the study names no version for its command; its files are known by their digest")
        return Version(self._version)

    async def act(self, turn: Turn) -> Ended:
        """Put the program's files and the instruction in, and run it."""
        items = [PutItem("/agent", source=self._files, fresh=True)]
        items.append(PutItem(INSTRUCTION, content=turn.instruction.encode(), mode=0o644))
        await turn.sandbox.put(items)
        door = turn.door
        pointed = {} if door is None else variables(door.api, door.base_url, door.token, door.model)
        ended = await run_watched(
            turn,
            Exec(
                self._argv,
                stdout=turn.output / "stdout.txt",
                stderr=turn.output / "stderr.txt",
                cwd=turn.workdir,
                env={**turn.env, **pointed, "PROCTOR_INSTRUCTION": INSTRUCTION, **self._env},
                user=turn.user,
                stdin=turn.instruction.encode(),
                deadline_sec=turn.deadline_sec,
                leave_running=turn.leave_running,
            ),
        )
        if ended.start_error is not None:
            ended = replace(ended, exit_code=127)
        return ended


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and value.strip():
        return ("sh", "-c", value)
    if isinstance(value, (list, tuple)) and value and all(isinstance(word, str) for word in value) and value[0]:
        return tuple(value)
    raise _invalid("the command agent needs a command", "agent.command", value, "a list of words, or one string")


def _strings(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping) and all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
        return dict(value)
    raise _invalid("env is a table of strings", "agent.env", repr(value)[:80], "a table of strings")


def _folder(value: Any, base: Path) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _invalid("files is the path of a folder", "agent.files", repr(value)[:80], "a path relative to the study")
    folder = base / value
    if not folder.is_dir():
        raise Refusal(
            Reason.FILE_MISSING, f"the agent's folder {value!r} is not there", path="agent.files", observed=value
        )
    return folder


def _invalid(message: str, path: str, observed: Any, required: Any) -> Refusal:
    return Refusal(Reason.AGENT_OPTIONS_INVALID, message, path=path, observed=observed, required=required)
