"""Several processes judge a journal as one does, whatever becomes of them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builder import Story
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from money_stories import money_story
from primitives import Signer
from stories import full_story

import proctor_verify
from proctor_verify import verify
from proctor_verify.journal import MAX_LINE, Block, Line, Stretch, read_blocks
from proctor_verify.judging import judge
from proctor_verify.judging import pieces as pieces_of
from proctor_verify.readers import Readers

KEY = Signer().fingerprint
SOURCE = Path(proctor_verify.__file__).parent


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    run = money_story().write(tmp_path_factory.mktemp("run"))
    return (run / "journal.jsonl").read_bytes().splitlines(keepends=True)


@pytest.fixture(scope="module")
def two() -> Iterator[Readers]:
    with Readers(2) as readers:
        yield readers


def _told(readers: Readers, pieces: list[Block | Line]) -> list[object]:
    """What the walk is told: stretches, and the lines that are in none."""
    told: list[object] = []
    for piece in readers.judged(pieces):
        told.extend([piece] if isinstance(piece, Line) else pieces_of(*piece))
    return told


def _blocks(lines: list[bytes], of: int = 7) -> list[Block | Line]:
    pieces: list[Block | Line] = []
    for at in range(0, len(lines), of):
        block = Block(at, len(lines[at : at + of]), b"".join(lines[at : at + of]))
        pieces.append(block.cut_at(range(at // 2, len(lines), 3)))
    return pieces


ODD = [
    b"\n",
    b"{}\n",
    b"\xff\n",
    b"[1\n2]\n",
    b'{"a":1e400}\n',
    b'{"a":9007199254740993}\n',
    b"x" * (MAX_LINE + 1) + b"\n",
    b'{"body":{},"kind":"run.dreaming","mono":0,"prev":"'
    + b"0" * 64
    + b'","seq":0,"time":"2031-01-01T00:00:00.000000Z"}\n',
]


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_what_is_found_does_not_depend_on_who_judges(lines: list[bytes], two: Readers, data: st.DataObject) -> None:
    mixed = list(lines)
    for odd in data.draw(st.lists(st.sampled_from(ODD), max_size=6)):
        mixed.insert(data.draw(st.integers(0, len(mixed))), odd)
    pieces = list(read_blocks(io.BytesIO(b"".join(mixed)))) if data.draw(st.booleans()) else _blocks(lines)
    before = two.answers
    with Readers(0) as alone:
        assert _told(two, pieces) == _told(alone, pieces)
        assert (alone.answers, two.answers > before) == (0, True)


def _children() -> set[int]:
    return {
        int(child) for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()
    }


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_or_stops_changes_nothing(
    lines: list[bytes], number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = _blocks(lines)
    with Readers(0) as alone:
        wanted = _told(alone, pieces)
    before = _children()
    with Readers(2) as several:
        begun = _children() - before
        told: list[object] = []
        killed: set[int] = set()
        for piece in several.judged(pieces):
            for process in begun - killed:
                os.kill(process, number)
            killed = begun
            monkeypatch.setattr("proctor_verify.readers.ANSWER_SEC", 0.1)
            told.extend([piece] if isinstance(piece, Line) else pieces_of(*piece))
        assert len(begun) == 2 and told == wanted
    assert not begun & _children()


@pytest.mark.parametrize("program", ["/nowhere/python3", "exits", "talks"])
def test_a_process_that_cannot_begin_changes_nothing(
    lines: list[bytes], program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "python3"
    own.write_text("#!/bin/sh\n" + ("exit 1\n" if program == "exits" else "echo hello\nexec cat\n"))
    own.chmod(0o700)
    monkeypatch.setattr("proctor_verify.readers.ANSWER_SEC", 1.0)
    monkeypatch.setattr(sys, "executable", program if "/" in program else str(own))
    pieces = _blocks(lines)
    with Readers(0) as alone, Readers(1) as helped:
        assert _told(helped, pieces) == _told(alone, pieces)
        assert helped.answers == 0


def test_lines_without_number_are_told_by_their_number_alone() -> None:
    empty: list[Block | Line] = [Block(0, 1 << 15, b"\n" * (1 << 15))]
    with Readers(1) as readers:
        [(block, spans)] = [piece for piece in readers.judged(empty) if not isinstance(piece, Line)]
        assert (block.lines, spans, readers.answers) == (1 << 15, [], 1)


def test_a_block_is_cut_where_it_is_asked(lines: list[bytes]) -> None:
    block = Block(0, len(lines), b"".join(lines)).cut_at([0, 3, 4, len(lines)])
    assert block.cuts == (3, 4)
    stretches = [each for each in pieces_of(block, judge(block)) if isinstance(each, Stretch)]
    starts = [each.entries[0].line for each in stretches]
    assert starts[:3] == [1, 3, 4] and len(stretches[2].entries) > 1


def _spoiled(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"run.paused"', b'"run.passed"').replace(b'"pass"', b'"fail"'))


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor_verify.verification.how_many", lambda size: 2)


@pytest.mark.parametrize("make", [full_story, money_story])
@pytest.mark.parametrize("spoil", [lambda folder: None, _spoiled])
def test_reports_are_the_same(
    make: Callable[[], Story], spoil: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(make().write(tmp_path))
    alone = verify(tmp_path, KEY).to_json()
    monkeypatch.setattr("proctor_verify.verification.how_many", lambda size: 2)
    assert verify(tmp_path, KEY).to_json() == alone


def test_threads_may_verify_at_once(tmp_path: Path, several: None) -> None:
    full_story().write(tmp_path)
    reports: list[int] = []
    threads = [threading.Thread(target=lambda: reports.append(verify(tmp_path, KEY).exit_status)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reports == [0, 0, 0]


def _places(tmp_path: Path) -> Iterator[str]:
    yield str(SOURCE.parent)
    packed = tmp_path / "program.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(SOURCE.rglob("*.py")):
            archive.write(file, file.relative_to(SOURCE.parent))
    yield str(packed)


FROM = """
import sys
sys.path.insert(0, sys.argv[1])
from proctor_verify.journal import read_blocks
from proctor_verify.readers import Readers
with open(sys.argv[2], "rb") as stream, Readers(1) as readers:
    lines = sum(block.lines for block, _ in readers.judged(read_blocks(stream)))
    print(lines, readers.answers)
"""


def test_the_program_begins_others_wherever_it_is_from(tmp_path: Path) -> None:
    journal = full_story().write(tmp_path / "run") / "journal.jsonl"
    for place in _places(tmp_path):
        told = subprocess.run(
            [sys.executable, "-c", FROM, place, journal], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert told.stdout.split() == [str(journal.read_bytes().count(b"\n")), "1"]


def test_no_process_takes_modules_of_the_current_folder(tmp_path: Path) -> None:
    """Who stands in a run's folder, or in one that came with it, must not run what lies there."""
    journal = full_story().write(tmp_path / "run") / "journal.jsonl"
    here = tmp_path / "here"
    here.mkdir()
    for name in ("json", "struct", "hashlib", "base64", "re", "sitecustomize"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    told = subprocess.run(
        [sys.executable, "-P", "-c", FROM, str(SOURCE.parent), journal], capture_output=True, text=True, cwd=here
    )
    assert told.stdout.split() == [str(journal.read_bytes().count(b"\n")), "1"]
    assert not (tmp_path / "ran").exists()
