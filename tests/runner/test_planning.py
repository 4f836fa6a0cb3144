"""`proctor plan`: from what is expected to the study file that says it, and what a pilot run tells."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from proctor.admission.admit import Verdict
from proctor.admission.facts import Facts, Request
from proctor.admission.gather import Gathered
from proctor.admission.guards import REGISTRY
from proctor.admission.money import money_facts
from proctor.cli.main import cli
from proctor.core.exits import Exit
from proctor.core.ids import attempt_id
from proctor.core.money import Usd
from proctor.core.prices import PriceRow, Prices
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock
from proctor.evidence.runfolder import RunFolder
from proctor.runner import planning
from proctor.runner.planning import read_pilot
from proctor.study import FrozenTask, ModelDesign, Parts, freeze, load_study, plan
from run_parts import KEY, admit, design

PRICES = Prices("a page", (PriceRow("input", 0, "1.000000000000"), PriceRow("output", 0, "10.000000000000")))
FREE = Prices("ours", (PriceRow("input", 0, "0.000000000000"), PriceRow("output", 0, "0.000000000000")))
STUDY = """\
# what we ask
[study]
name = "units"

[tasks]
questions = "units.jsonl"

[models.luna]  # the one that is paid for
provider = "openai"
model = "luna-1"

[agent]
name = "toolloop"

[arms.plain]
[arms.hinted]
prompt = "Mind the units."

[stages.main]  # all of it
epochs = 3     # thrice
lanes = 2

[draw]  # the order
seed = 7
"""


def called(name: str, prices: Prices = PRICES, *, synthetic: bool = False) -> ModelDesign:
    return ModelDesign(name, "openai", f"{name}-1", "chat", None, None, 1000, 180, None, None, None, prices, synthetic)


MODELS = {name: called(name) for name in ("luna", "moon")} | {"own": called("own", FREE)}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of ten rows, whose models are those above, whatever the price table says of them."""
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    (tmp_path / "units.jsonl").write_text("")

    def check(request: Request) -> Verdict:
        assert request.study is not None
        loaded = load_study(request.study)
        if loaded.file is None or loaded.refusals:
            return judged(Facts(request, study=loaded.refusals))
        stage = str(request.stage)
        models = {name: MODELS[name] for name in loaded.file.models}
        tasks = [FrozenTask(f"q{number}", "0" * 64, "question", "units.jsonl") for number in range(10)]
        frozen, refusals = freeze(loaded, stage, Parts(tasks, models))
        assert refusals == []
        money = money_facts(loaded.file, stage, list(models.values()), len(tasks))
        return judged(Facts(request, money=money), frozen)

    def judged(facts: Facts, frozen: Any = None) -> Verdict:
        return Verdict(tuple(REGISTRY.run(facts)), {}, Gathered(facts, {}, frozen))

    monkeypatch.setattr(planning, "check", check)
    return file


def run_plan(study: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["plan", str(study), *words], standalone_mode=False)


def planned(study: Path, *words: str) -> dict[str, Any]:
    result = run_plan(study, "--json", *words)
    assert result.return_value == Exit.DONE, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_without_an_expectation_it_says_what_is_needed(study: Path) -> None:
    result = run_plan(study, "--write")
    assert result.return_value == Exit.REFUSED
    assert "budget_incomplete" in result.stderr
    assert "--pilot RUN" in result.stderr
    assert "--assume luna=USD" in result.stderr
    assert study.read_text() == STUDY


def test_amounts_from_an_assumption(study: Path) -> None:
    answer = planned(study, "--assume", "luna=6.00")
    (stage,) = answer["stages"]
    assert (stage["trials"], stage["models"]) == (
        60,
        [
            {
                "name": "luna",
                "expected": "6.000000000000",
                "source": "assumed",
                "cap": "9.000000000000",
                "reserve": "0.600000000000",
                "blocks": 30,
            }
        ],
    )
    assert stage["budget"] == {
        "spent_before": "0.000000000000",
        "expected": "6.000000000000",
        "allocation": "9.000000000000",
        "cap": "9.000000000000",
        "margin": "1.200000000000",
        "ceiling": "10.200000000000",
        "at_most": "10.200000000000",
    }
    assert answer["written"] is False
    assert study.read_text() == STUDY


