"""Files that are larger, deeper or more than anything real, or become others while they are read: a finding each."""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from plants import first_of
from primitives import Body, Signer, sha256
from steps import Late
from stories import full_story

from proctor.rollout.worlds import LOG_BYTES
from proctor_verify import verify
from proctor_verify.check import Check
from proctor_verify.errors import Unreadable
from proctor_verify.folder import MAX_HOLLOW, Folder
from proctor_verify.journal import MAX_HASHED
from proctor_verify.report import Report, render_text
from proctor_verify.walk import MAX_UNREADABLE

KEY = Signer().fingerprint
ROOT = Path(__file__).parents[2]
# Of address space and processor time: enough for any run here, and for nothing that reads what a file claims to be.
MEMORY, SECONDS = 768 << 20, 60


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return full_story().write(tmp_path / "run")


def _bounded(folder: Path) -> dict[str, Any]:
    """The report of a process that may take little of anything."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    done = subprocess.run(
        [sys.executable, "-m", "proctor_verify", str(folder), "--key", KEY, "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        check=False,
        preexec_fn=limit,
    )
    assert done.stderr == b"" and done.returncode in (0, 1)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _failed(told: dict[str, Any]) -> set[str]:
    return {check["check"] for check in told["checks"] if check["status"] == "fail"}


def test_a_sound_run_needs_no_more(run: Path) -> None:
    assert _bounded(run)["exit_status"] == 0


def test_a_line_of_ten_gigabytes(run: Path) -> None:
    os.truncate(run / "journal.jsonl", 10 << 30)
    told = _bounded(run)
    [lines] = [check for check in told["checks"] if check["check"] == "journal.lines"]
    assert f"within {MAX_HASHED:,} bytes" in lines["findings"][0]["seen"]


def test_lines_without_number(run: Path) -> None:
    journal = run / "journal.jsonl"
    sound = journal.read_bytes().count(b"\n")
    with journal.open("ab") as more:
        for _ in range(64):
            more.write(b"\n" * (1 << 20))
    # What comes after so many is not looked at, and may be of any size.
    os.truncate(journal, 2 << 30)
    told = _bounded(run)
    assert told["entries"] == sound + MAX_UNREADABLE
    assert any("nothing after line" in caveat for caveat in told["caveats"])
    [lines] = [check for check in told["checks"] if check["check"] == "journal.lines"]
    assert lines["count"] == MAX_UNREADABLE


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("design.json", "design.digest"),
        ("manifests/0002.json", "manifests.verdict"),
        ("checkpoints/000000000001.note", "checkpoints.signature"),
        ("summary.json", "files.digests"),
        ("packs/0001.pack", "packs.frames"),
    ],
)
def test_a_file_of_a_gigabyte(run: Path, name: str, check: str) -> None:
    os.truncate(run / name, 1 << 30)
    assert check in _failed(_bounded(run))


def test_a_frame_that_would_be_many_times_what_a_frame_holds(tmp_path: Path) -> None:
    story = full_story()
    squeeze = zlib.compressobj(9, wbits=31)
    bomb = b"".join([*(squeeze.compress(bytes(1 << 20)) for _ in range(64)), squeeze.flush()])
    assert len(bomb) < 1 << 20
    ref = story.find("agent.started").body["instruction"]
    at = len(story.packs[ref["pack"]])
    story.packs[ref["pack"]] += bomb
    frame = {"offset": at, "length": len(bomb), "encoding": "gzip", "stored_sha256": sha256(bomb), "size": 1 << 20}
    story.find("agent.started").body["instruction"] = {**ref, **frame}
    story.repack()
    assert "packs.frames" in _failed(_bounded(story.write(tmp_path)))


@pytest.mark.parametrize("name", ["design.json", "manifests/0002.json", "withheld.json"])
def test_integers_that_no_program_should_read(run: Path, name: str) -> None:
    (run / name).write_bytes(b'{"format":%b}' % (b"1" * 5_000))
    assert verify(run, KEY).exit_status == 1


@pytest.mark.parametrize("name", ["design.json", "manifests/0002.json", "withheld.json"])
def test_values_that_nest_without_end(run: Path, name: str) -> None:
    (run / name).write_bytes(b'{"a":' * 1_000_000)
    assert verify(run, KEY).exit_status == 1


# Places.


def _places(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if path.is_file() or any(path.iterdir()))


def test_a_link_out_of_the_folder_is_followed_nowhere(run: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    for path in _places(run):
        path.rename(outside)
        path.symlink_to(outside)
        assert verify(run, KEY).exit_status == 1, path
        path.unlink()
        outside.rename(path)
    assert verify(run, KEY).exit_status == 0


def test_a_device_is_not_opened(run: Path) -> None:
    for path in [path for path in _places(run) if path.is_file()]:
        kept = path.with_name(".kept")
        path.rename(kept)
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("devices are made by root alone")
        assert verify(run, KEY).exit_status == 1, path
        path.unlink()
        kept.rename(path)


def test_folders_in_folders_without_end(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = 2_000
    attempt = first_of(run, "trials/*/*")
    monkeypatch.chdir(attempt)
    for _ in range(deep):
        Path("d").mkdir()
        os.chdir("d")
    Path("file").touch()
    report = verify(run, KEY)
    Path("file").unlink()
    for _ in range(deep):
        os.chdir("..")
        Path("d").rmdir()
    assert report.failed() == ["files.unlisted"]
    [found] = [result for result in report.results if result.check == "files.unlisted"]
    assert "nests too deeply" in found.findings[0].seen


@pytest.mark.parametrize("place", ["", "manifests", "checkpoints", "packs", "blobs", "trials", "quarantine"])
def test_names_without_number(run: Path, place: str) -> None:
    many = 1_000
    for number in range(many):
        (run / place / f"{number:05d}.x").touch()
    report = verify(run, KEY)
    assert report.failed() == ["files.unlisted"]
    [found] = [result for result in report.results if result.check == "files.unlisted"]
    assert found.count == many
    assert [finding.path for finding in found.findings] == [
        f"{place}/{number:05d}.x".lstrip("/") for number in range(5)
    ]


@pytest.mark.parametrize(
    "name",
    [
        "manifests/٠٠٠٤.json",
        "checkpoints/٠٠٠٠٠٠٠٠٠٠٠١.note",
        "packs/٠٠٠١.pack",
        "packs/0001.pack\u200b",
        "design\u2024json",
        "ｄesign.json",
        "\u202egnp.nosj.ngised",
    ],
)
def test_names_that_look_like_others(run: Path, name: str) -> None:
    (run / name).touch()
    report = verify(run, KEY)
    assert report.failed() == ["files.unlisted"]
    assert all(hidden not in render_text(report) for hidden in ("\u202e", "\u200b"))


@pytest.mark.parametrize("digit", ["٣", "３", "²", "\u200b", "\u0131"])
def test_ids_of_other_digits(tmp_path: Path, digit: str) -> None:
    story = full_story()
    for step in story.entries():
        if step.kind == "attempt.boundary":
            step.body["attempt"] = step.body["attempt"][:-1] + digit
    assert verify(story.write(tmp_path), KEY).failed() == ["journal.kinds"]


# While they are read.


def _meanwhile(run: Path, does: Callable[[Path], None], kind: str = "run.admitted") -> Report:
    """Verifies while something else is at work in the folder: when the first entry of a kind is seen."""

    class Meddling(Check):
        id = "none"
        kinds = (kind,)
        _done = False

        def entry(self, entry: object) -> None:
            if not self._done:
                does(run)
            self._done = True

    from proctor_verify.checks import CHECKS

    return verify(run, KEY, checks=[Meddling, *CHECKS])


def test_a_journal_that_becomes_a_link(run: Path) -> None:
    def swap(run: Path) -> None:
        (run / "journal.jsonl").rename(run / ".elsewhere")
        (run / "journal.jsonl").symlink_to(".elsewhere")

    assert "journal.still" in _meanwhile(run, swap).failed()


@pytest.mark.parametrize("kind", ["run.admitted", "exchange.ended", "trial.final", "run.ended"])
def test_a_pack_that_shrinks(run: Path, kind: str) -> None:
    report = _meanwhile(run, lambda run: os.truncate(run / "packs/0001.pack", 10), kind)
    assert set(report.failed()) <= {"packs.frames", "exchanges.chunks"}


@pytest.mark.parametrize("place", ["packs", "blobs", "trials", "manifests", "checkpoints", "quarantine"])
@pytest.mark.parametrize("kind", ["run.admitted", "trial.final", "run.ended"])
def test_a_folder_that_goes(run: Path, place: str, kind: str) -> None:
    report = _meanwhile(run, lambda run: shutil.rmtree(run / place), kind)
    assert report.exit_status in (0, 1) and report.unreadable is None


@pytest.mark.parametrize("becomes", ["link", "FIFO", "folder", "nothing"])
@pytest.mark.parametrize("name", ["0001.pack", "design.json", "0002.json", "stdout.log", "000000000001.note"])
def test_a_file_that_is_swapped_once_it_was_looked_at(
    run: Path, name: str, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = os.stat
    secret = run.parent / "secret"
    secret.write_bytes(b"of another place")

    def look(path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        found = looked(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        if path == name and dir_fd is not None and stat.S_ISREG(found.st_mode):
            os.unlink(path, dir_fd=dir_fd)
            if becomes == "link":
                os.symlink(secret, path, dir_fd=dir_fd)
            elif becomes == "FIFO":
                os.mkfifo(path, dir_fd=dir_fd)
            elif becomes == "folder":
                os.mkdir(path, dir_fd=dir_fd)
        return found

    monkeypatch.setattr(os, "stat", look)
    report = verify(run, KEY)
    assert report.exit_status == 1
    assert sha256(secret.read_bytes()) not in render_text(report)


def test_a_run_without_end_that_goes_on(run: Path) -> None:
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (run / "journal.jsonl").write_bytes(b"".join(lines[:60]))

    def goes_on(run: Path) -> None:
        with (run / "journal.jsonl").open("ab") as journal:
            journal.write(b"".join(lines[60:]) * 100)

    before = verify(run, KEY)
    report = _meanwhile(run, goes_on)
    assert set(report.failed()) - set(before.failed()) == {"journal.still"}
    assert report.entries == before.entries == 60


def test_a_file_that_is_named_very_often_is_read_once(tmp_path: Path) -> None:
    """An entry has room for hundreds of names of one large file."""

    def looked_at(times: int) -> str:
        story = full_story()
        recovered = story.find("run.recovered")
        named = recovered.body["quarantined"]
        recovered.body["quarantined"] = Late(lambda s: s.settled(named) * times)
        report = verify(story.write(tmp_path / str(times)), KEY)
        assert report.exit_status == 0
        return next(each.seen for each in report.results if each.check == "files.digests")

    assert looked_at(200) == looked_at(1)


def _hollow(folder: Path, path: str, size: int) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    with (folder / path).open("wb") as file:
        file.truncate(size)


TERABYTE = 1 << 40


def test_a_file_that_is_nearly_all_hole_is_not_hashed(tmp_path: Path) -> None:
    story = full_story()
    attempt = story.find("attempt.admitted").body
    files: list[Body] = []

    def swell(entry: Body) -> None:
        # one that nobody reads for what it says
        files.append(next(file for file in entry["body"]["files"] if file["path"].startswith("agent/")))
        files[0]["size"] = TERABYTE

    story.find("attempt.files").after = swell
    folder = story.write(tmp_path / "run")
    path = f"{attempt['folder']}/{files[0]['path']}"
    _hollow(folder, path, TERABYTE)
    told = _bounded(folder)
    [digests] = [check for check in told["checks"] if check["check"] == "files.digests"]
    assert [(found["path"], "nearly all hole" in found["seen"]) for found in digests["findings"]] == [(path, True)]


def test_a_blob_that_is_nearly_all_hole_is_not_hashed(tmp_path: Path) -> None:
    story = full_story()
    ref = next(step for step in story.entries() if "path" in step.body.get("instruction", {})).body["instruction"]
    ref["size"] = TERABYTE
    folder = story.write(tmp_path / "run")
    _hollow(folder, ref["path"], TERABYTE)
    told = _bounded(folder)
    assert _failed(told) == {"blobs.files"}


@pytest.mark.parametrize("size", [MAX_HOLLOW, MAX_HOLLOW + 1])
def test_what_the_runner_may_bring_out_is_read_whatever_a_file_system_makes_of_it(tmp_path: Path, size: int) -> None:
    folder = Folder(tmp_path)
    try:
        _hollow(tmp_path, "zeros", size)
        with pytest.raises(Unreadable, match="hole") if size > LOG_BYTES else nullcontext():
            assert folder.digest("zeros", size) == sha256(bytes(size))
        (tmp_path / "written").write_bytes(bytes(size))
        assert folder.digest("written", size) == sha256(bytes(size))
    finally:
        folder.close()
