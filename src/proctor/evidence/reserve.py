"""Space held back, so that a full disk still lets a run end on the record."""

from __future__ import annotations

import os

from proctor.evidence.runfolder import RunFolder

# The last entries of some hundred attempts with the names of their files, and a checkpoint.
RESERVED_BYTES = 4 * 1024 * 1024


def hold(run: RunFolder) -> None:
    """Take the space, in a file that is no evidence. Raises OSError."""
    descriptor = os.open(run.reserve_path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(descriptor, 0, RESERVED_BYTES)
        os.fsync(descriptor)
    except OSError:
        release(run)
        raise
    finally:
        os.close(descriptor)


def release(run: RunFolder) -> None:
    """Give the space back, once or more. Raises OSError."""
    try:
        run.reserve_path.unlink()
    except FileNotFoundError:
        pass
