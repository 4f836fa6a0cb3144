"""The end of a run for people: exact denominators, bounds, disclosures, and what to type next."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from journal_parts import KEY
from proctor.core.ids import trial_id
from proctor.core.reasons import Reason
from proctor.evidence.runfolder import RunFolder
from proctor.report.overview import Openings, overview_lines
from proctor.report.page import page
from proctor.report.reading import read_run
from proctor.report.selected import selection_text
from proctor.report.summary import ending, print_end
from proctor.study.design import BudgetDesign, HypothesisDesign, ModelMoney, Selection
from run_parts import Ask, Story, Try, design, make_run, practice

LOST = Try(outcome="infrastructure", exception="sandbox_lost")


def columns(text: str, arm: str) -> list[str]:
    """The cells of an arm's row in the table of grades."""
    row, *_ = (line for line in text.splitlines() if line.startswith(f"{arm} ") and "[" in line)
    return row.split()


def of_graded(text: str, arm: str) -> list[str]:
    """The cells of an arm's row in the table of what was graded."""
    return columns(text[text.index("graded only") :], arm)


async def test_errors_stay_in_the_denominator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [f"t{number}" for number in range(8)]
    tries = {(f"t{number}", "only"): (Try(reward="1"),) for number in range(2)}
    tries |= {(f"t{number}", "only"): (Try(reward="0"),) for number in range(2, 6)}
    tries |= {(f"t{number}", "only"): (LOST, LOST) for number in (6, 7)}
    await make_run(tmp_path / "run", design(tasks, ("only",)), Story(tries=tries), end=1)
    print_end(tmp_path / "run", 1, None, None)
    out = capsys.readouterr().out
    assert columns(out, "only") == [
        "only",
        "8",
        "2",
        "4",
        "2",
        "2/8",
        "=",
        "25.0",
        "%",
        "[7.1,",
        "59.1]",
        "%",
    ]
    assert of_graded(out, "only") == ["only", "2/6", "=", "33.3", "%", "*", "[2/8,", "4/8]"]
    assert "not comparable" in out
    assert "2  sandbox_lost" in out
    assert "tasks " not in out, "one arm is compared with nothing"


async def test_a_whole_run_has_nothing_to_disclose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_run(tmp_path / "a run")
    monkeypatch.chdir(tmp_path)
    print_end(tmp_path / "a run", 0, None, None)
    out = capsys.readouterr().out
    assert "hints · main: done, and every trial is graded (exit status 0)" in out
    assert not {"*", "superseded", "go on", "\x1b"} & set(out.split())
    assert "not comparable" not in out and "graded only" not in out
    assert f"proctor verify 'a run' --key {KEY.fingerprint}\n" in out
    assert "evidence   a run\n" in out


async def test_attempts_that_do_not_count_are_disclosed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = Try(outcome="interrupted", exception="interrupted")
    late = Try(reward="1", exception="agent_timeout")
    story = Story(tries={("alpha", "plain"): (cut, late), ("beta", "skilled"): (LOST, Try())})
    await make_run(tmp_path / "run", design(), story)
    print_end(tmp_path / "run", 0, None, None)
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("attempts"))
    assert lines[at + 1].split(maxsplit=3) == ["plain", "1", "0", "1 agent_timeout, 1 interrupted"]
    assert lines[at + 2].split(maxsplit=3) == ["skilled", "0", "1", "1 sandbox_lost"]


async def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await make_run(tmp_path / "run", story=Story(stop_after=1), end=130, reason="interrupted")
    print_end(tmp_path / "run", 130, Reason.INTERRUPTED, "SIGINT")
    out = capsys.readouterr().out
    assert "interrupted by SIGINT (exit status 130)" in out
    assert f"proctor resume {tmp_path / 'run'}" in out
    assert "not_run" in out


