"""The tests of the namespace sandbox once more, as a user without any power. Needs root, to become that user."""

from __future__ import annotations

import pytest
from namespace_again import NOBODY, python_for, run_again

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def python() -> str:
    """A Python that the other user can run; skips without one."""
    return python_for(NOBODY)


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("name", ["worlds", "files", "hiding", "snapshots", "death", "inside"])
def test_as_an_ordinary_user(name: str) -> None:
    run_again([f"namespace_{name}"], NOBODY, "-k", "not cancelling or 0.01")