def test_written_with_its_comments_in_their_places(study: Path) -> None:
    study.chmod(0o640)
    result = run_plan(study, "--assume", "luna=6", "--write")
    assert result.return_value == Exit.DONE
    assert study.read_text() == STUDY.replace(
        "lanes = 2\n",
        """\
lanes = 2

[stages.main.budget]
spent_before = "0.00"
allocation = "9.00"
cap = "9.00"
margin = "1.20"

[stages.main.expected_costs]
luna = "6.00"

[stages.main.caps]
luna = "9.00"

[stages.main.reserves]
luna = "0.60"
""",
    )
    assert stat.S_IMODE(study.stat().st_mode) == 0o640
    assert sorted(file.name for file in study.parent.iterdir()) == ["study.toml", "units.jsonl"]
    again = planned(study, "--write")
    assert (again["diff"], again["written"]) == ("", False)
    assert again["stages"][0]["models"][0]["source"] == "the study"


def test_the_diff_is_what_would_be_written(study: Path) -> None:
    result = run_plan(study, "--assume", "luna=6")
    assert '+[stages.main.caps]\n+luna = "9.00"\n' in result.stdout
    assert "at most    10.20 USD" in result.stdout
    assert "--write" in result.stderr


def test_what_the_study_gives_is_kept(study: Path) -> None:
    """A cap within half a quantum stays, amounts around it too; what does not hold is put right."""
    study.write_text(
        STUDY
        + '\n[stages.main.budget]\nallocation = "12"  # ours\ncap = "20.0"\n'
        + '[stages.main.expected_costs]\nluna = "6.0"\n[stages.main.caps]\nluna = "12.004"\n'
        + '[stages.main.reserves]\nluna = "5"  # a guess\n'
    )
    run_plan(study, "--write")
    text = study.read_text()
    assert 'allocation = "12"  # ours\ncap = "20.0"\n' in text
    assert 'luna = "12.004"' in text
    assert 'luna = "0.60"  # a guess' in text


def test_amounts_of_the_study_that_cannot_hold_are_refused(study: Path) -> None:
    before = STUDY + '\n[stages.main.budget]\nallocation = "0.10"\ncap = "0.05"\n'
    study.write_text(before)
    result = run_plan(study, "--assume", "luna=6", "--write")
    assert result.return_value == Exit.REFUSED
    assert result.stderr.count("budget_inconsistent") == 2
    assert "the allocation is above the cap" in result.stderr
    assert study.read_text() == before


def test_a_free_model_needs_no_expectation_beside_one_that_is_paid(study: Path) -> None:
    study.write_text(STUDY + '\n[models.own]\nprovider = "openai"\nmodel = "own-1"\n')
    models = {each["name"]: each for each in planned(study, "--assume", "luna=6")["stages"][0]["models"]}
    assert (models["own"]["expected"], models["own"]["cap"]) == ("0.000000000000", "0.000000000000")


def test_a_study_whose_models_are_all_free_needs_no_budget(study: Path) -> None:
    study.write_text(STUDY.replace("luna", "own"))
    answer = planned(study)
    assert (answer["diff"], answer["stages"][0]["budget"], answer["stages"][0]["trials"]) == ("", None, 60)
    assert "no budget is needed" in run_plan(study).stdout


@pytest.mark.parametrize("word", ["luna", "luna=", "luna=-1", "luna=1e3", "=1"])
def test_an_assumption_that_is_no_amount(study: Path, word: str) -> None:
    result = run_plan(study, "--assume", word)
    assert type(result.exception).__name__ == "UsageError"


def test_a_study_that_cannot_be_read_is_refused(study: Path) -> None:
    study.write_text(STUDY + "nonsense = 1\n")
    result = run_plan(study, "--assume", "luna=6")
    assert result.return_value == Exit.REFUSED
    assert "unknown_key" in result.stderr


