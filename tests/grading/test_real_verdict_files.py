"""Every real verdict file reads as its index says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.core.canonical import encode
from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.ctrf import read_ctrf
from proctor.grading.files import Content, VerdictFile, VerdictFiles
from proctor.grading.grade import Assurance, Grade, VerifierOutcome, grade
from proctor.grading.join import NOT_REPORTED, per_test_record
from proctor.grading.junit import read_junit
from proctor.grading.reports import Report, Status
from proctor.grading.rewards import parse_reward_json, parse_reward_text
from proctor.grading.solved import DuplicateTests, RewardRule, parse_solved
from proctor.grading.verdicts import read_verdicts

GRADES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "grades"
LATER = ("swe-bench/", "programbench/")


def _index() -> dict[str, dict[str, Any]]:
    if not GRADES.is_dir():
        return {}
    index: dict[str, dict[str, Any]] = json.loads((GRADES / "expected.json").read_bytes())
    return {name: expected for name, expected in index.items() if not name.startswith(LATER)}


INDEX = _index()

pytestmark = pytest.mark.skipif(not INDEX, reason=f"case files are not at {GRADES}")


@pytest.mark.parametrize("name", INDEX or ["none"])
def test_a_real_file_reads_as_its_index_says(name: str) -> None:
    data = (GRADES / name).read_bytes()
    expected = dict(INDEX[name])
    assert len(data) == expected.pop("bytes")
    seen: dict[str, Any]
    if name.endswith(".xml"):
        seen = _junit_seen(data)
    elif name.endswith("ctrf.json") or name.startswith("ctrf/"):
        seen = _ctrf_seen(data)
    elif name.endswith("reward.json"):
        seen = {"content": parse_reward_json(data)}
        expected["content"] = json.loads(expected["content"])
    else:
        assert name.endswith(("reward.txt", "exit_code"))
        seen = {"content": parse_reward_text(data)}
        expected["content"] = json.loads(expected["content"])
    expected.pop("parse_error", None)
    assert seen == expected


def _junit_seen(data: bytes) -> dict[str, Any]:
    try:
        report = read_junit(data)
    except Refusal as refusal:
        if refusal.reason is Reason.REPORT_UNREADABLE:
            return {}
        none = {"identities": 0, "all_pass": 0, "all_fail": 0, "all_skip": 0, "mixed": 0, "last_row_fails": 0}
        nothing = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        return {
            "root": refusal.observed,
            "suites": 0,
            "testcases": 0,
            "duplicate_identities": 0,
            "by_identity": none,
            "declared_leaf_suites": nothing,
        }
    counts = report.counts().as_record()
    statuses = report.statuses()
    holding = [suite for suite in report.suites if suite.own_rows]
    elements = [element for row in report.rows for element in row.results]
    seen = {
        "root": "testsuites" if b"<testsuites" in data else "testsuite",
        "suites": len(report.suites),
        "testcases": len(report.rows),
        "passed": statuses[Status.PASSED],
        "skipped": statuses[Status.SKIPPED],
        "failure": statuses[Status.FAILED],
        "error": statuses[Status.ERROR],
        "multi_result_cases": sum(row.results.count("failure") + row.results.count("error") > 1 for row in report.rows),
        **{tag: elements.count(tag) for tag in ("flakyFailure", "flakyError", "rerunFailure", "rerunError")},
    }
    always = {"root", "suites", "testcases"}
    return {
        **{key: value for key, value in seen.items() if value or key in always},
        "duplicate_identities": counts["duplicates"],
        "by_identity": {
            key: counts[key] for key in ("identities", "all_pass", "all_fail", "all_skip", "mixed", "last_row_fails")
        },
        "declared_leaf_suites": {
            key: sum(suite.declared.get(key, 0) for suite in holding)
            for key in ("tests", "failures", "errors", "skipped")
        },
    }


def _ctrf_seen(data: bytes) -> dict[str, Any]:
    report = read_ctrf(data)
    statuses = report.statuses()
    summary = json.loads(data)["results"]["summary"]
    extra = {key: summary[key] for key in ("flaky", "suites", "duration") if key in summary}
    return {
        "tool": report.tool,
        "rows": len(report.rows),
        **{status.value: count for status, count in statuses.items()},
        "declared": {**report.declared, **extra},
        "flaky": sum(row.flaky for row in report.rows),
        "retries_total": sum((row.retries or 0) + (row.merged or 0) for row in report.rows),
        "duplicate_identities": report.counts().duplicates,
    }


def _graded(folder: str, **also: VerdictFile) -> tuple[Grade, dict[str, Any]]:
    present = {path.name: Content(path.read_bytes()) for path in (GRADES / folder).iterdir()}
    found: dict[str, VerdictFile] = {
        field: present[name]
        for field, name in {
            "reward_txt": "reward.txt",
            "reward_json": "reward.json",
            "ctrf": "ctrf.json",
            "junit": "junit.xml",
        }.items()
        if name in present
    }
    verdicts = read_verdicts(VerdictFiles(**{**found, **also}))
    rule = parse_solved("reward >= 1.0")
    assert isinstance(rule, RewardRule)
    given = grade(
        verdicts,
        VerifierOutcome(exit_code=0),
        rule=rule,
        duplicate_tests=DuplicateTests.REFUSE,
        assurance=Assurance.ISOLATED,
    )
    return given, per_test_record(verdicts)


def test_the_folder_after_its_own_solution_passes() -> None:
    given, _ = _graded("verifier-folders/lake-warming-own")
    assert (given.state, given.reason, given.reward) == (GradeState.PASS, None, 1)


def test_the_folder_after_nothing_fails() -> None:
    given, record = _graded("verifier-folders/lake-warming-nothing")
    assert (given.state, given.reason, given.reward) == (GradeState.FAIL, Reason.BELOW_THRESHOLD, 0)
    assert [test["ctrf"][0]["status"] for test in record["tests"]] == ["failed", "failed"]
    assert all(test["junit"] is None for test in record["tests"])


def test_the_harbor_folder_with_both_reward_files_agrees() -> None:
    given, _ = _graded("harbor-verdict-complexmcp")
    assert (given.state, given.reward) == (GradeState.FAIL, 0.0)
    assert given.rewards["keys_required"] == 9
    assert isinstance(given.rewards["keys_required"], int)
    assert given.tests is not None
    assert (given.tests.all_pass, given.tests.all_fail) == (5, 309)


def test_a_run_that_collected_nothing_is_ungraded_whatever_the_reward() -> None:
    for reward in (b"0", b"1"):
        given, _ = _graded("pairs/none-collected", reward_txt=Content(reward))
        assert (given.state, given.reason) == (GradeState.UNGRADED, Reason.NO_TESTS_RAN)


def test_a_fine_ctrf_joins_junit_test_by_test() -> None:
    given, record = _graded("pairs/tokenizer-0.6.1", reward_txt=Content(b"1"))
    assert given.state is GradeState.PASS
    assert given.disclosures == ()
    assert len(record["tests"]) == 78
    assert all(len(test["ctrf"]) == 1 and len(test["junit"]) == 1 for test in record["tests"])


def test_a_coarse_ctrf_is_called_coarse_and_never_retried() -> None:
    given, record = _graded("pairs/inflection-0.3.5", reward_txt=Content(b"1"))
    assert given.state is GradeState.PASS
    assert given.tests is not None
    assert given.tests.identities == 455, "the finer report counts"
    assert record["reports"]["ctrf"]["coarse"]
    assert any("433 further results" in sentence for sentence in given.disclosures)
    rows = [test["ctrf"][0] for test in record["tests"] if test["ctrf"] != NOT_REPORTED]
    assert len(rows) == 22
    assert {row["retries"] for row in rows} == {None}
    folded = [test for test in record["tests"] if test["ctrf"] == NOT_REPORTED]
    assert len(folded) > 400
    assert not any(isinstance(test["junit"], str) and isinstance(test["ctrf"], str) for test in record["tests"])


@pytest.mark.parametrize("name", [name for name in INDEX if name.endswith(("ctrf.json", ".xml"))] or ["none"])
def test_every_real_report_has_a_record_in_canonical_form(name: str) -> None:
    file = Content((GRADES / name).read_bytes())
    files = VerdictFiles(junit=file) if name.endswith(".xml") else VerdictFiles(ctrf=file)
    verdicts = read_verdicts(files)
    assert encode(per_test_record(verdicts)) == encode(per_test_record(read_verdicts(files)))
    for report in verdicts.reports:
        assert isinstance(report, Report)
