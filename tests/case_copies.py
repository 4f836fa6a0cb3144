"""Copies of case folders, which may be read-only where they stand."""

from __future__ import annotations

import shutil
from pathlib import Path


def copied_case(case: Path, to: Path) -> Path:
    """A copy that its owner may change."""
    shutil.copytree(case, to)
    for path in (each for each in (to, *to.rglob("*")) if not each.is_symlink()):
        path.chmod(path.stat().st_mode | 0o200)
    return to
