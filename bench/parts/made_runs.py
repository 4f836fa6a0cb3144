"""Runs of any size for bench/verify.py, made from the written format: most lines are written from a template."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from builder import Story
from designs import make_design, make_task
from money_stories import money_design
from primitives import drawn_order, money, sha256
from steps import Checkpoint, Late, Step

from proctor.evidence.merkle import CompactRange, leaf_hash

ENTRIES_PER_BLOCK = 50
ARMS = 4
EPOCHS = 4
CHECKPOINT_EVERY = 10_000
FRAME = 1 << 20

Written = tuple[str, bytes]
Made = Step | Checkpoint | Written


def build(folder: Path, entries: int, *, files: bool = False, rows: bool = False, exchanges: int = 2) -> int:
    """A run of about so many entries, of question rows with exchanges, or of tasks with or without files.

    Returns its number of trials.
    """
    a_block = ARMS * (8 + 2 * exchanges) + 2 if rows else ENTRIES_PER_BLOCK
    tasks = max(1, entries // a_block // EPOCHS)
    story = Story(make_design(tasks=tasks, arms=ARMS, epochs=EPOCHS))
    if rows:
        _with_money(story, tasks * EPOCHS)
    write(folder, story, _steps(story, folder, files=files, exchanges=exchanges if rows else 0))
    return tasks * EPOCHS * ARMS


def build_bytes(folder: Path, megabytes: int) -> list[Path]:
    """A run of few entries: half of so many bytes in blobs of 8 MiB, half in frames as large as they may be.

    Returns the files that hold them.
    """
    attempts = max(1, megabytes // 16)
    tasks = max(1, attempts // EPOCHS // ARMS)
    story = Story(make_design(tasks=tasks, arms=ARMS, epochs=EPOCHS))
    _with_money(story, tasks * EPOCHS)
    write(folder, story, _steps(story, folder, files=False, exchanges=8, heavy=True))
    return sorted(path for place in ("blobs/*/*", "packs/*") for path in folder.glob(place))


def _with_money(story: Story, blocks: int) -> None:
    rows = [make_task(task["name"], row=True) for task in story.design["tasks"]]
    kept = {name: story.design[name] for name in ("arms", "stage")}
    story.design |= money_design() | {"tasks": rows} | kept
    story.design["models"] = story.design["models"][:1]
    each = money(blocks * 10**12)
    share = {"name": "model-0", "expected": each, "cap": each, "reserve": money(10**12), "blocks": blocks}
    story.design["budget"] |= {"allocation": each, "cap": money((blocks + 1) * 10**12), "models": [share]}


def _steps(story: Story, folder: Path, *, files: bool, exchanges: int, heavy: bool = False) -> Iterator[Made]:
    """The steps of a complete run, block by block; each block's files are written when its entries are."""
    story.order = drawn_order(story.design)
    story.admit()
    story.checkpoint()
    written = 0
    for index in range(len(story.order)):
        story.block(index)
        for place, arm in enumerate(story.arms(index)):
            if exchanges:
                for step in _row(story, index, arm, exchanges, heavy=heavy):
                    written += 1
                    yield from _flush(story, folder)
                    yield step
                continue
            grade = ("pass", "fail", "ungraded")[(index + place) % 3] if files else "ungraded"
            attempt = story.run_attempt(index, arm, grade)
            if not files:
                for nth in (0, 1):
                    story.find("attempt.files", nth, attempt=attempt).body["files"] = []
                story.files = {path: data for path, data in story.files.items() if not path.startswith("trials/")}
        story.add("block.ended", block=index)
        written += len(story.steps)
        if written >= CHECKPOINT_EVERY:
            story.checkpoint()
            written = 0
        yield from _flush(story, folder)
    # Derived files are made from all the steps, which nobody holds here; a run that failed may lack them.
    story.stop(5, "internal_error").body["files"] = []
    for path in ("summary.json", "grade_summary.json"):
        del story.files[path]
    story.checkpoint(named=False)
    yield from _flush(story, folder)


