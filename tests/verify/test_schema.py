"""The second program's copy of the kinds is the one that is written down, field by field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proctor.core.reasons import Reason
from proctor_verify.schema import KINDS, body_fault, envelope_fault
from proctor_verify.vocabulary import CAUSES, ENDS_RUN, REASONS, UNGRADED

PAGE = (Path(__file__).parents[2] / "docs/evidence-format.md").read_text(encoding="utf-8")


def _written() -> dict[str, dict[str, str]]:
    """Fields of each kind as the page has them, `?` left on, with what their content is."""
    section = PAGE.split("<!-- kinds: generated from the registry -->")[1].split("<!-- end kinds -->")[0]
    kinds = {}
    for part in section.split("\n#### ")[1:]:
        rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", part, re.MULTILINE)
        kinds[part.split("`")[1]] = dict(rows)
    return kinds


WRITTEN = _written()


def test_the_kinds_are_those_that_are_written_down() -> None:
    assert list(KINDS) == list(WRITTEN)


def test_the_reasons_are_those_that_are_written_down() -> None:
    section = PAGE.split("<!-- reason ids: generated from the registry -->")[1].split("<!-- end reason ids -->")[0]
    ungraded, others = section.strip().split("\n\n")
    assert set(re.findall(r"`([a-z_]+)`", ungraded)) == UNGRADED
    assert set(re.findall(r"`([a-z_]+)`", section)) == REASONS
    assert not UNGRADED & set(re.findall(r"`([a-z_]+)`", others))


def test_the_causes_of_a_drain_are_those_that_are_written_down() -> None:
    [sentence] = re.findall(r"^A `cause` of a drain is (.*)$", PAGE, re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", sentence)) == CAUSES


def test_what_ends_a_run_is_what_is_written_down() -> None:
    [sentence] = re.findall(r"What ends a run is\n([^.]*)\.", PAGE)
    assert set(re.findall(r"`([a-z_]+)`", sentence)) == ENDS_RUN
    assert {reason.id for reason in Reason if reason.ends_run} == ENDS_RUN


@pytest.mark.parametrize("kind", WRITTEN)
def test_the_fields_of_a_kind_are_those_that_are_written_down(kind: str) -> None:
    assert list(KINDS[kind]) == [name.rstrip("?") for name in WRITTEN[kind]]
    for name, shape in zip(WRITTEN[kind], KINDS[kind].values(), strict=True):
        assert shape.holds(None) == name.endswith("?"), name


@pytest.mark.parametrize("kind", WRITTEN)
def test_words_of_a_field_are_those_that_are_written_down(kind: str) -> None:
    for name, content in WRITTEN[kind].items():
        words = re.match(r"([a-z-]+(?: \\?\| [a-z-]+)+)", content)
        if words is not None:
            for word in re.split(r" \\?\| ", words[1]):
                assert KINDS[kind][name.rstrip("?")].holds(word), (name, word)
            assert not KINDS[kind][name.rstrip("?")].holds("another")


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_field_less_and_a_field_more_are_named(kind: str) -> None:
    fields = dict.fromkeys(KINDS[kind], object())
    for name in fields:
        assert f"{kind} lacks {name}" in str(body_fault(kind, {k: v for k, v in fields.items() if k != name}))
    assert "more" in str(body_fault(kind, {**fields, "more": 1}))
    if fields:
        assert next(iter(fields)) in str(body_fault(kind, fields))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seq", -1),
        ("seq", True),
        ("seq", 0.0),
        ("prev", "0" * 63),
        ("prev", "A" * 64),
        ("time", "2031-01-01T00:00:00.000000z"),
        ("time", "2031-01-01T00:00:00.0000000Z"),
        ("time", "2031-01-01 00:00:00.000000Z"),
        ("time", "٢٠٣١-01-01T00:00:00.000000Z"),
        ("time", "2031-13-01T00:00:00.000000Z"),
        ("time", "2031-01-01T24:00:00.000000Z"),
        ("mono", -1),
        ("kind", None),
        ("body", []),
    ],
)
def test_an_envelope_of_another_form(field: str, value: object) -> None:
    sound = {
        "seq": 0,
        "prev": "0" * 64,
        "time": "2031-01-01T00:00:00.000000Z",
        "mono": 0,
        "kind": "run.paused",
        "body": {},
    }
    assert envelope_fault(sound) is None
    assert field in str(envelope_fault({**sound, field: value}))


@pytest.mark.parametrize("value", [None, True, 1, "{}", []])
def test_an_entry_is_an_object(value: object) -> None:
    assert envelope_fault(value) == "is not an object"
