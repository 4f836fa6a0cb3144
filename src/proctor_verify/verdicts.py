"""What an attempt's verdict comes to, by its verdict files and the end of its verifier: section 10. Pure."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Mapping, Set
from typing import Any, NamedTuple

from proctor_verify import strictjson
from proctor_verify.canonical import SAFE_INTEGER
from proctor_verify.errors import Unreadable

MAX_REWARD_FILE = 64 << 10
MAX_REWARDS = 32_768
MAX_RULE = 1_000
TXT, JSON = "verifier/reward.txt", "verifier/reward.json"
REPORTS = ("verifier/ctrf.json", "verifier/junit.xml")
TESTS = "tests"
# Why reports leave a grade open: where they decide, and beside a rule over the rewards.
_DOUBTS = ("report_unreadable", "report_unknown", "no_tests_ran", "duplicate_tests", "verdicts_disagree")
_DOUBTS_BESIDE = ("no_tests_ran", "report_unreadable")

_NO_RULE = "what grading says of solved is no rule"
_RULE = re.compile(r"\s*(?P<key>[^<>=\s](?:[^<>=]*[^<>=\s])?)\s*(?P<op>>=|==|>)\s*(?P<threshold>\S+)\s*", re.ASCII)
# No rule has these: control characters, and white space that is not ASCII.
_UNSEEN = re.compile("[\0-\b\x0e-\x1f\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HOLDS: Mapping[str, Callable[[float, float], bool]] = {">=": operator.ge, ">": operator.gt, "==": operator.eq}
_SPACE = b" \t\r\n\v\f"
# Exit statuses that say why there is no verdict: of `timeout`, of shells after SIGKILL and SIGTERM, of no program.
_STATUS = {
    124: "verifier_timeout",
    137: "verifier_killed",
    143: "verifier_killed",
    126: "verifier_crashed",
    127: "verifier_crashed",
}

Read = Callable[[str, int], bytes]


class Rule(NamedTuple):
    """What counts as solved: a key of the rewards, a comparison, a threshold."""

    key: str
    op: str
    threshold: float

    @classmethod
    def read(cls, text: str) -> Rule | None:
        """The design's rule; None where test reports decide.

        Raises:
            Unreadable: it is none.
        """
        # Longer than any rule, and the pattern takes the square of its length.
        if len(text) > MAX_RULE or _UNSEEN.search(text) is not None:
            raise Unreadable(_NO_RULE)
        if text.strip(_SPACE.decode()) == TESTS:
            return None
        found = _RULE.fullmatch(text)
        if found is not None and (threshold := decimal(found["threshold"])) is not None:
            return cls(found["key"], found["op"], threshold)
        raise Unreadable(_NO_RULE)

    def holds(self, reward: float) -> bool:
        """Whether that reward is a pass."""
        return _HOLDS[self.op](reward, self.threshold)


class Rewards(NamedTuple):
    """The named numbers of the reward files; `fault` is the reason id where they cannot be read, and there are none."""

    numbers: Mapping[str, float]
    fault: str | None = None


class Standing(NamedTuple):
    """The grades that may stand: (grade, reason id) each."""

    allowed: Set[tuple[str, str | None]]
    reward: float | None


def standing(rule: Rule | None, rewards: Rewards, ended: dict[str, Any], named: Collection[str]) -> Standing:
    """Which grades these files and this end of the verifier bear out; `rule` None is the rule `tests`.

    Where a report stands, what it says is not looked at: then more than one grade may.
    """
    reward = rewards.numbers.get(rule.key) if rule is not None else None
    reports = any(stands(path, named) != "nothing" for path in REPORTS)
    if (reason := _unfinished(ended)) is not None:
        return Standing(_ungraded(reason), reward)
    if rule is None:
        if not reports:
            return Standing(_ungraded(_STATUS.get(ended["exit_code"], "report_missing")), None)
        return Standing(_ungraded(*_DOUBTS) | {("pass", None), ("fail", "tests_failed")}, None)
    if rewards.fault is not None:
        status = _STATUS.get(ended["exit_code"]) if rewards.fault == "reward_missing" else None
        return Standing(_ungraded(status or rewards.fault), None)
    if reward is None:
        return Standing(_ungraded("reward_key_missing"), None)
    if rule.holds(reward):
        return Standing((_ungraded("no_tests_ran") if reports else frozenset()) | {("pass", None)}, reward)
    doubts = _ungraded(*_DOUBTS_BESIDE) if reports else frozenset()
    return Standing(doubts | {("fail", "below_threshold")}, reward)


def counts_fit(said: tuple[str, str | None], tests: dict[str, int] | None, *, alone: bool, decide: bool) -> bool:
    """Whether the counts of a report go with a grade and its reason, one that may stand.

    `alone` is whether one report stands and no other, `decide` whether the rule is `tests`.
    """
    grade, reason = said
    if grade == "ungraded" and reason not in (_DOUBTS if decide else _DOUBTS_BESIDE):
        return True
    idle = tests is not None and tests["identities"] == tests["all_skip"]
    if reason == "no_tests_ran":
        return idle
    if reason == "report_unreadable":
        return tests is None or (decide and not alone)
    if not decide:
        return not (alone and idle)
    if reason == "report_unknown":
        return tests is None or not alone or (not idle and tests["all_pass"] == tests["last_row_fails"] == 0)
    if tests is None:
        return False
    if reason == "duplicate_tests":
        return not alone or tests["duplicates"] > 0
    if reason == "verdicts_disagree":
        return not alone
    if reason == "tests_failed":
        return tests["last_row_fails"] > 0
    return tests["last_row_fails"] == 0 and tests["all_pass"] + tests["mixed"] > 0


def read_rewards(named: Collection[str], read: Read) -> Rewards:
    """The reward files among those that an attempt names; `read` gives a file's bytes, at most so many.

    Raises:
        Unreadable: a file cannot be read as a file.
    """
    found: dict[str, bytes | None] = {}
    for path in (TXT, JSON):
        match stands(path, named):
            case "nothing":
                found[path] = None
            case "folder":
                return Rewards({}, "reward_unreadable")
            case _:
                data = read(path, MAX_REWARD_FILE + 1)
                if len(data) > MAX_REWARD_FILE:
                    return Rewards({}, "reward_too_large")
                found[path] = data
    text, document = found[TXT], found[JSON]
    if text is None and document is None:
        return Rewards({}, "reward_missing")
    number = None if text is None else decimal(text.strip(_SPACE).decode("ascii", "backslashreplace"))
    if text is not None and number is None:
        return Rewards({}, "reward_unreadable")
    numbers = {} if document is None else _object(document)
    if numbers is None:
        return Rewards({}, "reward_unreadable")
    if number is not None and numbers.setdefault("reward", number) != number:
        return Rewards({}, "verdicts_disagree")
    if len(strictjson.encode(numbers)) > MAX_REWARDS:
        return Rewards({}, "reward_too_large")
    return Rewards(numbers)


def stands(path: str, named: Collection[str]) -> str:
    """What an attempt has at a path: a "file", a "folder" with files in it, or "nothing"."""
    if path in named:
        return "file"
    return "folder" if any(name.startswith(f"{path}/") for name in named) else "nothing"


def decimal(text: str) -> float | None:
    """The number that a decimal is; None where it is none, or a double makes it infinite, or zero where it is not."""
    if not _DECIMAL.fullmatch(text):
        return None
    if text.lstrip("+-").isdigit():
        digits = text.lstrip("+-").lstrip("0")
        whole = int(text) if len(digits) <= 16 else SAFE_INTEGER + 1
        return whole if abs(whole) <= SAFE_INTEGER else None
    number = float(text)
    vanished = number == 0 and re.search("[1-9]", text.lower().partition("e")[0]) is not None
    return None if vanished or not math.isfinite(number) else number + 0.0


def _object(data: bytes) -> dict[str, float] | None:
    try:
        value = strictjson.loads(data, max_bytes=MAX_REWARD_FILE)
    except Unreadable:
        return None
    if type(value) is not dict or not value:
        return None
    for number in value.values():
        if type(number) is not float and (type(number) is not int or abs(number) > SAFE_INTEGER):
            return None
    return {name: number + 0 for name, number in value.items()}


def _unfinished(ended: dict[str, Any]) -> str | None:
    if ended["start_error"] is not None:
        return "verifier_crashed"
    if ended["timed_out"]:
        return "verifier_timeout"
    return "verifier_killed" if ended["signal"] is not None else None


def _ungraded(*reasons: str) -> frozenset[tuple[str, str | None]]:
    return frozenset(("ungraded", reason) for reason in reasons)
