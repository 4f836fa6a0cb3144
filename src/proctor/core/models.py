"""Calling a model, as rooms below the gateway are handed it: the conversation, the tools, the answer.

The gateway makes what fulfils `ModelAccess`; an agent that is handed one can call the model of its trial, and nothing
else: every call is bounded, priced and on the record before it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from proctor.core.money import Usd
from proctor.core.usage import Usage


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that a model may call; `parameters` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model wants made. `arguments` is None where `raw` is not the text of a JSON object."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    raw: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `calls` are an assistant's; `call_id` and `tool` say which call a tool message answers.

    `native` is the provider's own form of an assistant's message, as it came: sent back as it is (thinking blocks and
    thought signatures are refused when they come back changed), and no other provider is sent it.
    """

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    tool: str | None = None
    native: Any = None


class Finish(StrEnum):
    """Why a model stopped."""

    STOP = "stop"
    TOOLS = "tools"
    LENGTH = "length"
    REFUSED = "refused"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the message to append to the conversation, why it ends, what it used and was charged."""

    message: Message
    finish: Finish
    usage: Usage
    cost: Usd
    exchange: str
    flags: tuple[str, ...] = field(default=())


class ModelAccess(Protocol):
    """The model of one attempt."""

    async def ask(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, max_output_tokens: int | None = None
    ) -> Answer:
        """Send the conversation, and return the answer.

        Args:
            messages: the whole conversation.
            tools: what the model may call.
            max_output_tokens: a bound below the model's own.

        Raises:
            Refusal: of family BUDGET where it may not be paid for; of family PROVIDER where the provider gave no
                answer, after the retries of the failure table.
        """
        ...


@dataclass(frozen=True, slots=True)
class Door:
    """Where an agent that runs inside of a sandbox reaches its model, over HTTP and in its provider's own format.

    `base_url` is `http://127.0.0.1:PORT`, without a path; `token` opens it for this attempt alone. `model` is the
    provider's name of the model; `api` is chat | responses | anthropic | gemini | practice. `last_ns` says when
    something last went through it (monotonic ns; when it was opened, before that).
    """

    base_url: str
    token: str
    model: str
    api: str
    effort: str | None
    max_output_tokens: int
    last_ns: Callable[[], int]


class ToolBox(Protocol):
    """The tools of a question row, declared by the study: nothing else can be called."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What a model is told of them."""
        ...

    async def call(self, call: ToolCall) -> str:
        """The tool's result as text; what went wrong with it is text too, which the model can read."""
        ...
