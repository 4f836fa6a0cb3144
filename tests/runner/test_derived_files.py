"""The derived files of a run are what the second program adds up by itself, and are made anew byte for byte."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_worlds import findings
from journal_parts import KEY
from proctor.evidence.runfolder import RunFolder
from proctor.report.reading import read_run
from proctor.runner.rebuild import Copy, rebuild
from proctor.study import plan
from proctor_verify.report import Status
from proctor_verify.verification import verify
from run_parts import Story, Try, design, make_run

ENDED = {
    "pass": Try(reward="1"),
    "fail": Try(reward="0.25"),
    "no verdict": Try(reward=None),
    "nonsense": Try(reward="soon"),
    "late": Try(reward=None, timed_out=True),
    "late agent": Try(exception="agent_timeout"),
    "broken world": Try(outcome="infrastructure", exception="sandbox_lost"),
}
INTERRUPTED = Try(outcome="interrupted", exception="interrupted")


def made(path: Path, story: Story, **of_design: Any) -> Path:
    """A run of that story, ended as its runner would end it."""
    frozen = design(**of_design)
    lasts = [story.of(trial)[-1] for trial in plan(frozen).trials()]
    cut = story.stop_after is not None and story.stop_after < len(lasts)
    ungraded = any(last.reward not in ("1", "0.25") or last.outcome != "completed" for last in lasts)
    status, reason = (4, "interrupted") if cut else (int(ungraded), None)
    asyncio.run(make_run(path, frozen, story, end=status, reason=reason))
    return path


def check_derived(run: Path) -> None:
    """The second program agrees, and what is made anew is the same, over what stands and where nothing stands."""
    report = verify(run, KEY.fingerprint)
    assert (report.unreadable, findings(report)) == (None, [])
    assert {result.check: result.status for result in report.results}["summary.recomputed"] is Status.PASS
    folder = RunFolder(run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    rebuilt = list(rebuild(read_run(folder)))
    assert {each.copy for each in rebuilt} == {Copy.SAME}
    for each in rebuilt:
        (run / each.path).unlink()
    assert {each.copy for each in rebuild(read_run(folder))} == {Copy.MISSING}
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def groups(run: Path) -> dict[tuple[str | None, str], dict[str, Any]]:
    return {
        (group["model"], group["arm"]): group for group in json.loads((run / "summary.json").read_bytes())["groups"]
    }


def test_of_a_run_that_did_nothing(tmp_path: Path) -> None:
    run = made(tmp_path / "run", Story(stop_after=0))
    check_derived(run)
    summary = json.loads((run / "summary.json").read_bytes())
    assert (summary["complete"], summary["totals"]["finals"], summary["totals"]["trials"]) == (False, 0, 4)
    assert {arm: group["planned"] for (_, arm), group in groups(run).items()} == {"plain": 2, "skilled": 2}


def test_of_a_run_in_which_nothing_could_be_graded(tmp_path: Path) -> None:
    run = made(tmp_path / "run", Story(default=(ENDED["no verdict"],)))
    check_derived(run)
    assert [group["grades"] for group in groups(run).values()] == [{"pass": 0, "fail": 0, "ungraded": 2}] * 2
    of_arms = json.loads((run / "grade_summary.json").read_bytes())
    assert b'"pass":0' in (run / "summary.json").read_bytes() and of_arms


def test_arms_and_models_are_counted_apart(tmp_path: Path) -> None:
    story = Story(tries={("alpha", "plain"): (ENDED["fail"],), ("beta", "skilled"): (ENDED["no verdict"],)})
    run = made(tmp_path / "run", story, models=("m2", "m1"), epochs=2)
    check_derived(run)
    assert list(groups(run)) == [(model, arm) for model in ("m1", "m2") for arm in ("plain", "skilled")]
    assert {arm: group["grades"] for (_, arm), group in groups(run).items()} == {
        "plain": {"pass": 2, "fail": 2, "ungraded": 0},
        "skilled": {"pass": 2, "fail": 0, "ungraded": 2},
    }


def test_what_was_superseded_and_what_was_replaced_is_disclosed(tmp_path: Path) -> None:
    story = Story(
        tries={
            ("alpha", "plain"): (INTERRUPTED, INTERRUPTED, ENDED["pass"]),
            ("beta", "plain"): (ENDED["broken world"], ENDED["fail"]),
        }
    )
    run = made(tmp_path / "run", story)
    check_derived(run)
    plain, skilled = groups(run)[None, "plain"], groups(run)[None, "skilled"]
    assert (plain["superseded"], plain["replaced"], plain["grades"]) == (2, 1, {"pass": 1, "fail": 1, "ungraded": 0})
    assert plain["exceptions"] == {"interrupted": 2, "sandbox_lost": 1}
    assert (skilled["superseded"], skilled["replaced"]) == (0, 0)


ends = st.sampled_from([*ENDED.values()])
whole = st.builds(lambda cut, end: (*[INTERRUPTED] * cut, end), st.integers(0, 2), ends)


@settings(max_examples=8, deadline=None)
@given(
    tries=st.dictionaries(
        st.tuples(st.sampled_from(["alpha", "beta"]), st.sampled_from(["plain", "skilled"]), st.integers(1, 2)),
        whole,
    ),
    arms=st.sampled_from([("plain",), ("plain", "skilled")]),
    epochs=st.integers(1, 2),
    models=st.sampled_from([(), ("m",), ("m2", "m1")]),
    stop_after=st.none() | st.integers(0, 4),
)
def test_of_any_run(
    tries: dict[tuple[str, str, int], tuple[Try, ...]],
    arms: tuple[str, ...],
    epochs: int,
    models: tuple[str, ...],
    stop_after: int | None,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(tries=tries, stop_after=stop_after)
        run = made(Path(folder) / "run", story, arms=arms, epochs=epochs, models=models)
        check_derived(run)
        counted: Counter[str] = Counter()
        for group in groups(run).values():
            counted.update(group["grades"])
            assert sum(group["grades"].values()) <= group["planned"] == 2 * epochs
            assert sum(group["reasons"].values()) <= sum(group["grades"].values())
        totals = json.loads((run / "summary.json").read_bytes())["totals"]
        assert dict(counted) == {name: totals[name] for name in ("pass", "fail", "ungraded")}


@pytest.mark.parametrize("name", ["summary.json", "grade_summary.json"])
def test_a_copy_that_was_changed_is_found_and_made_anew(tmp_path: Path, name: str) -> None:
    run = made(tmp_path / "run", Story())
    right = (run / name).read_bytes()
    (run / name).write_bytes(right.replace(b'"pass":', b'"pass": '))
    failed = {result.check for result in verify(run, KEY.fingerprint).results if result.status is Status.FAIL}
    assert "summary.recomputed" in failed
    assert [each.copy for each in rebuild(read_run(RunFolder(run))) if each.path == name] == [Copy.DIFFERED]
    assert (run / name).read_bytes() == right
