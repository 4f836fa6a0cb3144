"""Reading CTRF: rows as they stood, and what is said about them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.ctrf import read_ctrf
from proctor.grading.decoding import MAX_MENDS
from proctor.grading.files import MAX_REPORT_BYTES, MAX_REPORT_ROWS
from proctor.grading.reports import Report, Status


def report_bytes(*tests: Any, **summary: int) -> bytes:
    return json.dumps({"results": {"tool": {"name": "t"}, "summary": summary, "tests": list(tests)}}).encode()


def row(name: str, status: str = "passed", **also: Any) -> dict[str, Any]:
    return {"name": name, "status": status, "duration": 1, **also}


@given(st.lists(st.text(max_size=30), max_size=8))
def test_names_are_kept_whole_in_order_and_doubled(names: list[str]) -> None:
    report = read_ctrf(report_bytes(*(row(name) for name in names)))
    assert [each.name for each in report.rows] == names
    assert report.counts().identities == len(set(names))


@pytest.mark.parametrize("name", ["PASSED t.py::f[1 + 1]", "t.py::f[1 + 1]", "t.py::f[a::b]", " lead", "ü\u2028x", ""])
def test_a_name_is_never_cut_at_white_space(name: str) -> None:
    assert read_ctrf(report_bytes(row(name))).rows[0].name == name


def test_every_field_of_a_row_is_kept() -> None:
    written = row(
        "a",
        "failed",
        suite=["outer", "inner"],
        filePath="t.js",
        message="boom",
        retries=2,
        flaky=True,
        rawStatus="FAILED!",
    )
    read = read_ctrf(report_bytes(written)).rows[0]
    assert (read.suite, read.group, read.status) == (("outer", "inner"), "t.js", Status.FAILED)
    assert (read.message, read.retries, read.merged, read.flaky) == ("boom", 2, None, True)
    assert (read.raw_status, read.duration) == ("FAILED!", 1)


def test_two_rows_with_one_name_are_both_kept_and_disclosed() -> None:
    report = read_ctrf(report_bytes(row("a"), row("a", "failed")))
    assert [each.status for each in report.rows] == [Status.PASSED, Status.FAILED]
    counts = report.counts()
    assert (counts.rows, counts.identities, counts.duplicates, counts.mixed) == (2, 1, 1, 1)
    assert any("more than once" in sentence for sentence in report.disclosures)


def test_one_name_in_two_suites_is_two_tests() -> None:
    report = read_ctrf(report_bytes(row("works", suite="login"), row("works", suite="logout")))
    assert report.counts().duplicates == 0


def test_totals_that_rows_do_not_bear_out_are_disclosed() -> None:
    report = read_ctrf(report_bytes(row("a"), tests=3, passed=1, failed=2))
    assert report.declared == {"tests": 3, "passed": 1, "failed": 2}
    assert "the report declares tests = 3, its rows make 1" in report.disclosures
    assert "the report declares failed = 2, its rows make 0" in report.disclosures
    assert len(report.disclosures) == 2


def test_the_older_pytest_dialect_folds_and_never_retries() -> None:
    folded = row("t.py::f", retries=20, file_path="t.py") | {"duration": 0.25}
    report = read_ctrf(report_bytes(folded, row("t.py::g", retries=0, file_path="t.py")))
    assert [(each.retries, each.merged) for each in report.rows] == [(None, 20), (None, 0)]
    assert report.coarse
    assert report.duration_unit == "s"
    assert any("20 further results" in sentence and "coarse" in sentence for sentence in report.disclosures)
    assert not any("retries" in sentence for sentence in report.disclosures)


def test_the_older_dialect_without_folded_rows_is_not_coarse() -> None:
    assert not read_ctrf(report_bytes(row("t.py::f", retries=0, file_path="t.py"))).coarse


def test_unknown_statuses_are_kept_as_other_and_said() -> None:
    report = read_ctrf(report_bytes(row("a", "exploded"), {"name": "b"}, "no row", row("c", "other")))
    assert [each.status for each in report.rows] == [Status.OTHER] * 4
    assert report.rows[0].raw_status == "exploded"
    assert any(sentence.startswith("3 rows have a status") for sentence in report.disclosures)
    assert any(sentence.startswith("1 rows have no name") for sentence in report.disclosures)


@pytest.mark.parametrize("value", [True, -1, 1.5, "2", 2**60])
def test_a_count_that_is_no_count_is_absent(value: Any) -> None:
    report = read_ctrf(report_bytes(row("a", retries=value, duration="5"), tests=value))
    assert (report.rows[0].retries, report.rows[0].duration) == (None, None)
    assert report.declared == {}


def _reason(data: bytes) -> Reason:
    with pytest.raises(Refusal) as caught:
        read_ctrf(data)
    return caught.value.reason


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(report_bytes(row("a"))[:-5], id="cut off"),
        pytest.param(b'{"results": {"tests": [], "tests": []}}', id="duplicate key"),
        pytest.param(b'{"results": {"tests": [{"duration": NaN}]}}', id="NaN"),
        pytest.param(b"[" * 100_000, id="100,000 deep"),
        pytest.param(b" " * (MAX_REPORT_BYTES + 1), id="too long"),
        pytest.param(b'{"results":{"tests":[' + b"0," * MAX_REPORT_ROWS + b"0]}}", id="too many rows"),
    ],
)
def test_bytes_that_are_no_json_within_bounds_are_unreadable(data: bytes) -> None:
    assert _reason(data) is Reason.REPORT_UNREADABLE


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"results": []}', b'{"results": {"tests": {}}}', b'"results"'])
def test_json_that_is_no_report_is_unknown(data: bytes) -> None:
    assert _reason(data) is Reason.REPORT_UNKNOWN


def test_a_stray_byte_costs_no_report() -> None:
    data = report_bytes(row("a", "failed", message="@"), row("b")).replace(b"@", b"caf\xe9 \xff")
    report = read_ctrf(data)
    assert [each.name for each in report.rows] == ["a", "b"]
    assert report.rows[0].message == r"caf\xe9 \xff"
    assert any("no text" in sentence for sentence in report.disclosures)


def test_half_a_surrogate_pair_costs_no_report() -> None:
    message = r"\udcff \ud83d\ude00 \\ud800 \ud800"
    data = report_bytes(row("a", "failed", message="@")).replace(b"@", message.encode())
    report = read_ctrf(data)
    assert report.rows[0].message == "\\udcff \U0001f600 \\ud800 \\ud800"


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5))
def test_whatever_a_reporter_escapes_costs_no_row(names: list[str]) -> None:
    lone = [f"{name}\ud800" for name in names]
    report = read_ctrf(report_bytes(*(row(name) for name in lone)))
    assert len(report.rows) == len(names)
    assert all(each.name is not None and each.name.endswith("\\ud800") for each in report.rows)


@given(st.binary(max_size=40))
def test_whatever_a_test_prints_costs_no_row(printed: bytes) -> None:
    message = b"".join(b"%c" % byte for byte in printed if byte >= 0x20 and byte not in b'"\\') + b"\xff"
    report = read_ctrf(report_bytes(row("a", "failed", message="@"), row("b")).replace(b"@", message))
    assert [each.name for each in report.rows] == ["a", "b"]
    assert report.rows[0].message == message.decode("utf-8", "backslashreplace")


def test_escaped_backslashes_before_a_stray_byte_stay() -> None:
    data = report_bytes(row("a", message="@")).replace(b"@", rb"\\" + b"\xff" + rb"\\x")
    assert read_ctrf(data).rows[0].message == "\\\\xff\\x"


def test_bytes_that_are_mostly_no_text_are_unreadable() -> None:
    assert _reason(b'{"results": {"tests": ["' + b"\xff" * (MAX_MENDS + 1) + b'"]}}') is Reason.REPORT_UNREADABLE


def test_a_byte_order_mark_is_passed_over() -> None:
    assert isinstance(read_ctrf(b"\xef\xbb\xbf" + report_bytes(row("a"))), Report)


KEYS = st.sampled_from(["name", "status", "suite", "retries", "duration", "results", "tests", "summary", "tool"])
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)


@given(ANY_JSON)
def test_any_json_is_a_report_or_a_refusal(value: Any) -> None:
    for document in (value, {"results": value}, {"results": {"tests": [value], "summary": value, "tool": value}}):
        try:
            report = read_ctrf(json.dumps(document).encode())
        except Refusal as refusal:
            assert refusal.reason in (Reason.REPORT_UNREADABLE, Reason.REPORT_UNKNOWN)
        else:
            encode([each.as_record() for each in report.rows])
