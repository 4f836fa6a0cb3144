"""Studies made, run and read from Python; wherever that is done, and however the run ends."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from proctor.api import Exit, Refused, Role, Run, Study, write_questions

ENDING = """
import asyncio, os, signal
import proctor

class Ending:
    name = "ending"
    needs_solution = False
    needs_model = False

    def __init__(self, settings, base):
        pass

    def version(self):
        return proctor.Version(None, "it has none")

    async def answer(self, turn):
        if os.path.exists("end"):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        return proctor.Answered("4")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("PROCTOR_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    write_questions("units.jsonl", [{"id": f"q{n}", "prompt": f"What is {n} + 2?", "target": n + 2} for n in range(4)])
    return tmp_path


def tables(**more: Any) -> dict[str, Any]:
    return {
        "study": {"name": "sums"},
        "tasks": {"questions": "units.jsonl"},
        "grading": {"scorer": "number"},
        "agent": {"name": "oracle"},
        **more,
    }


def modelled(**more: Any) -> Study:
    models = {"practice": {"provider": "practice", "model": "practice-1"}}
    return Study.from_tables(tables(models=models, agent={"name": "toolloop"}, **more)).plan({"practice": "0.01"})


def directly(run: Callable[[], Run]) -> Run:
    return run()


def in_a_loop(run: Callable[[], Run]) -> Run:
    async def main() -> Run:
        return run()

    return asyncio.run(main())


def in_a_thread(run: Callable[[], Run]) -> Run:
    found: list[Run] = []
    thread = threading.Thread(target=lambda: found.append(run()))
    thread.start()
    thread.join()
    return found[0]


def in_a_loop_of_a_thread(run: Callable[[], Run]) -> Run:
    return in_a_thread(lambda: in_a_loop(run))


@pytest.mark.parametrize("where", [directly, in_a_loop, in_a_thread, in_a_loop_of_a_thread])
def test_runs_anywhere(folder: Path, where: Callable[[Callable[[], Run]], Run]) -> None:
    run = where(lambda: Study.from_tables(tables()).run())
    assert (run.path, run.exit, run.reason, run.complete) == (Path("runs/sums/main"), Exit.DONE, None, True)
    assert run.verify().findings == ()


def _noted(number: int, frame: object) -> None:
    raise AssertionError("this handler is only to be put back")


@pytest.mark.parametrize("where", [directly, in_a_loop])
def test_a_signal_ends_the_run_on_the_record(
    folder: Path, where: Callable[[Callable[[], Run]], Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "endings.py").write_text(ENDING)
    (folder / "end").touch()
    monkeypatch.syspath_prepend(folder)
    from endings import Ending

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGTERM, _noted)
    try:
        study = Study.from_tables(tables(agent={"name": "ending"}))
        run = where(lambda: study.run(agents={"ending": Ending}, jobs=1))
        assert signal.getsignal(signal.SIGTERM) is _noted
        assert signal.getsignal(signal.SIGINT) is handlers[signal.SIGINT]
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert (run.exit, run.reason, run.complete) == (Exit.TERMINATED, "interrupted", False)
    assert [attempt.outcome for attempt in run.tries()] == ["interrupted"]
    (folder / "end").unlink()
    again = run.resume(agents={"ending": Ending})
    assert (again.exit, again.complete) == (Exit.DONE, True)
    assert again.verify().findings == ()
    del sys.modules["endings"]


def test_what_a_run_says(folder: Path) -> None:
    run = modelled(arms={"plain": {}, "terse": {"prompt": "Only the number."}}).run(agree=True)
    opened = Run.open(run.path)
    assert (opened.study, opened.stage, opened.synthetic) == ("sums", "main", ("practice",))
    assert len(opened.id) == 26 and opened.design_sha256 in (run.path / "journal.jsonl").read_text()
    assert len(opened.trials) == 8 and all(trial.final and trial.synthetic for trial in opened.trials)
    assert opened.cost == sum(trial.cost or 0 for trial in opened.trials) > 0
    for group in opened.groups:
        own = [trial for trial in opened.trials if trial.arm == group.arm]
        assert group.passed == sum(trial.grade == "pass" for trial in own)
        assert group.rate == Fraction(group.passed, 4) and group.bounds == (group.rate, group.rate)
        assert group.cost == sum(trial.cost or 0 for trial in own)
    (comparison,) = opened.comparisons
    assert (comparison.first, comparison.second, comparison.compared) == ("terse", "plain", 4)
    rows = opened.to_rows()
    assert [row["grade"] for row in rows] == [trial.grade for trial in opened.trials]
    assert Decimal(rows[0]["cost"]) == opened.trials[0].cost
    assert opened.summary().startswith("SYNTHETIC") and "practice" in opened.summary()


def test_what_was_said_in_a_trial(folder: Path) -> None:
    run = modelled().run(agree=True)
    trial = run.trial("q3")
    asked, answered = trial.conversation
    assert (asked.role, asked.text) == (Role.USER, "What is 3 + 2?")
    (attempt,) = trial.tries()
    assert (answered.role, answered.text) == (Role.ASSISTANT, attempt.answer)
    (exchange,) = attempt.exchanges
    assert Decimal(exchange["ended"]["charged"]) == trial.cost
    assert trial.tokens == sum(exchange["ended"]["usage"].values())
    assert [attempt.trial for attempt in run.tries()].count(trial.id) == 1
    assert (attempt.id, attempt.number, attempt.files) == (f"{trial.id}/0", 0, ())


def test_without_a_model_there_is_no_money(folder: Path) -> None:
    run = Study.from_tables(tables()).run(limit=2)
    assert (run.cost, run.synthetic, len(run.trials)) == (None, (), 2)
    assert {(trial.cost, trial.tokens, trial.usage, trial.conversation) for trial in run.trials} == {
        (None, None, None, ())
    }
    assert {(group.cost, group.cost_per_solved) for group in run.groups} == {(None, None)}


def test_a_trial_that_is_not_one(folder: Path) -> None:
    run = Study.from_tables(tables(arms={"one": {}, "two": {}})).run(prepare_only=True)
    assert (run.reason, run.complete) == ("prepared_only", False)
    assert {(trial.grade, trial.reason, trial.attempts, trial.final) for trial in run.trials} == {
        ("ungraded", "not_run", 0, False)
    }
    assert run.trials[0].conversation == ()
    with pytest.raises(LookupError, match="'q9' means 0 of 8"):
        run.trial("q9")
    with pytest.raises(
        LookupError, match=f"'q1' means 2 of 8 trials: {run.trial('q1/one').id}|{run.trial('q1/two').id}"
    ):
        run.trial("q1")


def test_a_study_of_tables_is_gone_on_with_without_them(folder: Path) -> None:
    run = Study.from_tables(tables()).run(prepare_only=True)
    from proctor.runner.launch import resume

    finished = resume(run.path, study=None, jobs=None, waive=(), quiet=True, say=lambda text: None)
    assert finished is not None and finished.exit == Exit.DONE
    again = Run.open(run.path)
    assert again.complete and again.verify().findings == ()
    requested = [
        json.loads(path.read_bytes())["requested"]["tables"] for path in sorted((run.path / "manifests").iterdir())
    ]
    assert requested == [tables(), tables()]


def test_a_study_file_is_the_same_study(folder: Path) -> None:
    (folder / "study.toml").write_text(
        '[study]\nname = "sums"\n[tasks]\nquestions = "units.jsonl"\n[grading]\nscorer = "number"\n'
        '[agent]\nname = "oracle"\n'
    )
    study = Study.load(folder)
    assert study.stages == ("main",)
    assert study.check().design_sha256 == Study.from_tables(tables()).check().design_sha256


def test_what_cannot_be_read_is_refused_at_once(folder: Path) -> None:
    with pytest.raises(Refused) as refused:
        Study.load("nowhere")
    assert (refused.value.reasons, refused.value.run) == (("study_not_found",), None)
    with pytest.raises(Refused) as refused:
        Study.from_tables({"study": {"name": float("nan")}})
    assert refused.value.reasons == ("json_invalid",)
    with pytest.raises(Refused) as refused:
        Study.from_tables(tables(), "nowhere")
    assert refused.value.reasons == ("study_not_found",)
    with pytest.raises(Refused) as refused:
        Run.open(folder)
    assert refused.value.reasons == ("run_not_found",)


def test_a_stage_must_be_named_where_there_are_several(folder: Path) -> None:
    study = Study.from_tables(tables(stages={"pilot": {}, "main": {}}))
    assert study.stages == ("pilot", "main")
    for call in (study.check, study.run, study.plan):
        with pytest.raises(ValueError, match="name one of pilot, main"):
            call()
    assert [study.run(stage).stage for stage in study.stages] == ["pilot", "main"]


def test_real_money_needs_somebody_who_agrees(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOBODYS_KEY", "k")
    price = {"input": "1.00", "output": "2.00", "source": "made up"}
    model = {
        "provider": "local",
        "model": "m",
        "base_url": "http://127.0.0.1:9/v1",
        "max_output_tokens": 10,
        "price": price,
    }
    study = Study.from_tables(tables(models={"m": model}, agent={"name": "toolloop"})).plan({"m": "1"})
    asked: list[Any] = []

    def decline(spending: Any) -> bool:
        asked.append(spending.at_most)
        return False

    for agree in (False, decline):
        with pytest.raises(Refused) as refused:
            study.run(agree=agree)
        assert refused.value.reasons == ("spend_not_confirmed",)
    checked = study.check()
    assert checked.at_most is not None and asked == [checked.at_most.at_most]
    run = study.run(agree=lambda spending: spending.is_real, prepare_only=True)
    assert run.reason == "prepared_only"


def test_money_that_is_not_known_cannot_be_planned(folder: Path) -> None:
    models = {"practice": {"provider": "practice", "model": "practice-1"}}
    study = Study.from_tables(tables(models=models, agent={"name": "toolloop"}))
    with pytest.raises(Refused) as refused:
        study.plan()
    assert refused.value.reasons == ("budget_incomplete",)
    with pytest.raises(Refused) as refused:
        study.plan({"practice": "a lot"})
    assert refused.value.reasons == ("money_invalid",)
    pilot = study.plan({"practice": Decimal("0.01")}).run(out="pilot", limit=2)
    planned = study.plan(pilot=pilot.path)
    assert planned.check().ok and planned.tables is not None
    assert Decimal(planned.tables["stages"]["main"]["expected_costs"]["practice"]) == 2 * (pilot.cost or 0)


def test_a_run_is_held_against_a_checkpoint_that_was_kept(folder: Path) -> None:
    run = Study.from_tables(tables()).run()
    first = shutil.copy(min((run.path / "checkpoints").glob("*.note")), folder / "kept.note")
    verification = run.verify(since=first, anchors=[str(first)])
    assert verification.ok and verification.checks["since.extends"] == verification.checks["anchors.remote"] == "pass"
    assert any(each.startswith("extended: nothing in the first entry was") for each in verification.shown)
    other = Study.from_tables(tables()).run(out="again")
    assert other.verify(since=first).checks["since.extends"] == "fail"


def test_a_run_that_was_tampered_with(folder: Path) -> None:
    run = Study.from_tables(tables()).run()
    journal = run.path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"pass"', b'"fail"'))
    verification = run.verify()
    assert not verification.ok and verification.unreadable is None
    assert "fail" in verification.checks.values()
    assert any(finding.path.startswith("journal.jsonl") for finding in verification.findings)
    with pytest.raises(Refused) as refused:
        Run.open(run.path).to_rows()
    assert refused.value.reasons == ("evidence_damaged",)
    journal.unlink()
    gone = run.verify()
    assert not gone.ok and gone.checks["journal.there"] == "fail"
