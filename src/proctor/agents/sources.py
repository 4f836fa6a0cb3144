"""Where programs of agents come from, and what of them a bundle holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proctor.agents.base import installed_agents


@dataclass(frozen=True)
class NpmPart:
    """One package of a registry of npm: `package` and `version` are templates over `arch` (x64, arm64) and `version`.

    Its files land in `folder` of the program. `loaded`, where it is given, is the file in it that runs with a C library
    of ours in worlds that have none.
    """

    package: str
    version: str
    folder: str
    loaded: str | None = None


@dataclass(frozen=True)
class NpmSource:
    """A program that is published as packages for each platform; nothing of them runs before a world starts it.

    `package` is the one whose versions count. `start` is the script that starts it, with `$here` for the program's
    folder; a template over `machine`, as the kernel names it.
    """

    package: str
    version: str
    parts: tuple[NpmPart, ...]
    start: str
    libc: tuple[str, ...]


@dataclass(frozen=True)
class PythonSource:
    """A program in Python, from a registry of pip's, with an interpreter of its own."""

    package: str
    version: str


Source = NpmSource | PythonSource


@dataclass(frozen=True)
class Installable:
    """An agent whose program `proctor agents install` brings; `version_words` make it say its version."""

    name: str
    source: Source
    version_words: tuple[str, ...]


def installable_agents() -> dict[str, Installable]:
    """Every agent that has a source of its program, by name."""
    found = {}
    for name, point in installed_agents().items():
        agent_class: Any = point.load()
        if hasattr(agent_class, "source"):
            found[name] = Installable(name, agent_class.source, agent_class.version_words)
    return found
