"""Checks of the frozen design: against the run's first entry, and what a design is held to wherever it stands."""

from __future__ import annotations

from proctor_verify.check import Check
from proctor_verify.design import Design


class DesignRule(Check):
    """A rule that a design holds or breaks by itself, with a run or without one."""

    needs_design = True
    unblinded = True

    def judge(self, design: Design) -> None:
        """Look at a design."""
        raise NotImplementedError

    def finish(self) -> None:
        self.judge(self.design)


class Digest(Check):
    id = "design.digest"
    doc = "`design.json` has the digest that entry 0 names"
    noun = "designs"
    unblinded = True

    def finish(self) -> None:
        first, digest = self.run.first, self.run.design_sha256
        self.looked = 1
        if digest is None:
            self.fail("design.json", self.run.design_fault or "cannot be read")
        elif first is None:
            self.cannot_tell("no entry 0 names a design")
        elif first["design_sha256"] != digest:
            self.fail("design.json", f"has digest {digest}, and entry 0 names {first['design_sha256']}")


class Plan(Check):
    id = "design.plan"
    doc = "the design is canonical, names in it are unique and sorted, and its plan is the one that entry 0 counts"
    noun = "trials planned"
    unblinded = True

    def finish(self) -> None:
        first, design = self.run.first, self.run.design
        if self.run.design_sha256 is None:
            self.cannot_tell("there is no design")
            return
        self.judge(design, self.run.design_fault)
        if design is None:
            return
        if first is None:
            self.cannot_tell("no entry 0 counts the plan")
            return
        if (first["study"], first["stage"]) != (design.study, design.stage):
            self.fail("design.json", f"is of {design.study}/{design.stage}, not of {first['study']}/{first['stage']}")
        planned = {"trials": design.trials, "blocks": design.blocks}
        if first["planned"] != planned:
            self.fail("design.json", f"plans {planned}, and entry 0 counts {first['planned']}")

    def judge(self, design: Design | None, fault: str | None) -> None:
        """Look at a design that could be read, or at why it could not."""
        if design is None:
            self.fail("design.json", fault or "cannot be read")
        else:
            self.looked = design.trials
