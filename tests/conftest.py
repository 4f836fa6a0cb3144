"""Shared by all tests: the source tree on the path, and where the case files are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

CASES = ROOT.parent / "shared" / "cases"


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of real input files; skips where it is not there."""
    if not CASES.is_dir():
        pytest.skip(f"case files are not at {CASES}")
    return CASES
