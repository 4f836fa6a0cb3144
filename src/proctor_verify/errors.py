"""What every reader here raises when bytes are not what the evidence format says."""

from __future__ import annotations


class Unreadable(ValueError):
    """Bytes that cannot be read as what they should be; `str()` says why, without quoting more than a little of it."""
