"""What counts as solved: a rule over the rewards, or over the test reports, as the design writes it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.rewards import Number, parse_decimal

_RULE = re.compile(r"\s*(?P<key>[^<>=\s](?:[^<>=]*[^<>=\s])?)\s*(?P<op>>=|==|>)\s*(?P<threshold>\S+)\s*", re.ASCII)
_SPACE = " \t\n\r\v\f"
# white space that programs do not agree on, and what nobody sees
_UNSEEN = re.compile("[\0-\b\x0e-\x1f\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]")
_HOLDS: Mapping[str, Callable[[Number, Number], bool]] = {">=": operator.ge, ">": operator.gt, "==": operator.eq}
_TESTS = "tests"
MAX_RULE = 1_000
_REQUIRED = 'a rule such as "reward >= 1.0" (a key, one of >= > ==, a decimal number; ASCII white space), or "tests"'


class DuplicateTests(StrEnum):
    """What one test identity with several rows means where the grade comes from the tests."""

    REFUSE = "refuse"
    """Ungraded."""
    LAST = "last"
    """Rows are retries in order: the last one counts."""


@dataclass(frozen=True)
class RewardRule:
    """`key op threshold`, over the named rewards; numbers compare exactly, as doubles and integers."""

    key: str
    op: str
    threshold: Number

    def holds(self, value: Number) -> bool:
        """Whether this value of `key` counts as solved."""
        return _HOLDS[self.op](value, self.threshold)

    def __str__(self) -> str:
        return f"{self.key} {self.op} {self.threshold!r}"


@dataclass(frozen=True)
class ReportRule:
    """The test reports decide: at least one test passed and none failed."""

    def __str__(self) -> str:
        return _TESTS


SolvedRule = RewardRule | ReportRule


def parse_solved(text: str) -> SolvedRule:
    """Read the design's `solved`.

    Raises:
        Refusal: `invalid_value`.
    """
    # the pattern takes the square of a text's length
    sound = len(text) <= MAX_RULE and _UNSEEN.search(text) is None
    if sound and text.strip(_SPACE) == _TESTS:
        return ReportRule()
    found = _RULE.fullmatch(text) if sound else None
    threshold = None if found is None else parse_decimal(found["threshold"])
    if found is None or threshold is None:
        raise Refusal(
            Reason.INVALID_VALUE,
            f"not a rule: {text[:MAX_RULE]!r}",
            path="grading.solved",
            observed=text,
            required=_REQUIRED,
        )
    return RewardRule(found["key"], found["op"], threshold)
