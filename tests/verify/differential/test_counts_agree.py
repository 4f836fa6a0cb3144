"""Whatever reports a verifier writes, the counts that the runner keeps of them go with the grade that it gives."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.grading.files import Absent, Content, VerdictFile, VerdictFiles
from proctor.grading.grade import Assurance, VerifierOutcome, grade
from proctor.grading.solved import DuplicateTests, parse_solved
from proctor.grading.verdicts import read_verdicts
from proctor.rollout.verdict import as_entry
from proctor_verify.verdicts import Rewards, Rule, counts_fit, standing

STATUSES = ("passed", "failed", "skipped", "pending", "other")
_ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(STATUSES)), max_size=4)
_BROKEN = (Absent(), Content(b"{"), Content(b"<"), Content(b"{}"), Content(b"<a/>"))


def _ctrf(rows: list[tuple[str, str]]) -> VerdictFile:
    tests = [{"name": name, "status": status, "duration": 1} for name, status in rows]
    summary = {"tests": len(rows), **dict.fromkeys(STATUSES, 0), "start": 0, "stop": 1}
    return Content(json.dumps({"results": {"tool": {"name": "t"}, "summary": summary, "tests": tests}}).encode())


def _junit(rows: list[tuple[str, str]]) -> VerdictFile:
    inner = {"failed": "<failure/>", "skipped": "<skipped/>", "pending": "<skipped/>"}
    cases = "".join(f'<testcase name="{name}">{inner.get(status, "")}</testcase>' for name, status in rows)
    return Content(f"<testsuite>{cases}</testsuite>".encode())


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(st.sampled_from(_BROKEN), _ROWS.map(_ctrf)),
    st.one_of(st.sampled_from(_BROKEN), _ROWS.map(_junit)),
    st.one_of(st.none(), st.sampled_from(["0", "1", "x"])),
    st.sampled_from(["tests", "reward >= 1"]),
    st.sampled_from(DuplicateTests),
    st.sampled_from([0, 1, 137]),
)
def test_counts_go_with_every_grade_that_the_runner_gives(
    ctrf: VerdictFile, junit: VerdictFile, reward: str | None, solved: str, duplicates: DuplicateTests, status: int
) -> None:
    text = Absent() if reward is None else Content(reward.encode())
    read = read_verdicts(VerdictFiles(reward_txt=text, ctrf=ctrf, junit=junit))
    outcome = VerifierOutcome(exit_code=status)
    said = as_entry(
        grade(
            read,
            outcome,
            rule=parse_solved(solved),
            duplicate_tests=duplicates,
            assurance=Assurance.ISOLATED,
        )
    )
    rule = Rule.read(solved)
    there = [not isinstance(file, Absent) for file in (ctrf, junit)]
    named = [f"verifier/{name}" for name, is_there in zip(("ctrf.json", "junit.xml"), there, strict=True) if is_there]
    fault = {None: "reward_missing", "x": "reward_unreadable"}.get(reward)
    rewards = Rewards({} if fault else {"reward": int(reward or 0)}, fault)
    ended = {"exit_code": status, "signal": None, "timed_out": False, "start_error": None}
    pair = said["grade"], said["reason"]
    assert pair in standing(rule, rewards, ended, named).allowed
    assert said["tests"] is None or any(there)
    assert counts_fit(pair, said["tests"], alone=sum(there) == 1, decide=rule is None)
