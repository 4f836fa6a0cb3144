"""Where a run prints to does not change how it ends: the status is the one on the record."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from real_runs import ENOUGH_SEC, Proctor, ended, proctor, write_study

__all__ = ["proctor"]
pytestmark = pytest.mark.real


@pytest.mark.parametrize("where", [">&-", ">&- 2>&- <&-", ">/dev/full", ">/dev/full 2>&1", "| true"])
def test_a_run_ends_as_its_record_says(proctor: Proctor, tmp_path: Path, where: str) -> None:
    study, run = write_study(tmp_path / "study"), tmp_path / "run"
    words = f'"$0" -m proctor run "$1" --out "$2" --waive git_dirty {where}'
    script = f'{{ {words}; }}; echo "${{PIPESTATUS[0]}}"' if "|" not in where else f'{words}; echo "${{PIPESTATUS[0]}}"'
    told = tmp_path / "status"
    done = subprocess.run(
        ["bash", "-c", f"{script} >{told}", sys.executable, str(study), str(run)], env=proctor.env, timeout=ENOUGH_SEC
    )
    assert done.returncode == 0
    assert told.read_text().strip() == str(ended(run)["exit_status"]) == "0"
    proctor.check(run)
