"""Rows, scorers, tools and amounts that are wrong: refused with their place, or a fact in the record of a whole run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fake_worlds import bodies
from launching import Place, check_run, manifests
from money_runs import PRACTICE, Plan, check_money, dear, sums, write_study
from proctor.core.exits import Exit
from proctor.core.money import Usd
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_blob
from proctor.evidence.runfolder import RunFolder
from proctor.rollout import toolbox

AMPLE = Plan({"practice": "20"}, allocation="40", margin="400")
FUNCTIONS = """
import os, signal, time

def fair(answer, row):
    return answer == str(row["target"])
def raises(answer, row):
    raise ValueError("cannot tell")
def hangs(answer, row):
    time.sleep(3600)
def killed(answer, row):
    os.kill(os.getpid(), signal.SIGKILL)
def lies(answer, row):
    return float("nan")

def reckon(sum: str) -> str:
    a, b = sum.split("*")
    return str(int(a) * int(b))
def boom(sum: str) -> str:
    raise KeyError("gone")
def sleeps(sum: str) -> str:
    time.sleep(3600)
def dies(sum: str) -> str:
    os._exit(3)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def study(place: Place, **more: Any) -> Path:
    values: dict[str, Any] = {"rows": sums(2), "money": AMPLE, "models": {"practice": dear("practice", "practice-1")}}
    made = write_study(place.folder / "study", **{**values, **more})
    (made.parent / "mine.py").write_text(FUNCTIONS)
    return made


def ran(place: Place, study: Path) -> tuple[Exit, Path]:
    run = place.folder / "run"
    (finished,) = place.launch(study=study, out=run)
    assert (run / "journal.jsonl").exists(), manifests(run)[-1]["refusals"]
    check_run(run)
    check_money(run)
    return finished.exit, run


def refused(place: Place, study: Path) -> list[dict[str, Any]]:
    """What is refused, before anything: only the manifest stands."""
    run = place.folder / "run"
    (finished,) = place.launch(study=study, out=run)
    assert finished.exit is Exit.REFUSED
    assert not (run / "journal.jsonl").exists()
    return list(manifests(run)[-1]["refusals"])


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("raises", "scorer_failed"),
        ("killed", "scorer_failed"),
        ("lies", "scorer_failed"),
        ("hangs", "scorer_timeout"),
    ],
)
def test_a_scorer_at_fault_leaves_its_row_ungraded_and_the_others_graded(
    place: Place, function: str, reason: str
) -> None:
    rows = [sums(2)[0], {**sums(2)[1], "scorer": "python", "scorer_function": f"mine:{function}"}]
    grading = 'scorer = "python"\nscorer_function = "mine:fair"\nscorer_timeout = "1s"\n'
    status, run = ran(place, study(place, rows=rows, grading=grading))
    assert status is Exit.DOES_NOT_HOLD
    finals = {body["reason"] for body in bodies(run, Kind.TRIAL_FINAL) if body["grade"] == "ungraded"}
    assert finals == {reason}
    assert len(bodies(run, Kind.TRIAL_FINAL)) == 2
    ends = bodies(run, Kind.ATTEMPT_ENDED)
    assert {(body["outcome"], body["exception"]) for body in ends} == {("completed", None)}
    assert check_money(run).total == Usd(2 * 10**12), "what was answered is paid, whatever scored it"


