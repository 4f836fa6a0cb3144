"""A journal is found to be the same whether it is taken by stretches, of blocks of any size, or line by line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from builder import Story
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from money_stories import money_story
from primitives import Signer, canonical
from stories import full_story

from proctor_verify import verify
from proctor_verify.check import Check
from proctor_verify.checks import CHECKS
from proctor_verify.checks.journal import Chain, Mono, Sequence
from proctor_verify.clocks import Clock, ahead
from proctor_verify.journal import Block, Entry, Stretch

KEY = Signer().fingerprint
ODD = [
    b"",
    b"{}",
    b"\xff",
    b'{"body":{},"kind":"run.dreaming","mono":0,"prev":"'
    + b"0" * 64
    + b'","seq":0,"time":"2031-01-01T00:00:00.000000Z"}',
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, list[bytes]]]:
    made: list[Story] = [full_story(), money_story()]
    folders = [story.write(tmp_path_factory.mktemp("run")) for story in made]
    return [(folder, (folder / "journal.jsonl").read_bytes().splitlines()) for folder in folders]


def _line_by_line(block: Block) -> list[Any]:
    return []


def _written(folder: Path, lines: list[bytes]) -> Path:
    (folder / "journal.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    return folder


def _report(folder: Path, lines: list[bytes], of: int, *, singly: bool = False) -> str:
    """The report of a journal that is read in pieces of so many bytes, by stretches or line by line."""
    _written(folder, lines)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("proctor_verify.journal._CHUNK", of)
        if singly:
            patched.setattr("proctor_verify.readers.judge", _line_by_line)
        return json.dumps(verify(folder, KEY).to_json())


def _chained(lines: list[bytes]) -> list[bytes]:
    """The same with the right `prev` from each on, as far as it is an entry."""
    chained: list[bytes] = []
    head = "0" * 64
    for line in lines:
        try:
            line = canonical({**json.loads(line), "prev": head})
        except (ValueError, TypeError):
            pass
        chained.append(line)
        head = hashlib.sha256(line).hexdigest()
    return chained


def _with(line: bytes, **changed: object) -> bytes:
    try:
        return canonical({**json.loads(line), **changed})
    except (ValueError, TypeError):
        return line


def _damaged(lines: list[bytes], data: st.DataObject) -> list[bytes]:
    damaged = list(lines)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        other = data.draw(st.integers(0, len(damaged) - 1))
        what = data.draw(st.sampled_from(["swap", "drop", "again", "odd", "seq", "prev", "mono", "time", "lost"]))
        if what == "swap":
            damaged[at], damaged[other] = damaged[other], damaged[at]
        elif what == "drop" and len(damaged) > 1:
            del damaged[at]
        elif what == "again":
            damaged.insert(at, damaged[other])
        elif what == "odd":
            damaged.insert(at, data.draw(st.sampled_from(ODD)))
        elif what == "seq":
            damaged[at] = _with(damaged[at], seq=data.draw(st.sampled_from([0, other, at + 1])))
        elif what == "prev":
            damaged[at] = _with(damaged[at], prev=data.draw(st.sampled_from(["0" * 64, "f" * 64])))
        elif what == "mono":
            damaged[at] = _with(damaged[at], mono=data.draw(st.sampled_from([0, other, 10**12])))
        elif what == "time":
            seconds = data.draw(st.integers(0, 59))
            damaged[at] = _with(damaged[at], time=f"2031-01-01T00:{other % 4:02d}:{seconds:02d}.000000Z")
        else:
            damaged[at] = damaged[at].replace(b'"outcome":"completed"', b'"outcome":"lost"')
    return _chained(damaged) if data.draw(st.booleans()) else damaged


# a smaller journal tells little more, and is long in coming
@settings(max_examples=40, deadline=None, phases=[Phase.reuse, Phase.generate])
@given(data=st.data())
def test_what_is_found_does_not_depend_on_stretches(runs: list[tuple[Path, list[bytes]]], data: st.DataObject) -> None:
    folder, lines = data.draw(st.sampled_from(runs))
    lines = _damaged(lines, data)
    of = data.draw(st.sampled_from([1, 300, 1000, 5000, 1 << 19]))
    assert _report(folder, lines, of) == _report(folder, lines, 1 << 19, singly=True)


def test_a_plain_journal_is_taken_by_stretches(
    runs: list[tuple[Path, list[bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all of it would be right, and slow."""
    singly: list[int] = []

    def told(check: type[Check]) -> None:
        entry = check.entry

        def seen(self: Check, one: Entry) -> None:
            singly.append(one.line)
            entry(self, one)

        monkeypatch.setattr(check, "entry", seen)

    for check in (Sequence, Chain, Mono):
        told(check)
    for folder, lines in runs:
        due = sum(b'"kind":"run.' in line for line in lines)
        for plain in (lines, _chained([_with(line, mono=7) for line in lines])):
            singly.clear()
            assert not verify(_written(folder, plain), KEY, checks=(Sequence, Chain, Mono)).failed()
            assert len(singly) == 3 * due
            # what comes while something that was lost has not ended is looked at, too
            singly.clear()
            verify(folder, KEY)
            assert 3 * due <= len(singly) < 0.5 * 3 * len(lines)


