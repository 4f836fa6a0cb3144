"""How fast runs are re-checked, and in how much memory.

Run as `PYTHONPATH=src:tests/verify python bench/verify.py [--entries N] [--files 1 | --rows 1]`.

Builds a run of N entries in a temporary folder and verifies it in a process of its own. The reference, in
the same run: SHA-256 and `json.loads` of the same lines, the least that any reader of a journal does. Bytes a trial
are the growth of the peak between a run of a tenth of the size and this one; the design, read whole, is in it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from builder import Story, seal
from designs import make_design, make_task
from money_stories import money_design
from primitives import drawn_order, money
from steps import Checkpoint, Step

ROOT = Path(__file__).resolve().parent.parent
ENTRIES_PER_BLOCK = 50
ARMS = 4
EPOCHS = 4
CHECKPOINT_EVERY = 10_000

_MEASURED = """
import json, re, sys, time
from proctor_verify import verify

def peak():
    # Of this program alone: ru_maxrss begins with what the parent had at the fork.
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

before = peak()
wall, cpu = time.perf_counter(), time.process_time()
report = verify(sys.argv[1])
took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
rss = peak() - before
print(json.dumps({**took, "rss": rss * 1024, "failed": report.failed(), "entries": report.entries}))
"""


def row_attempt(story: Story, index: int, arm: str) -> None:
    """An attempt at a question row, with two exchanges."""
    attempt = story.start(index, arm)
    for _ in range(2):
        story.answer(story.ask(attempt), {"input": 500, "output": 100})
    story.grade(attempt, "pass", 1)
    story.end(attempt)
    story.final(attempt)


def story_steps(story: Story, folder: Path, files: int, rows: int) -> Iterator[Step | Checkpoint]:
    """The steps of a complete run, block by block; each block's files are written when its entries are."""
    story.admit()
    story.checkpoint()
    assert story.order is not None
    written = 0
    for index in range(len(story.order)):
        story.block(index)
        for place, arm in enumerate(story.arms(index)):
            if rows:
                row_attempt(story, index, arm)
                continue
            grade = ("pass", "fail", "ungraded")[(index + place) % 3] if files else "ungraded"
            attempt = story.run_attempt(index, arm, grade)
            if not files:
                for nth in (0, 1):
                    story.find("attempt.files", nth, attempt=attempt).body["files"] = []
        story.add("block.ended", block=index)
        if (written + len(story.steps)) // CHECKPOINT_EVERY > written // CHECKPOINT_EVERY:
            story.checkpoint()
        written += len(story.steps)
        yield from _flush(story, folder, files)
    # Derived files are made from all the steps, which nobody holds here; a run that failed may lack them.
    story.stop(5, "internal_error").body["files"] = []
    story.files.clear()
    story.checkpoint(named=False)
    yield from _flush(story, folder, files)


def _flush(story: Story, folder: Path, files: int) -> Iterator[Step | Checkpoint]:
    yield from story.steps
    for path in story.files:
        if files or not path.startswith("trials/"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(story.file(path))
    story.files.clear()
    story.steps.clear()


def build(folder: Path, entries: int, *, files: int, rows: int) -> int:
    """A run of about so many entries; returns its number of trials."""
    tasks = max(1, entries // ENTRIES_PER_BLOCK // EPOCHS)
    story = Story(make_design(tasks=tasks, arms=ARMS, epochs=EPOCHS))
    if rows:
        of_rows = [make_task(task["name"], row=True) for task in story.design["tasks"]]
        story.design |= money_design() | {
            "tasks": of_rows,
            "arms": story.design["arms"],
            "stage": story.design["stage"],
        }
        story.design["models"] = story.design["models"][:1]
        each = money(tasks * EPOCHS * 10**12)
        share = {"name": "model-0", "expected": each, "cap": each, "reserve": money(10**12), "blocks": tasks * EPOCHS}
        story.design["budget"] |= {"allocation": each, "cap": money((tasks * EPOCHS + 1) * 10**12), "models": [share]}
    story.order = drawn_order(story.design)
    for name in ("checkpoints", "packs", "manifests"):
        (folder / name).mkdir(parents=True)
    with (folder / "journal.jsonl").open("wb") as journal:
        for line in seal(story, story_steps(story, folder, files, rows), folder):
            journal.write(line + b"\n")
    for path in story.manifests:
        (folder / path).write_bytes(story.file(path))
    for name, data in story.packs.items():
        (folder / "packs" / name).write_bytes(data)
    (folder / "design.json").write_bytes(_design(story))
    return tasks * EPOCHS * ARMS


def _design(story: Story) -> bytes:
    return json.dumps(story.design, sort_keys=True, separators=(",", ":")).encode()


def reference(journal: Path) -> float:
    """CPU seconds for the least that any reader does."""
    start = time.process_time()
    with journal.open("rb") as stream:
        for line in stream:
            hashlib.sha256(line[:-1]).hexdigest()
            json.loads(line)
    return time.process_time() - start


def measure(folder: Path) -> dict[str, float]:
    """Verifies in a process of its own, so that its peak of memory is its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(folder)], env=environment, check=True, capture_output=True, timeout=1800
    )
    measured: dict[str, float] = json.loads(done.stdout)
    if measured["failed"]:
        raise SystemExit(f"the run that was built does not verify: {measured['failed']}")
    return measured


def main() -> None:
    """Prints the figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entries", type=int, default=300_000)
    options.add_argument(
        "--files",
        type=int,
        choices=(0, 1),
        default=0,
        help="1: each attempt has its files; 0: none has, and each is ungraded",
    )
    options.add_argument("--rows", type=int, choices=(0, 1), default=0, help="1: question rows, two exchanges each")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        small, large = Path(temporary, "small"), Path(temporary, "large")
        few = build(small, chosen.entries // 10, files=chosen.files, rows=chosen.rows)
        many = build(large, chosen.entries, files=chosen.files, rows=chosen.rows)
        least, of_small, of_large = reference(large / "journal.jsonl"), measure(small), measure(large)
    entries = int(of_large["entries"])
    growth = (of_large["rss"] - of_small["rss"]) / (many - few)
    what = "question rows with exchanges" if chosen.rows else f"files of attempts: {'yes' if chosen.files else 'no'}"
    print(f"{entries:,} entries, {many:,} trials, {what}")
    print(f"verify     {entries / of_large['cpu']:>10,.0f} entries/s of one core ({of_large['wall']:.1f} s)")
    print(f"reference  {entries / least:>10,.0f} entries/s of one core (SHA-256 and json.loads of the same lines)")
    print(f"ratio      {least / of_large['cpu']:>10.2f}")
    print(f"memory     {of_large['rss'] / 2**20:>10.1f} MiB at the peak, {growth:,.0f} bytes a trial")


if __name__ == "__main__":
    main()
