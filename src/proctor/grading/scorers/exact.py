"""`exact`: the answer is the target, letter by letter.

Both lose the white space at their ends and are brought into NFC. Case counts, inner white space counts, and nothing is
extracted from a longer answer. A number as the target stands for its JSON text.
"""

from __future__ import annotations

import json
from typing import Any

from proctor.grading.scorers.base import Scored, is_number, plain, right, same_text, shown, wrong


def target_text(target: Any) -> str:
    """The target as text."""
    return target if isinstance(target, str) else json.dumps(target)


def check(target: Any) -> str | None:
    """What stands against the target."""
    if not isinstance(target, str) and not is_number(target):
        return "the target of `exact` is a string or a number"
    return None if plain(target_text(target)) else "the target of `exact` is empty"


def score(target: Any, answer: str) -> Scored:
    """Compare."""
    wanted, given = target_text(target), answer.strip()
    if same_text(given, wanted):
        return right(f"{shown(given)} is the target")
    return wrong(f"{shown(given)}, not {shown(wanted.strip())}")
