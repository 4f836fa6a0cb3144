"""A container's files as this machine shows them, where its engine runs here: for what is quicker seen than asked."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from proctor.sandbox.docker.paths import within

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Merged:
    """Where they are mounted, if the engine says so; volumes and bundles are not seen there."""

    def __init__(self, seen: Mapping[str, Any]) -> None:
        self._root = ((seen.get("GraphDriver") or {}).get("Data") or {}).get("MergedDir")
        self._mounts = [str(each["Destination"]) for each in seen.get("Mounts") or ()]

    def is_empty(self, path: str) -> bool:
        """Whether a plain path is certainly a folder with nothing in it: no link is followed on the way.

        The engine takes 40 ms for an archive of nothing.
        """
        if self._root is None or any(within(path, mount) or within(mount, path) for mount in self._mounts):
            return False
        try:
            with contextlib.ExitStack() as stack:
                here = os.open(self._root, _FOLDER)
                stack.callback(os.close, here)
                for name in path.strip("/").split("/"):
                    here = os.open(name, _FOLDER, dir_fd=here)
                    stack.callback(os.close, here)
                with os.scandir(here) as entries:
                    return next(entries, None) is None
        except OSError:
            return False
