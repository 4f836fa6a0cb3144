"""Checkpoints, manifests, copies and anchors at the edges of their rules: one side of each `and` and `or`."""

from __future__ import annotations

from builder import Story
from plants import Plants
from primitives import Body
from steps import Checkpoint

PLANTS = Plants()
plant = PLANTS.before_sealing


@plant("checkpoints.files", "the file of another, by its digest")
def _(s: Story) -> None:
    said: list[Body] = []
    s.insert_after(
        s.find("run.paused"),
        Checkpoint(entry=lambda body: said.append(dict(body))),
        Checkpoint(entry=lambda body: body.update(path=said[0]["path"], sha256=said[0]["sha256"])),
    )
