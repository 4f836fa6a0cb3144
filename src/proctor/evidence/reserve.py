"""Space held back, so that a full disk still lets a run end on the record."""

from __future__ import annotations

from proctor.evidence.runfolder import RunFolder

# The last entries of some hundred attempts with the names of their files, and a checkpoint.
RESERVED_BYTES = 4 * 1024 * 1024


def hold(run: RunFolder) -> None:
    """Take the space, in a file that is no evidence. Raises OSError."""
    try:
        run.disk.preallocate(run.reserve_path, RESERVED_BYTES)
    except OSError:
        release(run)
        raise


def release(run: RunFolder) -> None:
    """Give the space back, once or more. Raises OSError."""
    try:
        run.reserve_path.unlink()
    except FileNotFoundError:
        pass
