"""What a scorer makes of an answer."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.grading.grade import Grade
from proctor.grading.rewards import Number
from proctor.grading.solved import RewardRule, SolvedRule

REWARD = "reward"
DETAIL_CHARS = 300


@dataclass(frozen=True)
class Scored:
    """An answer, scored: `reward` is None iff it is ungraded, `outputs` are further named numbers.

    `detail` is one sentence: what was compared with what.
    """

    state: GradeState
    reward: Number | None
    reason: Reason | None
    detail: str
    outputs: Mapping[str, Number] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def rewards(self) -> Mapping[str, Number]:
        """All named numbers."""
        return {} if self.reward is None else {**self.outputs, REWARD: self.reward}

    def grade(self, rule: SolvedRule) -> Grade:
        """The grade under the design's rule; a rule about test reports asks nothing of a row, whose scorer decides."""
        said = (self.detail,) if self.detail else ()
        if self.reward is None:
            return Grade(GradeState.UNGRADED, self.reason, disclosures=said)
        state, reason, reward = self.state, self.reason, self.reward
        if isinstance(rule, RewardRule):
            if rule.key not in self.rewards:
                missing = (f"the rule is {rule}", *said)
                return Grade(GradeState.UNGRADED, Reason.REWARD_KEY_MISSING, rewards=self.rewards, disclosures=missing)
            reward = self.rewards[rule.key]
            state = GradeState.PASS if rule.holds(reward) else GradeState.FAIL
            reason = None if state is GradeState.PASS else self.reason or Reason.BELOW_THRESHOLD
        return Grade(state, reason, reward=reward, rewards=self.rewards, disclosures=said)


def right(detail: str) -> Scored:
    """The answer is the target."""
    return Scored(GradeState.PASS, 1, None, shortened(detail))


def wrong(detail: str, reason: Reason = Reason.WRONG_ANSWER) -> Scored:
    """The answer is not the target."""
    return Scored(GradeState.FAIL, 0, reason, shortened(detail))


def unscored(reason: Reason, detail: str) -> Scored:
    """The scorer itself failed: SCORER_FAILED or SCORER_TIMEOUT."""
    return Scored(GradeState.UNGRADED, None, reason, shortened(detail))


def partly(reward: Number, detail: str, outputs: Mapping[str, Number]) -> Scored:
    """A reward that may lie between: a pass from 1 on."""
    if reward >= 1:
        return Scored(GradeState.PASS, reward, None, shortened(detail), outputs)
    return Scored(GradeState.FAIL, reward, Reason.WRONG_ANSWER, shortened(detail), outputs)


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def plain(text: str) -> str:
    """Text without white space at its ends, in NFC."""
    return unicodedata.normalize("NFC", text.strip())


def same_text(given: str, wanted: str) -> bool:
    """Whether both are equal in NFC, without white space at their ends.

    No character of NFC decomposes into more than four, so what is longer than that is not equal; and to order a long
    row of combining marks, which a hostile answer may have, costs the square of its length.
    """
    given, wanted = given.strip(), plain(wanted)
    return len(given) <= 4 * len(wanted) and unicodedata.normalize("NFC", given) == wanted


def shown(text: str) -> str:
    """Text as a detail quotes it."""
    return repr(text) if len(text) <= 60 else repr(text[:57]) + "…"


def shortened(detail: str) -> str:
    """At most `DETAIL_CHARS` characters, and always encodable."""
    return detail[:DETAIL_CHARS].encode("utf-8", "backslashreplace").decode()
