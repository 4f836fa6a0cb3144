"""What an attempt's verdict comes to: every way of its files and of its verifier's end, at the edges of the rules."""

from __future__ import annotations

from typing import Any

import pytest

from proctor_verify.errors import Unreadable
from proctor_verify.verdicts import (
    JSON,
    MAX_REWARD_FILE,
    MAX_REWARDS,
    MAX_RULE,
    REPORTS,
    TXT,
    Rewards,
    Rule,
    counts_fit,
    decimal,
    read_rewards,
    standing,
    stands,
)

SAFE = 2**53 - 1
EXITED = {"start_error": None, "timed_out": False, "signal": None, "exit_code": 0}

DECIMALS: list[tuple[str, int | float | None]] = [
    ("0", 0),
    ("+1", 1),
    ("-12", -12),
    (f"{'0' * 60}7", 7),
    (str(SAFE), SAFE),
    (str(-SAFE), -SAFE),
    (str(SAFE + 1), None),
    (str(-SAFE - 1), None),
    (f"{SAFE}0", None),
    ("1" * 5_000, None),
    ("0.5", 0.5),
    (".5", 0.5),
    ("5.", 5.0),
    ("1E2", 100.0),
    ("-0.0", 0.0),
    ("0E-400", 0.0),
    ("1e-400", None),
    ("1E-400", None),
    ("-0.01e-400", None),
    ("1e400", None),
    ("-1e400", None),
    ("", None),
    ("nan", None),
    ("1 ", None),
    ("1_0", None),
    ("٣", None),
    ("--1", None),
]


@pytest.mark.parametrize(("text", "number"), DECIMALS, ids=[text[:30] for text, _ in DECIMALS])
def test_what_a_decimal_is(text: str, number: float | None) -> None:
    found = decimal(text)
    assert (type(found), str(found)) == (type(number), str(number))


def test_what_counts_as_solved() -> None:
    assert Rule.read("tests") is None
    assert Rule.read(" tests\n") is None
    assert Rule.read("reward >= 1") == Rule("reward", ">=", 1)
    assert Rule.read("  two words==.5 ") == Rule("two words", "==", 0.5)
    most = "reward > 1".ljust(MAX_RULE)
    assert Rule.read(most) == Rule("reward", ">", 1)
    assert Rule.read("\t\n\v\f\r reward\v>=\f1\r") == Rule("reward", ">=", 1)
    assert Rule.read("tests".ljust(MAX_RULE)) is None
    nones = (f"{most} ", "tests".ljust(MAX_RULE + 1), "", "reward", "reward >= x", "reward >= 1e400", "reward < 1")
    for none in (*nones, "tests >=", ">= 1"):
        with pytest.raises(Unreadable):
            Rule.read(none)


UNSEEN = "\0\b\x0e\x1f\x7f\x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


@pytest.mark.parametrize("character", UNSEEN, ids=ascii)
def test_no_rule_has_what_nobody_sees(character: str) -> None:
    for rule in ("tests{}", "{}reward >= 1", "two{}words >= 1", "reward >= 1{}"):
        with pytest.raises(Unreadable):
            Rule.read(rule.format(character))
    assert Rule.read("größe\u180e >= 1") == Rule("größe\u180e", ">=", 1)


@pytest.mark.parametrize(
    ("op", "passed"), [(">=", [False, True, True]), (">", [False, False, True]), ("==", [False, True, False])]
)
def test_a_rule_holds_on_its_side(op: str, passed: list[bool]) -> None:
    assert [Rule("reward", op, 1).holds(reward) for reward in (0.5, 1, 2)] == passed


def test_what_stands_at_a_path() -> None:
    assert stands("a/b", ["a/b", "a/b/c"]) == "file"
    assert stands("a/b", ["c", "a/b/c"]) == "folder"
    assert stands("a/b", ["a/bc", "a", "c/a/b/d"]) == "nothing"


_WIDE = b'{"%s":1}' % (b"a" * (MAX_REWARDS - 6))

