"""What each file of an attempt is on the record as."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_worlds import Bench, Steps, bodies, write_study
from proctor.core.exits import Exit
from proctor.evidence.kinds import Kind


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(write_study(tmp_path / "study"), monkeypatch)


async def test_what_is_made_of_other_evidence_is_derived_and_nothing_else_is(bench: Bench, tmp_path: Path) -> None:
    assert await bench.run(tmp_path / "run", Steps(), journal=Steps()) is Exit.DONE
    roles = {
        file["path"]: file["role"] for body in bodies(tmp_path / "run", Kind.ATTEMPT_FILES) for file in body["files"]
    }
    assert {path for path, role in roles.items() if role == "derived"} == {"attempt.json", "tests.json"}
    assert set(roles.values()) == {"source", "derived"}
