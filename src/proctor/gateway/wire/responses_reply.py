"""Replies in the Responses format: a response, or the events that build one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from proctor.core.models import Finish, ToolCall
from proctor.core.usage import Usage
from proctor.core.wires import RESPONSES
from proctor.gateway.wire.base import Flag, Native, Reply, WireError
from proctor.gateway.wire.chat_reply import usage_of
from proctor.gateway.wire.counts import Counts
from proctor.gateway.wire.errors import error_in
from proctor.gateway.wire.notes import Notes, as_text

_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})
_INCOMPLETE = {"max_output_tokens": Finish.LENGTH, "content_filter": Finish.REFUSED}
# Items that the client answers: the member that says what to do, and a name where the item has none.
_CALLS: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        "function_call": ("arguments", None),
        "custom_tool_call": ("input", None),
        "local_shell_call": ("action", "local_shell"),
        "shell_call": ("action", "shell"),
        "apply_patch_call": ("operation", "apply_patch"),
        "computer_call": ("actions", "computer"),
    }
)
# What a provider runs by itself has a count and a price of its own.
_RUN_BY_PROVIDER = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
# The list of an item that a piece of text belongs to, the index of its part, and the type of that part.
_PIECES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "response.output_text.delta": ("content", "content_index", "output_text"),
        "response.refusal.delta": ("content", "content_index", "refusal"),
        "response.reasoning_text.delta": ("content", "content_index", "reasoning_text"),
        "response.reasoning_summary_text.delta": ("summary", "summary_index", "summary_text"),
    }
)
_RAW_PIECES = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})


class _Item:
    """One item of the output: as it started, and what was added until it was done."""

    def __init__(self, value: dict[str, Any], *, done: bool) -> None:
        self.value = value
        self.done = done
        self.raw: list[str] = []
        self.parts: dict[tuple[str, int], tuple[str, list[str]]] = {}

    def texts(self, kind: str, notes: Notes) -> list[str]:
        """The texts of its parts of a type, in order."""
        given = [
            notes.text(part.get("refusal" if kind == "refusal" else "text"))
            for where in ("content", "summary")
            for part in notes.items(self.value.get(where))
            if part.get("type") == kind
        ]
        added = ["".join(pieces) for _, (of, pieces) in sorted(self.parts.items()) if of == kind]
        return [*given, *added]


class ResponsesAssembly:
    """A reply in the making."""

    def __init__(self) -> None:
        self.notes = Notes()
        self._counts = Counts(self.notes)
        self._items: dict[int, _Item] = {}
        self._model: str | None = None
        self._error: WireError | None = None
        self._status: str | None = None
        self._reason: str | None = None
        self._started = False

    @property
    def ended(self) -> bool:
        """Whether the response was said to be at its end, or an error was given."""
        return self._status in _ENDS or self._error is not None

    def take(self, value: dict[str, Any]) -> None:
        """A response, or an event; types that are not known add nothing."""
        kind = value.get("type")
        if value.get("object") == "response":
            self._take_response(value)
        elif kind == "response.created":
            if self._started:
                self.notes.add(Flag.RESTARTED)
                self._items.clear()
            self._take_response(self.notes.obj(value.get("response")))
        elif isinstance(kind, str) and isinstance(value.get("response"), dict):
            self._take_response(value["response"], said=kind.removeprefix("response."))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._take_item(value, done=kind == "response.output_item.done")
        elif isinstance(kind, str) and (kind in _PIECES or kind in _RAW_PIECES):
            self._take_piece(kind, value)
        else:
            self._error = self._error or error_in(value)

    def reply(self) -> Reply:
        """What came."""
        if self._error is None:
            if not self._started:
                self.notes.add(Flag.NO_ANSWER)
            elif self._status not in _ENDS:
                self.notes.add(Flag.NO_FINISH)
        items = [self._items[index] for index in sorted(self._items)]
        calls = self._calls(items)
        text = self._joined(items, "output_text")
        refused = self._joined(items, "refusal")
        thoughts = self._joined(items, "reasoning_text") or self._joined(items, "summary_text")
        native = (
            Native(RESPONSES, [item.value for item in items]) if items and all(item.done for item in items) else None
        )
        return Reply(
            text=text,
            calls=calls,
            finish=Finish.REFUSED if refused else self._finish(bool(calls)),
            usage=self._usage(items),
            model=self._model,
            error=self._error,
            flags=self.notes.flags,
            native=native,
            raw_finish=self._reason or (self._status if self._status in _ENDS else None),
            thoughts=thoughts,
        )

    def _take_response(self, response: dict[str, Any], said: str = "") -> None:
        self._started = True
        text = self.notes.text
        self._model = text(response.get("model")) or self._model
        self._status = text(response.get("status")) or (said if said in _ENDS else self._status)
        self._counts.served(response.get("service_tier"))
        self._reason = text(self.notes.obj(response.get("incomplete_details")).get("reason")) or self._reason
        self._error = self._error or error_in({"error": response.get("error")})
        if self._status == "failed":
            self._error = self._error or WireError(code="failed")
        self._take_usage(response.get("usage"))
        if self._status in _ENDS:
            for index, item in enumerate(self.notes.items(response.get("output"))):
                # what a stream said of an item when it was done is the form that may be sent back
                if index not in self._items or not self._items[index].done:
                    self._items[index] = _Item(item, done=True)

    def _take_item(self, value: dict[str, Any], *, done: bool) -> None:
        index = value.get("output_index")
        if type(index) is int:
            self._items[index] = _Item(self.notes.obj(value.get("item")), done=done)
        else:
            self.notes.add(Flag.MALFORMED)

    def _take_piece(self, kind: str, value: dict[str, Any]) -> None:
        # By place and never by id: some give each event of one item another id.
        index = value.get("output_index")
        item = self._items.get(index) if type(index) is int else None
        if item is None or item.done:
            self.notes.add(Flag.MALFORMED)
            return
        piece = self.notes.text(value.get("delta"))
        if kind in _RAW_PIECES:
            item.raw.append(piece)
            return
        where, indexed, of = _PIECES[kind]
        place = value.get(indexed, 0)
        if type(place) is not int:
            self.notes.add(Flag.MALFORMED)
            return
        item.parts.setdefault((where, place), (of, []))[1].append(piece)

    def _joined(self, items: list[_Item], kind: str) -> str:
        return "".join(text for item in items for text in item.texts(kind, self.notes))

    def _calls(self, items: list[_Item]) -> tuple[ToolCall, ...]:
        found = (call_of(item.value, at, self.notes, "".join(item.raw)) for at, item in enumerate(items))
        return tuple(call for call in found if call is not None)

    def _finish(self, has_calls: bool) -> Finish:
        if self._status == "incomplete":
            return _INCOMPLETE.get(self._reason or "", Finish.OTHER)
        if self._status != "completed":
            return Finish.OTHER
        return Finish.TOOLS if has_calls else Finish.STOP

    def _take_usage(self, value: Any) -> None:
        if value is None:
            return
        given = self._counts.part(value)
        for name in ("input_tokens", "output_tokens", "total_tokens"):
            self._counts.say(name, given.get(name))
        inputs = self._counts.part(given.get("input_tokens_details"))
        self._counts.say("cached", inputs.get("cached_tokens"))
        self._counts.say("written", inputs.get("cache_write_tokens"))
        kept = self._counts.part(inputs.get("cache_write_tokens_details"))
        self._counts.say("written_12h", kept.get("ttl_12h_tokens"))
        outputs = self._counts.part(given.get("output_tokens_details"))
        self._counts.say("reasoning", outputs.get("reasoning_tokens"))

    def _usage(self, items: list[_Item]) -> Usage | None:
        said = self._counts
        if not said.usable:
            return None
        if said.get("input_tokens") is None or said.get("output_tokens") is None:
            self.notes.add(Flag.USAGE_INVALID)
            return None
        flags = said.flags
        dear = any(item.value.get("type") in _RUN_BY_PROVIDER for item in items)
        if dear or said["written_12h"] or not said.listed:
            flags.append(Flag.UNPRICED_UNITS)
        return usage_of(
            prompt=said["input_tokens"],
            completion=said["output_tokens"],
            total=said.get("total_tokens"),
            cached=said["cached"],
            written=said["written"],
            audio_in=0,
            reasoning=said["reasoning"],
            audio_out=0,
            notes=self.notes,
            flags=flags,
        )


def call_of(item: dict[str, Any], position: int, notes: Notes, added: str = "") -> ToolCall | None:
    """The call that an item is, None where it is none that the client makes.

    Args:
        item: of an output or of an input.
        position: of the item among all, for a call without an id.
        notes: where what does not fit is noted.
        added: what came of it in pieces.
    """
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in _CALLS:
        return None
    member, name = _CALLS[kind]
    said = item.get(member)
    raw = (said or "") + added if isinstance(said, str) or said is None else as_text(said)
    call = notes.call(item.get("call_id"), name or item.get("name"), raw, fallback_id=f"call_{position}")
    # the input of a custom tool is any text, also where that happens to be JSON
    return ToolCall(call.id, call.name, None, raw) if kind == "custom_tool_call" else call
