"""Both programs read the frozen vectors in the same way: what is read, what is refused, and the canonical bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.core import canonical as our_canonical
from proctor.core import strictjson as our_strictjson
from proctor.core.refusal import Refusal
from proctor_verify import canonical as their_canonical
from proctor_verify import strictjson as their_strictjson
from proctor_verify.errors import Unreadable

VECTORS = Path(__file__).parent.parent / "vectors"
CASES = json.loads((VECTORS / "json.json").read_text())["cases"]
NUMBERS = json.loads((VECTORS / "canonical.json").read_text())


class Program(NamedTuple):
    loads: Callable[..., Any]
    loads_canonical: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    error: type[Exception]


PROGRAMS = {
    "proctor": Program(
        our_strictjson.loads,
        our_strictjson.loads_canonical,
        our_canonical.encode,
        Refusal,
    ),
    "proctor_verify": Program(
        their_strictjson.loads,
        their_strictjson.loads_canonical,
        their_canonical.encode,
        Unreadable,
    ),
}


@pytest.fixture(params=PROGRAMS.values(), ids=PROGRAMS.keys())
def program(request: pytest.FixtureRequest) -> Program:
    chosen: Program = request.param
    return chosen


def data_of(case: dict[str, Any]) -> bytes:
    match case:
        case {"text": text}:
            return str(text).encode()
        case {"hex": digits}:
            return bytes.fromhex(digits)
        case {"repeat": [text, times]}:
            return str(text).encode() * times
        case {"fill": size}:
            return b'"' + b"a" * (size - 2) + b'"'
    raise AssertionError(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_vector_is_read_or_refused_as_it_says(program: Program, case: dict[str, Any]) -> None:
    data = data_of(case)
    if not case["read"]:
        for read in (program.loads, program.loads_canonical):
            with pytest.raises(program.error):
                read(data)
        return
    value = program.loads(data)
    canonical = data if "fill" in case else case["canonical"] and case["canonical"].encode()
    if canonical is None:
        with pytest.raises(program.error):
            program.encode(value)
    else:
        assert program.encode(value) == canonical
    if data == canonical or case.get("as_double"):
        assert program.encode(program.loads_canonical(data)) == data
    else:
        with pytest.raises(program.error):
            program.loads_canonical(data)


def test_what_nests_deeper_than_python_reads_is_refused_whatever_is_allowed(program: Program) -> None:
    with pytest.raises(program.error, match="nest"):
        program.loads(b"[" * 100_000, max_bytes=100_000, max_depth=100_000)


def double(ieee: str) -> float:
    (value,) = struct.unpack(">d", bytes.fromhex(ieee))
    return float(value)


@pytest.mark.parametrize("number", NUMBERS["numbers"], ids=lambda number: number["text"])
def test_a_double_has_the_text_that_ecmascript_gives_it(program: Program, number: dict[str, str]) -> None:
    text = number["text"].encode()
    assert program.encode(double(number["ieee"])) == text
    assert program.encode([{"a": double(number["ieee"])}]) == b'[{"a":' + text + b"}]"
    assert program.loads_canonical(text) == double(number["ieee"])


@pytest.mark.parametrize("ieee", NUMBERS["refused"])
def test_a_double_that_is_no_number_has_no_text(program: Program, ieee: str) -> None:
    with pytest.raises(program.error):
        program.encode({"a": double(ieee)})


def test_the_test_suite_and_the_published_numbers(program: Program, cases: Path) -> None:
    for file in sorted((cases / "json" / "JSONTestSuite").iterdir()):
        duplicate = file.name == "y_object_duplicated_key.json"
        if file.name.startswith("y_") and not duplicate:
            assert program.loads(file.read_bytes()) == json.loads(file.read_bytes()), file.name
        elif file.name.startswith("n_") or duplicate:
            with pytest.raises(program.error):
                program.loads(file.read_bytes())
    for source in sorted((cases / "json" / "jcs" / "input").iterdir()):
        expected = (cases / "json" / "jcs" / "output" / source.name).read_bytes()
        assert program.encode(program.loads(source.read_bytes())) == expected
        assert program.encode(program.loads_canonical(expected)) == expected
    for line in (cases / "json" / "jcs" / "es6-numbers-1000.csv").read_text().splitlines():
        ieee, text = line.split(",")
        assert program.encode(double(ieee.zfill(16))) == text.encode()