@pytest.mark.parametrize(
    ("function", "said"), [("reckon", "30"), ("boom", "KeyError"), ("dies", "error:"), ("sleeps", "error:")]
)
def test_a_tool_at_fault_is_told_to_the_model_and_the_row_is_graded(
    place: Place, monkeypatch: pytest.MonkeyPatch, function: str, said: str
) -> None:
    monkeypatch.setattr(toolbox, "TOOL_SEC", 1.0)
    there = study(
        place,
        rows=sums(1),
        models={"practice": dear("practice", "practice-1", most=100)},
        top=f'[tools.{function}]\npython = "mine:{function}"\n',
    )
    status, run = ran(place, there)
    assert status is Exit.DONE
    requests = [read_blob(RunFolder(run), body["request"]) for body in bodies(run, Kind.EXCHANGE_ADMITTED)]
    assert len(requests) == 2
    told = json.loads(requests[1])["messages"][-1]
    assert (told["role"], said in told["content"]) == ("tool", True), told
    assert {body["grade"] for body in bodies(run, Kind.TRIAL_FINAL)} <= {"pass", "fail"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"id": "b", "prompt": "?", "target": {"a": 1}, "scorer": "number"}, "question_invalid"),
        ({"id": "b", "prompt": "?", "target": "many", "scorer": "number"}, "question_invalid"),
        ({"id": "b", "prompt": "?", "target": "(", "scorer": "regex"}, "question_invalid"),
        ({"id": "b", "prompt": "?", "target": ["x"]}, "question_invalid"),
        ({"id": "b", "prompt": "?"}, "question_invalid"),
        ({"id": "b", "prompt": 7, "target": 1}, "question_invalid"),
        ({"id": "b", "prompt": "?", "target": 1, "tools": ["saw"]}, "unknown_name"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(place: Place, row: dict[str, Any], reason: str) -> None:
    said = refused(place, study(place, rows=[*sums(2), row]))
    assert [refusal["reason"] for refusal in said] == [reason], said
    assert reason == "unknown_name" or said[0]["path"].endswith("rows.jsonl:3"), said


def test_a_set_that_is_no_json_lines_is_refused_with_its_line(place: Place) -> None:
    there = study(place)
    with (there.parent / "rows.jsonl").open("a") as file:
        file.write('{"id": "x", "id": "y", "prompt": "?", "target": 1}\n')
    (said,) = refused(place, there)
    assert (said["reason"], said["path"].endswith("rows.jsonl:3")) == ("questions_unreadable", True)


@pytest.mark.parametrize(
    ("old", "new", "reason", "path"),
    [
        ("", "", "budget_absent", "stages.main.budget"),
        ('caps]\npractice = "40.000000000000"', "caps]", "budget_incomplete", "stages.main.caps"),
        (
            'expected_costs]\npractice = "20.',
            'expected_costs]\npractice = "0.',
            "budget_inconsistent",
            "expected_costs",
        ),
        ('cap = "40"', 'cap = "39.999999999999"', "budget_inconsistent", "stages.main.budget.allocation"),
    ],
)
def test_a_budget_that_is_not_whole_is_refused(place: Place, old: str, new: str, reason: str, path: str) -> None:
    there = study(place, money=AMPLE if old else None)
    text = there.read_text()
    assert old in text
    there.write_text(text.replace(old, new))
    said = refused(place, there)
    assert reason in {refusal["reason"] for refusal in said}, said
    assert any(path in refusal["path"] for refusal in said), said


@pytest.mark.parametrize(
    ("table", "exact", "quantum"),
    [("caps", Usd.parse("40"), "cap_quantum"), ("reserves", Usd.parse("10"), "reserve_quantum")],
)
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("beyond", [0, 1])
def test_half_a_quantum_is_the_border_to_the_picodollar(
    place: Place, table: str, exact: Usd, quantum: str, side: int, beyond: int
) -> None:
    """The quantum is two picodollars: one off is at the border, two are beyond it by one."""
    there = study(place)
    amount = Usd(exact.pico + side * (1 + beyond))
    text = there.read_text()
    old = f'[stages.main.{table}]\npractice = "{exact}"'
    assert old in text and f'{quantum} = "0.000000000002"' in text
    there.write_text(text.replace(old, f'[stages.main.{table}]\npractice = "{amount}"'))
    if beyond:
        (said,) = refused(place, there)
        assert (said["reason"], said["path"]) == ("budget_inconsistent", f"stages.main.{table}.practice")
        assert said["observed"] == str(amount)
    else:
        assert ran(place, there)[0] is Exit.DONE


def test_a_model_that_no_table_prices_is_refused(place: Place) -> None:
    models = {"practice": 'provider = "openai"\nmodel = "gpt-5-nano-hack"\nmax_output_tokens = 100\n'}
    said = refused(place, study(place, models=models))
    assert {refusal["reason"] for refusal in said} == {"price_unknown"}, said


def test_nothing_is_a_key_of_a_made_up_model_and_its_price_is_its_own(place: Place) -> None:
    status, run = ran(place, study(place, models={"practice": PRACTICE}))
    assert status is Exit.DONE
    assert Usd(0) < check_money(run).total < Usd.parse("0.001")


def test_what_an_arm_changes_of_the_model_and_its_tools_is_what_is_asked(place: Place) -> None:
    there = study(
        place,
        rows=sums(1),
        top='[tools.reckon]\npython = "mine:reckon"\n[tools.boom]\npython = "mine:boom"\n',
        arms='[arms.all]\n[arms.none]\ntools = []\n[arms.one]\ntools = ["reckon"]\n'
        '[arms.brief]\ntools = []\n[arms.brief.model]\nmax_output_tokens = 7\neffort = "low"\n',
    )
    _, run = ran(place, there)
    arm_of = {body["attempt"]: body["arm"] for body in bodies(run, Kind.ATTEMPT_ADMITTED)}
    seen: dict[str, Any] = {}
    for body in bodies(run, Kind.EXCHANGE_ADMITTED):
        asked = json.loads(read_blob(RunFolder(run), body["request"]))
        tools = sorted(tool["function"]["name"] for tool in asked.get("tools", []))
        seen[arm_of[body["attempt"]]] = (tools, body["output_bound"], asked.get("reasoning_effort"))
    assert seen == {
        "all": (["boom", "reckon"], 100, None),
        "none": ([], 100, None),
        "one": (["reckon"], 100, None),
        "brief": ([], 7, "low"),
    }


def test_an_effort_that_an_arm_makes_up_is_refused(place: Place) -> None:
    said = refused(place, study(place, arms='[arms.plain]\n[arms.far]\nmodel = { effort = "warp" }\n'))
    assert [(refusal["reason"], refusal["path"]) for refusal in said] == [("invalid_value", "arms.far.model.effort")]
