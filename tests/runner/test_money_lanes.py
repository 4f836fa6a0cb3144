"""Lanes and money: what runs out stops what it must and nothing else, and whoever goes on with it is told why."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fake_worlds import bodies, entries
from launching import Place, check_run, manifests, refusals_of
from money_runs import Plan, check_money, dear, sums, write_study
from proctor.core.exits import Exit
from proctor.core.money import Usd
from proctor.core.reasons import Reason
from proctor.evidence.kinds import Kind
from proctor.evidence.runfolder import RunFolder
from proctor.gateway import practice
from proctor.report.reading import read_run
from proctor.runner.session import Finished

ROWS = 10
ARMS = '[arms.plain]\n[arms.skilled]\nskills = "skills"\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def study(place: Place, money: Plan, *, name: str = "luna", rows: int = ROWS, **more: Any) -> Path:
    values: dict[str, Any] = {"models": {name: dear(name, name)}, "stage": "lanes = 1\n", "arms": ARMS, **more}
    return write_study(place.folder / "study", rows=sums(rows), money=money, **values)


def ran(place: Place, study: Path, **words: Any) -> tuple[Finished, Path]:
    run = place.folder / "run"
    (finished,) = place.launch(study=study, out=run, **words)
    check_run(run)
    return finished, run


def told(run: Path) -> list[tuple[str, str | None]]:
    return [(body["scope"], body["model"]) for body in bodies(run, Kind.CEILING_REACHED)]


def grades(run: Path) -> Counter[tuple[str, str | None]]:
    """Every planned trial, with a final or without, by grade and reason; a fail's reason is left out."""
    rows = list(read_run(RunFolder(run)).rows)
    return Counter((row.grade, None if row.grade == "fail" else row.reason) for row in rows)


def run_ended(run: Path) -> dict[str, Any]:
    last = entries(run)[-1]
    assert last.kind is Kind.RUN_ENDED
    return dict(last.body)


# a block is two exchanges of a dollar each
CAP = Plan({"luna": "20"}, allocation="12", margin="200")
# 100 are held for each exchange: it may be while less than 6 are spent
CEILING = Plan({"luna": "20"}, allocation="12", margin="93")


def test_a_cap_admits_no_block_more_and_the_run_stops(place: Place) -> None:
    finished, run = ran(place, study(place, CAP))
    assert (finished.exit, finished.reason) == (Exit.STOPPED, Reason.CAP_REACHED)
    body = run_ended(run)
    assert (body["exit_status"], body["reason"], body["complete"]) == (4, "cap_reached", False)
    assert told(run) == [("model_cap", "luna")], "its share is the whole cap: both are reached"
    assert len(bodies(run, Kind.BLOCK_ADMITTED)) == len(bodies(run, Kind.BLOCK_ENDED)) == 6
    counted = grades(run)
    assert counted["ungraded", "not_run"] == 8
    assert counted.total() == 20
    assert check_money(run).total == Usd.parse("12")
    assert bodies(run, Kind.RUN_DRAINING) == [{"cause": "cap_reached"}]


def test_a_cap_of_the_stage_stops_every_model(place: Place) -> None:
    # spent before: the two may come to 12 of the 20 that their own caps leave them
    money = Plan({"luna": "10", "sol": "10"}, allocation="20", cap="20", before="8", margin="900")
    models = {"luna": dear("luna", "luna"), "sol": dear("sol", "sol")}
    finished, run = ran(place, study(place, money, models=models, rows=8))
    assert (finished.exit, finished.reason, told(run)) == (Exit.STOPPED, Reason.CAP_REACHED, [("cap", None)])
    assert check_money(run).total == Usd.parse("12")


def test_a_cap_that_is_reached_to_the_picodollar_is_no_cap_passed(place: Place) -> None:
    finished, run = ran(place, study(place, Plan({"luna": "20"}, allocation="20", margin="100")))
    assert (finished.exit, run_ended(run)["complete"], told(run)) == (Exit.DONE, True, [])
    assert check_money(run).total == Usd.parse("20")


