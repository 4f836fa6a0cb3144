"""The network prober once more, by a user without any power. Needs root, to become that user."""

from __future__ import annotations

import pytest
from namespace_again import NOBODY, run_again

pytestmark = pytest.mark.real


def test_probes_as_an_ordinary_user() -> None:
    assert "5 passed" in run_again(["network_probes"], NOBODY, "-k", "namespace")
