"""The check of grades against the verdict files that they were read from."""

from __future__ import annotations

from typing import Any

from proctor_verify.check import Check
from proctor_verify.design import NO_TRIAL
from proctor_verify.errors import Unreadable
from proctor_verify.facts import OpenAttempt
from proctor_verify.journal import Entry
from proctor_verify.said import counts_words, grade_words
from proctor_verify.verdicts import JSON, REPORTS, TXT, Rewards, Rule, counts_fit, read_rewards, standing, stands

# Where the design's rule is about test reports, a scorer's own word decides.
_OF_SCORERS = Rule("reward", ">=", 1.0)
_WRONG = ("wrong_answer", "no_answer", "below_threshold")
_UNSCORED = ("scorer_failed", "scorer_timeout")


class Grades(Check):
    id = "grades.recomputed"
    doc = (
        "grade, reason, reward and rewards follow from the attempt's own reward files and the end of its verifier, "
        "as far as no test report decides, and go with what is counted of its tests; of a question row they follow "
        "from its rewards"
    )
    noun = "grades"
    kinds = ("attempt.ended",)
    needs_design = True

    def entry(self, entry: Entry) -> None:
        attempt = self.run.open.get(entry.body["attempt"])
        if attempt is not None and attempt.graded is not None and attempt.trial != NO_TRIAL:
            self.looked += 1
            fault = self._fault(attempt)
            if fault is not None:
                self.fail(attempt.folder, fault)

    def _is_withheld(self, attempt: OpenAttempt) -> bool:
        """Whether a file that decides may be left out: which withheld.named does not let pass."""
        withheld = self.run.withheld
        return withheld.fault is not None or any(withheld.has_file(f"{attempt.folder}/{path}") for path in (TXT, JSON))

    def _fault(self, attempt: OpenAttempt) -> str | None:
        graded, verifier = attempt.graded, attempt.verifier_ended
        assert graded is not None
        said = graded["grade"], graded["reason"]
        if (said[0] == "pass") != (said[1] is None):
            return None  # said by attempts.graded
        if verifier is None and attempt.short_for:
            return _nothing_counted(graded)
        if attempt.is_row:
            return self._row(graded)
        if verifier is None:
            return f"was graded {said[0]}, and no verifier ended"
        try:
            rewards = read_rewards(attempt.files.keys(), lambda path, most: self._file(attempt, path, most))
        except Unreadable as error:
            if self._is_withheld(attempt):
                self.cannot_tell(f"a verdict file of {attempt.folder} {error}, and may be withheld")
                return None
            return f"was graded {said[0]}, and a verdict file {error}"
        stands_so = standing(self.design.rule, rewards, verifier["ended"], attempt.files.keys())
        if said not in stands_so.allowed:
            wanted = " or ".join(sorted(grade_words(*each) for each in stands_so.allowed))
            return f"was graded {grade_words(*said)}, where its files and its verifier's end come to {wanted}"
        if graded["reward"] != stands_so.reward:
            return f"has reward {stands_so.reward} in its files, {graded['reward']} in its grade"
        return _numbers(graded["rewards"], rewards) or self._tests(attempt, said, graded["tests"])

    def _row(self, graded: dict[str, Any]) -> str | None:
        """A row's rewards are its scorer's word; the rest follows from them."""
        rewards, rule = graded["rewards"], self.design.rule or _OF_SCORERS
        said: set[tuple[str, str | None]]
        if rewards and rule.key not in rewards:
            said, reward = {("ungraded", "reward_key_missing")}, None
        elif rewards and rule.holds(rewards[rule.key]):
            said, reward = {("pass", None)}, rewards[rule.key]
        elif rewards:
            said, reward = {("fail", reason) for reason in _WRONG}, rewards[rule.key]
        else:
            said, reward = {("ungraded", reason) for reason in _UNSCORED}, None
        if (graded["grade"], graded["reason"]) not in said or graded["reward"] != reward:
            told = grade_words(graded["grade"], graded["reason"], graded["reward"])
            return f"was graded {told}, with rewards {counts_words(rewards)}"
        return None if graded["tests"] is None else "counts tests, and is of a question row"

    def _tests(self, attempt: OpenAttempt, said: tuple[str, str | None], tests: dict[str, int] | None) -> str | None:
        """A report's counts are its reader's word; with a grade they go or do not."""
        reports = [stands(path, attempt.files.keys()) for path in REPORTS]
        if tests is not None and "file" not in reports:
            return "counts tests, and names no test report"
        decide = self.design.rule is None
        if counts_fit(said, tests, alone=reports.count("nothing") == 1, decide=decide):
            return None
        return f"was graded {grade_words(*said)}, and what it counts of its tests says otherwise: {counts_words(tests)}"

    def _file(self, attempt: OpenAttempt, path: str, most: int) -> bytes:
        return self.run.folder.read_start(f"{attempt.folder}/{path}", most)


def _nothing_counted(graded: dict[str, Any]) -> str | None:
    counted = graded["rewards"] or graded["reward"] is not None or graded["tests"] is not None
    return "did not come to its end, and has a reward or tests" if counted else None


def _numbers(said: dict[str, float], rewards: Rewards) -> str | None:
    if said == rewards.numbers:
        return None
    odd = min(set(said.items()) ^ set(rewards.numbers.items()))
    return f"has other rewards in its files than in its grade, {odd[0]} among them"
