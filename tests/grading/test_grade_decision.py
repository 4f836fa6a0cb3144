"""From verdict files and the verifier's end to one of three states: each way in which a verdict goes wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core import strictjson
from proctor.core.canonical import encode
from proctor.core.families import Family
from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.grading.files import Absent, Content, NotAFile, TooLarge, VerdictFile, VerdictFiles
from proctor.grading.grade import Assurance, Grade, VerifierOutcome, grade, ungraded
from proctor.grading.solved import DuplicateTests, parse_solved
from proctor.grading.verdicts import read_verdicts

DONE = VerifierOutcome(exit_code=0)
PASS, FAIL, UNGRADED = GradeState.PASS, GradeState.FAIL, GradeState.UNGRADED


def ctrf(*tests: tuple[str, str]) -> Content:
    rows = [{"name": name, "status": status, "duration": 1} for name, status in tests]
    return Content(json.dumps({"results": {"tool": {"name": "t"}, "summary": {}, "tests": rows}}).encode())


def junit(*tests: tuple[str, str]) -> Content:
    cases = "".join(f"<testcase name='{name}'>{inner}</testcase>" for name, inner in tests)
    return Content(f"<testsuite>{cases}</testsuite>".encode())


def graded(
    outcome: VerifierOutcome = DONE,
    *,
    solved: str = "reward >= 1.0",
    duplicate_tests: DuplicateTests = DuplicateTests.REFUSE,
    **files: VerdictFile,
) -> Grade:
    return grade(
        read_verdicts(VerdictFiles(**files)),
        outcome,
        rule=parse_solved(solved),
        duplicate_tests=duplicate_tests,
        assurance=Assurance.ISOLATED,
    )


def says(given_grade: Grade) -> tuple[GradeState, Reason | None]:
    return given_grade.state, given_grade.reason


def text(number: str) -> Content:
    return Content(number.encode())


def test_a_reward_of_one_passes_and_less_fails_with_its_reward() -> None:
    assert says(graded(reward_txt=text("1"))) == (PASS, None)
    failed = graded(reward_txt=text("0.8"))
    assert says(failed) == (FAIL, Reason.BELOW_THRESHOLD)
    assert failed.reward == 0.8


def test_the_design_may_name_another_key_and_threshold() -> None:
    document = Content(b'{"reward": 0, "f1": 0.9}')
    assert says(graded(reward_json=document, solved="f1 >= 0.9")) == (PASS, None)
    assert graded(reward_json=document, solved="f1 >= 0.9").reward == 0.9
    assert says(graded(reward_json=document, solved="recall >= 0.9")) == (UNGRADED, Reason.REWARD_KEY_MISSING)


@pytest.mark.parametrize("exit_code", [0, 1, 2, 5, 124, 137, 143, 255])
@pytest.mark.parametrize(("reward", "state"), [("1", PASS), ("0", FAIL)])
def test_the_exit_status_does_not_decide_where_there_is_a_reward(
    exit_code: int, reward: str, state: GradeState
) -> None:
    assert graded(VerifierOutcome(exit_code=exit_code), reward_txt=text(reward)).state is state


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (VerifierOutcome(exit_code=0), Reason.REWARD_MISSING),
        (VerifierOutcome(exit_code=1), Reason.REWARD_MISSING),
        (VerifierOutcome(exit_code=124), Reason.VERIFIER_TIMEOUT),
        (VerifierOutcome(exit_code=137), Reason.VERIFIER_KILLED),
        (VerifierOutcome(exit_code=143), Reason.VERIFIER_KILLED),
        (VerifierOutcome(exit_code=127), Reason.VERIFIER_CRASHED),
        (VerifierOutcome(signal=9), Reason.VERIFIER_KILLED),
        (VerifierOutcome(signal=9, timed_out=True), Reason.VERIFIER_TIMEOUT),
        (VerifierOutcome(start_error="no such file: bash"), Reason.VERIFIER_CRASHED),
    ],
)
def test_no_reward_is_ungraded_by_how_the_verifier_ended(outcome: VerifierOutcome, reason: Reason) -> None:
    assert says(graded(outcome)) == (UNGRADED, reason)
    assert says(graded(outcome, solved="tests")) == (
        UNGRADED,
        Reason.REPORT_MISSING if reason is Reason.REWARD_MISSING else reason,
    )


@pytest.mark.parametrize("reward", ["0", "1"])
@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (VerifierOutcome(signal=9, timed_out=True), Reason.VERIFIER_TIMEOUT),
        (VerifierOutcome(signal=9), Reason.VERIFIER_KILLED),
        (VerifierOutcome(start_error="gone"), Reason.VERIFIER_CRASHED),
    ],
)
def test_a_verifier_that_did_not_finish_is_not_believed(outcome: VerifierOutcome, reason: Reason, reward: str) -> None:
    given_grade = graded(outcome, reward_txt=text(reward))
    assert says(given_grade) == (UNGRADED, reason)
    assert given_grade.reward == int(reward), "recorded all the same"
    assert any("did not finish" in sentence for sentence in given_grade.disclosures)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"reward_txt": text("1"), "reward_json": Content(b'{"reward": 0}')}, Reason.VERDICTS_DISAGREE),
        ({"reward_txt": text("")}, Reason.REWARD_UNREADABLE),
        ({"reward_json": Content(b'{"reward": true}')}, Reason.REWARD_UNREADABLE),
        ({"reward_txt": NotAFile("symbolic link")}, Reason.REWARD_UNREADABLE),
        ({"reward_txt": TooLarge(2 * 2**30)}, Reason.REWARD_TOO_LARGE),
    ],
)
def test_an_unusable_reward_is_ungraded(files: dict[str, Any], reason: Reason) -> None:
    assert says(graded(**files)) == (UNGRADED, reason)


@pytest.mark.parametrize("reward", ["0", "1"])
@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"ctrf": ctrf()}, id="CTRF with 0 tests"),
        pytest.param({"junit": junit()}, id="JUnit with 0 tests"),
        pytest.param({"ctrf": ctrf(), "junit": junit()}, id="both with 0 tests"),
        pytest.param({"ctrf": ctrf(("a", "skipped"), ("b", "pending"))}, id="all skipped"),
        pytest.param({"ctrf": ctrf(), "junit": Content(b"<cut")}, id="0 tests beside a broken report"),
    ],
)
def test_a_report_without_tests_is_ungraded(files: dict[str, Any], reward: str) -> None:
    assert says(graded(reward_txt=text(reward), **files)) == (UNGRADED, Reason.NO_TESTS_RAN)


def test_one_report_with_tests_is_enough() -> None:
    assert says(graded(reward_txt=text("1"), ctrf=ctrf(), junit=junit(("a", "")))) == (PASS, None)


@pytest.mark.parametrize("broken", [Content(b'{"results": {"tes'), Content(b""), TooLarge(2**40), NotAFile("fifo")])
def test_a_test_runner_that_died_is_no_failure_of_the_agent(broken: VerdictFile) -> None:
    assert says(graded(reward_txt=text("0"), ctrf=broken)) == (UNGRADED, Reason.REPORT_UNREADABLE)
    passed = graded(reward_txt=text("1"), ctrf=broken)
    assert says(passed) == (PASS, None)
    assert any("report not read" in sentence for sentence in passed.disclosures)
    assert says(graded(reward_txt=text("0"), ctrf=broken, junit=junit(("a", "<failure/>")))) == (
        FAIL,
        Reason.BELOW_THRESHOLD,
    )


def test_a_file_of_another_shape_is_no_broken_report() -> None:
    failed = graded(reward_txt=text("0"), ctrf=Content(b'{"score": 0}'))
    assert says(failed) == (FAIL, Reason.BELOW_THRESHOLD)
    assert any("report not read" in sentence for sentence in failed.disclosures)


def test_duplicate_tests_are_disclosed_and_matter_only_where_tests_decide() -> None:
    twice = ctrf(("a", "passed"), ("a", "failed"))
    by_reward = graded(reward_txt=text("1"), ctrf=twice)
    assert says(by_reward) == (PASS, None)
    assert any("more than once" in sentence for sentence in by_reward.disclosures)
    assert by_reward.tests is not None
    assert by_reward.tests.mixed == 1
    assert says(graded(ctrf=twice, solved="tests")) == (UNGRADED, Reason.DUPLICATE_TESTS)
    assert says(graded(ctrf=twice, solved="tests", duplicate_tests=DuplicateTests.LAST)) == (FAIL, Reason.TESTS_FAILED)
    retried = ctrf(("a", "failed"), ("a", "passed"))
    assert says(graded(ctrf=retried, solved="tests", duplicate_tests=DuplicateTests.LAST)) == (PASS, None)


def test_tests_decide_where_the_design_says_so() -> None:
    mostly = ctrf(("a", "passed"), ("b", "skipped"), ("c", "other"))
    assert says(graded(ctrf=mostly, solved="tests")) == (PASS, None)
    assert says(graded(ctrf=mostly, reward_txt=text("0"), solved="tests")) == (PASS, None)
    assert says(graded(junit=junit(("a", ""), ("b", "<error/>")), solved="tests")) == (FAIL, Reason.TESTS_FAILED)
    assert says(graded(ctrf=ctrf(("a", "other")), solved="tests")) == (UNGRADED, Reason.REPORT_UNKNOWN)
    assert says(graded(ctrf=ctrf(), solved="tests")) == (UNGRADED, Reason.NO_TESTS_RAN)
    assert says(graded(ctrf=mostly, junit=Content(b"<cut"), solved="tests")) == (UNGRADED, Reason.REPORT_UNREADABLE)
    assert says(graded(junit=Content(b"<a/>"), solved="tests")) == (UNGRADED, Reason.REPORT_UNKNOWN)


def test_reports_that_contradict_each_other_are_disclosed_and_ungraded_where_tests_decide() -> None:
    files: dict[str, Any] = {"ctrf": ctrf(("a", "passed")), "junit": junit(("a", "<failure/>"))}
    by_reward = graded(reward_txt=text("1"), **files)
    assert says(by_reward) == (PASS, None)
    assert "1 tests pass in one report and fail in the other" in by_reward.disclosures
    assert says(graded(solved="tests", **files)) == (UNGRADED, Reason.VERDICTS_DISAGREE)


def test_a_grade_that_its_tests_do_not_bear_out_says_so() -> None:
    assert graded(reward_txt=text("1"), ctrf=ctrf(("a", "failed"))).disclosures == (
        "the grade is pass, and 1 tests fail",
    )
    assert graded(reward_txt=text("0"), ctrf=ctrf(("a", "passed"))).disclosures == (
        "the grade is fail, and no test fails",
    )
    assert graded(reward_txt=text("1"), ctrf=ctrf(("a", "passed"))).disclosures == ()


def test_the_record_keeps_integers_and_doubles() -> None:
    record = graded(reward_json=Content(b'{"reward": 0.25, "tests": 3}'), ctrf=ctrf(("a", "failed"))).as_record()
    read = strictjson.loads(encode(record))
    assert read == record
    assert (type(read["rewards"]["reward"]), type(read["rewards"]["tests"])) == (float, int)
    assert (read["state"], read["reason"], read["assurance"]) == ("fail", "below_threshold", "isolated")
    assert read["tests"]["all_fail"] == 1


def test_an_attempt_without_a_verifier_has_a_grade_too() -> None:
    given_grade = ungraded(Reason.NOT_GRADED, "x" * 10_000)
    assert says(given_grade) == (UNGRADED, Reason.NOT_GRADED)
    assert given_grade.as_record()["assurance"] is None
    assert len(encode(given_grade.as_record())) < 1000


def _file(data: bytes) -> st.SearchStrategy[VerdictFile]:
    whole: list[VerdictFile] = [Absent(), Content(data), Content(data[: len(data) // 2]), TooLarge(2**40)]
    return st.sampled_from(whole)


FILES = st.builds(
    VerdictFiles,
    reward_txt=st.one_of(_file(b"1"), _file(b"0")),
    reward_json=_file(b'{"reward": 1, "x": 0.5}'),
    ctrf=st.one_of(_file(ctrf(("a", "passed")).data), _file(ctrf(("a", "failed"), ("a", "passed")).data)),
    junit=st.one_of(_file(junit(("a", "")).data), _file(junit(("a", "<failure/>")).data)),
)
OUTCOMES = st.builds(
    VerifierOutcome,
    exit_code=st.sampled_from([0, 1, 124, 137]),
    timed_out=st.booleans(),
    start_error=st.sampled_from([None, "gone"]),
)


@given(FILES, OUTCOMES, st.sampled_from(["reward >= 1.0", "x > 0.1", "tests"]), st.sampled_from(DuplicateTests))
def test_every_grade_has_a_reason_of_its_family_and_fits_a_journal_entry(
    files: VerdictFiles, outcome: VerifierOutcome, solved: str, duplicate_tests: DuplicateTests
) -> None:
    verdicts = read_verdicts(files)
    rule = parse_solved(solved)
    given_grade = grade(verdicts, outcome, rule=rule, duplicate_tests=duplicate_tests, assurance=Assurance.SHARED)
    family = {PASS: None, FAIL: Family.FAIL, UNGRADED: Family.UNGRADED}[given_grade.state]
    assert (given_grade.reason.family if given_grade.reason else None) is family
    assert len(encode(given_grade.as_record())) < 40_000
    unfinished = grade(
        verdicts,
        replace(outcome, timed_out=True),
        rule=rule,
        duplicate_tests=duplicate_tests,
        assurance=Assurance.SHARED,
    )
    assert unfinished.state is UNGRADED


def test_the_largest_record_fits_a_journal_entry() -> None:
    numbers: dict[str, Any] = {f"key {number:04}": number + 0.5 for number in range(1500)}
    statuses = "".join(f"<testcase name='{n}' status='{'☃' * 50}{n}'/>" for n in range(2000))
    given_grade = graded(
        reward_json=Content(json.dumps(numbers | {"reward": 1}).encode()),
        ctrf=ctrf(*(("a" * 1000, "exploded") for _ in range(100))),
        junit=Content(f"<testsuite tests='9'>{statuses}</testsuite>".encode()),
    )
    assert given_grade.state is PASS
    assert len(given_grade.rewards) == 1501
    assert len(encode(given_grade.as_record())) < 40_000
