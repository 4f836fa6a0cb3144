"""What each set of verdict files and each end of a verifier comes to: one grade is sound, and another a fault."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from builder import Story
from plants import Plants
from primitives import Body
from steps import Late

PLANTS = Plants()
SOUND: list[Callable[[Story], None]] = []

TXT, JSON, CTRF = "verifier/reward.txt", "verifier/reward.json", "verifier/ctrf.json"
JUNIT = "verifier/junit.xml"
COUNTS: Body = {
    **dict.fromkeys(("all_fail", "all_other", "mixed", "last_row_fails", "duplicates"), 0),
    **{"rows": 2, "identities": 2, "all_pass": 0, "all_skip": 2},
}


def _counts(**kinds: int) -> Body:
    """So many tests of each kind, one row each."""
    number = sum(kinds.values())
    return {**COUNTS, "all_skip": 0, **kinds, "rows": number, "identities": number}


ALL_PASSED = _counts(all_pass=2)
ONE_FAILED = {**_counts(all_pass=1, all_fail=1), "last_row_fails": 1}
# a test that failed, and passed when it was run again
FLAKY = {**_counts(mixed=1), "rows": 2, "duplicates": 1}


@dataclass(frozen=True)
class Case:
    """Files below the attempt's folder, the verifier's end, the rule; and the grade, reason and reward of these."""

    files: dict[str, bytes]
    grade: str
    reason: str | None = None
    reward: float | None = None
    rewards: Body = field(default_factory=dict)
    ended: Body = field(default_factory=dict)
    solved: str = "reward >= 1.0"
    tests: Body | None = None


def passed(files: dict[str, bytes], reward: float = 1, **more: Any) -> Case:
    return Case(files, "pass", None, reward, more.pop("rewards", {"reward": reward}), **more)


def failed(files: dict[str, bytes], reward: float, **more: Any) -> Case:
    return Case(files, "fail", "below_threshold", reward, more.pop("rewards", {"reward": reward}), **more)


def ungraded(reason: str, files: dict[str, bytes], **more: Any) -> Case:
    return Case(files, "ungraded", reason, **more)


def _signal(number: int, **more: Any) -> Body:
    return {"exit_code": None, "signal": number, **more}


_MOST = 64 << 10
CASES: dict[str, Case] = {
    "a decimal": passed({TXT: b"1.0\n"}),
    "white space of every kind": passed({TXT: b" \t\r\n\v\f1 \t\r\n\v\f"}),
    "an exponent": passed({TXT: b"+10.e-1"}),
    "less than nothing": failed({TXT: b"-.5"}, -0.5),
    "nothing, below it": failed({TXT: b"-0"}, 0),
    "just below": failed({TXT: b"0.75"}, 0.75),
    "a file of the most bytes": passed({TXT: b"1" + b" " * (_MOST - 1)}),
    "a key": passed({JSON: b'{"reward":1}'}),
    "two keys": passed({JSON: b'{"reward":1,"style":0.5}'}, rewards={"reward": 1, "style": 0.5}),
    "both files, which agree": passed({TXT: b"1", JSON: b'{"reward":1.0}'}),
    "both files, of which one has another key": passed(
        {TXT: b"1", JSON: b'{"style":2}'}, rewards={"reward": 1, "style": 2}
    ),
    "another key": passed({JSON: b'{"style":1}'}, rewards={"style": 1}, solved=" style == 1e0 "),
    "a rule that wants more": failed({TXT: b"1"}, 1, solved="reward > 1"),
    "a rule that wants exactly that": failed({TXT: b"2"}, 2, solved="reward==1"),
    "a report, and a pass": passed({TXT: b"1", CTRF: b"{}"}),
    "a report, and a fail": failed({TXT: b"0", CTRF: b"{}"}, 0),
    "a report of nothing that ran, and a pass": ungraded(
        "no_tests_ran", {TXT: b"1", CTRF: b"{}"}, reward=1, rewards={"reward": 1}, tests=COUNTS
    ),
    "a report of nothing that ran, and a fail": ungraded(
        "no_tests_ran", {TXT: b"0", CTRF: b"{}"}, reward=0, rewards={"reward": 0}, tests=COUNTS
    ),
    "a report that cannot be read, and a fail": ungraded(
        "report_unreadable", {TXT: b"0", CTRF: b"{"}, reward=0, rewards={"reward": 0}
    ),
    "nothing": ungraded("reward_missing", {}),
    "a status of no time": ungraded("verifier_timeout", {}, ended={"exit_code": 124}),
    "a status of a kill": ungraded("verifier_killed", {}, ended={"exit_code": 137}),
    "a status of an end": ungraded("verifier_killed", {}, ended={"exit_code": 143}),
    "a status of no program": ungraded("verifier_crashed", {}, ended={"exit_code": 127}),
    "a status of no permission": ungraded("verifier_crashed", {}, ended={"exit_code": 126}),
    "another status": ungraded("reward_missing", {}, ended={"exit_code": 1}),
    "a status of no time, and a reward": passed({TXT: b"1"}, ended={"exit_code": 124}),
    "a status of no time, and no number": ungraded("reward_unreadable", {TXT: b"x"}, ended={"exit_code": 124}),
    "no program": ungraded("verifier_crashed", {}, ended={"exit_code": None, "start_error": "no such file"}),
    "no time": ungraded("verifier_timeout", {}, ended=_signal(9, timed_out=True)),
    "a signal": ungraded("verifier_killed", {}, ended=_signal(15)),
    "no word": ungraded("reward_unreadable", {TXT: b"one"}),
    "no word at all": ungraded("reward_unreadable", {TXT: b""}),
    "no whole number": ungraded("reward_unreadable", {TXT: b"9007199254740992"}),
    "far too large": ungraded("reward_unreadable", {TXT: b"1" * 40}),
    "an infinity": ungraded("reward_unreadable", {TXT: b"1e999"}),
    "nearly nothing": ungraded("reward_unreadable", {TXT: b"1e-999"}),
    "a file of more bytes": ungraded("reward_too_large", {TXT: b"1" + b" " * _MOST}),
    "no JSON": ungraded("reward_unreadable", {JSON: b"{"}),
    "no object": ungraded("reward_unreadable", {JSON: b"[1]"}),
    "no key": ungraded("reward_unreadable", {JSON: b"{}"}),
    "a word for a number": ungraded("reward_unreadable", {JSON: b'{"reward":"1"}'}),
    "true for a number": ungraded("reward_unreadable", {JSON: b'{"reward":true}'}),
    "a whole number that is too large": ungraded("reward_unreadable", {JSON: b'{"reward":9007199254740992}'}),
    "the file is a folder": ungraded("reward_unreadable", {f"{TXT}/x": b"1"}),
    "they disagree": ungraded("verdicts_disagree", {TXT: b"1", JSON: b'{"reward":2}'}),
    "too many keys": ungraded(
        "reward_too_large", {JSON: b"{%s}" % b",".join(b'"%d%s":1' % (n, b"x" * 90) for n in range(400))}
    ),
    "no such key": ungraded("reward_key_missing", {JSON: b'{"style":1}'}, rewards={"style": 1}),
    "tests that decide, all passed": Case({CTRF: b"{}"}, "pass", solved="tests", tests=ALL_PASSED),
    "tests that decide, one passed in the end": Case({CTRF: b"{}"}, "pass", solved="tests", tests=FLAKY),
    "tests that decide, one failed": Case({CTRF: b"{}"}, "fail", "tests_failed", solved=" tests ", tests=ONE_FAILED),
    "tests that decide, and no report": ungraded("report_missing", {}, solved="tests"),
    "tests that decide, and no time": ungraded("verifier_timeout", {}, ended={"exit_code": 124}, solved="tests"),
    "tests that decide, beside a reward": Case(
        {CTRF: b"{}", TXT: b"1"}, "pass", rewards={"reward": 1}, solved="tests", tests=ALL_PASSED
    ),
    "tests that decide, and a report nobody can read": ungraded("report_unreadable", {CTRF: b"{}"}, solved="tests"),
    "tests that decide, and a report nobody knows": ungraded("report_unknown", {CTRF: b"{}"}, solved="tests"),
    "tests that decide, of no status that counts": ungraded(
        "report_unknown", {CTRF: b"{}"}, solved="tests", tests=_counts(all_other=1, all_skip=1)
    ),
    "tests that decide, one of them twice": ungraded("duplicate_tests", {CTRF: b"{}"}, solved="tests", tests=FLAKY),
    "tests that decide, in two reports that disagree": ungraded(
        "verdicts_disagree", {CTRF: b"{}", JUNIT: b"<a/>"}, solved="tests", tests=ALL_PASSED
    ),
}


def _set(s: Story, case: Case) -> None:
    """The last attempt that passed, in the last opening, is of this case; with a rule of its own it is the only one."""
    graded = s.find("attempt.graded", -1, grade="pass").body
    attempt = graded["attempt"]
    folder = s.find("attempt.admitted", attempt=attempt).body["folder"]
    for path in [path for path in s.files if path.startswith(f"{folder}/verifier/")]:
        del s.files[path]
    named = ["agent/stdout.log", *case.files]
    s.files |= {f"{folder}/{path}": data for path, data in case.files.items()}
    listed = s.find("attempt.files", attempt=attempt).body
    listed["files"] = Late(lambda s: [s.fact(f"{folder}/", path, role="source") for path in named])
    ended = s.find("verifier.ended", attempt=attempt).body
    ended["ended"] = {**ended["ended"], **case.ended}
    said = {"grade": case.grade, "reason": case.reason, "reward": case.reward}
    graded.update(said, rewards=case.rewards, tests=case.tests)
    if case.solved != "reward >= 1.0":
        _alone(s, attempt)
        s.design["grading"]["solved"] = case.solved
    _count(s, attempt, said)


def _count(s: Story, attempt: str, said: Body) -> None:
    final = s.find("trial.final", trial=attempt[:16]).body
    was = final["grade"]
    final.update(said)
    s.finals[attempt[:16]] = final
    after = next(number for number, step in enumerate(s.entries()) if step.body is final)
    for end in s.entries()[after:]:
        if end.kind == "run.ended":
            end.body["totals"][was] -= 1
            end.body["totals"][said["grade"]] += 1


def _alone(s: Story, attempt: str) -> None:
    """Every other grade is one that no rule says anything of: its verifier was killed."""
    killed = {"grade": "ungraded", "reason": "verifier_killed", "reward": None}
    for step in s.entries():
        if step.kind == "attempt.graded" and step.body["attempt"] != attempt:
            other = step.body["attempt"]
            ended = s.find("verifier.ended", attempt=other).body
            ended["ended"] = {**ended["ended"], "exit_code": None, "signal": 9}
            folder = s.find("attempt.admitted", attempt=other).body["folder"]
            if s.files.pop(f"{folder}/{TXT}", None) is not None:
                listed = s.find("attempt.files", attempt=other).body
                listed["files"] = Late(
                    lambda s, folder=folder: [s.fact(f"{folder}/", "agent/stdout.log", role="source")]
                )
            step.body.update(killed, rewards={})
            _count(s, other, killed)


def _log_alone(s: Story, folder: str) -> list[Body]:
    return [s.fact(folder, "agent/stdout.log", role="source")]


for _what, _case in CASES.items():
    _sound = functools.partial(_set, case=_case)
    SOUND.append(functools.update_wrapper(_sound, _set))

    @PLANTS.before_sealing("grades.recomputed", f"{_what}, graded otherwise")
    def _(s: Story, case: Case = _case) -> None:
        _set(s, case)
        other = {"grade": "fail", "reason": "wrong_answer", "reward": case.reward}
        graded = s.find("attempt.graded", -1, grade=case.grade, reason=case.reason, reward=case.reward)
        graded.body.update(other)
        _count(s, graded.body["attempt"], other)


@PLANTS.before_sealing("grades.recomputed", "nothing ran, as it says, and a test passed")
def _(s: Story) -> None:
    case = CASES["a report of nothing that ran, and a pass"]
    _set(s, replace(case, tests={**COUNTS, "all_skip": 1, "all_pass": 1}))


@PLANTS.before_sealing("grades.recomputed", "nothing ran, as it says, and nothing is counted")
def _(s: Story) -> None:
    _set(s, replace(CASES["a report of nothing that ran, and a pass"], tests=None))


@PLANTS.before_sealing("grades.recomputed", "a pass, where the tests that decide failed")
def _(s: Story) -> None:
    _set(s, replace(CASES["tests that decide, all passed"], tests=ONE_FAILED))


@PLANTS.before_sealing("grades.recomputed", "a fail, where the tests that decide passed")
def _(s: Story) -> None:
    _set(s, replace(CASES["tests that decide, one failed"], tests=ALL_PASSED))


@PLANTS.before_sealing("grades.recomputed", "tests that disagree, in a report that stands alone")
def _(s: Story) -> None:
    _set(s, replace(CASES["tests that decide, in two reports that disagree"], files={CTRF: b"{}"}))


@PLANTS.before_sealing("grades.recomputed", "a pass by a rule, where no test ran")
def _(s: Story) -> None:
    _set(s, replace(CASES["a report, and a pass"], tests=COUNTS))


@PLANTS.before_sealing("design.plan", "a rule for what is solved that is none")
def _(s: Story) -> None:
    s.design["grading"]["solved"] = "a good one"


@PLANTS.before_sealing("design.plan", "a rule for what is solved whose threshold is none")
def _(s: Story) -> None:
    s.design["grading"]["solved"] = "reward >= much"
