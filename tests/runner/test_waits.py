"""What takes its time before any attempt is shown while it does, and nothing is said of what is over at once."""

from __future__ import annotations

import asyncio
import io
import re

import pytest

from proctor.report.progress import Progress
from proctor.runner.waits import shown

DOING = "building the image of alpha (environment/Dockerfile)"


class Stream(io.StringIO):
    """Sets an event once a word was written."""

    def __init__(self, word: str, *, terminal: bool = False) -> None:
        super().__init__()
        self.word, self.terminal, self.seen = word, terminal, asyncio.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.word in self.getvalue():
            self.seen.set()
        return written

    def isatty(self) -> bool:
        return self.terminal


async def test_what_takes_long_is_said_again_and_ended() -> None:
    stream = Stream(f"still {DOING}, for ")
    with Progress(stream) as progress:
        async with shown(progress, DOING, soon_sec=0, every_sec=0):
            await asyncio.wait_for(stream.seen.wait(), 60)
            assert [wait.doing for wait in progress.tally.waits] == [DOING]
    lines = stream.getvalue().splitlines()
    assert lines[0] == DOING and re.fullmatch(rf"{re.escape(DOING)} took \d+s", lines[-1])
    assert not progress.tally.waits


async def test_it_ends_where_what_is_waited_for_fails() -> None:
    stream = Stream(DOING)
    progress = Progress(stream)
    with pytest.raises(LookupError):
        async with shown(progress, DOING, soon_sec=0):
            await asyncio.wait_for(stream.seen.wait(), 60)
            raise LookupError
    assert " took " in stream.getvalue() and not progress.tally.waits


async def test_what_is_over_at_once_is_not_said() -> None:
    stream = Stream(DOING)
    async with shown(Progress(stream), DOING, soon_sec=3600):
        pass
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("waits", "said"), [(False, ""), (True, f"{DOING}\n{DOING} took 0s\n")])
def test_the_quiet_say_it_only_where_that_is_asked_for(waits: bool, said: str) -> None:
    stream = io.StringIO()
    progress = Progress(stream, quiet=True, waits=waits)
    progress.begins(1, 0, {})
    progress.waited(progress.waits(DOING))
    progress.notice("another thing")
    assert stream.getvalue() == said


async def test_a_panel_shows_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Stream(f"  {DOING}, for 0s", terminal=True)
    with Progress(stream) as progress:
        progress.begins(1, 0, {})
        async with shown(progress, DOING, soon_sec=0):
            await asyncio.wait_for(stream.seen.wait(), 60)
    assert "still" not in stream.getvalue(), "the panel counts by itself"