READ: list[tuple[dict[str, bytes], Rewards]] = [
    ({}, Rewards({}, "reward_missing")),
    ({"verifier/other.txt": b"1"}, Rewards({}, "reward_missing")),
    ({f"{TXT}/x": b"1"}, Rewards({}, "reward_unreadable")),
    ({TXT: b"1", f"{JSON}/x": b"1"}, Rewards({}, "reward_unreadable")),
    ({TXT: b"1"}, Rewards({"reward": 1})),
    ({TXT: b" \t\v\f0.5\r\n"}, Rewards({"reward": 0.5})),
    ({TXT: b"1".ljust(MAX_REWARD_FILE)}, Rewards({"reward": 1})),
    ({TXT: b"1".ljust(MAX_REWARD_FILE + 1)}, Rewards({}, "reward_too_large")),
    ({TXT: b""}, Rewards({}, "reward_unreadable")),
    ({TXT: b"yes", JSON: b'{"a":1}'}, Rewards({}, "reward_unreadable")),
    ({TXT: b"\x1c1"}, Rewards({}, "reward_unreadable")),
    ({TXT: b"\xff"}, Rewards({}, "reward_unreadable")),
    ({JSON: b'{"a":1}'}, Rewards({"a": 1})),
    ({JSON: b'{"a":1,"b":0.5,"c":-0.0,"d":1e300}'}, Rewards({"a": 1, "b": 0.5, "c": 0.0, "d": 1e300})),
    ({JSON: b'{"a":%d,"b":-%d}' % (SAFE, SAFE)}, Rewards({"a": SAFE, "b": -SAFE})),
    ({JSON: b'{"a":%d}' % (SAFE + 1)}, Rewards({}, "reward_unreadable")),
    ({JSON: b'{"a":1,"b":-%d}' % (SAFE + 1)}, Rewards({}, "reward_unreadable")),
    ({JSON: b'{"a":true}'}, Rewards({}, "reward_unreadable")),
    ({JSON: b'{"a":"1"}'}, Rewards({}, "reward_unreadable")),
    ({JSON: b'{"a":null}'}, Rewards({}, "reward_unreadable")),
    ({JSON: b"{}"}, Rewards({}, "reward_unreadable")),
    ({JSON: b"[1]"}, Rewards({}, "reward_unreadable")),
    ({JSON: b"[]"}, Rewards({}, "reward_unreadable")),
    ({JSON: b"{"}, Rewards({}, "reward_unreadable")),
    ({JSON: _WIDE}, Rewards({"a" * (MAX_REWARDS - 6): 1})),
    ({JSON: _WIDE.replace(b":", b" : ")}, Rewards({"a" * (MAX_REWARDS - 6): 1})),
    ({JSON: _WIDE.replace(b"a", b"aa", 1)}, Rewards({}, "reward_too_large")),
    ({JSON: b'{"a":1}'.ljust(MAX_REWARD_FILE)}, Rewards({"a": 1})),
    ({JSON: b'{"a":1}'.ljust(MAX_REWARD_FILE + 1)}, Rewards({}, "reward_too_large")),
    ({TXT: b"1", JSON: b'{"reward":1.0}'}, Rewards({"reward": 1.0})),
    ({TXT: b"1", JSON: b'{"reward":2}'}, Rewards({}, "verdicts_disagree")),
    ({TXT: b"0", JSON: b'{"reward":2}'}, Rewards({}, "verdicts_disagree")),
    ({TXT: b"1", JSON: b'{"a":2}'}, Rewards({"a": 2, "reward": 1})),
]


@pytest.mark.parametrize(("files", "rewards"), READ)
def test_how_reward_files_are_read(files: dict[str, bytes], rewards: Rewards) -> None:
    assert read_rewards(files, lambda path, most: files[path][:most]) == rewards


RULE = Rule("reward", ">=", 1)
MISSING = Rewards({}, "reward_missing")
CTRF, JUNIT = REPORTS
OF_REPORTS = {"report_unreadable", "report_unknown", "no_tests_ran", "duplicate_tests", "verdicts_disagree"}


def _ungraded(*reasons: str) -> set[tuple[str, str | None]]:
    return {("ungraded", reason) for reason in reasons}


STANDING: list[tuple[Rule | None, Rewards, dict[str, Any], list[str], set[tuple[str, str | None]], float | None]] = [
    (RULE, Rewards({"reward": 1}), {}, [], {("pass", None)}, 1),
    (RULE, Rewards({"reward": 1}), {"exit_code": 1}, [], {("pass", None)}, 1),
    (RULE, Rewards({"reward": 0}), {}, [], {("fail", "below_threshold")}, 0),
    (RULE, Rewards({"another": 1}), {}, [], _ungraded("reward_key_missing"), None),
    (RULE, Rewards({"another": 1}), {"exit_code": 137}, [], _ungraded("reward_key_missing"), None),
    (RULE, Rewards({"reward": 1}), {}, [CTRF], {("pass", None), *_ungraded("no_tests_ran")}, 1),
    (
        RULE,
        Rewards({"reward": 0}),
        {},
        [JUNIT],
        {("fail", "below_threshold"), *_ungraded("no_tests_ran", "report_unreadable")},
        0,
    ),
    (RULE, Rewards({"reward": 1}), {"start_error": "no"}, [], _ungraded("verifier_crashed"), 1),
    (RULE, Rewards({"reward": 1}), {"timed_out": True, "signal": 9}, [], _ungraded("verifier_timeout"), 1),
    (RULE, Rewards({"reward": 1}), {"signal": 9, "exit_code": None}, [], _ungraded("verifier_killed"), 1),
    (RULE, MISSING, {"start_error": "no"}, [], _ungraded("verifier_crashed"), None),
    (RULE, MISSING, {}, [], _ungraded("reward_missing"), None),
    (RULE, MISSING, {"exit_code": 137}, [], _ungraded("verifier_killed"), None),
    (RULE, Rewards({}, "reward_unreadable"), {"exit_code": 137}, [], _ungraded("reward_unreadable"), None),
    (None, Rewards({"reward": 1}), {"signal": 9, "exit_code": None}, [CTRF], _ungraded("verifier_killed"), None),
    (None, MISSING, {}, [], _ungraded("report_missing"), None),
    (None, Rewards({"reward": 1}), {"exit_code": 124}, [], _ungraded("verifier_timeout"), None),
    (None, MISSING, {}, [f"{CTRF}/x"], {("pass", None), ("fail", "tests_failed"), *_ungraded(*OF_REPORTS)}, None),
    (
        None,
        MISSING,
        {"exit_code": 127},
        [JUNIT],
        {("pass", None), ("fail", "tests_failed"), *_ungraded(*OF_REPORTS)},
        None,
    ),
]


