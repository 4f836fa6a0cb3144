"""Whoever alters evidence without making everything around it anew is found, wherever they do it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from builder import Story
from designs import make_design
from primitives import Signer
from stories import full_story

from proctor_verify import verify
from proctor_verify.checks import CHECKS

KEY = Signer().fingerprint
JOURNAL = "journal.jsonl"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full_story().write(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def run(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "run"))


def _failed(run: Path) -> set[str]:
    report = verify(run, KEY)
    assert report.exit_status == 1
    return set(report.failed())


def _flip_each(run: Path, pattern: str, expected: set[str], times: int) -> None:
    """Flips a bit at a time in files of that pattern; each time one of the expected checks fails."""
    rng = random.Random(pattern)
    files = sorted(path for path in run.glob(pattern) if path.is_file())
    assert files
    for _ in range(times):
        path = rng.choice(files)
        data = path.read_bytes()
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
        assert _failed(run) & expected, (path, at)
        path.write_bytes(data)


def test_flipped_bits_in_the_journal(run: Path) -> None:
    _flip_each(run, JOURNAL, {"journal.lines", "journal.kinds", "journal.chain", "checkpoints.head"}, 60)


def test_flipped_bits_in_the_last_line_of_the_journal(run: Path) -> None:
    journal = run / JOURNAL
    data = journal.read_bytes()
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    rng = random.Random(0)
    for _ in range(30):
        at = rng.randrange(start, len(data))
        journal.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
        assert _failed(run) & {"journal.lines", "checkpoints.head"}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("checkpoints/*", {"checkpoints.files", "checkpoints.signature"}),
        ("packs/*", {"packs.frames"}),
        ("blobs/*/*", {"blobs.files"}),
        ("trials/*/*/*/*", {"files.digests"}),
        ("quarantine/*", {"files.digests"}),
        ("grade_summary.json", {"files.digests"}),
        ("manifests/000[2-6].json", {"manifests.bound"}),
        ("design.json", {"design.digest"}),
    ],
)
def test_flipped_bits_in_a_file(run: Path, pattern: str, expected: set[str]) -> None:
    _flip_each(run, pattern, expected, 20)


def test_every_flipped_bit_in_a_gzip_frame(tmp_path: Path) -> None:
    """Some bits that gzip ignores, and many ways to deflate the same: the bytes as stored have a digest too."""
    story = Story(make_design())
    story.admit()
    story.block(0)
    story.start(0, story.arms(0)[0])
    story.new_pack()
    text = (Path(__file__).parents[2] / "docs/evidence-format.md").read_bytes()[:2_000]
    story.start(0, story.arms(0)[1])
    story.find("agent.started", -1).body["instruction"] = story.blob(text)
    story.write(tmp_path)
    pack = tmp_path / "packs/0002.pack"
    data = pack.read_bytes()
    assert data[:2] == b"\x1f\x8b" and len(data) > 500
    frames = [check for check in CHECKS if check.id in ("packs.frames", "journal.lines")]
    assert verify(tmp_path, checks=frames).failed() == []
    for at in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        pack.write_bytes(flipped)
        assert verify(tmp_path, checks=frames).failed() == ["packs.frames"], at


def test_flipped_bits_in_the_checkpoint_that_no_entry_names(run: Path) -> None:
    last = sorted(run.glob("checkpoints/*"))[-1]
    _flip_each(run, str(last.relative_to(run)), {"checkpoints.signature"}, 40)


def _lines(run: Path) -> list[bytes]:
    return (run / JOURNAL).read_bytes().splitlines(keepends=True)


def _some(count: int, seed: str) -> list[int]:
    """The first, the last and some between."""
    return sorted({0, 1, count - 2, count - 1, *random.Random(seed).sample(range(count), 20)})


def test_a_dropped_line(run: Path) -> None:
    lines = _lines(run)
    for at in _some(len(lines), "drop"):
        (run / JOURNAL).write_bytes(b"".join(lines[:at] + lines[at + 1 :]))
        assert "checkpoints.head" in _failed(run), at
        assert at == len(lines) - 1 or {"journal.sequence", "journal.chain"} <= _failed(run)


def test_a_doubled_line(run: Path) -> None:
    lines = _lines(run)
    for at in _some(len(lines), "double"):
        (run / JOURNAL).write_bytes(b"".join(lines[: at + 1] + lines[at:]))
        assert {"journal.sequence", "journal.chain"} <= _failed(run), at


def test_swapped_lines(run: Path) -> None:
    lines = _lines(run)
    for at in _some(len(lines) - 1, "swap"):
        swapped = [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
        (run / JOURNAL).write_bytes(b"".join(swapped))
        assert {"journal.sequence", "journal.chain", "checkpoints.head"} <= _failed(run), at


def test_a_cut_tail(run: Path) -> None:
    data = (run / JOURNAL).read_bytes()
    for at in [len(data) - 1, len(data) - 2, *random.Random("cut").sample(range(len(data)), 20)]:
        (run / JOURNAL).write_bytes(data[:at])
        failed = _failed(run)
        assert "checkpoints.head" in failed
        assert "journal.lines" in failed or data[at - 1 : at] == b"\n", at


def test_a_tail_cut_between_lines(run: Path) -> None:
    lines = _lines(run)
    for at in _some(len(lines), "between"):
        (run / JOURNAL).write_bytes(b"".join(lines[:at]))
        assert "checkpoints.head" in _failed(run), at


def test_an_emptied_journal(run: Path) -> None:
    (run / JOURNAL).write_bytes(b"")
    assert {"journal.lines", "checkpoints.head"} <= _failed(run)


def test_a_tail_cut_with_its_checkpoints(run: Path) -> None:
    """Nothing that stands contradicts it but that the run has no end: who wants more anchors its checkpoints."""
    (run / JOURNAL).write_bytes(b"".join(_lines(run)[:40]))
    for note in run.glob("checkpoints/*"):
        if int(note.stem) > 40:
            note.unlink()
    assert "run.ended" in _failed(run)


@pytest.mark.parametrize("length", [0, 1, 20, -1])
def test_a_cut_file(run: Path, length: int) -> None:
    for pattern, expected in [
        ("checkpoints/*", "checkpoints.signature"),
        ("packs/0002.pack", "packs.frames"),
        ("blobs/*/*", "blobs.files"),
        ("manifests/0002.json", "manifests.bound"),
        ("design.json", "design.digest"),
    ]:
        path = sorted(run.glob(pattern))[0]
        data = path.read_bytes()
        path.write_bytes(data[:length])
        assert expected in _failed(run)
        path.write_bytes(data)


def test_a_run_signed_anew_with_another_key_fails_against_the_fingerprint_only(tmp_path: Path) -> None:
    forged: Story = full_story(Signer(99))
    forged.write(tmp_path)
    assert verify(tmp_path, forged.signer.fingerprint).exit_status == 0
    assert verify(tmp_path).exit_status == 0
    report = verify(tmp_path, KEY)
    assert report.failed() == ["key.trust"]
    assert report.exit_status == 1
