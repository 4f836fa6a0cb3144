"""Files outside of any run, by the names that a person gave: links are followed, and no pipe is waited for."""

from __future__ import annotations

import os
import stat
from os import PathLike

from proctor_verify.errors import Unreadable


def small_file(name: str | PathLike[str], most: int) -> bytes:
    """What stands in a file outside of the run, of at most so many bytes.

    Raises:
        Unreadable: it is no plain file, longer, or not to be read.
    """
    content = start_of_file(name, most + 1)
    if len(content) > most:
        raise Unreadable(f"is longer than {most:,} bytes")
    return content


def start_of_file(name: str | PathLike[str], most: int) -> bytes:
    """The first bytes of a file outside of the run, at most so many.

    Raises:
        Unreadable: it is no plain file, or not to be read.
    """
    try:
        # A pipe of that name must not make the verifier wait.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = file.read(most) if regular else b""
            # of a plain file that is none: it has nothing just now, and who reads it does not wait
            if content is None:
                raise Unreadable("cannot be read: it has nothing to be read now")
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else None
        raise Unreadable(f"cannot be read: {words or 'no such name can be'}") from error
    if not regular:
        raise Unreadable("is not a plain file")
    return content
