"""`regex`: Python's `re.search` of the target in the answer, without the white space at the answer's ends.

The target is the pattern, or `{"pattern": …, "example": …}`, where the example is what the oracle answers; without one
the pattern's own text is. Flags are written into the pattern (`(?i)`). A pattern may take forever on some text, so
`search` is run in a worker process with a deadline; here only what is sure to end soon is tried.
"""

from __future__ import annotations

import re
from typing import Any

from proctor.grading.scorers.base import Scored, right, shown, wrong

MAX_PATTERN_CHARS = 4_096

_FEW_CHARS = 200
_KEYS = {"pattern", "example"}


def check(target: Any) -> str | None:
    """What stands against the target."""
    if isinstance(target, dict):
        if target.keys() != _KEYS or not all(isinstance(each, str) for each in target.values()):
            return "the target of `regex` is a pattern, or an object of a `pattern` and an `example`"
    elif not isinstance(target, str):
        return "the target of `regex` is a pattern"
    text = pattern_of(target)
    if not text or len(text) > MAX_PATTERN_CHARS:
        return f"a pattern has from 1 to {MAX_PATTERN_CHARS} characters"
    try:
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{shown(text)} is no pattern: {error}"
    answer = target_text(target).strip()
    if _ends_soon(text, answer) and not compiled.search(answer):
        return f"the pattern {shown(text)} does not find {shown(answer)}: give it as `pattern`, with an `example`"
    return None


def pattern_of(target: Any) -> str:
    """The pattern itself."""
    return str(target["pattern"] if isinstance(target, dict) else target)


def target_text(target: Any) -> str:
    """What the oracle answers."""
    return str(target["example"] if isinstance(target, dict) else target)


def search(pattern: str, answer: str) -> bool:
    """Whether the pattern is found. May take forever."""
    return re.search(pattern, answer.strip()) is not None


def scored(target: Any, answer: str, found: bool) -> Scored:
    """The score, of what `search` found."""
    said = f"{shown(pattern_of(target))} in {shown(answer.strip())}"
    return right(f"found {said}") if found else wrong(f"did not find {said}")


def _ends_soon(pattern: str, text: str) -> bool:
    """Few repetitions, none of a group, and few alternatives: a search takes polynomial time of a low degree."""
    bare = pattern.replace("(?", "(")
    repeats = len(re.findall(r"[*+?{]", bare))
    return len(text) <= _FEW_CHARS and repeats <= 2 and not re.search(r"\)[*+?{]", bare) and bare.count("|") <= 4
