"""Reading JUnit XML, streamed: suites may nest, roots may be `testsuite`, and attributes may be missing.

A row's status comes from its result elements alone (`error` before `failure` before `skipped`; none is passed), as
the format has no other verdict. pytest-rerunfailures writes each rerun as one more row without any element, so a row
alone never tells whether a test passed: its identity does.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.decoding import MENDED, mend_xml
from proctor.grading.files import MAX_REPORT_BYTES, MAX_REPORT_ROWS
from proctor.grading.reports import (
    Report,
    Row,
    Source,
    Status,
    Suite,
    Verdict,
    declared_disclosures,
    duplicate_disclosure,
)

_MAX_DEPTH = 64
_SUITES = frozenset({"testsuites", "testsuite"})
_STATUS_OF_ELEMENT = {
    "error": Status.ERROR,
    "failure": Status.FAILED,
    "skipped": Status.SKIPPED,
    "disabled": Status.SKIPPED,
}
_PRECEDENCE = tuple(_STATUS_OF_ELEMENT)
_FLAKY = frozenset({"flakyFailure", "flakyError"})
_RERUN = frozenset({"rerunFailure", "rerunError"})
_RESULTS = frozenset(_PRECEDENCE) | _FLAKY | _RERUN
_DECLARED = ("tests", "failures", "errors", "skipped")
_PASSED_WORDS = frozenset({"passed", "pass", "success", "ok", "run", "completed"})
_WORD_CHARS = 40
_WORDS_SHOWN = 5
_COUNT = re.compile(r"[0-9]{1,15}")
_SECONDS = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?")


def read_junit(data: bytes) -> Report:
    """Read a JUnit report of at most `MAX_REPORT_BYTES`, and `MAX_REPORT_ROWS` rows and suites together.

    Raises:
        Refusal: `report_unreadable` where the bytes are not well-formed XML, declare entities, or pass the bounds;
            `report_unknown` where the root is neither `testsuites` nor `testsuite`.
    """
    if len(data) > MAX_REPORT_BYTES:
        raise Refusal(
            Reason.REPORT_UNREADABLE,
            "the report is too long",
            observed={"bytes": len(data)},
            required={"bytes": MAX_REPORT_BYTES},
        )
    try:
        return _disclosed(_parse(data), mended=False)
    except Refusal as refusal:
        mended = mend_xml(data) if refusal.reason is Reason.REPORT_UNREADABLE else data
        if mended == data:
            raise
    return _disclosed(_parse(mended), mended=True)


def _parse(data: bytes) -> Report:
    collector = _Collector()
    try:
        parser = DefusedXMLParser(target=collector)
        parser.feed(data)
        parser.close()
    except DefusedXmlException as error:
        raise Refusal(Reason.REPORT_UNREADABLE, "the XML declares entities or refers outside of itself") from error
    except ParseError as error:
        line, column = error.position
        observed = {"line": line, "column": column, "code": error.code}
        raise Refusal(Reason.REPORT_UNREADABLE, f"not well-formed XML: {error}", observed=observed) from error
    except (LookupError, ValueError) as error:
        raise Refusal(Reason.REPORT_UNREADABLE, f"the XML is in no encoding that can be read: {error}") from error
    return Report(
        source=Source.JUNIT,
        tool=None,
        rows=tuple(collector.rows),
        declared=collector.declared(),
        duration_unit="s",
        suites=tuple(suite.frozen() for suite in collector.suites),
    )


class _OpenSuite:
    def __init__(self, path: tuple[str, ...], parent: _OpenSuite | None, declared: dict[str, int]) -> None:
        self.path = path
        self.parent = parent
        self.declared = declared
        self.own_rows = 0
        self.all_rows = 0

    def count_row(self) -> None:
        self.own_rows += 1
        above: _OpenSuite | None = self
        while above is not None:
            above.all_rows += 1
            above = above.parent

    def frozen(self) -> Suite:
        return Suite(self.path, self.declared, self.own_rows, self.all_rows)


class _OpenCase:
    def __init__(self, attributes: dict[str, str], suite: tuple[str, ...]) -> None:
        self.attributes = attributes
        self.suite = suite
        self.results: list[str] = []
        self.messages: dict[str, str] = {}

    def row(self) -> Row:
        deciding = next((element for element in _PRECEDENCE if element in self.results), None)
        again = sum(element in _FLAKY or element in _RERUN for element in self.results)
        seconds = self.attributes.get("time", "").replace(",", "")
        return Row(
            name=self.attributes.get("name"),
            group=self.attributes.get("classname"),
            suite=self.suite,
            status=Status.PASSED if deciding is None else _STATUS_OF_ELEMENT[deciding],
            raw_status=self.attributes.get("status") or self.attributes.get("result"),
            message=self.messages.get(deciding) if deciding else None,
            duration=float(seconds) if _SECONDS.fullmatch(seconds) else None,
            retries=again or None,
            flaky=any(element in _FLAKY for element in self.results),
            results=tuple(self.results),
        )


class _Collector:
    """The parser's target: keeps rows and suites, and of the text only what a message may be."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.suites: list[_OpenSuite] = []
        self.totals: dict[str, int] = {}
        self._open: list[str] = []
        self._suites: list[_OpenSuite] = []
        self._cases: list[_OpenCase] = []
        self._text: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition("}")[2]
        if not self._open and tag not in _SUITES:
            raise Refusal(
                Reason.REPORT_UNKNOWN, "the root element is not JUnit's", observed=tag, required=sorted(_SUITES)
            )
        self._open.append(tag)
        if len(self._open) > _MAX_DEPTH:
            raise Refusal(Reason.REPORT_UNREADABLE, "the XML nests too deeply", required={"depth": _MAX_DEPTH})
        if len(self.rows) + len(self.suites) > MAX_REPORT_ROWS:
            raise Refusal(Reason.REPORT_UNREADABLE, "the report has too many rows", required={"rows": MAX_REPORT_ROWS})
        if tag == "testsuite":
            self._open_suite(attributes)
        elif tag == "testsuites":
            self.totals = _totals(attributes)
        elif tag == "testcase":
            self._cases.append(_OpenCase(attributes, self._suites[-1].path if self._suites else ()))
        elif self._cases and self._open[-2] == "testcase" and tag in _RESULTS:
            self._cases[-1].results.append(tag)
            if attributes.get("message"):
                self._cases[-1].messages.setdefault(tag, attributes["message"])
            self._text = []

    def _open_suite(self, attributes: dict[str, str]) -> None:
        parent = self._suites[-1] if self._suites else None
        path = (*(parent.path if parent else ()), attributes.get("name", ""))
        suite = _OpenSuite(path, parent, _totals(attributes))
        self._suites.append(suite)
        self.suites.append(suite)

    def data(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def end(self, _tag: str) -> None:
        tag = self._open.pop()
        if tag == "testsuite":
            self._suites.pop()
        elif tag == "testcase":
            self.rows.append(self._cases.pop().row())
            if self._suites:
                self._suites[-1].count_row()
        elif self._text is not None and self._open[-1] == "testcase":
            said = "".join(self._text).strip()
            if said:
                self._cases[-1].messages.setdefault(tag, said)
            self._text = None

    def close(self) -> None:
        """Nothing is left to build."""

    def declared(self) -> dict[str, int]:
        """What the root declares; where it does not, the sum over the outermost suites that do."""
        outermost: Counter[str] = Counter()
        for suite in self.suites:
            if suite.parent is None:
                outermost.update(suite.declared)
        return dict(outermost) | self.totals


def _totals(attributes: dict[str, str]) -> dict[str, int]:
    return {name: int(attributes[name]) for name in _DECLARED if _COUNT.fullmatch(attributes.get(name, ""))}


def _disclosed(report: Report, mended: bool) -> Report:
    counts = report.counts()
    statuses = report.statuses()
    counted = {
        "tests": len(report.rows),
        "failures": statuses[Status.FAILED],
        "errors": statuses[Status.ERROR],
        "skipped": statuses[Status.SKIPPED],
    }
    said = [*declared_disclosures(report.declared, counted)]
    said += duplicate_disclosure(counts.rows, counts.identities, counts.duplicates)
    several = sum(row.results.count("failure") + row.results.count("error") > 1 for row in report.rows)
    if several:
        said.append(f"{several} rows have several failures or errors; each counts once")
    only_rerun = sum(row.verdict is Verdict.PASS and bool(_RERUN.intersection(row.results)) for row in report.rows)
    if only_rerun:
        said.append(f"{only_rerun} rows have failed reruns and no result of their own; they read as passed")
    unsaid = [row.raw_status for row in report.rows if row.raw_status is not None and not row.results]
    unusual = Counter(word for word in unsaid if word.lower() not in _PASSED_WORDS)
    if unusual:
        words = ", ".join(repr(word[:_WORD_CHARS]) for word in sorted(unusual)[:_WORDS_SHOWN])
        said.append(
            f"{unusual.total()} rows have no result element and a status that is no pass ({words}); they read as passed"
        )
    if mended:
        said.append(MENDED)
    return replace(report, disclosures=tuple(said))
