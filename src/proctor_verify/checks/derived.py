"""Checks of what is derived: grades from the verdict files, summaries from the finals."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from proctor_verify import canonical, strictjson
from proctor_verify.check import Check
from proctor_verify.errors import Unreadable
from proctor_verify.journal import Entry
from proctor_verify.run import OpenAttempt, Run, Tally

MAX_REWARD_FILE = 64 << 10
MAX_SUMMARY = 64 << 20
SUMMARY = "grade_summary.json"
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
        found = _RULE.fullmatch(text) if text is not None else None
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


class Summary(Check):
    id = "summary.recomputed"
    doc = "`grade_summary.json` is what the finals add up to, byte for byte"
    noun = "summaries"
    needs_design = True

    def finish(self) -> None:
        end = self.run.last_end
        if end is None or not any(named["path"] == SUMMARY for named in end["files"]):
            if end is not None and end["exit_status"] in (0, 1) and end["complete"]:
                self.fail(SUMMARY, "is not among the files of the last run.ended")
            return
        self.looked += 1
        try:
            stands = self.run.folder.read(SUMMARY, MAX_SUMMARY)
        except Unreadable:
            return  # said by files.digests
        if stands != canonical.encode(grade_summary(self.run)):
            self.fail(SUMMARY, "is not what the finals in the journal add up to")


def grade_summary(run: Run) -> dict[str, Any]:
    """The content of `grade_summary.json` for a run whose design could be read."""
    design = run.design
    assert design is not None
    planned = len(design.tasks) * design.epochs
    # A design without models has the one model None, so None never meets a name here.
    groups = [(model, arm) for model in sorted(design.models, key=str) for arm in sorted(design.arms)]
    everything = Tally()
    for tally in run.groups.values():
        everything.grades += tally.grades
        everything.reasons += tally.reasons
        everything.rewards += tally.rewards
        everything.reward_sum += tally.reward_sum
    return {
        "format": 1,
        "all": _group(everything, planned * len(groups)),
        "groups": [
            {"model": model, "arm": arm, **_group(run.groups.get((model, arm), Tally()), planned)}
            for model, arm in groups
        ],
    }


def _group(tally: Tally, planned: int) -> dict[str, Any]:
    passed, failed = tally.grades["pass"], tally.grades["fail"]
    reasons = dict(tally.reasons)
    not_run = planned - tally.grades.total()
    if not_run:
        reasons["not_run"] = reasons.get("not_run", 0) + not_run
    ungraded = planned - passed - failed
    mean = tally.reward_sum / tally.rewards if tally.rewards else None
    return {
        "planned": planned,
        "pass": passed,
        "fail": failed,
        "ungraded": ungraded,
        "ungraded_by_reason": reasons,
        "headline": _rate(passed, planned),
        "graded_only": {**_rate(passed, passed + failed), "comparable": passed + failed == planned},
        "bounds": {"low": _rate(passed, planned), "high": _rate(passed + ungraded, planned)},
        "mean_reward": {
            "trials": tally.rewards,
            "num": str(mean.numerator) if mean is not None else None,
            "den": str(mean.denominator) if mean is not None else None,
            "decimal": _six_places(mean) if mean is not None else None,
            "comparable": tally.rewards == planned,
        },
    }


def _rate(num: int, den: int) -> dict[str, Any]:
    return {"num": num, "den": den, "decimal": _six_places(Fraction(num, den)) if den else None}


def _six_places(value: Fraction) -> str:
    """Rounded half up, towards plus infinity."""
    millionths = (2 * value.numerator * 10**6 + value.denominator) // (2 * value.denominator)
    sign = "-" if millionths < 0 else ""
    return f"{sign}{abs(millionths) // 10**6}.{abs(millionths) % 10**6:06d}"
