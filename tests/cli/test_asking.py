"""Whether a run may cost what it can cost: asked on a terminal, never assumed."""

from __future__ import annotations

import asyncio
import io
import os
import pty
from collections.abc import Iterator

import pytest

from proctor.admission.spending import AtMost
from proctor.cli.asking import asker
from proctor.core.money import ZERO, Usd

SPENDING = AtMost("s", "main", ("luna",), (), Usd.parse("3"), Usd.parse("4"), Usd.parse("5.5"), ZERO, Usd.parse("5.5"))


@pytest.fixture
def terminal() -> Iterator[tuple[int, io.TextIOWrapper]]:
    """Somebody's keyboard, and the standard input that it types into."""
    try:
        keyboard, line = pty.openpty()
    except OSError as fault:
        pytest.skip(f"no terminal can be had here: {fault}")
    stream = os.fdopen(line, "r+b", buffering=0)
    text = io.TextIOWrapper(stream, write_through=True)
    yield keyboard, text
    text.close()
    os.close(keyboard)


@pytest.mark.parametrize(
    ("typed", "agreed"),
    [("y\n", True), ("YES\n", True), (" yes \n", True), ("n\n", False), ("\n", False), ("yesterday\n", False)],
)
async def test_an_answer_on_the_terminal(
    terminal: tuple[int, io.TextIOWrapper], typed: str, agreed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    keyboard, stdin = terminal
    os.write(keyboard, typed.encode())
    assert await asker(yes=False, source=stdin)(SPENDING) is agreed
    assert "at most 5.50 USD" in capsys.readouterr().err


async def test_the_end_of_input_is_no_agreement(terminal: tuple[int, io.TextIOWrapper]) -> None:
    keyboard, stdin = terminal
    os.write(keyboard, b"\x04")
    assert await asker(yes=False, source=stdin)(SPENDING) is False


async def test_a_question_can_be_cancelled(terminal: tuple[int, io.TextIOWrapper]) -> None:
    _, stdin = terminal
    asked = asyncio.ensure_future(asker(yes=False, source=stdin)(SPENDING))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert asyncio.get_running_loop().remove_reader(stdin.fileno()) is False


async def test_without_a_terminal_nobody_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    assert await asker(yes=False, source=io.StringIO("y\n"))(SPENDING) is False
    assert "--yes" in capsys.readouterr().err


async def test_yes_is_not_asked_again() -> None:
    assert await asker(yes=True, source=io.StringIO())(SPENDING) is True
