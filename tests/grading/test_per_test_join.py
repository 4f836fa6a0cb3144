"""tests.json: one entry for each full name, with what each report says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.canonical import encode
from proctor.grading.ctrf import read_ctrf
from proctor.grading.files import Absent, Content, VerdictFile, VerdictFiles
from proctor.grading.join import NOT_REPORTED, conflicts, join, per_test_record
from proctor.grading.junit import read_junit
from proctor.grading.verdicts import read_verdicts


def ctrf_bytes(*names: str, status: str = "passed") -> bytes:
    return json.dumps({"results": {"tests": [{"name": name, "status": status} for name in names]}}).encode()


def junit_bytes(*pairs: tuple[str, str], inner: str = "") -> bytes:
    cases = "".join(f"<testcase classname='{group}' name='{name}'>{inner}</testcase>" for group, name in pairs)
    return f"<testsuite>{cases}</testsuite>".encode()


@pytest.mark.parametrize(
    ("node", "pair"),
    [
        ("test_a.py::test_b", ("test_a", "test_b")),
        ("tests/unit/test_a.py::test_b[1 + 1]", ("tests.unit.test_a", "test_b[1 + 1]")),
        ("test_a.py::TestC::test_b[x::y/z.py]", ("test_a.TestC", "test_b[x::y/z.py]")),
        ("test_a.py::TestC::TestD::test_b", ("test_a.TestC.TestD", "test_b")),
    ],
)
def test_a_pytest_node_id_is_its_junit_pair(node: str, pair: tuple[str, str]) -> None:
    joined = join(read_ctrf(ctrf_bytes(node)), read_junit(junit_bytes(pair)))
    assert len(joined) == 1
    assert joined[0].name == node


def test_a_name_of_another_tool_joins_by_suite_and_name() -> None:
    document = {"results": {"tests": [{"name": "a b", "suite": ["s"], "status": "passed"}]}}
    assert len(join(read_ctrf(json.dumps(document).encode()), read_junit(junit_bytes(("s", "a b"))))) == 1
    assert len(join(read_ctrf(json.dumps(document).encode()), read_junit(junit_bytes(("other", "a b"))))) == 2


def _record(ctrf: VerdictFile, junit: VerdictFile) -> dict[str, object]:
    record = per_test_record(read_verdicts(VerdictFiles(ctrf=ctrf, junit=junit)))
    encode(record)
    return record


def test_a_test_in_one_report_only_is_not_reported_in_the_other() -> None:
    record = _record(Content(ctrf_bytes("t.py::a", "t.py::b")), Content(junit_bytes(("t", "b"), ("t", "c"))))
    tests = record["tests"]
    assert isinstance(tests, list)
    assert [(test["name"], test["ctrf"] == NOT_REPORTED, test["junit"] == NOT_REPORTED) for test in tests] == [
        ("t.py::a", False, True),
        ("t.py::b", False, False),
        ("t::c", True, False),
    ]


def test_a_report_that_is_not_there_says_why() -> None:
    record = _record(Absent(), Content(b"<cut"))
    assert record["tests"] == []
    reports = record["reports"]
    assert isinstance(reports, dict)
    assert (reports["ctrf"]["available"], reports["ctrf"]["reason"]) == (False, "report_missing")
    assert (reports["junit"]["available"], reports["junit"]["reason"]) == (False, "report_unreadable")


def test_without_the_other_report_there_is_null() -> None:
    tests = _record(Content(ctrf_bytes("t.py::a")), Absent())["tests"]
    assert isinstance(tests, list)
    assert tests[0]["junit"] is None


def test_duplicates_stay_together_with_all_their_rows() -> None:
    tests = _record(Content(ctrf_bytes("t.py::a", "t.py::b", "t.py::a")), Absent())["tests"]
    assert isinstance(tests, list)
    assert [(test["name"], len(test["ctrf"])) for test in tests] == [("t.py::a", 2), ("t.py::b", 1)]


def test_conflicts_count_tests_that_pass_here_and_fail_there() -> None:
    ctrf = read_ctrf(ctrf_bytes("t.py::a", "t.py::b", "t.py::only"))
    assert conflicts(ctrf, read_junit(junit_bytes(("t", "a"), ("t", "b"), inner="<failure/>"))) == 2
    assert conflicts(ctrf, read_junit(junit_bytes(("t", "a"), ("t", "b"), inner="<skipped/>"))) == 0


NAMES = st.lists(st.sampled_from(["t.py::a", "t.py::b[ ]", "c", "d::e", "t.py", ""]), max_size=8)


@given(NAMES, NAMES)
def test_no_row_is_lost_or_doubled(left: list[str], right: list[str]) -> None:
    ctrf, junit = read_ctrf(ctrf_bytes(*left)), read_junit(junit_bytes(*(("t", name) for name in right)))
    joined = join(ctrf, junit)
    assert sum(len(test.ctrf) for test in joined) == len(left)
    assert sum(len(test.junit) for test in joined) == len(right)
    assert all(test.ctrf or test.junit for test in joined)
