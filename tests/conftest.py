"""Shared by all tests: the source tree on the path, and where the case files are."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

# Time is no property: another program may hold the processors while an example runs, or is made.
hypothesis.settings.register_profile(
    "any speed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any speed")

CASES = ROOT.parent / "shared" / "cases"


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of real input files; skips where it is not there."""
    if not CASES.is_dir():
        pytest.skip(f"case files are not at {CASES}")
    return CASES


@pytest.fixture(autouse=True)
def signals_are_heard() -> Iterator[None]:
    """Whatever started the tests, or ran before, may ignore them; a child that inherits that never hears Ctrl-C."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_IGN:
                default = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
                signal.signal(number, default)
    yield
