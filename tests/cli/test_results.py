"""proctor results: tables, rows and JSON, from the journal alone."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.evidence.runfolder import RunFolder
from proctor.study import Design
from proctor.study.actors import AgentDesign
from run_parts import Story, Try, design, make_run

SRC = Path(__file__).resolve().parents[2] / "src"


def test_a_row_for_each_planned_trial(proctor, run: Path) -> None:
    said = proctor("results", run, "--csv")
    rows = {(row["task"], row["arm"]): row for row in csv.DictReader(io.StringIO(said.out))}
    assert said.status == 0 and len(rows) == 4
    alpha = rows["alpha", "plain"]
    assert (alpha["grade"], alpha["reason"], alpha["reward"]) == ("fail", "below_threshold", "0.5")
    assert (alpha["attempts"], alpha["replaced"], alpha["superseded"]) == ("2", "1", "0")
    assert (alpha["tests_passed"], alpha["tests_failed"], alpha["duration_sec"]) == ("1", "1", "2.5")
    assert alpha["folder"].endswith("/1") and (run / alpha["folder"] / "attempt.json").is_file()
    beta = rows["beta", "plain"]
    assert (beta["grade"], beta["reason"], beta["reward"], beta["superseded"]) == (
        "ungraded",
        "reward_missing",
        "",
        "1",
    )
    assert rows["beta", "skilled"]["exception"] == "agent_timeout" and rows["beta", "skilled"]["grade"] == "pass"


def test_a_csv_writes_what_json_writes(proctor, run: Path) -> None:
    (first, *_) = csv.DictReader(io.StringIO(proctor("results", run, "--csv").out))
    told = json.loads(proctor("results", run, "--jsonl").out.splitlines()[0])
    wanted = {
        name: "" if value is None else value if isinstance(value, str) else json.dumps(value)
        for name, value in told.items()
    }
    assert first == wanted and first["final"] == "true" and first["model"] == ""


def test_all_forms_say_the_same(proctor, run: Path) -> None:
    lines = [json.loads(line) for line in proctor("results", run, "--jsonl").out.splitlines()]
    told = proctor("results", run, "--json").json()
    assert lines == told["trials"]
    grades = [line["grade"] for line in lines]
    assert [told["grades"]["all"][grade] for grade in ("pass", "fail", "ungraded")] == [
        grades.count(grade) for grade in ("pass", "fail", "ungraded")
    ]
    assert told["complete"] and told["paired"][0]["not_compared"] == 1


def test_the_summary_file_is_not_what_is_read(proctor, run: Path) -> None:
    before = proctor("results", run, "--json").out
    stands = json.loads((run / "grade_summary.json").read_bytes())
    assert proctor("results", run, "--json").json()["grades"] == stands
    (run / "grade_summary.json").write_text("{}")
    (run / "summary.json").unlink()
    assert proctor("results", run, "--json").out == before


async def test_a_trial_that_did_not_run_is_ungraded_not_gone(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run", story=Story(stop_after=1), end=None)
    rows = [json.loads(line) for line in proctor("results", tmp_path / "run", "--jsonl").out.splitlines()]
    assert len(rows) == 4
    assert [row["reason"] for row in rows if not row["final"]] == ["not_run"] * 3


async def test_a_trial_that_was_begun_is_not_called_not_begun_and_a_dead_process_is_named(
    proctor, tmp_path: Path
) -> None:
    cut, hung = Try(outcome="interrupted", exception="interrupted"), Try(left_open=True)
    story = Story(tries={(task, "plain"): (cut, hung) for task in ("alpha", "beta")}, stop_after=1)
    await make_run(tmp_path / "run", story=story, end=None)
    said = proctor("results", tmp_path / "run").out
    assert "1 of 2 begun, without an end that counts; the others not begun" in said
    assert re.search(r"\ndead       process .* ended without a word\nin flight  beta · plain · 1\n", said)
    told = proctor("results", tmp_path / "run", "--json").json()
    assert (told["ended"], len(told["in_flight"])) == (None, 1)
    rows = [line.split()[:3] for line in proctor("show", tmp_path / "run").out.splitlines()]
    assert {tuple(row[:2]) for row in rows} >= {("in", "flight"), ("not", "run")}


async def test_a_run_that_was_interrupted_says_so_beside_its_results(proctor, tmp_path: Path) -> None:
    story = Story(default=(Try(outcome="interrupted", exception="interrupted"),))
    await make_run(tmp_path / "run", story=story, end=130, reason="interrupted")
    said = proctor("results", tmp_path / "run").out
    assert "2 of 2 begun, without an end that counts" in said and "not begun" not in said
    assert "\nended      interrupted by SIGINT (exit status 130)\n" in said
    assert sum(line.startswith("begun  ") for line in proctor("show", tmp_path / "run").out.splitlines()) == 4


def with_agents(**arms: str) -> Design:
    frozen = design(("alpha",), tuple(arms))
    said = {name: AgentDesign(name=agent, settings={}, timeout_sec=None) for name, agent in arms.items()}
    return replace(frozen, arms=tuple(replace(arm, agent=said[arm.name]) for arm in frozen.arms))


async def test_results_say_which_agent_they_are_of(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "one", with_agents(plain="oracle"))
    of_it = "agent      oracle (the task's own solution, so these are no results of an agent)"
    for command in ("results", "show"):
        assert of_it in proctor(command, tmp_path / "one").out.splitlines()
        assert proctor(command, tmp_path / "one", "--json").json()["agents"] == {"plain": "oracle"}
    assert proctor("report", tmp_path / "one", "-o", tmp_path / "page.html").status == 0
    assert "oracle (the task&#39;s own solution, so" in (tmp_path / "page.html").read_text()
    await make_run(tmp_path / "two", with_agents(plain="oracle", other="toolloop"))
    lines = proctor("results", tmp_path / "two").out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("agents     plain: oracle"))
    assert lines[at + 1] == "           other: toolloop"


def test_a_torn_last_line_is_left_out(proctor, run: Path) -> None:
    before = proctor("results", run, "--jsonl").out
    with (run / "journal.jsonl").open("ab") as journal:
        journal.write('{"body":{"é'.encode()[:-1])
    assert proctor("results", run, "--jsonl").out == before


def test_a_changed_line_refuses_and_names_itself(proctor, run: Path) -> None:
    journal = run / "journal.jsonl"
    lines = journal.read_bytes().split(b"\n")
    at = next(number for number, line in enumerate(lines) if b'"trial.final"' in line and b'"fail"' in line)
    lines[at] = lines[at].replace(b'"fail"', b'"pass"').replace(b'"below_threshold"', b"null")
    journal.write_bytes(b"\n".join(lines))
    said = proctor("results", run)
    assert said.status == 3 and "evidence_damaged" in said.err
    assert f"journal.jsonl:{at + 2}" in said.err


@pytest.mark.parametrize("command", ["results", "show", "status", "logs"])
def test_a_whole_last_line_that_is_garbage_names_the_command_that_still_works(proctor, run: Path, command: str) -> None:
    with (run / "journal.jsonl").open("ab") as journal:
        journal.write(b"garbage\n")
    said = proctor(command, run)
    assert said.status == 3 and "evidence_damaged" in said.err and "`proctor verify` still says" in said.err
    assert proctor("verify", run).status == 1


def test_another_design_refuses(proctor, run: Path) -> None:
    (run / "design.json").write_bytes(design(epochs=2).to_bytes())
    said = proctor("results", run)
    assert said.status == 3 and "design.json" in said.err


@pytest.mark.parametrize("command", ["results", "show", "logs", "status", "pause"])
def test_where_no_run_is_it_says_what_is_there(proctor, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("x")
    for place, words in (("nothing", "is not there"), ("file", "not a folder"), ("", "no run was admitted")):
        said = proctor(command, tmp_path / place)
        assert said.status == 2 and words in said.err and not said.out


def test_a_refused_run_names_the_record_of_its_refusal(proctor, tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.new_manifest({"verdict": "refused", "refusals": [{"reason": "git_dirty"}]})
    said = proctor("results", tmp_path)
    assert said.status == 2 and "manifests/0001.json" in said.err and "git_dirty" in said.err


def test_json_and_rows_exclude_each_other(proctor, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    assert proctor("results", tmp_path, "--json", "--csv").status == 2


async def test_who_stops_reading_is_no_fault(tmp_path: Path) -> None:
    tasks = [f"task-{number:04}" for number in range(300)]
    await make_run(tmp_path / "run", design(tasks, ("only",)), Story(stop_after=0), end=None)
    assert await asyncio.to_thread(read_one_line, "results", str(tmp_path / "run"), "--jsonl") == (0, b"")


def read_one_line(*words: str) -> tuple[int, bytes]:
    """Exit status and standard error of a command whose reader goes away after its first line."""
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-m", "proctor", *words], env=env, **pipes) as child:
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline()
        child.stdout.close()
        err = child.stderr.read()
    return child.returncode, err
