"""A refusal: the one way in which proctor says no.

`Refusal` is an exception so that it can travel from where a fact is seen to where it is reported, and a record
(`as_record`) so that it stands on disk in the same form. Admission collects many of them; everything after
admission turns them into a typed outcome of an attempt or of the run.
"""

from __future__ import annotations

from typing import Any

from proctor.core.reasons import Reason


class Refusal(RuntimeError):
    """A typed "no".

    Args:
        reason: why, out of the one vocabulary.
        message: one sentence that a person can act on.
        path: the file, key or command-line word that it is about, if any.
        observed: what was seen (JSON-able).
        required: what is needed (JSON-able).
        remedy: what to do; the reason's own remedy where nothing more exact is known.
        guard: id of the guard that refused, filled in by the registry.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        path: str | None = None,
        observed: Any = None,
        required: Any = None,
        remedy: str | None = None,
        guard: str | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.path = path
        self.observed = observed
        self.required = required
        self.remedy = remedy if remedy is not None else reason.remedy
        self.guard = guard

    @property
    def waivable(self) -> bool:
        """Whether `--waive` may name this reason."""
        return self.reason.waivable

    def as_record(self) -> dict[str, Any]:
        """The refusal as it stands in a manifest or a journal entry."""
        return {
            "reason": self.reason.id,
            "guard": self.guard,
            "message": self.message,
            "path": self.path,
            "observed": self.observed,
            "required": self.required,
            "remedy": self.remedy,
            "waivable": self.waivable,
        }

    def __str__(self) -> str:
        where = f" ({self.path})" if self.path else ""
        return f"{self.reason.id}: {self.message}{where}"
