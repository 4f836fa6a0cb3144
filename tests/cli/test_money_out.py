"""A run that stopped for money says what can be done about it, and sends nobody to a resume that is for nothing."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from launching import Place
from money_runs import Plan, dear, sums, write_study
from proctor.core.exits import Exit
from proctor.core.money import Usd
from proctor.evidence.runfolder import RunFolder
from proctor.gateway import practice
from proctor.report.reading import read_run
from proctor.report.spending import spend_of
from proctor.report.summary import print_end

# a block is one exchange of a dollar; before it, a hundred are held
CAP = Plan({"luna": "10"}, allocation="6", margin="200")
CEILING = Plan({"luna": "10"}, allocation="6", margin="98")
ENOUGH = Plan({"luna": "10"}, allocation="10", margin="200")
STUCK = "so a resume starts nothing"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def ran(place: Place, money: Plan, models: dict[str, str] | None = None, **words: Any) -> Path:
    models = models or {"luna": dear("luna", "luna")}
    study = write_study(place.folder / "study", rows=sums(10), money=money, models=models, stage="lanes = 1\n")
    place.launch(study=study, out=place.folder / "run", **words)
    return place.folder / "run"


def told(proctor: Any, run: Path, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """What the end of the run, `results` and `status` say, white space as one."""
    capfd.readouterr()
    state = read_run(RunFolder(run)).state
    ended = state.ended or {"exit_status": 0}
    print_end(run, int(ended["exit_status"]), None, None)
    said = [capfd.readouterr().out, proctor("results", run).out, proctor("status", run).out]
    return [" ".join(each.split()) for each in said]


@pytest.mark.parametrize("money", [CAP, CEILING], ids=["cap", "ceiling"])
def test_where_a_resume_would_start_nothing(
    proctor: Any, place: Place, money: Plan, capfd: pytest.CaptureFixture[str]
) -> None:
    run = ran(place, money)
    reading = read_run(RunFolder(run))
    spent = spend_of(reading.design, reading.state)
    assert spent is not None and not reading.complete
    amount = spent.charged.pico // Usd.parse("1").pico
    for said in told(proctor, run, capfd):
        assert STUCK in said and "proctor resume" not in said
        assert f'set spent_before to "{amount}"' in said and "another --out" in said
    assert proctor("status", run, "--json").json()["resumes"] is False
    before = read_run(RunFolder(run)).state.finals
    assert place.resume(run).exit is Exit.STOPPED
    assert read_run(RunFolder(run)).state.finals == before, "what was said is so"


def test_what_was_spent_before_is_counted_on(proctor: Any, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    run = ran(place, Plan({"luna": "10"}, allocation="6", cap="6", margin="200", before="2.50"))
    for said in told(proctor, run, capfd):
        assert 'set spent_before to "5.5" ($5.50, this run\'s included)' in said


def test_a_provider_that_billed_too_much_is_named(
    proctor: Any, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    money = Plan({"luna": "10"}, allocation="6", margin="9000000")
    run = ran(place, money, {"luna": dear("luna", "practice-overrun")})
    for said in told(proctor, run, capfd):
        assert "a provider billed more than was held, so a resume starts nothing" in said


def test_where_another_model_can_go_on_a_resume_is_said(
    proctor: Any, place: Place, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # luna's cap of 4 lets it have four of its ten blocks, sol's of 10 all of them
    money = Plan({"luna": "2", "sol": "5"}, allocation="14", margin="500")
    models = {"luna": dear("luna", "luna"), "sol": dear("sol", "sol")}
    answered: list[bytes] = []
    respond = practice.respond

    def interrupted(body: bytes) -> tuple[int, dict[str, Any]]:
        answered.append(body)
        if len(answered) == 8:
            os.kill(os.getpid(), signal.SIGINT)
        return respond(body)

    with monkeypatch.context() as patched:
        patched.setattr(practice, "respond", interrupted)
        run = ran(place, money, models)
    for said in told(proctor, run, capfd):
        assert "proctor resume" in said and STUCK not in said
    assert proctor("status", run, "--json").json()["resumes"] is True
    assert place.resume(run).exit is Exit.STOPPED
    finals = Counter(row.trial.model for row in read_run(RunFolder(run)).rows if row.final)
    assert finals == {"luna": 4, "sol": 10}
    for said in told(proctor, run, capfd):
        assert STUCK in said


def test_a_run_that_has_money_left_or_nothing_left_to_do(
    proctor: Any, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    run = ran(place, ENOUGH, prepare_only=True)
    for said in told(proctor, run, capfd):
        assert "proctor resume" in said
    place.resume(run)
    for said in told(proctor, run, capfd):
        assert "go on" not in said
    assert proctor("status", run, "--json").json()["resumes"] is False
