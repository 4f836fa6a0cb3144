"""The plan of a design: its blocks in drawn order, its trials, its denominators. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proctor.core.ids import trial_id, trial_label
from proctor.study.design import Design
from proctor.study.order import draw_order, stream_name


@dataclass(frozen=True, slots=True)
class Trial:
    """One cell of the design; `block` is the index of its block."""

    id: str
    task: str
    model: str | None
    arm: str
    epoch: int
    block: int

    @property
    def label(self) -> str:
        """For people."""
        return trial_label(self.task, self.model, self.arm, self.epoch)


@dataclass(frozen=True, slots=True)
class Block:
    """(task, model, epoch) with its arms in the order in which they run; `index` counts over the whole plan."""

    index: int
    task: str
    model: str | None
    epoch: int
    arms: tuple[str, ...]

    def trials(self) -> tuple[Trial, ...]:
        """The block's trials, in the order in which they run."""
        return tuple(
            Trial(trial_id(self.task, self.model, arm, self.epoch), self.task, self.model, arm, self.epoch, self.index)
            for arm in self.arms
        )


@dataclass(frozen=True)
class Plan:
    """All blocks: model after model in the order of the design, each model's blocks in its own drawn order."""

    blocks: tuple[Block, ...]
    lanes: int

    @property
    def planned(self) -> dict[str, int]:
        """The counts that entry 0 of a run states: trials and blocks."""
        return {"trials": sum(len(block.arms) for block in self.blocks), "blocks": len(self.blocks)}

    def trials(self) -> Iterator[Trial]:
        """Every planned trial, in order."""
        return (trial for block in self.blocks for trial in block.trials())

    def by_model(self) -> dict[str | None, tuple[Block, ...]]:
        """The blocks of each model: lanes are counted for each model alone."""
        models = dict.fromkeys(block.model for block in self.blocks)
        return {model: tuple(block for block in self.blocks if block.model == model) for model in models}


def plan(design: Design) -> Plan:
    """Draw the order of a design's work; the same design always gives the same plan."""
    arms = [arm.name for arm in design.arms]
    tasks = [task.name for task in design.tasks]
    blocks: list[Block] = []
    # there are few orders of arms, and many blocks
    orders: dict[tuple[str, ...], tuple[str, ...]] = {}
    for model in design.model_names:
        name = stream_name(design.stage.name, model)
        for task, epoch, order in draw_order(design.draw.seed, name, tasks, design.stage.epochs, arms):
            blocks.append(Block(len(blocks), task, model, epoch, orders.setdefault(order, order)))
    return Plan(tuple(blocks), design.stage.lanes)
