"""Progress: the same finished trials on a terminal as in a pipe, and a panel that never needs a second line."""

from __future__ import annotations

import io
import re

import pytest

from proctor.core.outcomes import Outcome
from proctor.report.progress import MANY, Progress, Tally
from proctor.report.text import width

COLUMNS = 40
LONG = "a-task-with-a-name-that-is-longer-than-the-line · with-skill · 1"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def shown(stream: io.StringIO, planned: int = 2) -> list[str]:
    """Lines that a run of two trials printed, without what steers the terminal."""
    with Progress(stream) as progress:
        progress.begins(planned, 0, {})
        for label in (LONG, "漢字" * 30):
            progress.phase(label, "agent")
        progress.tally.draining = "SIGINT, and a long explanation of what that means for what is in flight"
        progress.attempt_over(LONG, Outcome.COMPLETED)
        progress.final(LONG, "fail", "below_threshold")
        progress.final("al\x1b[2Jpha · plain · 1", "ungraded", "reward_missing")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue()).replace("\r", "\n").splitlines()


@pytest.mark.usefixtures("narrow")
def test_that_nothing_new_starts_is_not_cut_off() -> None:
    tally = Tally(900, 600, in_flight={"a": "agent"}, superseded=10, replaced=10)
    tally.draining = "SIGINT"
    assert tally.line().startswith("draining (SIGINT) · 600/900 done")
    tally.draining, tally.paused = None, True
    assert tally.line().startswith("paused · ")


def finals(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.startswith(("fail", "ungraded"))]


@pytest.mark.usefixtures("narrow")
def test_a_terminal_lists_what_a_pipe_lists() -> None:
    piped = finals(shown(io.StringIO()))
    assert piped == [f"fail     {LONG}", "ungraded al\\x1b[2Jpha · plain · 1 (reward_missing)"]
    assert finals(shown(Terminal())) == piped


@pytest.mark.usefixtures("narrow")
def test_the_panel_is_cropped_to_the_terminal() -> None:
    lines = [line for line in shown(Terminal()) if "agent" in line or "done ·" in line]
    assert lines and all(width(line) < COLUMNS for line in lines)
    assert any(line.endswith("…") for line in lines)


@pytest.mark.usefixtures("narrow")
def test_many_trials_are_counted_not_listed() -> None:
    assert finals(shown(Terminal(), MANY + 1)) == []
    assert not finals(shown(io.StringIO(), MANY + 1))


@pytest.mark.usefixtures("narrow")
def test_before_the_plan_is_known_the_terminal_is_free_for_a_question() -> None:
    stream = Terminal()
    with Progress(stream):
        assert stream.getvalue() == ""
    assert stream.getvalue() == ""


def test_one_trial_is_one() -> None:
    assert shown(io.StringIO(), 1)[0] == "1 trial planned"
