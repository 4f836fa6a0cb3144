"""Hostile evidence is a finding, never a traceback, and nothing in it is opened, followed or waited for."""

from __future__ import annotations

import json
import os
import random
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from builder import Story
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from money_stories import money_story
from primitives import Signer, canonical
from steps import Checkpoint, Late, Step
from stories import full_story

from proctor_verify import Report, verify
from proctor_verify.report import render_json, render_text

KEY = Signer().fingerprint
FEW = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def _check(folder: Path) -> Report:
    """Verifies with and without a key; both reports render."""
    report = verify(folder, KEY)
    assert report.exit_status in (0, 1, 2)
    assert json.loads(render_json(report))["exit_status"] == report.exit_status
    assert render_text(report).isprintable() or "\n" in render_text(report)
    assert verify(folder).exit_status <= report.exit_status or report.exit_status == 2
    return report


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return full_story().write(tmp_path / "run")


# Not a run at all.


def test_no_folder(tmp_path: Path) -> None:
    assert _check(tmp_path / "nothing").exit_status == 2


def test_a_file_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x")
    assert _check(tmp_path / "run").exit_status == 2


def test_a_name_that_no_folder_can_have(tmp_path: Path) -> None:
    for name in ("a\0b", "x" * 5_000):
        assert _check(tmp_path / name).exit_status == 2


def test_an_empty_folder_is_no_run(tmp_path: Path) -> None:
    report = _check(tmp_path)
    assert report.exit_status == 2
    assert "no run folder" in str(report.unreadable)


def test_a_run_that_was_refused_says_so(tmp_path: Path) -> None:
    story = full_story()
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/0001.json").write_bytes(story.file("manifests/0001.json"))
    report = _check(tmp_path)
    assert report.exit_status == 2
    assert "nothing was admitted" in str(report.unreadable) and "refusal" in str(report.unreadable)


