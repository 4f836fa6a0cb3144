"""Standard output and standard error whose failures have a type of their own, whatever the command was doing."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

import click

from proctor.core.reasons import Reason

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputFault(OSError):
    """What was to be printed could not be written. A reader that went away is none: BrokenPipeError says that."""


class _Watched(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as fault:
            raise OutputFault(*fault.args) from fault


def open_missing() -> None:
    """Open /dev/null for each standard stream that the process was started without.

    Otherwise the next file that is opened (a lock, a journal) would become standard output for whatever prints.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def watch() -> None:
    """Replace both streams, where they are the process's own."""
    out, err = sys.__stdout__, sys.__stderr__
    if out is not None and sys.stdout is out:
        sys.stdout = _watched(out, line_buffering=out.isatty())
    if err is not None and sys.stderr is err:
        sys.stderr = _watched(err, line_buffering=True)


def _watched(stream: TextIO, *, line_buffering: bool) -> TextIO:
    stream.flush()
    raw = io.BufferedWriter(_Watched(stream.fileno(), "wb", closefd=False))
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=line_buffering)


def let_go(fault: OutputFault | None) -> OutputFault | None:
    """Write what is pending, and say once on standard error if standard output does not take it; returns why not.

    What cannot be written is dropped: the interpreter would try it again at its end.
    """
    fault = _flushed(sys.stdout) or fault
    if fault is not None:
        reason = Reason.OUTPUT_UNWRITABLE
        with contextlib.suppress(OSError):
            click.echo(f"{reason.id}: {reason.summary} ({fault.strerror})", err=True)
    return _flushed(sys.stderr) or fault


def _flushed(stream: TextIO) -> OutputFault | None:
    try:
        stream.flush()
        return None
    except BrokenPipeError:
        fault = None  # who read our output has gone: the status is that of the work, not of the pipe
    except OutputFault as unwritable:
        fault = unwritable
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return fault
