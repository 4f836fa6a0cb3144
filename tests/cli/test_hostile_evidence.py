"""Evidence that says nonsense, chained anew as if it were true: every reading command refuses it or reads it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.core.canonical import encode
from proctor.core.ids import trial_id

TRIAL = trial_id("alpha", None, "plain", 1)
COMMANDS = [("results",), ("results", "--csv"), ("show",), ("show", TRIAL), ("logs",), ("logs", TRIAL), ("status",)]
VALUES = [None, True, 7, -1.5, "", "x\x1b[2J", "../../..", [], [1], {}, {"a": None}]


def chained(bodies: list[tuple[str, dict[str, Any]]]) -> bytes:
    """A journal of these entries."""
    lines, prev = [], "0" * 64
    for seq, (kind, body) in enumerate(bodies):
        entry = {"seq": seq, "prev": prev, "time": "2026-11-30T00:00:00.000000Z", "mono": seq, "kind": kind}
        lines.append(encode({**entry, "body": body}))
        prev = hashlib.sha256(lines[-1]).hexdigest()
    return b"".join(line + b"\n" for line in lines)


def entries(run: Path) -> list[tuple[str, dict[str, Any]]]:
    read = [json.loads(line) for line in (run / "journal.jsonl").read_bytes().splitlines()]
    return [(entry["kind"], entry["body"]) for entry in read]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place inside a value."""
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with another one at that place."""
    if not path:
        return new
    key, *rest = path
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[key] = put(value[key], tuple(rest), new)
    return changed


def test_what_is_chained_anew_reads_as_before(proctor, run: Path) -> None:
    before = proctor("results", run, "--jsonl").out
    (run / "journal.jsonl").write_bytes(chained(entries(run)))
    assert proctor("results", run, "--jsonl").out == before


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(data=st.data())
def test_a_value_of_another_type_is_no_traceback(proctor, run: Path, _made: Path, data: st.DataObject) -> None:
    bodies = entries(_made)
    at = data.draw(st.integers(0, len(bodies) - 1))
    kind, body = bodies[at]
    where = sorted(places(body), key=str)
    if where:
        bodies[at] = (kind, put(body, data.draw(st.sampled_from(where)), data.draw(st.sampled_from(VALUES))))
    (run / "journal.jsonl").write_bytes(chained(bodies))
    for command, *words in [*COMMANDS, ("show", "--rebuild")]:
        said = proctor(command, run, *words)
        assert said.status in (0, 1, 2, 3)
        assert "--csv" in words or "\x1b" not in said.out + said.err


@pytest.mark.parametrize("words", COMMANDS[:4])
def test_what_this_version_does_not_know_is_never_skipped(proctor, run: Path, words: tuple[str, ...]) -> None:
    bodies = entries(run)
    (run / "journal.jsonl").write_bytes(chained([*bodies[:-1], ("block.judged", {"block": 0}), bodies[-1]]))
    said = proctor(words[0], run, *words[1:])
    assert said.status == 3 and "format_unknown" in said.err and "block.judged" in said.err
    bodies[0][1]["format"] = 2
    (run / "journal.jsonl").write_bytes(chained(bodies))
    said = proctor(words[0], run, *words[1:])
    assert said.status == 3 and "format_unknown" in said.err


def test_logs_tell_an_unknown_entry_as_such(proctor, run: Path) -> None:
    (run / "journal.jsonl").write_bytes(chained([*entries(run)[:-1], ("block.judged", {"block": 0})]))
    assert "block.judged (not known here)" in proctor("logs", run).out
