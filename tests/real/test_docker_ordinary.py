"""Worlds and tasks on Docker once more, as a user who may use the engine and is nobody else. Needs root for that."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from each_kind import kind_or_skip
from namespace_again import NOBODY, run_again

from proctor.core.tokens import seal_probe
from proctor.sandbox.docker.endpoint import address

pytestmark = pytest.mark.real


@pytest.fixture
def group() -> int:
    """The group whose members may use the engine."""
    where = address(str(kind_or_skip("docker").probe(seal_probe(30)).facts["endpoint"]))
    if not isinstance(where, str):
        pytest.skip("the engine's endpoint is no socket file")
    seen = Path(where).stat()
    if not seen.st_gid or not seen.st_mode & stat.S_IWGRP:
        pytest.skip("no group may use the engine's socket")
    return seen.st_gid


def test_worlds_of_a_member_of_the_engine_s_group(group: int) -> None:
    picked = "environment or many_users or loopback or freeze or memory or cannot_be_had"
    said = run_again(["any_worlds", "docker_reach"], NOBODY, "-k", f"docker and ({picked})", groups=[group])
    assert "passed" in said and "skipped" not in said


def test_tasks_of_a_member_of_the_engine_s_group(group: int) -> None:
    picked = "health or separate or without_bash"
    said = run_again(["docker_tasks", "assurance"], NOBODY, "-k", f"docker and ({picked} or server)", groups=[group])
    assert "passed" in said and "skipped" not in said
