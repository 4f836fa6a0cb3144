"""What holds in every kind of sandbox: what is refused before anything is done, and numbers that are the same."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Bundle, Exec, LimitInForce

# A world without a limit on processes lets one fork bomb take the machine and every sibling with it.
DEFAULT_PIDS = 4096
# Clocks and polls overflow far beyond it; nobody waits longer.
LONGEST_SEC = 366 * 86_400.0
# The same in every world, so that what an agent writes down of it is the same in every trial.
GATEWAY_PORT = 47_600
# of Linux, with the NUL at its end; and of one name in it
_LONGEST_PATH, _LONGEST_NAME = 4096, 255
_KERNELS = ("dev", "proc", "sys")


def check_command(command: Exec) -> None:
    """Raises Refusal (SANDBOX_START_FAILED) for a command without words, or with a deadline that is no time."""
    if not command.argv:
        raise Refusal(Reason.SANDBOX_START_FAILED, "a command has no words")
    if not command.deadline_sec >= 0:
        raise Refusal(
            Reason.SANDBOX_START_FAILED,
            "a command's deadline is no time",
            observed=str(command.deadline_sec),
            required="seconds, 0 or more",
        )


def plain(path: str) -> str:
    """An absolute path without detours. Raises Refusal (PATH_UNSAFE)."""
    parts = PurePosixPath(path).parts
    if not path.startswith("/") or ".." in parts or "\0" in path or not _is_nameable(path):
        raise Refusal(
            Reason.PATH_UNSAFE, "a path inside must be absolute, without .., and no longer than paths are", path=path
        )
    return "/" + "/".join(parts[1:])


def refuse_unenforced(entries: Sequence[LimitInForce], required: frozenset[str]) -> None:
    """Raises Refusal (LIMIT_UNENFORCEABLE) for a required limit that is asked for and not in force as asked."""
    for entry in entries:
        if entry.name in required and entry.wanted is not None and not _holds(entry):
            raise Refusal(
                Reason.LIMIT_UNENFORCEABLE,
                f"the limit on {entry.name} cannot be enforced: {entry.why_not or 'another value is in force'}",
                path=entry.name,
                observed=entry.enforced,
                required=entry.wanted,
            )


def checked(bundles: Sequence[Bundle]) -> tuple[Bundle, ...]:
    """The bundles with the real paths of their sources.

    Raises:
        Refusal: BUNDLE_MISSING for a source that is no folder; PATH_UNSAFE for a target that is not deep in the world,
            or in another one's.
    """
    found: list[Bundle] = []
    for bundle in bundles:
        source = bundle.source.resolve()
        if not source.is_dir():
            raise Refusal(Reason.BUNDLE_MISSING, "a bundle is no folder", path=str(bundle.source))
        parts = names_of(bundle.target)
        others = [names_of(other.target) for other in found]
        nested = any(parts[: len(other)] == other or other[: len(parts)] == parts for other in others)
        is_plain = (
            bundle.target == "/" + "/".join(parts) and not {"", ".", ".."} & set(parts) and "\0" not in bundle.target
        )
        if nested or not is_plain or len(parts) < 2 or parts[0] in _KERNELS:
            raise Refusal(
                Reason.PATH_UNSAFE,
                "a bundle cannot be mounted there",
                path=bundle.target,
                required="an absolute path of two names or more, none of the kernel's, and no other bundle's",
            )
        found.append(replace(bundle, source=source))
    return tuple(found)


def names_of(path: str) -> list[str]:
    """The names in an absolute path."""
    return path.strip("/").split("/")


def _holds(entry: LimitInForce) -> bool:
    """Kernels round memory down to pages and CPU time to quanta; a limit that is not above the wanted one holds."""
    return entry.enforced is not None and entry.wanted is not None and entry.enforced <= entry.wanted


def _is_nameable(path: str) -> bool:
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return len(encoded) < _LONGEST_PATH and all(len(name) <= _LONGEST_NAME for name in encoded.split(b"/"))