async def test_partial_rewards_are_averaged_over_what_was_graded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(tries={("alpha", "only"): (Try(reward="0.5"),), ("beta", "only"): (Try(reward=None),)})
    await make_run(tmp_path / "run", design(arms=("only",)), story, end=1)
    print_end(tmp_path / "run", 1, None, None)
    assert columns(capsys.readouterr().out, "only")[-2:] == ["0.500000", "*"]


def test_before_it_is_admitted_a_run_has_nothing_to_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_end(tmp_path, 130, Reason.INTERRUPTED, "SIGINT")
    out = capsys.readouterr().out
    assert out == "interrupted by SIGINT (exit status 130): nothing was admitted, nothing ran\n"


async def test_a_part_of_a_stage_says_so_with_every_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frozen = replace(design(arms=("plain",)), selection=Selection(limit=2, arms=("plain",)))
    await make_run(tmp_path / "run", frozen, end=0)
    print_end(tmp_path / "run", 0, None, None)
    said = "PART of the stage: --limit 2 (2 tasks); --arm plain. Nothing here is a result about all of it."
    assert said in capsys.readouterr().out.splitlines()
    openings = Openings()
    reading = read_run(RunFolder(tmp_path / "run"), watch=openings.take)
    assert said in overview_lines(tmp_path / "run", reading, openings) and said in page(reading)
    assert selection_text(design()) is None


async def test_arms_stand_in_the_order_of_the_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await make_run(tmp_path / "run", design(arms=("zero", "one", "many")), end=0)
    print_end(tmp_path / "run", 0, None, None)
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "2/2 = " in line]
    assert rows == ["zero", "one", "many"]


def test_evidence_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "journal.jsonl").write_bytes(b"torn")
    print_end(tmp_path, 5, Reason.DISK_FULL, "no space")
    out = capsys.readouterr().out
    assert "infrastructure failed: disk_full, no space (exit status 5)" in out
    assert "the run cannot be read" in out and f"proctor verify {tmp_path}\n" in out


async def test_models_have_rows_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await make_run(tmp_path / "run", design(models=("moon", "sun"), epochs=2))
    print_end(tmp_path / "run", 0, None, None)
    out = capsys.readouterr().out
    assert [line.split()[:3] for line in out.splitlines() if "4/4 = 100.0 %" in line] == [
        ["moon", "plain", "4"],
        ["moon", "skilled", "4"],
        ["sun", "plain", "4"],
        ["sun", "skilled", "4"],
    ]
    assert "sun · skilled | plain" in out and "repeats averaged" in out


@pytest.mark.parametrize(
    ("status", "reason", "message", "line"),
    [
        (4, Reason.STAGE_DEADLINE, "deadline", "stopped by budget, deadline or operator: stage_deadline"),
        (5, Reason.DISK_FULL, "disk_full: no space (x)", "infrastructure failed: disk_full: no space (x)"),
        (
            5,
            Reason.INTERNAL_ERROR,
            "ValueError: a\x1b b",
            "infrastructure failed: internal_error, ValueError: a\\x1b b",
        ),
        (143, Reason.INTERRUPTED, "SIGTERM", "interrupted by SIGTERM"),
        (99, None, None, "ended"),
    ],
)
def test_how_a_process_of_a_run_ended(status: int, reason: Reason | None, message: str | None, line: str) -> None:
    assert ending(status, reason, message) == f"{line} (exit status {status})"


async def test_what_stopped_the_run_is_said_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "the provider says: no such key"
    cut = Try(outcome="interrupted", exception="key_rejected", message=said)
    await make_run(tmp_path / "run", design(("a",), ("only",)), Story(default=(cut,)), end=5)
    print_end(tmp_path / "run", 5, Reason.KEY_REJECTED, "key_rejected")
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("key_rejected, for example a · only · 1:")
    assert lines[at + 1] == f"  {said}"
    assert lines[at + 2].startswith("  do: Correct the key and `") and lines[at + 2].endswith(" resume`.")


