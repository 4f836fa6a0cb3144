"""What a gateway of its own has passed on, shown while it does: a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import Any, TextIO, cast

from rich.console import Console
from rich.live import Live
from rich.text import Text

from proctor.core.money import Usd
from proctor.evidence.callstate import CallState
from proctor.report.progress import Forgiving
from proctor.report.text import dollars, safe, table

EVERY_SEC = 5.0
_HEAD = ("model", "exchanges", "failed", "refused", "in flight", "input", "output", "charged", "held")


def lines(state: CallState, budget: Usd) -> list[str]:
    """The table, and the sum below it."""
    rows = [
        (
            safe(name),
            calls.exchanges,
            calls.failed or None,
            calls.refused or None,
            calls.in_flight or None,
            f"{calls.input:,}",
            f"{calls.output:,}",
            dollars(Usd(calls.charged)),
            dollars(Usd(calls.held)) if calls.held else None,
        )
        for name, calls in sorted(state.models.items())
    ]
    return [*(table(_HEAD, rows, right=range(1, len(_HEAD))) if rows else []), total(state, budget)]


def total(state: CallState, budget: Usd) -> str:
    """All of it in one line."""
    exchanges = sum(calls.exchanges for calls in state.models.values())
    refused = state.refused_unnamed + sum(calls.refused for calls in state.models.values())
    parts = [f"{exchanges} exchanges", f"{len(state.open)} in flight"]
    if refused:
        parts.append(f"{refused} refused")
    left = max(Usd(0), budget - state.owed)
    parts.append(f"{dollars(state.total)} of {dollars(budget)} charged, {dollars(left)} left")
    if state.overruns:
        parts.append(f"{state.overruns} overruns")
    return " · ".join(parts)


class CallsShown:
    """Told now and then to show how things are. Use as a context manager."""

    def __init__(self, stream: TextIO, state: CallState, budget: Usd, *, quiet: bool) -> None:
        self._console = Console(file=cast(TextIO, Forgiving(stream)), highlight=False)
        self._state = state
        self._budget = budget
        self._quiet = quiet
        self._live: Live | None = None
        self._said = 0.0
        self._last = ""

    @property
    def every_sec(self) -> float:
        """How often it wants to be told."""
        return 0.25 if self._live is not None else EVERY_SEC

    def __enter__(self) -> CallsShown:
        if self._console.is_terminal and not self._quiet:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def tick(self) -> None:
        """Show it, where it is not what was shown last."""
        if self._live is not None:
            text = Text("\n".join(lines(self._state, self._budget)), no_wrap=True, overflow="ellipsis")
            self._live.update(text, refresh=True)
        elif not self._quiet and time.monotonic() - self._said >= EVERY_SEC:
            line = total(self._state, self._budget)
            if line != self._last:
                self._say(line)
                self._last, self._said = line, time.monotonic()

    def drains(self) -> None:
        """Nothing new is taken from here on."""
        if not self._quiet:
            count = len(self._state.open)
            self._say(f"stopping: {count} in flight, which is waited for; again, and that ends it at its worst case")

    def end(self) -> None:
        """Show the whole table, for good."""
        self.__exit__()
        if not self._quiet:
            for line in lines(self._state, self._budget):
                self._say(line)

    def _say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


def as_record(state: CallState, budget: Usd) -> dict[str, Any]:
    """For JSON: amounts with 12 decimals."""
    return {
        "record": state.record,
        "openings": state.openings,
        "models": {name: calls.as_record() for name, calls in sorted(state.models.items())},
        "refused_unnamed": state.refused_unnamed,
        "in_flight": len(state.open),
        "overruns": state.overruns,
        "charged": str(state.total),
        "budget": str(budget),
        "left": str(max(Usd(0), budget - state.owed)),
    }
