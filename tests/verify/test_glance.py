"""What is told at a glance of a line is what reading it says."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from money_stories import money_story
from stories import full_story

from proctor_verify import canonical, patterns
from proctor_verify.errors import Unreadable
from proctor_verify.glance import OF_THE_RUN, link_of
from proctor_verify.schema import ENVELOPE, KINDS, body_fault, envelope_fault
from proctor_verify.strictjson import MAX_BYTES, loads_canonical


def is_entry(line: bytes) -> bool:
    return link_of(line) is not None


def _is_sound(line: bytes) -> bool:
    try:
        value = loads_canonical(line)
    except Unreadable:
        return False
    return envelope_fault(value) is None and value["kind"] in KINDS and body_fault(value["kind"], value["body"]) is None


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    runs = [story.write(tmp_path_factory.mktemp("run")) for story in (full_story(), money_story())]
    return [line for run in runs for line in (run / "journal.jsonl").read_bytes().splitlines()]


def test_most_lines_are_told_at_a_glance(lines: list[bytes]) -> None:
    told = [line for line in lines if is_entry(line)]
    assert len(told) > 0.85 * len(lines)
    kinds = {json.loads(line)["kind"] for line in lines} - {json.loads(line)["kind"] for line in told}
    assert kinds == {kind for kind in KINDS if kind.startswith(OF_THE_RUN)}


def test_what_joins_a_line_to_others_is_what_stands_in_it(lines: list[bytes]) -> None:
    for line in filter(is_entry, lines):
        value = json.loads(line)
        assert link_of(line) == (value["seq"], value["prev"].encode(), value["mono"], value["time"].encode())


# Whatever can stand in the place of a value or of a part of text, canonical or not.
PIECES = [
    *(
        b"0",
        b"00",
        b"-0",
        b"-1",
        b"1",
        b"1.0",
        b"1.50",
        b"0.5",
        b"1e5",
        b"1E5",
        b"9007199254740993",
        b"256",
        b"65",
        b"99",
    ),
    *(
        b"null",
        b"true",
        b"false",
        b"NaN",
        b"{}",
        b"[]",
        b"[null]",
        b'""',
        b'"',
        b"'",
        b",",
        b":",
        b" ",
        b"\n",
        b"\\",
        b"}",
    ),
    *(
        b'"\\u0041"',
        b'"\\n"',
        b'"\\/"',
        b'"\\u001f"',
        b'"\x7f"',
        b'"\t"',
        b'"\xc3\xa9"',
        b'"\xf0\x9f\x98\x80"',
        b'"\xff"',
    ),
    *(b'{"a":1,"a":1}', b'{"b":1,"a":2}', b'{"input":1,"output":2}', b'{"output":1,"input":2}', b'{"input":1,}'),
    *(b'{"input":0}', b'{"sent":1"start":2}', b'{"sent":1,"agent":2}', b'{"agent":1,"sent":2}', b'{"reward":1}'),
    *(b'{"reward":1,"other":2}', b'{"kind":"local","network":"none"}', b'{"network":"none","kind":"local"}'),
    *(b'"pass"', b'"ungraded"', b'"completed"', b'"not_graded"', b'"2031-02-29T00:00:00.000000Z"', b"0" * 64),
    *(b'"2032-02-29T00:00:00.000000Z"', b'"1.000000000000"', b'"01.000000000000"', b'"kind":"run.paused"'),
]


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_what_is_told_at_a_glance_is_sound(lines: list[bytes], data: st.DataObject) -> None:
    line = data.draw(st.sampled_from(lines))
    for _ in range(data.draw(st.integers(1, 3))):
        # between two places where a value or a member begins or ends, or anywhere
        edges = (
            [at for at, byte in enumerate(line) if byte in b',:{}[]"'] if data.draw(st.booleans()) else range(len(line))
        )
        start = data.draw(st.sampled_from([*edges, len(line)]))
        end = data.draw(st.sampled_from([at for at in [*edges, len(line)] if start <= at <= start + 120]))
        line = line[: start + data.draw(st.integers(0, 1))] + data.draw(st.sampled_from(PIECES)) + line[end:]
    if is_entry(line) and _is_utf8(line):
        assert _is_sound(line)


def _is_utf8(line: bytes) -> bool:
    return line.decode(errors="replace").encode() == line


def test_a_value_in_another_place_is_seen(lines: list[bytes]) -> None:
    told = 0
    for line in {json.loads(line)["kind"]: line for line in lines}.values():
        body = json.loads(line)["body"]
        texts = {name: canonical.encode(value) for name, value in body.items()}
        for name in texts:
            for piece in PIECES:
                changed = b",".join(b'"%b":%b' % (n.encode(), piece if n == name else texts[n]) for n in sorted(texts))
                changed = b'{"body":{' + changed + line[line.rindex(b'},"kind":"') :]
                if is_entry(changed) and _is_utf8(changed):
                    told += 1
                    assert _is_sound(changed), (name, piece)
    assert told > 100


@pytest.mark.parametrize("name", sorted({*ENVELOPE, *(name for fields in KINDS.values() for name in fields)}))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_text_of_a_shape_is_canonical_and_of_that_shape(name: str, data: st.DataObject) -> None:
    shapes = [fields[name] for fields in (ENVELOPE, *KINDS.values()) if name in fields and fields[name].text]
    if shapes:
        shape = data.draw(st.sampled_from(shapes))
        text = data.draw(st.from_regex(str(patterns.record({"it": shape.text})), fullmatch=True))
        if text.isascii():
            assert shape.holds(loads_canonical(text.encode())["it"]), text


def test_a_line_that_is_longer_than_one_may_be_is_none(lines: list[bytes]) -> None:
    line = next(line for line in lines if b'"message":null' in line)
    longest = line.replace(b'"message":null', b'"message":"%b"' % (b"x" * (MAX_BYTES - len(line) + 2)))
    assert len(longest) == MAX_BYTES and is_entry(longest) and _is_sound(longest)
    assert not is_entry(longest.replace(b"xx", b"xxx", 1))