async def test_each_way_in_which_attempts_ended_has_one_to_look_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = b"warming up\npython3: can't open file '/opt/agent.py'\n\n"
    broken = Try(reward="0", exception="agent_error", agent_output=missing)
    endless = Try(reward="0", exception="agent_killed", agent_output=b"\x1b[2J" + b"x" * 500)
    started = Try(outcome="infrastructure", exception="sandbox_start_failed", message="no\nroom", agent_output=b"")
    cut = Try(outcome="interrupted", exception="interrupted")
    tries = {("a", "only"): (broken,), ("b", "only"): (broken,), ("c", "only"): (endless,)}
    tries |= {("d", "only"): (started, started), ("e", "only"): (cut, Try())}
    monkeypatch.chdir(tmp_path)
    await make_run(tmp_path / "run", design("abcde", ("only",)), Story(tries=tries), end=1)
    print_end(tmp_path / "run", 1, None, None)
    lines = capsys.readouterr().out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("agent_error, for example")]
    first = lines[at].removeprefix("agent_error, for example ")[0]
    assert first in "ab"
    assert lines[at + 1] == "  last of agent/stdout.txt: python3: can't open file '/opt/agent.py'"
    assert lines[at + 2] == f"  proctor logs run {trial_id(first, None, 'only', 1)[:8]}"
    assert not any(line.startswith("interrupted,") for line in lines)
    at = lines.index("agent_killed, for example c · only · 1:")
    assert lines[at + 1].endswith("x …") and "\x1b" not in lines[at + 1]
    assert len(lines[at + 1].partition(": ")[2]) == 120
    at = lines.index("sandbox_start_failed, for example d · only · 1:")
    assert lines[at + 1 : at + 3] == ["  no\\nroom", f"  proctor show run {trial_id('d', None, 'only', 1)[:8]}"]


async def test_what_the_gateway_refused_stands_before_the_last_words_of_the_agent_that_gave_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = (("feature_unpriced", "the model `luna` has no price for cache_write tokens"), ("model_not_listed", "no"))
    gave_up = Try(reward="0", exception="agent_error", agent_output=b"error\n", refused=refused)
    await make_run(tmp_path / "run", design(("a",), ("only",)), Story((gave_up,)))
    print_end(tmp_path / "run", 0, None, None)
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("agent_error, for example a · only · 1:")
    said = "feature_unpriced: the model `luna` has no price for cache_write tokens"
    assert lines[at + 1] == f"  2 requests of it refused, the first {said}"
    assert lines[at + 2] == "  last of agent/stdout.txt: error"


async def test_what_ended_an_attempt_by_a_refused_request_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused, said = (("model_not_listed", "it asks for another model"),), "model_not_listed: it asks for another model"
    over = Try(outcome="infrastructure", exception="provider_failed", message=said, refused=refused)
    await make_run(tmp_path / "run", design(("a",), ("only",)), Story((over,)))
    print_end(tmp_path / "run", 0, None, None)
    assert capsys.readouterr().out.count(said) == 1


async def test_output_that_leads_out_of_the_run_is_no_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("secret")
    await make_run(tmp_path / "run", design(("a",), ("only",)), Story((Try(exception="agent_error"),)))
    output = next((tmp_path / "run").rglob("stdout.txt"))
    output.unlink()
    output.symlink_to(tmp_path / "secret")
    print_end(tmp_path / "run", 0, None, None)
    assert "secret" not in capsys.readouterr().out


def paired_story(wins: int, losses: int, even: int) -> tuple[list[str], Story]:
    """Tasks that only `skilled` passed, that only `plain` passed, and that both did."""
    tasks = [f"t{number:02}" for number in range(wins + losses + even)]
    tries = {(task, "plain"): (Try(reward="0"),) for task in tasks[:wins]}
    tries |= {(task, "skilled"): (Try(reward="0"),) for task in tasks[wins : wins + losses]}
    return tasks, Story(tries=tries)


