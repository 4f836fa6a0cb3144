"""A file that a person asked for: whole or not there, and never inside a run, where `verify` knows every file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.runfolder import inside_run


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A file to write into, which takes the place of `path` when the block ends without an exception.

    Raises:
        Refusal: `output_unwritable`: it lies inside a run folder, something that is no plain file stands there, or
            the system does not let it be written.
    """
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as error:
        # a loop of links, or a current folder that is gone
        raise _refusal(path, f"it cannot be written: {getattr(error, 'strerror', None) or error}") from error
    if (inside := inside_run(target)) is not None:
        raise _refusal(path, inside)
    if target.exists() and not target.is_file():
        raise _refusal(path, "something that is no plain file stands there")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("xb") as file:
            try:
                yield file
                file.flush()
                partial.replace(target)
            except BaseException:
                partial.unlink()
                raise
    except OSError as error:
        raise _refusal(path, f"it cannot be written: {error.strerror or error}") from error


def _refusal(path: Path, what: str) -> Refusal:
    return Refusal(Reason.OUTPUT_UNWRITABLE, what, path=str(path), remedy="Name another file with -o.")
