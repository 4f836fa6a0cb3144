"""Replies in the Anthropic messages format: a message, or the events that build one."""

from __future__ import annotations

from typing import Any

from proctor.core.models import Finish, ToolCall
from proctor.core.usage import Bucket, Usage
from proctor.core.wires import ANTHROPIC
from proctor.gateway.wire import counts
from proctor.gateway.wire.base import Flag, Native, Reply, WireError
from proctor.gateway.wire.counts import Counts
from proctor.gateway.wire.errors import error_in
from proctor.gateway.wire.notes import Notes, arguments, as_text

_FINISHES = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "tool_use": Finish.TOOLS,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSED,
}
# what a delta adds to, by its type: the name is that of the piece in the delta and of the whole in the block
_APPENDED = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "compaction_delta": "content",
}


class _Block:
    """One content block, as it started, and the pieces that were added."""

    def __init__(self, started: dict[str, Any]) -> None:
        self.started = started
        self.pieces: dict[str, list[str]] = {}
        self.citations: list[Any] = []

    def joined(self, name: str, notes: Notes) -> str:
        """What the block holds under a name: what it started with, and all that was added."""
        return notes.text(self.started.get(name)) + "".join(self.pieces.get(name, ()))

    def raw_input(self) -> str:
        """The text of the input of a block that has one."""
        pieces = "".join(self.pieces.get("input", ()))
        given = self.started.get("input")
        return pieces or ("" if given is None else as_text(given))

    def native(self, notes: Notes) -> dict[str, Any]:
        """The block as it would have come in one piece."""
        whole = dict(self.started)
        for name in self.pieces:
            if name != "input":
                whole[name] = self.joined(name, notes)
        if self.pieces.get("input"):
            # An input that is no object cannot be sent back; an empty one stands for it.
            whole["input"] = arguments(self.raw_input()) or {}
        if self.citations:
            given = self.started.get("citations")
            whole["citations"] = [*(given if isinstance(given, list) else ()), *self.citations]
        return whole


class AnthropicAssembly:
    """A reply in the making."""

    def __init__(self) -> None:
        self.notes = Notes()
        self._blocks: dict[int, _Block] = {}
        self._usage_said = _UsageSaid(self.notes)
        self._model: str | None = None
        self._error: WireError | None = None
        self._finish: str | None = None
        self._started = False
        self._stopped = False

    @property
    def ended(self) -> bool:
        """Whether the message was stopped, or an error was given."""
        return self._stopped or self._error is not None

    def take(self, value: dict[str, Any]) -> None:
        """A message, or an event; types that are not known add nothing."""
        match value.get("type"):
            case "message":
                self._start(value)
                self._finish = self.notes.text(value.get("stop_reason")) or None
                self._stopped = True
            case "message_start":
                self._start(self.notes.obj(value.get("message")))
            case "content_block_start":
                self._start_block(value.get("index"), self.notes.obj(value.get("content_block")))
            case "content_block_delta":
                self._add(value.get("index"), self.notes.obj(value.get("delta")))
            case "message_delta":
                delta = self.notes.obj(value.get("delta"))
                self._finish = self.notes.text(delta.get("stop_reason")) or self._finish
                self._usage_said.take(value.get("usage"))
            case "message_stop":
                self._stopped = True
            case _:
                self._error = self._error or error_in(value)

    def reply(self) -> Reply:
        """What came."""
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        if self._error is None:
            if not self._started:
                self.notes.add(Flag.NO_ANSWER)
            elif self._finish is None:
                self.notes.add(Flag.NO_FINISH)
        calls = self._calls(blocks)
        text = self._texts(blocks, "text")
        thoughts = self._texts(blocks, "thinking")
        native = Native(ANTHROPIC, [block.native(self.notes) for block in blocks]) if blocks else None
        usage = self._usage_said.usage()
        return Reply(
            text=text,
            calls=calls,
            finish=_FINISHES.get(self._finish or "", Finish.OTHER),
            usage=usage,
            model=self._model,
            error=self._error,
            flags=self.notes.flags,
            native=native,
            raw_finish=self._finish,
            thoughts=thoughts,
        )

    def _start(self, message: dict[str, Any]) -> None:
        """A message starts; where one did before, it starts anew, and what it had said is void but for its usage."""
        if self._started:
            self.notes.add(Flag.RESTARTED)
            self._blocks.clear()
        self._started = True
        self._model = self.notes.text(message.get("model")) or self._model
        self._usage_said.take(message.get("usage"))
        for index, block in enumerate(self.notes.items(message.get("content"))):
            self._blocks[index] = _Block(block)

    def _start_block(self, index: Any, block: dict[str, Any]) -> None:
        if type(index) is int:
            self._blocks[index] = _Block(block)
        else:
            self.notes.add(Flag.MALFORMED)

    def _add(self, index: Any, delta: dict[str, Any]) -> None:
        block = self._blocks.get(index) if type(index) is int else None
        if block is None:
            self.notes.add(Flag.MALFORMED)
            return
        kind = delta.get("type")
        if kind == "citations_delta":
            block.citations.append(delta.get("citation"))
        elif kind == "input_json_delta":
            block.pieces.setdefault("input", []).append(self.notes.text(delta.get("partial_json")))
        elif isinstance(kind, str) and kind in _APPENDED:
            name = _APPENDED[kind]
            block.pieces.setdefault(name, []).append(self.notes.text(delta.get(name)))

    def _texts(self, blocks: list[_Block], kind: str) -> str:
        return "".join(block.joined(kind, self.notes) for block in blocks if block.started.get("type") == kind)

    def _calls(self, blocks: list[_Block]) -> tuple[ToolCall, ...]:
        used = [block for block in blocks if block.started.get("type") == "tool_use"]
        return tuple(
            self.notes.call(
                block.started.get("id"), block.started.get("name"), block.raw_input(), fallback_id=f"call_{position}"
            )
            for position, block in enumerate(used)
        )


