"""What holds and may surprise is said before a run and stands in its manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.admission.admit import check
from proctor.admission.facts import Request
from proctor.core.families import Family
from proctor.core.reasons import Reason

STUDY = '[study]\nname = "s"\n[tasks]\npath = "tasks"\n[agent]\nname = "oracle"\n'


@pytest.fixture
def study(tmp_path: Path) -> Path:
    task = tmp_path / "tasks" / "one"
    for name in ("solution/solve.sh", "tests/test.sh", "instruction.md"):
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text("true\n")
    (tmp_path / "study.toml").write_text(STUDY)
    (task / "task.toml").write_text("")
    return tmp_path


def notices(study: Path, task_toml: str) -> list[str]:
    (study / "tasks/one/task.toml").write_text(task_toml)
    verdict = check(Request("check", study / "runs/s/main", study=study / "study.toml"))
    if any(refusal.reason.family is Family.SANDBOX for refusal in verdict.refusals):
        pytest.skip(f"no sandbox here: {verdict.refusals[0]}")
    assert verdict.refusals == ()
    said = verdict.manifest["probes"]["notices"]
    assert isinstance(said, list)
    return said


def test_nothing_is_said_of_an_ordinary_task(study: Path) -> None:
    assert notices(study, "") == []


def test_a_root_in_an_image_s_place_is_said(study: Path) -> None:
    (said,) = notices(study, "[environment]\ndocker_image = 'debian:12'\n")
    assert "debian:12" in said and "one" in said


def test_a_network_that_a_task_asks_for_and_does_not_get_is_said(study: Path) -> None:
    (said,) = notices(study, "[environment]\nnetwork_mode = 'public'\n")
    assert "public" in said and "one" in said


def test_an_unknown_key_is_said_with_the_closest_known(study: Path) -> None:
    (said,) = notices(study, "[agent]\ntimeout_secs = 3\n")
    assert "agent.timeout_secs" in said and "timeout_sec" in said


ASKED = """
[study]
name = "s"
[tasks]
questions = "rows.jsonl"
[models.moon]
provider = "practice"
model = "practice-1"
max_output_tokens = 1000
[agent]
name = "toolloop"
[stages.main]
expected_costs = { moon = "0.0018" }
caps = { moon = "0.0018" }
reserves = { moon = "0.0018" }
[stages.main.budget]
allocation = "0.0018"
cap = "0.0018"
margin = "MARGIN"
cap_quantum = "0.0001"
reserve_quantum = "0.0001"
reserve_factor = 1
"""


@pytest.mark.parametrize(("margin", "low"), [("0.00020025", False), ("0.000200249999", True)])
def test_a_ceiling_below_one_answer_is_said(tmp_path: Path, margin: str, low: bool) -> None:
    # 1,000 tokens out at 2 dollars for a million, and one in at a quarter of a dollar
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "prompt": "What is 1 + 1?", "target": "2"}\n')
    (tmp_path / "study.toml").write_text(ASKED.replace("MARGIN", margin))
    verdict = check(Request("check", tmp_path / "run", study=tmp_path / "study.toml"))
    assert verdict.refusals == ()
    said = verdict.manifest["probes"]["notices"]
    assert isinstance(said, list) and [text for text in said if "max_output_tokens" in text] == said[: int(low)]


@pytest.mark.parametrize(("expected", "short"), [("0.0018", False), ("0.001800000001", True)])
def test_a_budget_below_what_is_expected_is_said(tmp_path: Path, expected: str, short: bool) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "prompt": "What is 1 + 1?", "target": "2"}\n')
    text = ASKED.replace("MARGIN", "1").replace(
        'expected_costs = { moon = "0.0018"', f'expected_costs = {{ moon = "{expected}"'
    )
    (tmp_path / "study.toml").write_text(text)
    verdict = check(Request("check", tmp_path / "run", study=tmp_path / "study.toml"))
    assert verdict.refusals == ()
    said = verdict.manifest["probes"]["notices"]
    assert isinstance(said, list) and any("stops before its end" in notice for notice in said) is short


def test_what_stops_a_task_in_every_arm_is_said_once(study: Path) -> None:
    (study / "study.toml").write_text(STUDY + '[arms.a]\n[arms.b]\nprompt = "more"\n')
    (study / "tasks/one/task.toml").write_text("[environment]\ngpus = 1\n")
    verdict = check(Request("check", study / "runs/s/main", study=study / "study.toml"))
    if any(refusal.reason.family is Family.SANDBOX for refusal in verdict.refusals):
        pytest.skip(f"no sandbox here: {verdict.refusals[0]}")
    assert [refusal.reason for refusal in verdict.refusals] == [Reason.TASK_NEEDS_GPU]
