"""Checks of blocks: which are admitted, by which index, and when they end."""

from __future__ import annotations

from proctor_verify.check import Check
from proctor_verify.design import NO_TRIAL
from proctor_verify.journal import Entry


class BlocksAdmitted(Check):
    id = "blocks.admitted"
    doc = (
        "a block is one of the design's, admitted again only after a resume and before its end; an attempt is "
        "admitted only within a block that was admitted in the same opening"
    )
    noun = "admissions"
    kinds = ("block.admitted", "attempt.admitted")
    needs_design = True

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        if entry.kind == "block.admitted":
            self._block(entry)
        else:
            self._attempt(entry)

    def _block(self, entry: Entry) -> None:
        body, blocks = entry.body, self.run.blocks
        block = self.trials.locate_block(body["task"], body["model"], body["epoch"])
        if block == NO_TRIAL:
            self.fail_at(entry, "admits a block that the design does not plan")
        elif blocks.ended[block]:
            self.fail_at(entry, "admits a block that has ended")
        elif blocks.admitted_in[block] == self.run.opening:
            self.fail_at(entry, "admits a block twice in one opening")

    def _attempt(self, entry: Entry) -> None:
        trial = self.trials.find(entry.body["trial"])
        if trial == NO_TRIAL:
            return  # said by attempts.joined
        block = self.trials.block_of(trial)
        if self.run.blocks.admitted_in[block] != self.run.opening:
            self.fail_at(entry, f"admits {entry.body['attempt']}, and its block was not admitted in this opening")
        elif self.run.blocks.ended[block]:
            self.fail_at(entry, f"admits {entry.body['attempt']}, and its block has ended")


class BlocksDrawn(Check):
    id = "blocks.drawn"
    doc = "each block has the index that the design's seed draws for it"
    noun = "blocks"
    kinds = ("block.admitted",)
    needs_design = True

    def entry(self, entry: Entry) -> None:
        body = entry.body
        block = self.trials.locate_block(body["task"], body["model"], body["epoch"])
        if block == NO_TRIAL:
            return  # said by blocks.admitted
        self.looked += 1
        drawn = self.run.blocks.index_of[block]
        if body["block"] != drawn:
            self.fail_at(entry, f"gives index {body['block']} to the block that is drawn as {drawn}")


class BlocksEnded(Check):
    id = "blocks.ended"
    doc = (
        "a block ends once, after the finals of all its trials; where the run is complete, each that was admitted ended"
    )
    noun = "blocks"
    kinds = ("block.ended", "run.ended")
    needs_design = True

    def entry(self, entry: Entry) -> None:
        blocks, arms = self.run.blocks, len(self.design.arms)
        if entry.kind == "run.ended":
            if self.run.complete and blocks.pending:
                self.fail_at(entry, f"ends a complete run, and blocks that were admitted have no end: {blocks.pending}")
            return
        self.looked += 1
        index = entry.body["block"]
        block = blocks.at(index)
        if block == NO_TRIAL:
            self.fail_at(entry, f"ends block {index}, which is not planned")
        elif blocks.ended[block]:
            self.fail_at(entry, f"ends block {index} again")
        elif blocks.finals[block] != arms:
            self.fail_at(entry, f"ends block {index} with {blocks.finals[block]} of {arms} finals")
