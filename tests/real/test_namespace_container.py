"""The tests of the namespace sandbox once more where every folder lies on an overlay. Needs root, to make it so."""

from __future__ import annotations

import os

import pytest
from namespace_again import NOBODY, run_again

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount overlays")]

# what touches where files lie; the rest does not know of it
WHAT = "memory or storage or given_root or written or forks_at_once or joined or gone or death or (cancelling and 0.01)"
WHAT += " or bundle or accepted or left_running"


@pytest.mark.parametrize("uid", [NOBODY, 0], ids=["ordinary", "root"])
def test_worlds_are_the_same_in_a_container(uid: int) -> None:
    own = ("memory", "snapshots", "death", "worlds", "inside")
    names = ["any_worlds", "any_snapshots", *(f"namespace_{name}" for name in own)]
    said = run_again(names, uid, "-k", f"namespace and ({WHAT})", container=True)
    assert "SKIPPED" not in said, said