@pytest.mark.parametrize(("rule", "rewards", "ended", "named", "allowed", "reward"), STANDING)
def test_which_grades_may_stand(
    rule: Rule | None,
    rewards: Rewards,
    ended: dict[str, Any],
    named: list[str],
    allowed: set[tuple[str, str | None]],
    reward: float | None,
) -> None:
    found = standing(rule, rewards, {**EXITED, **ended}, named)
    assert (found.allowed, found.reward) == (allowed, reward)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (124, "verifier_timeout"),
        (137, "verifier_killed"),
        (143, "verifier_killed"),
        (126, "verifier_crashed"),
        (127, "verifier_crashed"),
        (1, "reward_missing"),
    ],
)
def test_a_status_says_why_there_is_no_verdict(status: int, reason: str) -> None:
    assert standing(RULE, MISSING, {**EXITED, "exit_code": status}, []).allowed == _ungraded(reason)


def _counts(last_row_fails: int = 0, duplicates: int = 0, **kinds: int) -> dict[str, int]:
    number = sum(kinds.values())
    named = dict.fromkeys(("all_pass", "all_fail", "all_skip", "all_other", "mixed"), 0) | kinds
    more = {"last_row_fails": last_row_fails, "duplicates": duplicates}
    return {"rows": number + duplicates, "identities": number, **named, **more}


NOTHING, IDLE, PASSED, OTHERS = _counts(), _counts(all_skip=2), _counts(all_pass=1, all_skip=1), _counts(all_other=1)
FAILED, BOTH = _counts(1, all_fail=1), _counts(1, all_fail=1, all_pass=1)
MIXED, WORSE = _counts(0, 1, mixed=1), _counts(1, 1, mixed=1)
COUNTS = {
    **{"None": None, "nothing": NOTHING, "idle": IDLE, "passed": PASSED, "others": OTHERS, "failed": FAILED},
    **{"both": BOTH, "mixed": MIXED, "worse": WORSE},
}
EVERY, RAN = set(COUNTS), set(COUNTS) - {"None", "nothing", "idle"}
# of each grade: the counts that go with it where one report stands, and where both do
FITS: dict[bool, dict[str | None, tuple[set[str], set[str]]]] = {
    True: {
        None: ({"passed", "mixed"}, {"passed", "mixed"}),
        "tests_failed": ({"failed", "both", "worse"}, {"failed", "both", "worse"}),
        "no_tests_ran": ({"nothing", "idle"}, {"nothing", "idle"}),
        "report_unreadable": ({"None"}, EVERY),
        "report_unknown": ({"None", "others", "mixed"}, EVERY),
        "duplicate_tests": ({"mixed", "worse"}, EVERY - {"None"}),
        "verdicts_disagree": (set(), EVERY - {"None"}),
        "verifier_killed": (EVERY, EVERY),
        "report_missing": (EVERY, EVERY),
    },
    False: {
        None: (RAN | {"None"}, EVERY),
        "below_threshold": (RAN | {"None"}, EVERY),
        "no_tests_ran": ({"nothing", "idle"}, {"nothing", "idle"}),
        "report_unreadable": ({"None"}, {"None"}),
        "verdicts_disagree": (EVERY, EVERY),
        "reward_missing": (EVERY, EVERY),
        "verifier_timeout": (EVERY, EVERY),
    },
}


@pytest.mark.parametrize("decide", [True, False])
def test_which_counts_go_with_a_grade(decide: bool) -> None:
    for reason, fits in FITS[decide].items():
        grade = {None: "pass", "tests_failed": "fail", "below_threshold": "fail"}.get(reason, "ungraded")
        for alone, fitting in zip((True, False), fits, strict=True):
            found = {n for n, c in COUNTS.items() if counts_fit((grade, reason), c, alone=alone, decide=decide)}
            assert found == fitting, (reason, alone)
