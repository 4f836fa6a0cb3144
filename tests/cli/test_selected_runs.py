"""What was asked for stands in the manifest as in the design: of a selection, and of a run that is taken up again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from money_runs import Plan, dear, sums, write_study
from proctor_verify import verify

QUIET = ("--yes", "--quiet", "--waive", "git_dirty")


@pytest.mark.parametrize(
    "chosen",
    [("--stage", "main"), ("--model", "luna", "--arm", "plain", "--limit", "2")],
    ids=" ".join,
)
def test_a_selection_is_that_of_the_design(
    proctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, ...]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    arms = '[arms.plain]\n[arms.skilled]\nskills = "skills"\n'
    models = {name: dear(name, name, 1) for name in ("luna", "moon")}
    money = Plan({"luna": "4", "moon": "4"}, allocation="40", margin="10")
    study = write_study(tmp_path / "study", rows=sums(2), models=models, arms=arms, money=money)
    run = tmp_path / "run"
    said = proctor("run", study, "--out", run, "--prepare-only", *chosen, *QUIET)
    assert said.status == 0, said.err
    assert proctor("resume", run, *QUIET).status == 0
    selected = json.loads((run / "design.json").read_bytes()).get("selection", {})
    assert bool(selected) == any(word in chosen for word in ("--limit", "--model"))
    report = verify(run)
    assert report.exit_status == 0 and ("PART" in report.marks) == bool(selected)
    assert ("part       PART of the stage: --limit 2" in proctor("status", run).out) == bool(selected)
    assert bool(proctor("status", run, "--json").json()["part"]) == bool(selected)
