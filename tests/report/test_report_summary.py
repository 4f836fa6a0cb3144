"""The end of a run for people: exact denominators, bounds, disclosures, and what to type next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from journal_parts import KEY
from proctor.core.ids import trial_id
from proctor.core.reasons import Reason
from proctor.report.claims import claims_record
from proctor.report.summary import ending, print_end
from proctor.study.design import HypothesisDesign
from run_parts import Story, Try, design, make_run

LOST = Try(outcome="infrastructure", exception="sandbox_lost")


def columns(text: str, arm: str) -> list[str]:
    """The cells of an arm's row in the table of grades."""
    (row,) = [line for line in text.splitlines() if line.startswith(f"{arm} ") and "[" in line]
    return row.split()


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
        "2/6",
        "=",
        "33.3",
        "%",
        "*",
        "[2/8,",
        "4/8]",
    ]
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
    assert not {"*", "superseded", "go on", "\x1b"} & set(out.split()) and "not comparable" not in out
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


def test_evidence_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_end(tmp_path, 5, Reason.DISK_FULL, "no space")
    out = capsys.readouterr().out
    assert "infrastructure failed: disk_full, no space (exit status 5)" in out
    assert "the run cannot be read" in out and f"proctor verify {tmp_path}\n" in out


async def test_models_have_rows_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await make_run(tmp_path / "run", design(models=("moon", "sun"), epochs=2))
    print_end(tmp_path / "run", 0, None, None)
    out = capsys.readouterr().out
    assert [line.split()[:3] for line in out.splitlines() if "[4/4, 4/4]" in line] == [
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


async def test_hypotheses_are_named_and_not_tested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = HypothesisDesign("H1", "solved", ("skilled", "plain"), "mcnemar", "greater", 0.05)
    await make_run(tmp_path / "run", replace(design(), hypotheses=(claim,)))
    print_end(tmp_path / "run", 0, None, None)
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith("H1 ")]
    assert line.split() == ["H1", "skilled", "|", "plain", "solved", "mcnemar", "greater", "0.05"]
    assert "Preregistered" in out and "not computed" in out
    (record,) = claims_record(replace(design(), hypotheses=(claim,)))
    assert record["result"] == {"available": False, "reason": "not_in_this_version"}
    await make_run(tmp_path / "other")
    print_end(tmp_path / "other", 0, None, None)
    assert "hypothesis" not in capsys.readouterr().out
