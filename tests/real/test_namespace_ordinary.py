"""The tests of the namespace sandbox once more, as a user without any power. Needs root, to become that user."""

from __future__ import annotations

import pytest
from namespace_again import NOBODY, python_for, run_again

pytestmark = pytest.mark.real
ONLY_HERE = ("hiding", "snapshots", "death", "inside")


@pytest.fixture(scope="module")
def python() -> str:
    """A Python that the other user can run; skips without one."""
    return python_for(NOBODY)


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize(
    "names",
    [
        ["any_worlds", "namespace_worlds"],
        ["any_files"],
        ["any_snapshots"],
        *([f"namespace_{name}"] for name in ONLY_HERE),
    ],
    ids="-".join,
)
def test_as_an_ordinary_user(names: list[str]) -> None:
    run_again(names, NOBODY, "-k", "namespace and (not cancelling or 0.01)")
