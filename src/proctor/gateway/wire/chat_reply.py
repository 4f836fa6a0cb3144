"""Replies in the chat completions format, of the provider that made it and of the many that speak it their own way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.core.models import Finish, ToolCall
from proctor.core.usage import Bucket, Usage
from proctor.core.wires import CHAT
from proctor.gateway.wire import counts
from proctor.gateway.wire.base import Flag, Native, Reply, WireError
from proctor.gateway.wire.counts import Counts
from proctor.gateway.wire.errors import error_in
from proctor.gateway.wire.notes import Notes, as_text

_FINISHES = {
    "stop": Finish.STOP,
    "eos": Finish.STOP,
    "tool_calls": Finish.TOOLS,
    "function_call": Finish.TOOLS,
    "length": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "content_filter": Finish.REFUSED,
}
# What a chunk of text may hold beside it: what is not read, and what says nothing where it is null.
_TEXT_CHUNK = frozenset(
    {"id", "object", "created", "model", "system_fingerprint", "obfuscation", "service_tier", "choices", "usage"}
)
_TEXT_CHOICE = frozenset({"index", "delta", "logprobs", "finish_reason"})


class _CallParts:
    """One call of which pieces come: names and ids are given once or repeated, arguments are appended."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.raw: list[str] = []


class ChatAssembly:
    """A reply in the making: a whole body, or the chunks of a stream."""

    def __init__(self) -> None:
        self.notes = Notes()
        self._counts = Counts(self.notes)
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[_CallParts] = []
        self._open: dict[int | None, _CallParts] = {}
        self._model: str | None = None
        self._error: WireError | None = None
        self._finish: str | None = None
        self._refused = False
        self._answered = False
        self._message: dict[str, Any] | None = None

    @property
    def ended(self) -> bool:
        """Whether a finish reason or an error was given."""
        return self._finish is not None or self._error is not None

    def take(self, value: dict[str, Any]) -> None:
        """A body or a chunk: it may hold an error, choices and a usage at once."""
        if "service_tier" in value:
            self._counts.served(value["service_tier"])
        text = _only_text(value) if self._model is not None else None
        if text is not None:
            self._answered = True
            self._text.append(text)
            return
        self._error = self._error or error_in(value)
        self._model = self._model or self.notes.text(value.get("model")) or None
        self._take_usage(value.get("usage"))
        wrapped = value.get("x_groq")
        if isinstance(wrapped, dict):
            self._take_usage(wrapped.get("usage"))
        for position, choice in enumerate(self.notes.items(value.get("choices"))):
            if choice.get("index", position) == 0:
                self._take_choice(choice)
            else:
                self.notes.add(Flag.SEVERAL_CHOICES)

    def reply(self) -> Reply:
        """What came."""
        calls = tuple(self._call(position, parts) for position, parts in enumerate(self._calls))
        if self._error is None:
            if not self._answered:
                self.notes.add(Flag.NO_ANSWER)
            elif self._finish is None:
                self.notes.add(Flag.NO_FINISH)
        usage = self._usage()
        # A call without an id gets one of ours, which the message as it came does not have.
        as_it_came = self._message is not None and all(parts.id for parts in self._calls)
        return Reply(
            text="".join(self._text),
            calls=calls,
            finish=self._finished(bool(calls)),
            usage=usage,
            model=self._model,
            error=self._error,
            flags=self.notes.flags,
            native=Native(CHAT, self._message) if as_it_came else None,
            raw_finish=self._finish,
            thoughts="".join(self._thoughts),
        )

    def _take_choice(self, choice: dict[str, Any]) -> None:
        self._error = self._error or error_in(choice)
        self._take_usage(choice.get("usage"))
        self._finish = self.notes.text(choice.get("finish_reason")) or self._finish
        message = self.notes.obj(choice.get("message"))
        delta = self.notes.obj(choice.get("delta"))
        if message:
            self._message = message
            self._take_part(message, whole=True)
        if delta:
            self._take_part(delta, whole=False)
        self._answered = self._answered or bool(message) or "delta" in choice

    def _take_part(self, part: dict[str, Any], *, whole: bool) -> None:
        content = part.get("content")
        if isinstance(content, str):
            self._text.append(content)
        else:
            self._take_content(content)
        self._take_thoughts(part)
        if not self._refused and "refusal" in part:
            self._refused = bool(self.notes.text(part["refusal"]))
        if "tool_calls" in part:
            for call in self.notes.items(part["tool_calls"]):
                self._take_call(call, whole=whole)

    def _take_content(self, content: Any) -> None:
        if not isinstance(content, list):
            self._text.append(self.notes.text(content))
            return
        for part in self.notes.items(content):
            if part.get("type") == "text":
                self._text.append(self.notes.text(part.get("text")))
            elif part.get("type") == "thinking":
                self._take_thinking(part.get("thinking"))

    def _take_thinking(self, thinking: Any) -> None:
        if isinstance(thinking, str):
            self._thoughts.append(thinking)
            return
        for part in self.notes.items(thinking):
            self._thoughts.append(self.notes.text(part.get("text")))

    def _take_thoughts(self, part: dict[str, Any]) -> None:
        # Some send the same thoughts under both names.
        for name in ("reasoning_content", "reasoning"):
            thoughts = part.get(name)
            if isinstance(thoughts, str) and thoughts:
                self._thoughts.append(thoughts)
                return

    def _take_call(self, call: dict[str, Any], *, whole: bool) -> None:
        function = self.notes.obj(call.get("function"))
        call_id = self.notes.text(call.get("id"))
        parts = self._parts(call.get("index"), call_id, whole)
        parts.id = parts.id or call_id
        parts.name = parts.name or self.notes.text(function.get("name"))
        raw = function.get("arguments")
        parts.raw.append(as_text(raw) if isinstance(raw, dict) else self.notes.text(raw))

    def _parts(self, index: Any, call_id: str, whole: bool) -> _CallParts:
        """The call that a piece belongs to. Some number none, some all of them 0: another id is another call."""
        if index is not None and type(index) is not int:
            self.notes.add(Flag.MALFORMED)
            index = None
        parts = None if whole else self._open.get(index)
        if parts is None or (call_id and parts.id and call_id != parts.id):
            parts = _CallParts()
            self._calls.append(parts)
            self._open[index] = parts
        return parts

    def _call(self, position: int, parts: _CallParts) -> ToolCall:
        return self.notes.call(parts.id, parts.name, "".join(parts.raw), fallback_id=f"call_{position}")

    def _finished(self, has_calls: bool) -> Finish:
        if self._refused:
            return Finish.REFUSED
        finish = _FINISHES.get(self._finish or "", Finish.OTHER)
        return Finish.TOOLS if has_calls and finish is Finish.STOP else finish

    def _take_usage(self, value: Any) -> None:
        if value is None:
            return
        given = self._counts.part(value)
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            self._counts.say(name, given.get(name))
        inputs = self._counts.part(given.get("prompt_tokens_details"))
        cached = inputs.get("cached_tokens")
        for other in ("prompt_cache_hit_tokens", "cached_tokens"):
            cached = given.get(other) if cached is None else cached
        self._counts.say("cached", cached)
        self._counts.say("written", inputs.get("cache_write_tokens"))
        self._counts.say("audio_in", inputs.get("audio_tokens"))
        outputs = self._counts.part(given.get("completion_tokens_details"))
        self._counts.say("reasoning", outputs.get("reasoning_tokens"))
        self._counts.say("audio_out", outputs.get("audio_tokens"))
        self._counts.say("sources", given.get("num_sources_used"))

    def _usage(self) -> Usage | None:
        said = self._counts
        if not said.usable:
            return None
        if said.get("prompt_tokens") is None or said.get("completion_tokens") is None:
            self.notes.add(Flag.USAGE_INVALID)
            return None
        return usage_of(
            prompt=said["prompt_tokens"],
            completion=said["completion_tokens"],
            total=said.get("total_tokens"),
            cached=said["cached"],
            written=said["written"],
            audio_in=said["audio_in"],
            reasoning=said["reasoning"],
            audio_out=said["audio_out"],
            notes=self.notes,
            flags=said.flags + ([] if said.listed and not said["sources"] else [Flag.UNPRICED_UNITS]),
        )


