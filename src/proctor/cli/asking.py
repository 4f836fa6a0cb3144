"""Asking on the terminal whether a run may cost what it can cost."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

import click

from proctor.cli.common import say

if TYPE_CHECKING:
    from proctor.admission.spending import AtMost, Confirm

# the run's folder is locked meanwhile: nobody who went away may hold it for ever
DEADLINE_SEC = 15 * 60
_AGREED = frozenset({"y", "yes"})

yes_option = click.option("--yes", is_flag=True, help="Agree to what the run can cost at most, and do not ask.")


def asker(*, yes: bool, source: TextIO | None = None) -> Confirm:
    """Agrees where `yes` was given; asks where `source` (standard input) is a terminal; declines elsewhere."""
    stream = sys.stdin if source is None else source

    async def confirm(spending: AtMost) -> bool:
        if yes:
            return True
        if not stream.isatty():
            say(f"{spending.sentence()}; there is no terminal to ask on, and --yes was not given")
            return False
        say(spending.sentence())
        click.echo("Go on? [y/N] ", nl=False, err=True)
        return (await _line(stream.fileno())).strip().lower() in _AGREED

    return confirm


async def _line(descriptor: int) -> str:
    """The next line of a terminal; empty at its end, and where nobody answers in time.

    Not `input`: a thread that waits in it could neither be cancelled nor let the process end.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not typed.done():
            typed.set_result(os.read(descriptor, 4096).decode(errors="replace"))

    loop.add_reader(descriptor, read)
    try:
        async with asyncio.timeout(DEADLINE_SEC):
            return await typed
    except TimeoutError:
        return ""
    finally:
        loop.remove_reader(descriptor)
