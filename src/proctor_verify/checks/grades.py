"""The check of grades against the verdict files that they were read from."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from proctor_verify import strictjson
from proctor_verify.check import Check
from proctor_verify.errors import Unreadable
from proctor_verify.journal import Entry
from proctor_verify.run import OpenAttempt, Run

MAX_REWARD_FILE = 64 << 10
MAX_RULE = 1_000
_RULE = re.compile(r"\s*(?P<key>[^<>=\s](?:[^<>=]*[^<>=\s])?)\s*(?P<op>>=|==|>)\s*(?P<threshold>\S+)\s*")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
_HOLDS: Mapping[str, Callable[[float, float], bool]] = {">=": operator.ge, ">": operator.gt, "==": operator.eq}
_TXT, _JSON = "verifier/reward.txt", "verifier/reward.json"


class Rule(NamedTuple):
    """What counts as solved: a key of the rewards, a comparison, a threshold."""

    key: str
    op: str
    threshold: float

    @classmethod
    def read(cls, text: str | None) -> Rule | None:
        """The design's rule, or None where it is not one over rewards."""
        # Longer than any rule, and the pattern takes the square of its length.
        found = _RULE.fullmatch(text) if text is not None and len(text) <= MAX_RULE else None
        if found is None or not _DECIMAL.fullmatch(found["threshold"]):
            return None
        return cls(found["key"], found["op"], float(found["threshold"]))

    def holds(self, reward: float) -> bool:
        """Whether that reward is a pass."""
        return _HOLDS[self.op](reward, self.threshold)


class Grades(Check):
    id = "grades.recomputed"
    doc = "a pass or fail, and its reward, follow from the attempt's own verdict files under the design's rule"
    noun = "grades"
    kinds = ("attempt.ended",)
    needs_design = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._rule = Rule.read(run.design.solved) if run.design is not None else None

    def entry(self, entry: Entry) -> None:
        attempt = self.run.open.get(entry.body["attempt"])
        if self._rule is None or attempt is None or attempt.grade is None or attempt.grade.grade == "ungraded":
            return
        self.looked += 1
        try:
            rewards = self._rewards(attempt)
        except Unreadable as error:
            self.fail(attempt.folder, f"was graded {attempt.grade.grade}, and its verdict {error}")
            return
        reward = rewards.get(self._rule.key)
        if reward is None or reward != attempt.grade.reward:
            self.fail(attempt.folder, f"has reward {reward} in its files, {attempt.grade.reward} in its grade")
        elif self._rule.holds(reward) != (attempt.grade.grade == "pass"):
            self.fail(attempt.folder, f"was graded {attempt.grade.grade} with reward {reward}")

    def _rewards(self, attempt: OpenAttempt) -> dict[str, float]:
        rewards: dict[str, float] = {}
        if _JSON in attempt.files:
            value = strictjson.loads(self._file(attempt, _JSON), max_bytes=MAX_REWARD_FILE)
            if type(value) is not dict or not all(type(number) in (int, float) for number in value.values()):
                raise Unreadable("is no flat object of numbers")
            rewards.update(value)
        if _TXT in attempt.files:
            text = self._file(attempt, _TXT).strip().decode("ascii", "replace")
            if not _DECIMAL.fullmatch(text):
                raise Unreadable("is not one decimal number")
            number = float(text)
            if rewards.setdefault("reward", number) != number:
                raise Unreadable("says two things")
        if not rewards:
            raise Unreadable("is not among its files")
        return rewards

    def _file(self, attempt: OpenAttempt, path: str) -> bytes:
        return self.run.folder.read(f"{attempt.folder}/{path}", MAX_REWARD_FILE)