class _UsageSaid:
    """The usage of a message: the last value of each field, and the sum of its iterations where there are several."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._last = Counts(notes)
        self._iterations: list[Any] = []
        self._models: set[str] = set()

    def take(self, value: Any) -> None:
        """A usage as it stands in a message or in an event."""
        given = self._last.part(value)
        iterations = given.get("iterations")
        if isinstance(iterations, list) and iterations:
            self._iterations = iterations
        elif iterations is not None and not isinstance(iterations, list):
            self._last.spoil()
        _say(self._last, given)
        self._last.served(given.get("service_tier"), given.get("speed"), given.get("inference_geo"))
        self._last.say("searches", self._last.part(given.get("server_tool_use")).get("web_search_requests"))

    def usage(self) -> Usage | None:
        """The buckets; None where they are not known."""
        last = self._last
        if not last.usable:
            return None
        if last.get("input") is None or last.get("output") is None:
            self._notes.add(Flag.USAGE_INVALID)
            return None
        summed = self._sum()
        if summed is None:
            return None
        flags: list[Flag] = [] if self._iterations else last.flags
        if self._iterations and any(summed[name] < last[name] for name in _NAMES):
            flags.append(Flag.TOTAL_DIFFERS)
        if len(self._models) > 1:
            flags.append(Flag.SEVERAL_MODELS)
        if last["searches"] or not last.listed:
            flags.append(Flag.UNPRICED_UNITS)

        def most(name: str) -> int:
            return max(summed.get(name, 0), last[name])

        short, long, written = most("written_5m"), most("written_1h"), most("written")
        if (short or long) and short + long != written:
            flags.append(Flag.TOTAL_DIFFERS)
        return counts.usage(
            {
                Bucket.INPUT: most("input"),
                Bucket.CACHE_READ: most("cached"),
                Bucket.CACHE_WRITE: max(short, written - long),
                Bucket.CACHE_WRITE_1H: long,
                Bucket.OUTPUT: most("output"),
            },
            flags,
            self._notes,
        )

    def _sum(self) -> dict[str, int] | None:
        total: dict[str, int] = {}
        for iteration in self._iterations:
            one = Counts(self._notes)
            given = one.part(iteration)
            _say(one, given)
            if not one.usable:
                self._notes.add(Flag.USAGE_INVALID)
                return None
            self._models.add(self._notes.text(given.get("model")))
            for name in _NAMES:
                total[name] = total.get(name, 0) + one[name]
        return total


_NAMES = ("input", "cached", "written", "written_5m", "written_1h", "output")


def _say(said: Counts, given: dict[str, Any]) -> None:
    said.say("input", given.get("input_tokens"))
    said.say("cached", given.get("cache_read_input_tokens"))
    said.say("written", given.get("cache_creation_input_tokens"))
    lifetimes = said.part(given.get("cache_creation"))
    said.say("written_5m", lifetimes.get("ephemeral_5m_input_tokens"))
    said.say("written_1h", lifetimes.get("ephemeral_1h_input_tokens"))
    said.say("output", given.get("output_tokens"))