async def pilot_run(path: Path, held: str = "0.05") -> Path:
    """A run of two trials with luna and none of moon: one final, one replaced and then final, one never tried."""
    frozen = replace(design(("q0", "q1", "q2"), ("plain",)), models=(MODELS["luna"], MODELS["moon"]))
    run = RunFolder(path)
    run.create()
    journal = await admit(run, Lock.acquire(run, extra={"control": "nobody"}), frozen, KEY)
    charges = iter([["0.01", "0.02"], ["0.03"], ["0.04"]])
    trials = [trial for trial in plan(frozen).trials() if trial.model == "luna"]

    async def attempt(number: int, trial: Any, outcome: str) -> None:
        one = attempt_id(trial.id, number)
        replaces = attempt_id(trial.id, number - 1) if number else None
        where = {"trial": trial.id, "number": number, "block": trial.block, "task": trial.task, "model": trial.model}
        where |= {"arm": trial.arm, "epoch": trial.epoch, "folder": f"x/{trial.id}/{number}"}
        await journal.append(Kind.ATTEMPT_ADMITTED, {"attempt": one, **where, "supersedes": None, "replaces": replaces})
        for place, charged in enumerate(next(charges)):
            exchange = f"{one}/{place}"
            await journal.append(
                Kind.EXCHANGE_ADMITTED,
                {
                    **{"attempt": one, "exchange": exchange, "model": "luna", "route": "POST /chat/completions"},
                    **{
                        "request_digest": "0" * 64,
                        "input_bound": 1,
                        "output_bound": 1,
                        "retries": None,
                        "mutations": [],
                    },
                    "held": str(Usd.parse(held)),
                },
                blobs={"request": b"{}"},
            )
            await journal.append(
                Kind.EXCHANGE_ENDED,
                {
                    **{"attempt": one, "exchange": exchange, "outcome": "settled", "http_status": 200, "error": None},
                    **{"resolved_model": None, "finish": "stop", "response": None, "usage": None, "estimated": True},
                    "chunks": None,
                    **{"charged": str(Usd.parse(charged)), "overrun": False, "flags": [], "timing": {}},
                },
            )
        end = {"attempt": one, "outcome": outcome, "exception": None, "message": None, "timing": {}}
        await journal.append(Kind.ATTEMPT_ENDED, end)

    async def final(trial: Any, number: int) -> None:
        body = {
            "trial": trial.id,
            "attempt": attempt_id(trial.id, number),
            "grade": "ungraded",
            "reason": "not_graded",
            "reward": None,
        }
        await journal.append(Kind.TRIAL_FINAL, body)

    await attempt(0, trials[0], "completed")
    await final(trials[0], 0)
    await attempt(0, trials[1], "infrastructure")
    await attempt(1, trials[1], "completed")
    await final(trials[1], 1)
    await journal.close(None)
    return path


async def test_a_pilot_tells_what_all_its_attempts_came_to(tmp_path: Path) -> None:
    told = read_pilot(await pilot_run(tmp_path / "pilot"))
    assert set(told) == {"luna"}
    assert (told["luna"].trials, told["luna"].charged) == (2, Usd.parse("0.10"))
    assert told["luna"].exchange == Usd.parse("0.05")


async def test_a_plan_from_a_pilot(study: Path, tmp_path: Path) -> None:
    """60 trials at 0.05 each; the margin is of what an exchange of the pilot really held, where that is more."""
    run = await pilot_run(tmp_path / "pilot", held="0.75")
    (stage,) = planned(study, "--pilot", str(run))["stages"]
    (luna,) = stage["models"]
    assert luna["expected"] == "3.000000000000"
    assert luna["source"] == "pilot, 0.10 in 2 trials"
    assert stage["budget"]["margin"] == "1.500000000000"


async def test_a_pilot_of_another_model_says_nothing(study: Path, tmp_path: Path) -> None:
    run = await pilot_run(tmp_path / "pilot")
    study.write_text(STUDY.replace("models.luna", "models.moon"))
    result = run_plan(study, "--pilot", str(run))
    assert result.return_value == Exit.REFUSED
    assert "nothing says what moon may cost" in result.stderr


def test_a_pilot_that_is_not_there(study: Path, tmp_path: Path) -> None:
    result = run_plan(study, "--pilot", str(tmp_path / "nowhere"))
    assert isinstance(result.exception, Refusal)
    assert result.exception.reason is Reason.RUN_NOT_FOUND