async def test_a_hypothesis_comes_to_its_decision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = HypothesisDesign("H1", "solved", ("skilled", "plain"), "mcnemar", "greater", 0.05)
    tasks, story = paired_story(6, 0, 4)
    await make_run(tmp_path / "run", replace(design(tasks), hypotheses=(claim,)), story)
    print_end(tmp_path / "run", 0, None, None)
    out = capsys.readouterr().out
    (block,) = [block for block in out.split("\n\n") if block.startswith("preregistered H1: skilled - plain\n")]
    # one chance in 2^6 that all six disagreements favour one arm
    for fact in ("10/10", "+60.0 pp", "0.0156", "mcnemar, greater", "  decision    supported", "alpha 0.05"):
        assert fact in block
    assert all(len(line) <= 100 for line in block.splitlines())
    assert "not preregistered" not in out


async def test_what_nobody_claimed_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks, story = paired_story(1, 0, 2)
    await make_run(tmp_path / "run", design(tasks), story)
    print_end(tmp_path / "run", 0, None, None)
    out = capsys.readouterr().out
    (block,) = [block for block in out.split("\n\n") if block.startswith("not preregistered: skilled - plain\n")]
    assert "mcnemar, two-sided" in block and "finds from  nothing" in block and "decision" not in block
    assert "\npreregistered" not in out


async def test_a_run_whose_models_are_made_up_says_so_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await make_run(tmp_path / "run", design(models=("sun",)))
    print_end(tmp_path / "run", 0, None, None)
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[2].startswith("SYNTHETIC: sun is made up by rules")
    for start in ("not preregistered: sun · skilled - plain", "sun · plain SYNTHETIC", "spent "):
        assert all("SYNTHETIC" in line for line in lines if line.startswith(start)), start
        assert any(line.startswith(start) for line in lines), start
    await make_run(tmp_path / "real", replace(design(), models=(replace(practice("sun"), synthetic=False),)))
    print_end(tmp_path / "real", 0, None, None)
    assert "SYNTHETIC" not in capsys.readouterr().out


async def test_money_is_of_every_attempt_and_stands_against_its_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = Ask({"messages": []}, None, {"input": 100_000, "output": 5_000})
    blind = replace(ask, usage=None)
    cut = Try(outcome="interrupted", exception="interrupted", asks=(ask,))
    story = Story(tries={("alpha", "plain"): (cut, Try(asks=(ask, blind))), ("beta", "plain"): (Try(reward="0"),)})
    share = ModelMoney("sun", "0.300000000000", "0.700000000000", "0.100000000000", 2)
    amounts = ("0.100000000000", "0.700000000000", "0.900000000000", "0.050000000000", "0.010000000000")
    budget = BudgetDesign(*amounts, "0.001000000000", 3, (share,))
    frozen = replace(design(arms=("plain",), models=("sun",)), budget=budget)
    await make_run(tmp_path / "run", frozen, story)
    print_end(tmp_path / "run", 0, None, None)
    lines = capsys.readouterr().out.splitlines()
    # twice 0.25, and the worst case of the exchange without a usage: 0.012
    (cost,) = [line.split() for line in lines if line.startswith("sun · plain SYNTHETIC")]
    assert cost[4:] == ["$0.512", "$0.512", "3", "200,000", "10,000", "210,000"]
    assert "spent      sun: $0.512 of its cap $0.70, SYNTHETIC" in lines
    assert (
        "           all: $0.612 of the cap $0.90, hard ceiling $0.95, $0.10 of it before this run, SYNTHETIC" in lines
    )
    assert any(line.startswith("estimated  1 exchange charged at the worst case") for line in lines)


async def test_nothing_to_compare_needs_no_scipy(tmp_path: Path) -> None:
    await make_run(tmp_path / "run", design(arms=("only",)))
    code = (
        "import sys; from pathlib import Path; from proctor.report.summary import print_end;"
        f"print_end(Path({str(tmp_path / 'run')!r}), 0, None, None); assert 'scipy' not in sys.modules"
    )
    src = Path(__file__).resolve().parents[2] / "src"
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(src)})
