"""What dead attempts left in the scratch folder: gone, but for what somebody has to come back for."""

from __future__ import annotations

from pathlib import Path

from proctor.core.tokens import seal_admitted
from proctor.evidence.runfolder import RunFolder
from proctor.rollout.scratch import KEPT, clear_dead
from proctor.sandbox.base import MARKER


def test_only_kept_worlds_and_those_with_a_marker_stay(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    for path in (
        f"scratch/killed-before-its-marker/a/0001/{MARKER}.new",
        f"scratch/named-by-an-agent/a/0001/u/root/{MARKER}",
        f"scratch/stuck/a/0001/{MARKER}",
        f"scratch/kept/{KEPT}",
    ):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("{}")
    (tmp_path / "scratch/stuck/v").mkdir()
    (tmp_path / "scratch/empty/a").mkdir(parents=True)
    clear_dead(run, seal_admitted(run_id="a" * 26, run_dir=tmp_path, design_sha256="0" * 64, label="proctor-test"))
    assert sorted(path.name for path in run.scratch.iterdir()) == ["kept", "stuck"]
    assert [path.name for path in (run.scratch / "stuck").iterdir()] == ["a"]
