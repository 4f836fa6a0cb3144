"""Disks that get full: a small tmpfs, and whoever fills it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def mounted(folder: Path, size: str) -> Iterator[Path]:
    """A tmpfs of that size below `folder`, for a fixture to yield from; skips where none can be mounted."""
    mount = folder / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(mount)]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except FileNotFoundError:
        pytest.skip("there is no mount program")
    if made.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {made.stderr.strip()}")
    yield mount
    subprocess.run(["umount", "--lazy", str(mount)], check=True, timeout=600)


def fill(path: Path) -> None:
    """Write until nothing more goes in, to the last byte."""
    with path.open("wb", buffering=0) as file:
        for size in (65_536, 4_096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
