"""How many files this process may have open: agents open them too, one for each connection."""

from __future__ import annotations

import resource
from contextlib import suppress

_WANTED = 65_536


def may_be_open() -> int:
    """How many; where nothing bounds them, as many as are ever asked for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _WANTED if soft == resource.RLIM_INFINITY else soft


def allow_many() -> None:
    """Raise the bound, as far as the system lets this process; most systems start it with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    # some systems say a bound that they do not allow
    with suppress(ValueError, OSError):
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
