"""What the practice model is told, and what it does next: the two ends of each of its rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Done:
    """A call that was made, and what came of it."""

    name: str
    arguments: str
    result: str


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation: all that the system says, what the user said last, and the calls that were made since.

    `tools` are the parameters (a JSON schema) of what may be called, by name.
    """

    system: str
    question: str
    done: tuple[Done, ...]
    tools: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Move:
    """What the model says, and the one call that it wants made, if any."""

    text: str
    tool: str | None = None
    arguments: Mapping[str, str] | None = None
