"""What is said of runs that push their checkpoints, where more than one thing is wrong with them, or they go on."""

from __future__ import annotations

from pathlib import Path

from anchored import AnchoredStory, anchored, anchored_story
from builder import Story
from plants import first_of
from verdicts import case


@case(
    "the first entry of a run that pushes is another",
    "journal.openings manifests.unbound manifests.verdict summary.recomputed",
    "design.digest design.plan key.trust",
    story=anchored_story,
)
def _(s: Story) -> None:
    s.find("run.admitted").after = lambda entry: entry.update(kind="run.paused", body={})


@case(
    "a vkey that is none, in every opening of a run that pushes",
    "key.stated key.trust",
    "checkpoints.signature",
    story=anchored_story,
)
def _(s: Story) -> None:
    for step in s.entries():
        if "key" in step.body:
            step.body["key"] = {**step.body["key"], "vkey": "nobody"}


def _first_note(folder: Path) -> Path:
    return first_of(folder, "checkpoints/*.note")


@case(
    "a pushed checkpoint is gone",
    "checkpoints.files",
    story=anchored_story,
    spoil=lambda folder: _first_note(folder).unlink(),
)
def _(s: Story) -> None:
    pass


@case(
    "a pushed checkpoint is gone, and the tree of its commit has more",
    "checkpoints.files anchors.snapshot",
    story=anchored_story,
    spoil=lambda folder: _first_note(folder).unlink(),
)
def _(s: Story) -> None:
    anchored(s).made_at("git")[0].tree = lambda data: data + b"100644 more\0" + bytes(20)


@case(
    "a pushed checkpoint is another",
    "checkpoints.files checkpoints.signature",
    story=anchored_story,
    spoil=lambda folder: _first_note(folder).write_bytes(b"hello") and None,
)
def _(s: Story) -> None:
    pass


@case("a run that pushes ends, and no checkpoint covers its end", "checkpoints.last", story=anchored_story)
def _(s: Story) -> None:
    s.steps.pop()
    for push in anchored(s).pushes[-2:]:
        push.written = False


@case(
    "the last checkpoint, which no entry names, is gone, and its receipts stand",
    "checkpoints.last anchors.identity",
    story=anchored_story,
    spoil=lambda folder: sorted(folder.glob("checkpoints/*.note"))[-1].unlink(),
)
def _(s: Story) -> None:
    pass


def pushing() -> AnchoredStory:
    """A run that goes on: who pushed died before saying so, and who took it up has pushed nothing yet."""
    s = AnchoredStory(anchored_story().design)
    s.admit()
    s.push("git", "drop")
    s.push("git", "drop")
    del s.steps[-2:]
    s.resume(previous_ended=False)
    s.add("run.recovered", quarantined=[], lost=[])
    s.checkpoint(named=False)
    return s


@case("a run that pushes, and goes on", "run.ended", story=pushing)
def _(s: Story) -> None:
    pass