def _row(story: Story, index: int, arm: str, exchanges: int, *, heavy: bool) -> Iterator[Written]:
    """An attempt at a question row; all exchanges but the first are written from its two entries."""
    if heavy:
        (task, _, _), _ = story.drawn_order()[index]
        story.refs[f"Do {task}.\n".encode()] = story.blob(os.urandom(8 << 20), large=True)
    attempt = story.start(index, arm)
    exchange = story.ask(attempt)
    if heavy:
        story.refs[f"So of {attempt}/0.\n".encode()] = _frame(story)
    story.answer(exchange, {"input": 500, "output": 100})
    first = b'"exchange":"%b/0"' % attempt.encode()
    pair = [(step.kind, orjson.dumps(step.body, option=orjson.OPT_SORT_KEYS)) for step in story.steps[-2:]]
    for number in range(1, exchanges):
        if heavy:
            bodies = [json.loads(body) for _, body in pair]
            bodies[1]["response"] = _frame(story)
            pair = [
                (kind, orjson.dumps(body, option=orjson.OPT_SORT_KEYS))
                for (kind, _), body in zip(pair, bodies, strict=True)
            ]
        for kind, body in pair:
            yield kind, body.replace(first, b'"exchange":"%b/%d"' % (attempt.encode(), number))
    story.grade(attempt, "pass", 1)
    story.end(attempt)
    story.final(attempt)


def _frame(story: Story) -> dict[str, Any]:
    """A frame of noise, as it is."""
    content = os.urandom(FRAME)
    if not story.packs or len(story.packs[f"{len(story.packs):04d}.pack"]) > 100 * FRAME:
        story.new_pack()
    name = f"{len(story.packs):04d}.pack"
    digest, pack = sha256(content), story.packs[name]
    ref = {"blob": digest, "size": FRAME, "pack": name, "offset": len(pack), "length": FRAME, "encoding": "raw"}
    pack += content
    return {**ref, "stored_sha256": digest}


def _flush(story: Story, folder: Path) -> Iterator[Made]:
    yield from story.steps
    for path in story.files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(story.file(path))
    story.files.clear()
    story.steps.clear()


def write(folder: Path, story: Story, steps: Iterator[Made]) -> None:
    """The folder of a run whose steps come as they are written."""
    for name in ("checkpoints", "packs", "manifests"):
        (folder / name).mkdir(parents=True)
    (folder / "design.json").write_bytes(orjson.dumps(story.design, option=orjson.OPT_SORT_KEYS))
    with (folder / "journal.jsonl").open("wb", buffering=1 << 20) as journal:
        for line in _lines(story, steps, folder):
            journal.write(line + b"\n")
    for path in story.manifests:
        (folder / path).write_bytes(story.file(path))
    for name, data in story.packs.items():
        (folder / "packs" / name).write_bytes(data)


def _lines(story: Story, steps: Iterator[Made], folder: Path) -> Iterator[bytes]:
    tree, prev, size = CompactRange(), "0" * 64, 0
    for step in steps:
        named = True
        if isinstance(step, Checkpoint):
            text = f"proctor/run/{story.run_id}\n{size}\n{base64.b64encode(tree.root()).decode()}\n"
            note = story.signer.note(text)
            path = f"checkpoints/{size:012d}.note"
            (folder / path).write_bytes(note)
            kind, named = "checkpoint.made", step.named
            body = _encoded(story, {"path": path, "sha256": sha256(note), "size": size, "root": tree.root().hex()})
        elif isinstance(step, Step):
            kind, body = step.kind, _encoded(story, step.body)
        else:
            kind, body = step
        if not named:
            continue
        time = b"2031-01-01T%02d:%02d:%02d.%03d000Z" % (
            size // 3_600_000 % 24,
            size // 60_000 % 60,
            size // 1_000 % 60,
            size % 1_000,
        )
        line = b'{"body":%b,"kind":"%b","mono":%d,"prev":"%b","seq":%d,"time":"%b"}' % (
            body,
            kind.encode(),
            size * 1_000_000,
            prev.encode(),
            size,
            time,
        )
        yield line
        tree.append(leaf_hash(line))
        prev, size = hashlib.sha256(line).hexdigest(), size + 1


def _encoded(story: Story, body: dict[str, Any]) -> bytes:
    # What is worked out when it is written is mostly a list or two in few entries.
    plain = {
        name: story.settled(value) if isinstance(value, Late | dict | list) else value for name, value in body.items()
    }
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
