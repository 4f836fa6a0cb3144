"""Installed agents in the worlds of a user without any power. Needs root, to become that user."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from namespace_again import NOBODY, run_again

from proctor.agents.bundles import list_bundles

pytestmark = pytest.mark.real


def link_or_copy(source: str, target: str) -> None:
    """Programs are large, and usually lie on the same file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture
def data() -> Iterator[Path]:
    """The programs that are installed here, where the other user can read them; skips where there are none."""
    found = [bundle for name in ("claude-code", "codex", "mini-swe-agent") for bundle in list_bundles(name)]
    if not found:
        pytest.skip("no program of an agent is installed")
    with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        for bundle in found:
            target = Path(folder, "proctor/agents", bundle.name, bundle.folder.name)
            shutil.copytree(bundle.folder, target, symlinks=True, copy_function=link_or_copy)
        yield Path(folder)


def test_as_an_ordinary_user(data: Path) -> None:
    said = run_again(["installed_agents"], NOBODY, "-k", "namespace and solves", env={"XDG_DATA_HOME": str(data)})
    assert "4 passed" in said
