"""What the differential tests have in common."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study of questions."""
    where = tmp_path_factory.mktemp("study")
    (where / "units.jsonl").write_text("")
    return where
