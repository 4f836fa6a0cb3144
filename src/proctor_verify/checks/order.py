"""The check that work began in the drawn order."""

from __future__ import annotations

from proctor_verify.check import Check
from proctor_verify.design import NO_TRIAL
from proctor_verify.journal import Entry
from proctor_verify.order import Order
from proctor_verify.run import Run


class Ordered(Check):
    id = "trials.ordered"
    doc = (
        "in each opening, the trials of a model begin in the drawn order of blocks and arms; one that was never tried "
        "begins only after all before it were tried"
    )
    noun = "beginnings"
    kinds = ("attempt.admitted",)
    needs_design = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        models = len(run.design.models) if run.design is not None else 0
        # By model: all before this place was tried, or passed over; the place reached in this opening.
        self._tried = [0] * models
        self._reached = [-1] * models
        self._opening = 0

    @property
    def _order(self) -> Order:
        assert self.run.order is not None
        return self.run.order

    def entry(self, entry: Entry) -> None:
        trials, opening = self.trials, self.run.opening
        trial = trials.find(entry.body["trial"])
        if trial == NO_TRIAL or trials.admitted_in[trial] == opening:
            return  # said by attempts.joined; or another try at a trial that began already
        self.looked += 1
        if self._opening != opening:
            self._opening, self._reached = opening, [-1] * len(self._reached)
        model, place = self._place(trial)
        if place < self._reached[model]:
            before = self._trial(model, self._reached[model])
            self.fail_at(entry, f"begins {entry.body['trial']} after {trials.id_of(before)}, which is drawn later")
        elif place > self._tried[model]:
            passed = self._trial(model, self._tried[model])
            self.fail_at(entry, f"begins {entry.body['trial']} before {trials.id_of(passed)}, which is drawn earlier")
        # What was passed over is said once.
        self._reached[model] = max(self._reached[model], place)
        self._tried[model] = max(self._tried[model], place + 1)

    def _place(self, trial: int) -> tuple[int, int]:
        """Model, and place among its trials."""
        arms = len(self.design.arms)
        index = self.run.blocks.index_of[self.trials.block_of(trial)]
        model, at = divmod(index, self._order.blocks_of_model)
        return model, at * arms + self._order.arms_at(index).index(trial % arms)

    def _trial(self, model: int, place: int) -> int:
        at, rank = divmod(place, len(self.design.arms))
        index = model * self._order.blocks_of_model + at
        return self.run.blocks.at(index) * len(self.design.arms) + self._order.arms_at(index)[rank]
