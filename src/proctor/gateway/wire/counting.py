"""Replies that are no answer of a model: a count of tokens, which is free, and vectors, which have input alone."""

from __future__ import annotations

from typing import Any

from proctor.core.models import Finish
from proctor.core.usage import Bucket, Usage
from proctor.gateway.wire import counts
from proctor.gateway.wire.base import Flag, Reply, WireError
from proctor.gateway.wire.counts import Counts
from proctor.gateway.wire.errors import error_in
from proctor.gateway.wire.notes import Notes

_COUNTED = ("input_tokens", "totalTokens")


class CountAssembly:
    """A count in the making. Its reply has the number as its text, and no usage."""

    def __init__(self) -> None:
        self.notes = Notes()
        self._error: WireError | None = None
        self._counted: int | None = None

    @property
    def ended(self) -> bool:
        """Whether a number or an error was given."""
        return self._counted is not None or self._error is not None

    def take(self, value: dict[str, Any]) -> None:
        """The body."""
        self._error = self._error or error_in(value)
        said = next((value[name] for name in _COUNTED if name in value), None)
        if type(said) is int and said >= 0:
            self._counted = said
        elif said is not None:
            self.notes.add(Flag.MALFORMED)

    def reply(self) -> Reply:
        """What came."""
        if not self.ended:
            self.notes.add(Flag.NO_ANSWER)
        text = "" if self._counted is None else str(self._counted)
        return Reply(text, finish=Finish.STOP, error=self._error, flags=self.notes.flags)


class EmbeddingAssembly:
    """Vectors in the making, of which nothing but the usage is read."""

    def __init__(self) -> None:
        self.notes = Notes()
        self._counts = Counts(self.notes)
        self._model: str | None = None
        self._error: WireError | None = None
        self._answered = False

    @property
    def ended(self) -> bool:
        """Whether vectors or an error were given."""
        return self._answered or self._error is not None

    def take(self, value: dict[str, Any]) -> None:
        """The body."""
        self._error = self._error or error_in(value)
        self._model = self.notes.text(value.get("model")) or self._model
        self._answered = self._answered or isinstance(value.get("data"), list)
        self._counts.say("input", self._counts.part(value.get("usage")).get("prompt_tokens"))

    def reply(self) -> Reply:
        """What came."""
        if not self.ended:
            self.notes.add(Flag.NO_ANSWER)
        usage = self._usage()
        return Reply(finish=Finish.STOP, usage=usage, model=self._model, error=self._error, flags=self.notes.flags)

    def _usage(self) -> Usage | None:
        if not self._counts.usable:
            return None
        return counts.usage({Bucket.INPUT: self._counts["input"]}, self._counts.flags, self.notes)
