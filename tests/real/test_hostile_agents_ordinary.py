"""Attacks once more, on runs of a user without any power. Needs root, to become that user."""

from __future__ import annotations

import pytest
from namespace_again import NOBODY, run_again

pytestmark = pytest.mark.real


def test_attacks_on_an_ordinary_user() -> None:
    assert "11 passed" in run_again(["hostile_agents"], NOBODY, "-k", "namespace")
