"""Journals of many trials with checkpoints over them, written quickly and without a run around them."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from journal_parts import KEY, RUN_ID, admitted
from proctor.core.canonical import encode
from proctor.core.ids import attempt_id, trial_id
from proctor.evidence.checkpoints import origin
from proctor.evidence.entries import Chain, make_line
from proctor.evidence.kinds import Kind
from proctor.evidence.notes import Checkpoint
from proctor.evidence.runfolder import RunFolder

TIME = "2031-01-01T00:00:00.000000Z"


def named(number: int) -> dict[str, Any]:
    return {"task": f"task-{number}", "model": None, "arm": "base", "epoch": 1}


def id_of(number: int) -> str:
    return trial_id(f"task-{number}", None, "base", 1)


@dataclass
class Written:
    """A run folder with a journal and checkpoints alone. `finals` are the lines of the trials' finals."""

    path: Path
    chain: Chain = field(default_factory=Chain)
    finals: list[int] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    planned: int = 1
    pending: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.path / "checkpoints").mkdir(parents=True)
        self.add(Kind.RUN_ADMITTED, admitted(self.planned))

    @property
    def run(self) -> RunFolder:
        return RunFolder(self.path)

    def add(self, kind: Kind, body: dict[str, Any]) -> None:
        line = make_line(self.chain, TIME, self.chain.size * 10, kind, encode(body))
        self.chain.advance(line)
        self.pending.append(line)

    def flush(self) -> None:
        """Put the lines that are not in the journal there."""
        with (self.path / "journal.jsonl").open("ab") as journal:
            journal.writelines(line + b"\n" for line in self.pending)
        self.lines += self.pending
        self.pending.clear()

    def trial(self, filler: int = 0) -> None:
        """The next trial, from its admission to its final, with so many other entries in between."""
        number = len(self.finals)
        trial = id_of(number)
        attempt = attempt_id(trial, 0)
        links = {"folder": f"trials/x-{trial[:8]}/0", "supersedes": None, "replaces": None}
        place = {"attempt": attempt, "trial": trial, "number": 0, "block": number}
        self.add(Kind.ATTEMPT_ADMITTED, {**place, **named(number), **links})
        for _ in range(filler):
            self.add(Kind.ATTEMPT_BOUNDARY, {"attempt": attempt, "boundary": "env-ready"})
        self.finals.append(self.chain.size)
        self.add(
            Kind.TRIAL_FINAL, {"trial": trial, "attempt": attempt, "grade": "pass", "reason": None, "reward": number}
        )

    def checkpoint(self) -> bytes:
        """A checkpoint over all that was written."""
        self.flush()
        note = KEY.sign(Checkpoint(origin(RUN_ID), self.chain.size, self.chain.tree.root()).text())
        (self.path / f"checkpoints/{self.chain.size:012d}.note").write_bytes(note)
        return note

    def receipt(self, size: int, anchor: str = "git") -> None:
        """A receipt; what a proof does not look at is made up."""
        snapshot = {"commit": "c" * 40} if anchor == "git" else {"path": "p"}
        said = {
            "format": 1,
            "anchor": anchor,
            "location": f"at {anchor}",
            "origin": origin(RUN_ID),
            "size": size,
            "sha256": sha256((self.path / f"checkpoints/{size:012d}.note").read_bytes()).hexdigest(),
            "return_code": 0,
            "started": TIME,
            "ended": TIME,
            "attempts": 1,
            "snapshot": snapshot,
        }
        (self.path / f"checkpoints/{size:012d}.{anchor}.json").write_bytes(encode(said))


def written(path: Path, trials: int, filler: int = 0) -> Written:
    """So many trials, and a checkpoint over all."""
    made = Written(path)
    for _ in range(trials):
        made.trial(filler)
    made.checkpoint()
    return made
