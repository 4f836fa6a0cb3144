"""The parts that the checks stand on: lines, the table of trials, sound runs of every shape."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest
from designs import make_design
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from primitives import trial_id
from stories import random_story

from proctor_verify import Status, verify
from proctor_verify.design import NO_TRIAL, Design, Trials
from proctor_verify.errors import Unreadable
from proctor_verify.folder import Folder, NotThere
from proctor_verify.journal import MAX_LINE, Line, line_of, read_blocks


class _Drip(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._data, self._sizes = io.BytesIO(data), sizes

    def read(self, size: int = -1) -> bytes:
        self._sizes.append(self._sizes.pop(0))
        return self._data.read(self._sizes[-1])


def _lines(stream: io.RawIOBase | io.BytesIO) -> list[Line]:
    """What blocks hold, line by line, and what stands outside of them."""
    lines: list[Line] = []
    for piece in read_blocks(stream):
        if isinstance(piece, Line):
            lines.append(piece)
        else:
            assert len(piece.raw_lines()) == piece.lines
            lines += [line_of(number, raw) for number, raw in enumerate(piece.raw_lines(), piece.first)]
    return lines


@given(
    lines=st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=8),
    tail=st.binary(max_size=9).filter(lambda line: b"\n" not in line),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    longest=st.integers(0, 12),
)
def test_lines_do_not_depend_on_how_they_are_read(
    lines: list[bytes], tail: bytes, sizes: list[int], longest: int
) -> None:
    data = b"".join(line + b"\n" for line in lines) + tail
    padded = data.replace(b"x", b"x" * (MAX_LINE // 4)) if longest > 6 else data
    wanted = padded.split(b"\n")
    if not wanted[-1]:
        wanted.pop()
    got = _lines(_Drip(padded, [size if longest <= 6 else size * 9_000 for size in sizes]))
    assert [line.number for line in got] == list(range(len(wanted)))
    assert [line.digest for line in got] == [hashlib.sha256(line).hexdigest() for line in wanted]
    assert [line.leaf for line in got] == [hashlib.sha256(b"\0" + line).digest() for line in wanted]
    assert [line.raw for line in got] == [line if len(line) <= MAX_LINE else None for line in wanted]
    assert [line.terminated for line in got] == [i < padded.count(b"\n") for i in range(len(wanted))]


@pytest.mark.parametrize("length", [MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, 3 * 2**20])
def test_a_line_is_as_long_as_it_may_be(length: int) -> None:
    line, after = _lines(io.BytesIO(b"x" * length + b"\ny\n"))
    assert (line.raw is None) == (length > MAX_LINE)
    assert line.digest == hashlib.sha256(b"x" * length).hexdigest()
    assert after.raw == b"y"


def test_every_trial_is_found_by_its_id_its_names_and_its_first_digits() -> None:
    design = Design.read(make_design(tasks=40, models=3, arms=4, epochs=5))
    trials = Trials(design)
    seen = set()
    for task in design.tasks:
        for model in design.models:
            for arm in design.arms:
                for epoch in range(1, 6):
                    trial = trials.locate(task, model, arm, epoch)
                    name = trial_id(task, model, arm, epoch)
                    assert trials.find(name) == trial
                    assert trial in trials.find_prefix(name[:8])
                    assert trials.group_of(trial) == (model, arm)
                    assert trials.block_of(trial) == trials.locate_block(task, model, epoch)
                    seen.add(trial)
    assert seen == set(range(design.trials)) and design.trials == 40 * 3 * 4 * 5
    assert trials.find("0" * 16) == NO_TRIAL
    assert trials.locate("task-000000", None, "arm-0", 1) == NO_TRIAL
    assert trials.locate("task-000000", "model-0", "arm-0", 6) == NO_TRIAL
    assert trials.locate("task-000000", "model-0", "arm-0", 0) == NO_TRIAL


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/", "a\0b"])
def test_no_path_leads_out(tmp_path: Path, path: str) -> None:
    folder = Folder(tmp_path)
    with pytest.raises(Unreadable) as caught:
        folder.open(path)
    assert not isinstance(caught.value, NotThere)
    folder.close()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(seed=st.integers(0, 2**32))
def test_sound_runs_of_every_shape_hold(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    story = random_story(seed)
    report = verify(story.write(tmp_path_factory.mktemp("run")), story.signer.fingerprint)
    assert report.failed() == []
    assert report.exit_status == 0
    assert {result.status for result in report.results} <= {Status.PASS, Status.NOT_APPLICABLE}
