"""Grades and counts as a person reads them in a finding."""

from __future__ import annotations

from collections.abc import Mapping


def grade_words(grade: str, reason: str | None, reward: float | None = None) -> str:
    """The grade, and its reason and reward where it has them."""
    of_reason = f" ({reason})" if reason is not None else ""
    of_reward = f", reward {reward}" if reward is not None else ""
    return f"{grade}{of_reason}{of_reward}"


def counts_words(counts: Mapping[str, float] | None) -> str:
    """Each name with its number, in the order in which they stand."""
    return ", ".join(f"{name} {number}" for name, number in (counts or {}).items()) or "none"
