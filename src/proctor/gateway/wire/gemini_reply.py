"""Replies in the Gemini format: one response, or several that add up to one, as events or as an array."""

from __future__ import annotations

from typing import Any

from proctor.core.models import Finish, ToolCall
from proctor.core.usage import Bucket, Usage
from proctor.core.wires import GEMINI
from proctor.gateway.wire import counts
from proctor.gateway.wire.base import Flag, Native, Reply, WireError
from proctor.gateway.wire.counts import Counts
from proctor.gateway.wire.errors import error_in
from proctor.gateway.wire.gemini_args import PartialArguments
from proctor.gateway.wire.notes import Notes, as_text

_FINISHES = {
    "STOP": Finish.STOP,
    "MAX_TOKENS": Finish.LENGTH,
    "SAFETY": Finish.REFUSED,
    "RECITATION": Finish.REFUSED,
    "BLOCKLIST": Finish.REFUSED,
    "PROHIBITED_CONTENT": Finish.REFUSED,
    "SPII": Finish.REFUSED,
    "IMAGE_SAFETY": Finish.REFUSED,
    "IMAGE_PROHIBITED_CONTENT": Finish.REFUSED,
    "IMAGE_RECITATION": Finish.REFUSED,
    "MODEL_ARMOR": Finish.REFUSED,
}


