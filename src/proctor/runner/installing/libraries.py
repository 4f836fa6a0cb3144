"""The C library and all others that a program of this machine needs, copied, so that it runs in worlds without them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

_LOOK_SEC = 120.0
_AT_ONCE = 100
# `libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x…)`, and the loader: `/lib64/ld-linux-x86-64.so.2 (0x…)`
_NEEDED = re.compile(r"^\s+(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_LOADER = re.compile(r"ld-(?:linux|musl)[\w.-]*\.so(?:\.[0-9]+)?")


def copy_libraries(programs: Iterable[Path], into: Path) -> str:
    """Copy the libraries that these programs and modules need; returns the name of the loader among them.

    What lies below the parent of `into` already is the program's own, and stays where it is.

    Raises:
        Refusal: INSTALL_FAILED.
    """
    into.mkdir(exist_ok=True)
    files = [str(path) for path in programs]
    needed: set[Path] = set()
    for start in range(0, len(files), _AT_ONCE):
        needed |= {Path(found) for found in _NEEDED.findall(_listed(files[start : start + _AT_ONCE]))}
    own = into.parent.resolve()
    for path in sorted(needed):
        if not path.resolve().is_relative_to(own):
            shutil.copyfile(path, into / path.name)
            (into / path.name).chmod(0o755)
    loaders = [path.name for path in needed if _LOADER.fullmatch(path.name)]
    if len(loaders) != 1:
        raise Refusal(Reason.INSTALL_FAILED, "the loader of this machine's programs was not found", observed=loaders)
    return loaders[0]


def _listed(files: list[str]) -> str:
    """What ldd says of them. It has a status of its own for modules that need nothing, which is no fault."""
    try:
        done = subprocess.run(["ldd", *files], capture_output=True, timeout=_LOOK_SEC, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise Refusal(Reason.INSTALL_FAILED, f"ldd cannot tell which libraries a program needs: {fault}") from fault
    return done.stdout.decode("utf-8", "replace")
