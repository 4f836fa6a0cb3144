"""Live progress on standard error: a small panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO, cast

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from proctor.core.outcomes import SUPERSEDED, GradeState, Outcome
from proctor.report.spending import Spend
from proctor.report.text import count, safe

MANY = 200
EVERY_SEC = 5.0
SHOWN = 8
_BAR = 30


@dataclass(eq=False)
class Wait:
    """Something that takes its time before any attempt: what is done, as in `building an image`, and since when."""

    doing: str
    started: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        return f"{safe(self.doing)}, for {human(time.monotonic() - self.started)}"


@dataclass
class Tally:
    """What progress knows: counts, what is in flight (trial label to phase), and a way to ask for the money now."""

    planned: int
    done: int = 0
    grades: dict[str, int] = field(default_factory=lambda: {grade.value: 0 for grade in GradeState})
    in_flight: dict[str, str] = field(default_factory=dict)
    superseded: int = 0
    replaced: int = 0
    paused: bool = False
    draining: str | None = None
    waits: list[Wait] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    done_before: int = 0
    money: Callable[[], Spend | None] | None = None

    def spend(self) -> Spend | None:
        """The money now, None where no model is used."""
        return None if self.money is None else self.money()

    def left_sec(self) -> float | None:
        """Seconds until the end at the pace so far, or None before there is one."""
        here = self.done - self.done_before
        if here == 0:
            return None
        return (time.monotonic() - self.started) / here * (self.planned - self.done)

    def line(self, *, with_money: bool = True) -> str:
        """All of it in one line; the money may be left to lines of its own."""
        left = self.left_sec()
        # first, where no narrow terminal cuts it off
        state = f"draining ({self.draining})" if self.draining else "paused" if self.paused else None
        parts = [
            *([state] if state else []),
            f"{self.done}/{self.planned} done",
            f"{self.grades['pass']} pass",
            f"{self.grades['fail']} fail",
            f"{self.grades['ungraded']} ungraded",
            f"{len(self.in_flight)} in flight",
        ]
        if self.superseded:
            parts.append(f"{self.superseded} superseded")
        if self.replaced:
            parts.append(f"{self.replaced} replaced")
        money = self.spend() if with_money else None
        if money is not None:
            parts.append(money.line())
        if left is not None and self.done < self.planned:
            parts.append(f"{human(left)} left")
        return " · ".join(parts)


def human(seconds: float) -> str:
    """`75` → `1m15s`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    if minutes:
        return f"{minutes}m{secs:02d}s"
    return f"{secs}s"


class Forgiving:
    """A stream whose reader may have gone, or whose disk may be full: what is shown is no part of the run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Progress:
    """Told by the runner what happens; shows it. Use as a context manager.

    Where it is `quiet`, it says nothing, or, with `waits`, only what takes its time.
    """

    def __init__(self, stream: TextIO, *, quiet: bool = False, waits: bool = False) -> None:
        self._console = Console(file=cast(TextIO, Forgiving(stream)), highlight=False)
        self._quiet = quiet
        self._waits = waits or not quiet
        self._live: Live | None = None
        self._last_line = 0.0
        self.tally = Tally(0)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def begins(self, planned: int, done: int, grades: dict[str, int]) -> None:
        """The plan is known; `done` trials have their final from before.

        The panel comes only now: until the run is admitted, somebody may be asked on the same terminal.
        """
        money = self.tally.money
        self.tally = Tally(planned, done, {**self.tally.grades, **grades}, done_before=done, money=money)
        if self._console.is_terminal and not self._quiet and self._live is None:
            self._live = Live(get_renderable=self._panel, console=self._console, refresh_per_second=5, transient=True)
            self._live.start()
        self._say(f"{count(planned, 'trial')} planned" + (f", {done} done before" if done else ""))

    def notice(self, text: str) -> None:
        """Something that holds and may surprise."""
        self._say(f"note: {text}")

    def waits(self, doing: str) -> Wait:
        """Something takes its time, and is shown until `waited`."""
        wait = Wait(doing)
        self.tally.waits.append(wait)
        if self._waits:
            self._print(safe(doing))
        return wait

    def still(self, wait: Wait) -> None:
        """It goes on; a panel shows that by itself."""
        if self._waits and self._live is None:
            self._print(f"still {wait}")

    def waited(self, wait: Wait) -> None:
        """It is over, well or not."""
        self.tally.waits.remove(wait)
        if self._waits:
            self._print(f"{safe(wait.doing)} took {human(time.monotonic() - wait.started)}")

    def phase(self, label: str, phase: str) -> None:
        """An attempt in flight reached a phase."""
        self.tally.in_flight[label] = phase

    def attempt_over(self, label: str, outcome: Outcome) -> None:
        """An attempt ended."""
        self.tally.in_flight.pop(label, None)
        if outcome is Outcome.INFRASTRUCTURE:
            self.tally.replaced += 1
        elif outcome in SUPERSEDED:
            self.tally.superseded += 1

    def final(self, label: str, grade: str, reason: str | None) -> None:
        """A trial has its final."""
        self.tally.done += 1
        self.tally.grades[grade] += 1
        if self.tally.planned <= MANY:
            why = f" ({reason})" if reason and grade == GradeState.UNGRADED else ""
            self._say(f"{grade:8} {safe(label)}{why}")
        elif self._live is None and (
            time.monotonic() - self._last_line > EVERY_SEC or self.tally.done == self.tally.planned
        ):
            self._last_line = time.monotonic()
            self._say(self.tally.line())

    def paused(self, paused: bool) -> None:
        """The run was paused, or goes on."""
        self.tally.paused = paused
        self._say("paused: nothing new starts" if paused else "goes on")

    def draining(self, cause: str) -> None:
        """Nothing new starts any more."""
        if self.tally.draining is None:
            self.tally.draining = cause
            again = "; once more aborts" if cause == "SIGINT" else ""
            self._say(f"draining ({cause}): {len(self.tally.in_flight)} in flight{again}")

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def _panel(self) -> Group:
        tally = self.tally
        room = max(1, self._console.width - 1)
        bar = Table.grid()  # a bar alone ends no line
        bar.add_row(ProgressBar(total=max(1, tally.planned), completed=tally.done, width=min(_BAR, room)))
        rows: list[Table | Text] = [bar, _line(tally.line(with_money=False), room)]
        money = tally.spend()
        rows += [_line(f"  {line}", room, "dim") for line in (money.lines() if money else ())]
        rows += [_line(f"  {wait}", room, "dim") for wait in list(tally.waits)[:SHOWN]]
        rows += [
            _line(f"  {phase:12} {safe(label)}", room, "dim") for label, phase in list(tally.in_flight.items())[:SHOWN]
        ]
        if len(tally.in_flight) > SHOWN:
            rows.append(_line(f"  and {len(tally.in_flight) - SHOWN} more", room, "dim"))
        return Group(*rows)


def _line(text: str, room: int, style: str = "") -> Text:
    """One line and never two: a panel is taken back by its lines, and what is left of a longer one would stay."""
    line = Text(text, style=style, no_wrap=True)
    line.truncate(room, overflow="ellipsis")
    return line