def test_a_ceiling_refuses_what_would_pass_it_and_the_attempt_is_ungraded(place: Place) -> None:
    finished, run = ran(place, study(place, CEILING))
    assert (finished.exit, finished.reason) == (Exit.STOPPED, Reason.CEILING_REACHED)
    assert (run_ended(run)["exit_status"], run_ended(run)["reason"]) == (4, "ceiling_reached")
    assert told(run) == [("ceiling", None)]
    refused = bodies(run, Kind.EXCHANGE_REFUSED)
    assert [(body["reason"], body["held"]) for body in refused] == [("ceiling_reached", "100.000000000000")]
    (met,) = [body for body in bodies(run, Kind.ATTEMPT_ENDED) if body["exception"]]
    assert (met["outcome"], met["exception"]) == ("completed", "ceiling_reached")
    counted = grades(run)
    assert (counted["ungraded", "ceiling_reached"], counted["ungraded", "not_run"]) == (1, 13)
    assert check_money(run).total == Usd.parse("6")


def test_many_lanes_meet_the_ceiling_together(place: Place) -> None:
    finished, run = ran(place, study(place, CEILING, stage="lanes = 8\n"))
    assert (finished.exit, finished.reason) == (Exit.STOPPED, Reason.CEILING_REACHED)
    assert told(run) == [("ceiling", None)]
    counted = grades(run)
    # one is paid for at a time
    assert 1 <= counted["ungraded", "ceiling_reached"] <= 8
    assert counted.total() == 2 * ROWS
    assert check_money(run).total <= Usd.parse("6")


@pytest.mark.parametrize(("money", "reason"), [(CAP, "cap_reached"), (CEILING, "ceiling_reached")])
def test_a_resume_of_what_ran_out_says_so_and_ends(place: Place, money: Plan, reason: str) -> None:
    _, run = ran(place, study(place, money))
    before = grades(run)
    spent = check_money(run).total
    for _ in range(2):
        finished = place.resume(run)
        check_run(run)
        assert (finished.exit, finished.reason) == (Exit.STOPPED, Reason.by_id(reason)), finished
        assert run_ended(run)["reason"] == reason
        assert check_money(run).total == spent
        assert grades(run) == before, "nothing more is tried that cannot be paid for"


def test_a_ceiling_that_is_reached_before_the_start_is_refused(place: Place) -> None:
    there = study(place, Plan({"luna": "20"}, allocation="12", margin="8", before="20"))
    run = place.folder / "run"
    (finished,) = place.launch(study=there, out=run)
    assert finished.exit is Exit.REFUSED
    assert refusals_of(manifests(run)[0]) == ["ceiling_reached"]
    assert not (run / "journal.jsonl").exists()


def test_of_two_models_one_runs_out_and_the_other_goes_on(place: Place) -> None:
    # luna is given 8 of the 20 that it would take, sol all of its own
    money = Plan({"luna": "2", "sol": "5"}, allocation="28", margin="500")
    there = study(place, money, models={"luna": dear("luna", "luna"), "sol": dear("sol", "sol")}, stage="lanes = 2\n")
    finished, run = ran(place, there)
    assert (finished.exit, finished.reason) == (Exit.STOPPED, Reason.CAP_REACHED)
    assert told(run) == [("model_cap", "luna")]
    done = Counter(row.trial.model for row in read_run(RunFolder(run)).rows if row.reason != "not_run")
    assert done == {"luna": 8, "sol": 20}
    assert check_money(run).total == Usd.parse("28")


def test_an_overrun_is_disclosed_and_no_block_follows(place: Place) -> None:
    models = {"luna": dear("luna", "practice-overrun")}
    there = study(place, Plan({"luna": "20"}, allocation="12", margin="9000000"), models=models)
    finished, run = ran(place, there)
    assert (finished.exit, finished.reason) == (Exit.STOPPED, Reason.OVERRUN)
    assert check_money(run).overruns >= 1
    assert "overrun" in {scope for scope, _ in told(run)}
    assert len(bodies(run, Kind.BLOCK_ADMITTED)) == 1
    spent = check_money(run).total
    again = place.resume(run)
    assert again.exit in (Exit.STOPPED, Exit.REFUSED)
    check_run(run)
    assert check_money(run).total == spent