def _only_text(value: dict[str, Any]) -> str | None:
    """The text of a chunk that says nothing else, as nearly all of a stream do: read in a third of the time."""
    if not _TEXT_CHUNK.issuperset(value) or value.get("object") == "error" or value.get("usage") is not None:
        return None
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    if not isinstance(choice, dict) or not _TEXT_CHOICE.issuperset(choice) or choice.get("finish_reason") is not None:
        return None
    delta = choice.get("delta")
    if choice.get("index", 0) != 0 or not isinstance(delta, dict) or len(delta) != 1:
        return None
    text = delta.get("content")
    return text if isinstance(text, str) else None


def usage_of(
    *,
    prompt: int,
    completion: int,
    total: int | None,
    cached: int,
    written: int,
    audio_in: int,
    reasoning: int,
    audio_out: int,
    notes: Notes,
    flags: Sequence[Flag] = (),
) -> Usage:
    """Disjoint buckets from counts that contain each other, or do not: the total says which.

    Most count reasoning within the completion and cached tokens within the prompt, some beside one or both of them.
    Without a total that decides, a part larger than its whole stands beside it. A total above all that was said means
    output that was not said (thoughts are left out by some): it is counted as reasoning, and flagged.
    """
    cache = cached + written
    base = prompt + completion
    found = list(flags)
    reasoning_apart = cache_apart = False
    if total is None or total == base:
        undecided = total is None
    elif total == base + reasoning:
        undecided, reasoning_apart = False, True
    elif total == base + cache:
        undecided, cache_apart = False, True
    elif total == base + cache + reasoning:
        undecided, reasoning_apart, cache_apart = False, True, True
    elif total > base + reasoning:
        undecided, reasoning_apart = False, True
        reasoning = total - base
        found.append(Flag.TOTAL_FILLED)
    else:
        undecided = True
        found.append(Flag.TOTAL_DIFFERS)
    if undecided:
        reasoning_apart, cache_apart = reasoning > completion, cache > prompt
        if reasoning_apart or cache_apart:
            found.append(Flag.PART_EXCEEDS_WHOLE)
    return counts.usage(
        {
            Bucket.INPUT: prompt - audio_in - (0 if cache_apart else cache),
            Bucket.CACHE_READ: cached,
            Bucket.CACHE_WRITE: written,
            Bucket.AUDIO_IN: audio_in,
            Bucket.OUTPUT: completion - audio_out - (0 if reasoning_apart else reasoning),
            Bucket.REASONING: reasoning,
            Bucket.AUDIO_OUT: audio_out,
        },
        found,
        notes,
    )
