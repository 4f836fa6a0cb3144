"""What is hashed aside is told of in its order, in any number of threads."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from builder import Story
from hypothesis import given, settings
from hypothesis import strategies as st
from stories import full_story

from proctor_verify import verify
from proctor_verify.aside import WORTH_IT, Aside, InOrder


@settings(max_examples=50, deadline=None)
@given(slow=st.lists(st.booleans(), max_size=40))
def test_told_in_the_order_in_which_it_was_asked(slow: list[bool]) -> None:
    aside, told = Aside(), list[int]()
    order = InOrder(aside)
    for number, aside_it in enumerate(slow):
        if aside_it:
            order.ask(told.append, lambda number=number: number)
        else:
            order.tell(told.append, number)
    order.finish()
    aside.close()
    assert told == list(range(len(slow)))


def test_who_is_slow_is_waited_for() -> None:
    aside, told, go = Aside(), list[str](), threading.Event()

    def slow() -> str:
        go.wait()
        return "slow"

    order = InOrder(aside)
    order.ask(told.append, slow)
    order.tell(told.append, "quick")
    assert told == []
    go.set()
    order.finish()
    aside.close()
    assert told == ["slow", "quick"]


def _with_large_files(story: Story) -> None:
    """Blobs, frames and files that are hashed aside, and small ones between them."""
    for number in range(12):
        attempt = story.find("attempt.files").body["attempt"]
        story.open[attempt] = story.find("attempt.admitted", attempt=attempt).body
        size = WORTH_IT * 2 if number % 3 else 10
        story.keep(attempt, f"agent/{number:02d}", os.urandom(size))
        story.list_files(attempt, [(f"agent/{number:02d}", "source")])
        story.insert_after(story.find("attempt.files", attempt=attempt), story.steps.pop())


def test_findings_of_large_files_come_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = full_story()
    _with_large_files(story)
    folder = story.write(tmp_path)
    assert verify(folder).failed() == []
    large = sorted(folder.glob("trials/*/*/agent/[01]*"))
    assert len(large) == 12
    for path in large[::2]:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    report = verify(folder)
    assert report.failed() == ["files.digests"]
    [found] = [result for result in report.results if result.check == "files.digests"]
    assert found.count == 6
    named = [finding.path.rpartition("/")[2] for finding in found.findings]
    # each entry was put before those that were there
    assert named == [path.name for path in large[::2]][:0:-1]
    monkeypatch.setattr("proctor_verify.aside.MOST", 1)
    monkeypatch.setattr("proctor_verify.folder.WORTH_IT", 1 << 40)
    assert verify(folder).to_json() == report.to_json()


def test_what_was_asked_is_told_though_the_journal_breaks_off(tmp_path: Path) -> None:
    story = full_story()
    _with_large_files(story)
    attempt = story.find("attempt.files").body["attempt"]
    entries = story.entries()
    entries[entries.index(story.find("attempt.ended", attempt=attempt)) + 1].raw = lambda line: b"?"
    folder = story.write(tmp_path)
    [last] = folder.glob("trials/*/*/agent/01")
    last.write_bytes(last.read_bytes()[:-1] + b"?")
    assert "files.digests" in verify(folder).failed()