@pytest.mark.parametrize(
    ("words", "trials"),
    [
        ({"limit": 3}, 12),
        ({"models": ("sol",)}, 20),
        ({"arms": ("plain",)}, 20),
        ({"limit": 2, "models": ("luna",), "arms": ("skilled",), "jobs": 3}, 2),
    ],
)
def test_what_is_narrowed_keeps_its_rules(place: Place, words: dict[str, Any], trials: int) -> None:
    money = Plan({"luna": "20", "sol": "20"}, allocation="40", margin="400")
    there = study(place, money, models={"luna": dear("luna", "luna"), "sol": dear("sol", "sol")}, stage="lanes = 2\n")
    finished, run = ran(place, there, **words)
    assert finished.exit is Exit.DONE, finished
    rows = list(read_run(RunFolder(run)).rows)
    assert len(rows) == trials
    assert check_money(run).total == Usd(trials * 10**12)
    assert {row.trial.model for row in rows} <= set(words.get("models", ("luna", "sol")))
    assert {row.trial.arm for row in rows} <= set(words.get("arms", ("plain", "skilled")))


def test_jobs_bound_what_runs_at_once(place: Place) -> None:
    _, run = ran(place, study(place, Plan({"luna": "20"}, allocation="30", margin="9000")), jobs=3)
    flying = most = 0
    for entry in entries(run):
        flying += (entry.kind is Kind.ATTEMPT_ADMITTED) - (entry.kind is Kind.ATTEMPT_ENDED)
        most = max(most, flying)
    assert most == 3


# a reserve of 12 below a cap of 32, of which 20 are spent in the end: two blocks at once, and all of them in turn
NARROW = Plan({"luna": "20"}, allocation="32", margin="900", factor=6)


def test_lanes_wait_for_room_that_open_blocks_give_back(place: Place) -> None:
    finished, run = ran(place, study(place, NARROW, stage="lanes = 8\n"))
    assert (finished.exit, told(run)) == (Exit.DONE, [])
    opened = most = 0
    for entry in entries(run):
        opened += (entry.kind is Kind.BLOCK_ADMITTED) - (entry.kind is Kind.BLOCK_ENDED)
        most = max(most, opened)
    assert most == 2
    assert check_money(run).total == Usd.parse("20")


def test_a_signal_ends_lanes_that_wait_for_room(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[bytes] = []
    respond = practice.respond

    def interrupted(body: bytes) -> tuple[int, dict[str, Any]]:
        answered.append(body)
        if len(answered) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return respond(body)

    monkeypatch.setattr(practice, "respond", interrupted)
    finished, run = ran(place, study(place, NARROW, stage="lanes = 8\n"))
    assert finished.exit is Exit.INTERRUPTED
    assert 3 <= len(answered) <= 4, "what was in flight ends, and nothing starts"
    monkeypatch.undo()
    finished = Place(place.folder, monkeypatch).resume(run)
    check_run(run)
    assert (finished.exit, finished.totals and finished.totals["finals"]) == (Exit.DONE, 20)
    assert check_money(run).total == Usd.parse("20")


FREE = dear("free", "free").replace('output = "1"', 'output = "0"')


def test_what_is_free_needs_no_budget(place: Place) -> None:
    there = write_study(place.folder / "study", rows=sums(ROWS), models={"free": FREE}, arms=ARMS)
    finished, run = ran(place, there)
    assert finished.exit is Exit.DONE
    assert {body["reserve"] for body in bodies(run, Kind.BLOCK_ADMITTED)} == {None}
    assert {body["charged"] for body in bodies(run, Kind.EXCHANGE_ENDED)} == {str(Usd(0))}


def test_what_is_free_goes_on_where_another_model_runs_out(place: Place) -> None:
    money = Plan({"luna": "20", "free": "0"}, allocation="12", margin="200")
    finished, run = ran(place, study(place, money, models={"luna": dear("luna", "luna"), "free": FREE}))
    assert (finished.exit, finished.reason) == (Exit.STOPPED, Reason.CAP_REACHED)
    assert {scope for scope, _ in told(run)} <= {"cap", "model_cap"}
    assert check_money(run).total == Usd.parse("12")
    done = Counter(row.trial.model for row in read_run(RunFolder(run)).rows if row.reason != "not_run")
    assert (done["luna"], done["free"]) == (12, 20)
