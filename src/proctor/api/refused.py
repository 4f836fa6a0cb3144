"""The one exception with which proctor says no from Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from proctor.core.refusal import Refusal


class Refused(Exception):
    """proctor says no, and nothing has acted.

    `refusals` are all of them, typed: each with `reason`, `message`, `path`, `observed`, `required` and `remedy`. `run`
    is the folder whose `manifests/` holds the record of it, None where there is none.
    """

    def __init__(self, refusals: Sequence[Refusal], run: Path | None = None) -> None:
        super().__init__(*refusals)
        self.refusals = tuple(refusals)
        self.run = run

    @property
    def reasons(self) -> tuple[str, ...]:
        """The ids of the reasons, such as `run_exists`, each once."""
        return tuple(dict.fromkeys(refusal.reason.id for refusal in self.refusals))

    def __str__(self) -> str:
        return "\n".join(f"{refusal}\n  do: {refusal.remedy}" for refusal in self.refusals)


@contextmanager
def refusing() -> Iterator[None]:
    """What refuses in the block raises `Refused`."""
    try:
        yield
    except Refusal as refusal:
        raise Refused([refusal]) from refusal
