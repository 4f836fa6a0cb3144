"""Reading JUnit XML: suites, rows, results, identities, and what is no JUnit."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.decoding import MAX_MENDS
from proctor.grading.files import MAX_REPORT_BYTES, MAX_REPORT_ROWS
from proctor.grading.junit import read_junit
from proctor.grading.reports import Report, Status

XML_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"), max_size=30
)


def read(xml: str) -> Report:
    return read_junit(xml.encode())


def suite(*cases: str, attributes: str = "") -> str:
    return f"<testsuites><testsuite {attributes}>{''.join(cases)}</testsuite></testsuites>"


def case(name: str, inner: str = "", classname: str = "c") -> str:
    return f"<testcase classname={quoteattr(classname)} name={quoteattr(name)}>{inner}</testcase>"


@given(st.lists(st.tuples(XML_TEXT, XML_TEXT), max_size=8))
def test_names_are_kept_whole_in_order_and_doubled(names: list[tuple[str, str]]) -> None:
    report = read(suite(*(case(name, classname=classname) for classname, name in names)))
    assert [(row.group, row.name) for row in report.rows] == names
    assert report.counts().identities == len(set(names))


@pytest.mark.parametrize(
    ("inner", "status", "message"),
    [
        ("", Status.PASSED, None),
        ("<skipped message='later'/>", Status.SKIPPED, "later"),
        ("<failure message='no'>trace</failure>", Status.FAILED, "no"),
        ("<failure>only a trace</failure>", Status.FAILED, "only a trace"),
        ("<error/>", Status.ERROR, None),
        ("<skipped message='s'/><failure message='f'/>", Status.FAILED, "f"),
        ("<failure message='f'/><error message='e'/>", Status.ERROR, "e"),
        ("<system-out><failure/></system-out>", Status.PASSED, None),
        ("<flakyFailure message='once'/>", Status.PASSED, None),
        ("<disabled/>", Status.SKIPPED, None),
    ],
)
def test_a_row_has_the_status_of_its_gravest_result(inner: str, status: Status, message: str | None) -> None:
    row = read(suite(case("t", inner))).rows[0]
    assert (row.status, row.message) == (status, message)


def test_a_rerun_without_a_result_is_no_extra_pass() -> None:
    rerun_then_fail = read(suite(case("t"), case("t"), case("t", "<failure/>"), attributes="tests='1' failures='1'"))
    counts = rerun_then_fail.counts()
    assert (counts.all_pass, counts.mixed, counts.last_row_fails) == (0, 1, 1)
    assert "the report declares tests = 1, its rows make 3" in rerun_then_fail.disclosures
    assert any("more than once" in sentence for sentence in rerun_then_fail.disclosures)
    rerun_then_pass = read(suite(case("t"), case("t"), attributes="tests='1'")).counts()
    assert (rerun_then_pass.all_pass, rerun_then_pass.rows) == (1, 2)


def test_declared_totals_of_nested_suites_are_not_added_twice() -> None:
    report = read(
        "<testsuite name='all' tests='2'><testsuite name='a' tests='1'><testcase name='x'/></testsuite>"
        "<testsuite name='b' tests='1'><testcase name='y'/></testsuite></testsuite>"
    )
    assert report.declared == {"tests": 2}
    assert report.disclosures == ()
    assert [(each.path, each.own_rows, each.all_rows) for each in report.suites] == [
        (("all",), 0, 2),
        (("all", "a"), 1, 1),
        (("all", "b"), 1, 1),
    ]
    assert report.rows[1].suite == ("all", "b")


def test_totals_of_several_outermost_suites_are_added() -> None:
    xml = "<testsuites><testsuite tests='1'><testcase name='x'/></testsuite><testsuite tests='4'/></testsuites>"
    assert read(xml).disclosures == ("the report declares tests = 5, its rows make 1",)


def test_surefire_marks_are_kept() -> None:
    report = read(
        suite(
            case("flaky", "<flakyFailure message='once'><stackTrace>x</stackTrace></flakyFailure><flakyError/>"),
            case("never", "<failure message='first'/><rerunFailure message='second'/>"),
            case("odd", "<rerunError/>"),
        )
    )
    assert [(row.status, row.flaky, row.retries) for row in report.rows] == [
        (Status.PASSED, True, 2),
        (Status.FAILED, False, 1),
        (Status.PASSED, False, 1),
    ]
    assert report.rows[1].message == "first"
    assert any(sentence.startswith("1 rows have failed reruns") for sentence in report.disclosures)


def test_a_status_without_a_result_element_is_disclosed() -> None:
    report = read(suite("<testcase name='x' status='disabled'/>", "<testcase name='y' status='passed'/>"))
    assert [row.raw_status for row in report.rows] == ["disabled", "passed"]
    assert len(report.disclosures) == 1
    assert "'disabled'" in report.disclosures[0]


def test_a_namespace_and_a_case_without_a_suite_are_read() -> None:
    report = read("<testsuites xmlns='urn:x'><testcase name='x' time='1,234.5'><error/></testcase></testsuites>")
    assert (report.rows[0].status, report.rows[0].duration, report.rows[0].suite) == (Status.ERROR, 1234.5, ())


def _reason(data: bytes) -> Reason:
    with pytest.raises(Refusal) as caught:
        read_junit(data)
    return caught.value.reason


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"no xml", id="not XML"),
        pytest.param(b"<testsuite><testcase name='x'>", id="cut off"),
        pytest.param(b"<testsuite/><testsuite/>", id="two roots"),
        pytest.param(b"<testsuite>" * 100_000, id="100,000 deep"),
        pytest.param(
            b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><testsuite name="&b;"/>', id="entity expansion"
        ),
        pytest.param(
            b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuite>&a;</testsuite>', id="external entity"
        ),
        pytest.param(b'<?xml version="1.0" encoding="klingon"?><testsuite/>', id="unknown encoding"),
        pytest.param(b'<?xml version="1.0" encoding="utf-7"?><testsuite/>', id="encoding of several bytes"),
        pytest.param(b"\x00\x01\x02", id="binary"),
        pytest.param(b"<testsuite>" + b" " * MAX_REPORT_BYTES + b"</testsuite>", id="too long"),
        pytest.param(b"<testsuite>" + b"<testcase/>" * (MAX_REPORT_ROWS + 1) + b"</testsuite>", id="too many rows"),
    ],
)
def test_what_is_no_well_formed_xml_within_bounds_is_unreadable(data: bytes) -> None:
    assert _reason(data) is Reason.REPORT_UNREADABLE


def test_another_root_is_no_junit() -> None:
    assert _reason(b"<suites><suite><case name='x'/></suite></suites>") is Reason.REPORT_UNKNOWN


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"caf\xe9", r"caf\xe9"),
        (b"\x1b[31m", r"\x1b[31m"),
        (b"&#27;[31m", r"\x1b[31m"),
        (b"&#xFFFF; &#10;!", "\\uffff \n!"),
        (b"&#x110000;", r"\u110000"),
    ],
)
def test_what_xml_cannot_hold_costs_no_report(written: bytes, message: str) -> None:
    report = read_junit(b"<testsuite><testcase name='a'><failure message='" + written + b"'/></testcase></testsuite>")
    assert report.rows[0].message == message
    assert any("no text" in sentence for sentence in report.disclosures)


def test_bytes_that_are_mostly_no_text_are_unreadable() -> None:
    assert _reason(b"<testsuite name='" + b"\xff" * (MAX_MENDS + 1) + b"'/>") is Reason.REPORT_UNREADABLE


def test_a_declared_encoding_is_honoured() -> None:
    xml = "<?xml version='1.0' encoding='iso-8859-1'?><testsuite><testcase name='café'/></testsuite>"
    assert read_junit(xml.encode("iso-8859-1")).rows[0].name == "café"


@given(st.binary(max_size=60))
def test_any_bytes_are_a_report_or_a_refusal(data: bytes) -> None:
    for wrapped in (data, b"<testsuite>" + data + b"</testsuite>", b"<testsuite name='" + data + b"'/>"):
        try:
            read_junit(wrapped)
        except Refusal as refusal:
            assert refusal.reason in (Reason.REPORT_UNREADABLE, Reason.REPORT_UNKNOWN)
