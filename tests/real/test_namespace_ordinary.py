"""The tests of the namespace sandbox once more, as a user without any power. Needs root, to become that user."""

from __future__ import annotations

import pytest
from namespace_again import NOBODY, run_again

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", ["worlds", "files", "hiding", "snapshots", "death"])
def test_as_an_ordinary_user(name: str) -> None:
    run_again([name], NOBODY)