@pytest.mark.parametrize(
    ("check", "changed"),
    [(Sequence, {"seq": 10**6}), (Chain, {"prev": "f" * 64}), (Mono, {"mono": 0})],
)
def test_a_fault_is_found_wherever_it_is(
    runs: list[tuple[Path, list[bytes]]], check: type[Check], changed: dict[str, object]
) -> None:
    folder, lines = runs[0]
    for at in range(2, len(lines), 5):
        if b'"kind":"run.' not in lines[at]:
            damaged = [*lines[:at], _with(lines[at], **changed), *lines[at + 1 :]]
            [result] = verify(_written(folder, damaged), KEY, checks=(check,)).results
            # of the chain, the next line too: its `prev` is of the line as it was
            assert result.findings[0].path == f"journal.jsonl:{at + 1}"


def _entry(line: int, time: str, mono: int, kind: str = "run.paused") -> Entry:
    return Entry(line, line, "0" * 64, f"2031-01-01T{time}Z", mono, kind, {})


def _clock(*, whole: bool, times: list[tuple[int, int]]) -> list[str]:
    entries = [_entry(i, f"00:{t // 60:02d}:{t % 60:02d}.000000", mono * 10**9) for i, (t, mono) in enumerate(times)]
    clock, pending = Clock(), list(entries)
    while pending:
        many = [pending.pop(0)]
        while whole and pending and pending[0].time >= many[-1].time and pending[0].mono >= many[-1].mono:
            many.append(pending.pop(0))
        if whole:
            offs = [ahead(entry.time.encode(), entry.mono) for entry in many]
            clock.pass_over(Stretch(many, [], "", [], min(offs), max(offs)))
        else:
            clock.take(many[0])
    return list(clock.caveats())


@given(times=st.lists(st.tuples(st.integers(0, 3599), st.integers(0, 3599)), max_size=12))
def test_what_the_clock_says_does_not_depend_on_stretches(times: list[tuple[int, int]]) -> None:
    assert _clock(whole=True, times=times) == _clock(whole=False, times=times)


def test_checks_that_join_are_those_of_the_journal() -> None:
    joining = {check.id for check in CHECKS if check.joins is not Check.joins}
    named = {"sequence", "chain", "mono", "openings", "recovered"}
    assert joining == {f"journal.{name}" for name in named}


def _after(lines: list[bytes], at: int, like: bytes) -> list[bytes]:
    """The same with three more entries like this behind the one at that place, and at its time; all are chained."""
    now = json.loads(lines[at])
    more = [_with(like, time=now["time"], mono=now["mono"])] * 3
    return _renumbered([*lines[: at + 1], *more, *lines[at + 1 :]])


def _renumbered(lines: list[bytes]) -> list[bytes]:
    return _chained([_with(line, seq=seq) for seq, line in enumerate(lines)])


@pytest.mark.parametrize("what", ["no opening", "after the end", "before ends of the lost"])
def test_what_stands_where_no_stretch_may_is_found(runs: list[tuple[Path, list[bytes]]], what: str) -> None:
    folder, lines = runs[0]
    kinds = [json.loads(line)["kind"] for line in lines]
    plain = lines[kinds.index("agent.started")]
    if what == "no opening":
        # none of those that are left is of a run
        damaged = _renumbered([line for line, kind in zip(lines, kinds, strict=True) if not kind.startswith("run.")])
    elif what == "after the end":
        damaged = _after(lines, len(lines) - 1, plain)
        assert kinds[-1] == "run.ended"
    else:
        at = next(at for at, line in enumerate(lines) if json.loads(line)["body"].get("lost"))
        damaged = _after(lines, at, plain)
    found = _report(folder, damaged, 1 << 20)
    assert found == _report(folder, damaged, 1 << 20, singly=True)
    check = "journal.recovered" if what == "before ends of the lost" else "journal.openings"
    failed = [each["check"] for each in json.loads(found)["checks"] if each["status"] == "fail"]
    assert check in failed
    _written(folder, lines)