class GeminiAssembly:
    """A reply in the making."""

    def __init__(self) -> None:
        self.notes = Notes()
        self._counts = Counts(self.notes)
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._parts: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []
        self._partial: PartialArguments | None = None
        self._model: str | None = None
        self._error: WireError | None = None
        self._finish: str | None = None
        self._blocked: str | None = None
        self._answered = False
        self._usage_given = False
        self._searched = False

    @property
    def ended(self) -> bool:
        """Whether a finish reason, a block or an error was given."""
        return bool(self._finish or self._blocked or self._error is not None)

    def take(self, value: dict[str, Any]) -> None:
        """A response, or the next of several; counts are those of all so far."""
        self._error = self._error or error_in(value)
        self._model = self.notes.text(value.get("modelVersion")) or self._model
        feedback = self.notes.obj(value.get("promptFeedback"))
        self._blocked = self.notes.text(feedback.get("blockReason")) or self._blocked
        self._take_usage(value.get("usageMetadata"))
        for position, candidate in enumerate(self.notes.items(value.get("candidates"))):
            if candidate.get("index", position) == 0:
                self._take_candidate(candidate)
            else:
                self.notes.add(Flag.SEVERAL_CHOICES)

    def reply(self) -> Reply:
        """What came."""
        self._end_partial()
        if self._error is None:
            if not self._answered and self._blocked is None:
                self.notes.add(Flag.NO_ANSWER)
            elif not self.ended:
                self.notes.add(Flag.NO_FINISH)
        calls = tuple(self._call(position, call) for position, call in enumerate(self._calls))
        usage = self._usage()
        return Reply(
            text="".join(self._text),
            calls=calls,
            finish=self._finished(bool(calls)),
            usage=usage,
            model=self._model,
            error=self._error,
            flags=self.notes.flags,
            native=Native(GEMINI, {"role": "model", "parts": self._parts}) if self._parts else None,
            raw_finish=self._finish or self._blocked,
            thoughts="".join(self._thoughts),
        )

    def _take_candidate(self, candidate: dict[str, Any]) -> None:
        self._answered = True
        self._finish = self.notes.text(candidate.get("finishReason")) or self._finish
        grounding = self.notes.obj(candidate.get("groundingMetadata"))
        self._searched = self._searched or bool(grounding.get("webSearchQueries"))
        content = self.notes.obj(candidate.get("content"))
        for part in self.notes.items(content.get("parts")):
            if "functionCall" in part:
                self._take_call(part, self.notes.obj(part["functionCall"]))
                continue
            self._parts.append(part)
            text = self.notes.text(part.get("text"))
            (self._thoughts if part.get("thought") is True else self._text).append(text)

    def _take_call(self, part: dict[str, Any], call: dict[str, Any]) -> None:
        """A call in one part; or its name, then pieces of its arguments, then an empty part, which may be missing."""
        named = "name" in call
        if named or self._partial is None:
            self._end_partial()
            if not named and not call:
                return
            call = dict(call)
            self._calls.append(call)
            self._parts.append({**part, "functionCall": call})
            if call.get("willContinue") is not True and "partialArgs" not in call:
                return
            self._partial = PartialArguments()
        for piece in self.notes.items(call.get("partialArgs")):
            self._partial.take(piece)
        if call.get("willContinue") is not True:
            self._end_partial()

    def _end_partial(self) -> None:
        if self._partial is None:
            return
        if not self._partial.valid:
            self.notes.add(Flag.MALFORMED)
        call = self._calls[-1]
        call["args"] = self._partial.value()
        for name in ("partialArgs", "willContinue"):
            call.pop(name, None)
        self._partial = None

    def _call(self, position: int, call: dict[str, Any]) -> ToolCall:
        args = self.notes.obj(call.get("args"))
        return self.notes.call(call.get("id"), call.get("name"), as_text(args), fallback_id=f"call_{position}")

    def _finished(self, has_calls: bool) -> Finish:
        if self._blocked and not self._finish:
            return Finish.REFUSED
        finish = _FINISHES.get(self._finish or "", Finish.OTHER)
        return Finish.TOOLS if has_calls and finish is Finish.STOP else finish

    def _take_usage(self, value: Any) -> None:
        given = self._counts.part(value)
        self._usage_given = self._usage_given or isinstance(value, dict)
        self._counts.served(given.get("serviceTier"))
        self._counts.say("prompt", given.get("promptTokenCount"))
        self._counts.say("cached", given.get("cachedContentTokenCount"))
        self._counts.say("tool", given.get("toolUsePromptTokenCount"))
        self._counts.say("candidates", given.get("candidatesTokenCount"))
        self._counts.say("thoughts", given.get("thoughtsTokenCount"))
        self._counts.say("total", given.get("totalTokenCount"))
        self._counts.say("audio_in", self._audio(given.get("promptTokensDetails")))
        self._counts.say("audio_cached", self._audio(given.get("cacheTokensDetails")))
        self._counts.say("audio_out", self._audio(given.get("candidatesTokensDetails")))

    def _audio(self, details: Any) -> Any:
        for each in details if isinstance(details, list) else [details]:
            detail = self._counts.part(each)
            if detail.get("modality") == "AUDIO":
                return detail.get("tokenCount")
        return None

    def _usage(self) -> Usage | None:
        said = self._counts
        if self._blocked and self._usage_given and not self._answered and not said.spoiled and not said.usable:
            # Zeros are left out of this format: a prompt that was blocked has used nothing.
            return Usage()
        if not said.usable:
            return None
        if said.get("prompt") is None:
            self.notes.add(Flag.USAGE_INVALID)
            return None
        flags = said.flags
        if self._searched or not said.listed:
            flags.append(Flag.UNPRICED_UNITS)
        thoughts = said["thoughts"]
        summed = said["prompt"] + said["tool"] + said["candidates"] + thoughts
        total = said.get("total")
        if total is not None and total > summed:
            # Thoughts without a count of their own are in the total alone.
            thoughts += total - summed
            flags.append(Flag.TOTAL_FILLED)
        elif total is not None and total < summed:
            flags.append(Flag.TOTAL_DIFFERS)
        audio = said["audio_in"] - said["audio_cached"]
        return counts.usage(
            {
                Bucket.INPUT: said["prompt"] - said["cached"] - audio,
                Bucket.CACHE_READ: said["cached"],
                Bucket.AUDIO_IN: audio,
                Bucket.TOOL_INPUT: said["tool"],
                Bucket.OUTPUT: said["candidates"] - said["audio_out"],
                Bucket.REASONING: thoughts,
                Bucket.AUDIO_OUT: said["audio_out"],
            },
            flags,
            self.notes,
        )
