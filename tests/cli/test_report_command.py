"""proctor report: where the page goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.evidence.runfolder import RunFolder
from proctor.report.page import page
from proctor.report.reading import read_run


def test_the_page_is_a_file(proctor, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = proctor("report", run)
    assert (said.status, said.out) == (0, "report.html\n")
    wanted = page(read_run(RunFolder(run)))
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == wanted
    told = proctor("report", run, "-o", tmp_path / "other.html", "--json").json()
    assert told == {"path": str(tmp_path / "other.html"), "size": len(wanted.encode()), "synthetic": []}
    assert proctor("report", run, "-o", "-").out == wanted
    assert proctor("report", run, "-o", "-", "--json").status == 2


def test_the_same_evidence_makes_the_same_page(run: Path) -> None:
    assert page(read_run(RunFolder(run))) == page(read_run(RunFolder(run)))