def test_a_journal_that_is_no_file(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    os.mkfifo(journal)
    assert "FIFO" in str(_check(tmp_path).unreadable)
    journal.unlink()
    journal.mkdir()
    assert "a folder" in str(_check(tmp_path).unreadable)
    journal.rmdir()
    journal.symlink_to("/dev/zero")
    assert "symbolic link" in str(_check(tmp_path).unreadable)
    assert _check(tmp_path).exit_status == 2


@pytest.mark.parametrize("key", ["", "sha256:12", "nobody", "a+b+c", "/", "x" * 10_000, "\0"])
def test_a_key_that_is_none(run: Path, key: str) -> None:
    report = verify(run, key)
    assert report.exit_status == 2
    assert str(report.unreadable).startswith("--key")


# Files that are other things.


@pytest.mark.parametrize("name", ["design.json", "manifests/0002.json", "packs/0001.pack", "grade_summary.json"])
@pytest.mark.parametrize("what", ["FIFO", "folder", "link", "socket", "gone"])
def test_other_things_where_files_should_be(run: Path, name: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run / name
    path.unlink()
    if what == "FIFO":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "link":
        path.symlink_to("/dev/zero")
    elif what == "socket":
        monkeypatch.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as held:
            held.bind(path.name)
    assert _check(run).exit_status == 1


@pytest.mark.parametrize("name", ["manifests", "checkpoints", "packs", "blobs", "trials", "quarantine"])
def test_a_folder_that_is_a_link_is_not_followed(run: Path, tmp_path: Path, name: str) -> None:
    (run / name).rename(tmp_path / "elsewhere")
    (run / name).symlink_to(tmp_path / "elsewhere")
    report = _check(run)
    assert report.exit_status == 1 and "files.unlisted" in report.failed()


def test_a_trial_that_is_a_link_is_not_followed(run: Path, tmp_path: Path) -> None:
    trial = sorted(run.glob("trials/*"))[0]
    trial.rename(tmp_path / "elsewhere")
    trial.symlink_to(tmp_path / "elsewhere")
    assert {"files.digests", "files.unlisted"} <= set(_check(run).failed())


@contextmanager
def _ordinary_user() -> Iterator[None]:
    """Not root for a while, since root reads everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("design.json", 1),
        ("manifests", 1),
        ("packs/0001.pack", 1),
        ("trials", 1),
        ("checkpoints", 1),
        ("blobs", 1),
        ("grade_summary.json", 1),
        ("journal.jsonl", 2),
        (".", 2),
    ],
)
def test_what_may_not_be_read_is_a_finding(name: str, status: int) -> None:
    with tempfile.TemporaryDirectory() as outside:
        Path(outside).chmod(0o755)
        run = full_story().write(Path(outside, "run"))
        # Also loads what a user without rights to this interpreter could not load later.
        assert _check(run).exit_status == 0
        (run / name).chmod(0)
        with _ordinary_user():
            report = _check(run)
        (run / name).chmod(0o700)
    assert report.exit_status == status
    if status == 1:
        assert any("Permission denied" in finding.seen for result in report.results for finding in result.findings)


def test_names_that_are_no_text(run: Path) -> None:
    for folder in ("", "trials", "packs", "manifests", "checkpoints", "blobs"):
        (Path(os.fsdecode(os.fsencode(run / folder) + b"/\xff\x1b[31m"))).touch()
    text = render_text(verify(run))
    assert "\x1b" not in text
    text.encode()


def test_a_deep_tree(run: Path) -> None:
    here = os.open(sorted(run.glob("trials/*/*"))[0], os.O_RDONLY)
    for _ in range(250):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    assert "files.unlisted" in _check(run).failed()


# Journals that are garbage.


def _garbage() -> Iterator[bytes]:
    rng = random.Random(1)
    yield rng.randbytes(200_000)
    yield b"\n" * 5_000
    yield b"\0" * 1_000_000
    yield b"[" * 60_000 + b"\n"
    yield b'{"a":' * 10_000 + b"\n"
    yield b"1" * 60_000 + b"\n"
    yield b"x" * 3_000_000
    yield b"x" * 3_000_000 + b"\n" + b"{}\n"
    yield b'{"body":{},"kind":"run.paused","mono":0,"prev":"' + b"0" * 64 + b'","seq":0,"time":""}\n'
    yield "\u2028\ufeff{}\n".encode()
    yield b'"\\ud800"\n'
    yield b"1e999\nNaN\n-0\n"


@pytest.mark.parametrize("at", range(12))
def test_garbage_for_a_journal(run: Path, at: int) -> None:
    garbage = list(_garbage())[at]
    journal = run / "journal.jsonl"
    sound = journal.read_bytes()
    for data in (garbage, sound + garbage, garbage + sound):
        journal.write_bytes(data)
        assert {"journal.lines", "journal.kinds"} & set(_check(run).failed())


def test_a_line_that_cannot_be_read_blinds_what_follows_and_says_so(tmp_path: Path) -> None:
    story = full_story()
    story.find("run.paused").raw = lambda line: b"?"
    report = verify(story.write(tmp_path), KEY)
    assert report.failed() == ["journal.lines"]
    blinded = [result for result in report.results if result.status.value == "cannot tell"]
    assert "attempts.ended" in {result.check for result in blinded}
    assert all("line" in result.seen for result in blinded)


# Values of any type anywhere, in a journal that is otherwise sound.

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.sampled_from(["", "0" * 64, "0" * 16, "0" * 16 + "/0", "../../etc/passwd", "trials/x/0", "pass", "\x1b[31m"])
    | st.sampled_from(["9" * 40 + ".000000000000", "-1.000000000000", "1e3", "0.1", "NaN", "9" * 16 + ".000000000000"])
    | st.sampled_from(["0" * 16 + "/0/0", "settled", "released", "unknown", "ceiling", "practice", "ceiling_reached"])
    | st.sampled_from(["0001.pack", "raw", "gzip", "completed", "lost", "manifests/0001.json", "\u0000", "a/../b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "path", "size", "input", "output", "magic"]), inner)
    ),
    max_leaves=5,
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield value, key
        yield from _places(below)


def _settle(story: Story) -> None:
    """Makes every late value now, so that it can be altered."""
    for step in story.steps:
        if isinstance(step, Step) and step.body:
            step.body = story.settled(step.body)


STORIES = pytest.mark.parametrize("make", [full_story, money_story])


@STORIES
@FEW
@given(data=st.data())
def test_any_value_anywhere_in_an_entry(make: Callable[[], Story], run: Path, data: st.DataObject) -> None:
    story = make()
    story.write(run)
    _settle(story)
    for _ in range(data.draw(st.integers(1, 3))):
        step = data.draw(st.sampled_from([step for step in story.steps if isinstance(step, Step) and step.body]))
        container, key = data.draw(st.sampled_from(list(_places(step.body))))
        container[key] = data.draw(VALUES)
    story.write_journal(run)
    _check(run)


@STORIES
@FEW
@given(data=st.data())
def test_entries_in_any_order(make: Callable[[], Story], run: Path, data: st.DataObject) -> None:
    story = make()
    story.write(run)
    _settle(story)
    for _ in range(data.draw(st.integers(1, 4))):
        at, to = (data.draw(st.integers(0, len(story.steps) - 1)) for _ in range(2))
        match data.draw(st.sampled_from(["move", "copy", "drop"])):
            case "move":
                story.steps.insert(to, story.steps.pop(at))
            case "copy":
                copied = story.steps[at]
                story.steps.insert(
                    to, Checkpoint() if isinstance(copied, Checkpoint) else Step(copied.kind, copied.body)
                )
            case "drop":
                del story.steps[at]
    story.write_journal(run)
    _check(run)


@STORIES
@FEW
@given(data=st.data())
def test_any_value_anywhere_in_a_design_or_manifest(make: Callable[[], Story], run: Path, data: st.DataObject) -> None:
    story = make()
    story.write(run)
    design, manifests = json.loads(canonical(story.design)), list(story.manifests)
    path = data.draw(st.sampled_from(manifests))
    whole = {"design": design, "manifest": json.loads(story.file(path))}
    container, key = data.draw(st.sampled_from(list(_places(whole))))
    container[key] = data.draw(VALUES)
    (run / "design.json").write_bytes(canonical(whole["design"]))
    (run / path).write_bytes(canonical(whole["manifest"]))
    _check(run)
    (run / path).write_bytes(story.file(path))


@pytest.mark.parametrize("epochs", [10**9, 2**53 - 1])
def test_a_design_that_plans_more_than_there_is_room_for(tmp_path: Path, epochs: int) -> None:
    story = full_story()
    story.write(tmp_path)
    story.design["stage"]["epochs"] = epochs
    (tmp_path / "design.json").write_bytes(canonical(story.design))
    assert "design.plan" in _check(tmp_path).failed()


def test_tokens_whose_sum_no_entry_could_hold(tmp_path: Path) -> None:
    story = money_story()
    sandboxed = story.find("verifier.ended").body["attempt"]
    story.open[sandboxed] = story.find("attempt.admitted", attempt=sandboxed).body
    before = len(story.steps)
    story.answer(story.ask(sandboxed), {"input": 10})
    added = story.steps[before:]
    del story.steps[before:]
    story.insert_before(story.find("agent.ended", attempt=sandboxed), *added)
    story.repack()
    for step in story.entries():
        if step.kind == "exchange.ended" and step.body["usage"]:
            step.after = lambda entry: entry["body"].update(usage={"input": 2**53 - 1, "output": 2**53 - 1})
    failed = _check(story.write(tmp_path)).failed()
    assert {"costs.recomputed", "attempts.derived", "summary.recomputed"} <= set(failed)


def test_models_that_no_budget_has_take_up_nothing(tmp_path: Path) -> None:
    story = money_story()
    for number in range(3_000):
        amounts = dict.fromkeys(("spent", "wanted", "limit"), "0.000000000000")
        story.add("ceiling.reached", scope="model_cap", model=f"model-{number}", **amounts)
        story.insert_before(story.find("run.draining"), story.steps.pop())
    report = _check(story.write(tmp_path))
    assert report.failed() == ["ceiling.disclosed"]
    assert next(result for result in report.results if result.check == "ceiling.disclosed").count == 3_000


@pytest.mark.parametrize("reward", [2**53 - 1, 1e308, 5e-324, -1e308])
def test_rewards_of_any_size(tmp_path: Path, reward: float) -> None:
    story = full_story()
    for final in (story.find("attempt.graded"), story.find("trial.final")):
        final.after = lambda entry: entry["body"].update(reward=0.5)
        final.raw = lambda line: line.replace(b"0.5", json.dumps(reward).replace("e+", "e").encode())
    _check(story.write(tmp_path))


@pytest.mark.parametrize("digits", ["9" * 9, "9" * 5_000])
def test_numbers_beyond_all_bounds_in_names(tmp_path: Path, digits: str) -> None:
    story = full_story()
    story.find("run.resumed").body["manifest"] = {"path": f"manifests/{digits}.json", "sha256": "0" * 64}
    story.find("agent.started").body["instruction"]["pack"] = f"{digits}.pack"
    assert {"manifests.bound", "packs.frames"} <= set(_check(story.write(tmp_path)).failed())


def test_a_rule_that_is_slow_to_match(tmp_path: Path) -> None:
    story = full_story()
    story.design["grading"]["solved"] = "x" + " " * 100_000
    report = _check(story.write(tmp_path))
    assert (report.failed(), report.exit_status) == (["design.plan"], 1)


def test_many_files_and_blobs_named_in_one_entry(tmp_path: Path) -> None:
    story = full_story()
    files = story.find("attempt.files").body
    was = files["files"]
    many = [{"path": f"agent/{i}", "sha256": "0" * 64, "size": i, "role": "source"} for i in range(400)]
    files["files"] = Late(lambda s: [*s.settled(was), *many])
    report = _check(story.write(tmp_path))
    assert report.failed() == ["files.digests"]
    found = next(result for result in report.results if result.check == "files.digests")
    assert found.count == 400 and len(found.findings) == 5
