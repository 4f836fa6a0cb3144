"""What this machine shows of a container's files: a folder is empty only where that is certain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.sandbox.docker.merged import Merged


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "merged"
    for name in ("logs/agent", "logs/full", "data/volume/sub"):
        (made / name).mkdir(parents=True)
    (made / "logs/full/file").write_text("")
    (tmp_path / "outside/empty").mkdir(parents=True)
    (made / "away").symlink_to(tmp_path / "outside")
    (made / "logs/link").symlink_to("agent")
    return made


def seen(root: Path) -> dict[str, Any]:
    return {"GraphDriver": {"Data": {"MergedDir": str(root)}}, "Mounts": [{"Destination": "/data/volume"}]}


def test_an_empty_folder_is_seen(root: Path) -> None:
    assert Merged(seen(root)).is_empty("/logs/agent")


@pytest.mark.parametrize(
    "path",
    [
        "/logs",
        "/logs/full",
        "/logs/full/file",
        "/logs/none",
        "/logs/link",
        "/away/empty",
        "/data",
        "/data/volume",
        "/data/volume/sub",
        "/",
    ],
)
def test_all_else_is_not_said_to_be_empty(root: Path, path: str) -> None:
    assert not Merged(seen(root)).is_empty(path)


@pytest.mark.parametrize("said", [{}, {"GraphDriver": None}, {"GraphDriver": {"Data": {}}}])
def test_an_engine_that_does_not_say_where_its_files_are(said: dict[str, Any]) -> None:
    assert not Merged(said).is_empty("/logs")


def test_files_that_cannot_be_seen_from_here(root: Path) -> None:
    assert not Merged(seen(root / "elsewhere")).is_empty("/logs/agent")
