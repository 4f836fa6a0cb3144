"""`json`: the last JSON object in the answer has the named outputs of the target; the reward is the share right.

The whole answer, else the last fenced block that holds an object, else the last object; the latter two in the last
65,536 characters. It must be strict JSON: a key that stands twice or a `NaN` makes it none. Each name of the target
counts once: strings as `exact` compares them, numbers within the tolerance (`"5"` is no number, `true` neither), true,
false and null as themselves, lists by position, objects by key. Further names in the answer are not looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from proctor.core.questions import Tolerance
from proctor.core.refusal import Refusal
from proctor.core.strictjson import loads
from proctor.grading.scorers.base import Scored, is_number, partly, same_text, wrong

MAX_OUTPUTS = 200
MAX_NAME_CHARS = 100
MAX_SEARCHED = 1 << 16

_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_DECODER = json.JSONDecoder()
_DEEPER = 10_000
_OPENS = re.compile(r'\{\s*(?=["}])')


def check(target: Any) -> str | None:
    """What stands against the target."""
    if not isinstance(target, dict) or not target:
        return "the target of `json` is an object of named outputs"
    if len(target) > MAX_OUTPUTS or any(not name or len(name) > MAX_NAME_CHARS for name in target):
        return f"the target of `json` has at most {MAX_OUTPUTS} outputs, with names of {MAX_NAME_CHARS} characters"
    if "reward" in target:
        return "an output of `json` cannot be named `reward`: that is the share of outputs that are right"
    return None


def target_text(target: Any) -> str:
    """The target as an answer."""
    return json.dumps(target, ensure_ascii=False)


def score(target: Mapping[str, Any], answer: str, tolerance: Tolerance | None) -> Scored:
    """Find the object, and compare each output."""
    found = _last_object(answer)
    if found is None:
        return wrong("there is no JSON object in the answer")
    hits = {name: name in found and _same(found[name], wanted, tolerance) for name, wanted in target.items()}
    missed = [name for name, hit in hits.items() if not hit]
    count = f"{len(hits) - len(missed)} of {len(hits)} outputs are right"
    detail = count + (f"; not {', '.join(missed)}" if missed else "")
    share = (len(hits) - len(missed)) / len(hits)
    return partly(share, detail, {name: int(hit) for name, hit in hits.items()})


def _same(given: Any, wanted: Any, tolerance: Tolerance | None) -> bool:
    if isinstance(wanted, str):
        return isinstance(given, str) and same_text(given, wanted)
    if is_number(wanted):
        if not is_number(given):
            return False
        numbers = Fraction(repr(given)), Fraction(repr(wanted))
        return numbers[0] == numbers[1] if tolerance is None else tolerance.allows(*numbers)
    if isinstance(wanted, list):
        return (
            isinstance(given, list)
            and len(given) == len(wanted)
            and all(_same(each, other, tolerance) for each, other in zip(given, wanted, strict=True))
        )
    if isinstance(wanted, dict):
        return (
            isinstance(given, dict)
            and given.keys() == wanted.keys()
            and all(_same(given[key], wanted[key], tolerance) for key in wanted)
        )
    return given is wanted


def _last_object(answer: str) -> dict[str, Any] | None:
    stripped = answer.strip()
    if stripped.startswith("{") and stripped.endswith("}") and (whole := _strict(stripped)) is not None:
        return whole
    tail = stripped[-MAX_SEARCHED:]
    for block in reversed(_FENCED.findall(tail)):
        if (fenced := _strict(block.strip())) is not None:
            return fenced
    found = _last_span(tail)
    return None if found is None else _strict(found)


def _last_span(text: str) -> str | None:
    """The last outermost object in a text; what fails may cost four times the text, no more."""
    found, start, budget = None, 0, 4 * len(text)
    while budget > 0 and (opened := _OPENS.search(text, start)):
        try:
            _, start = _DECODER.raw_decode(text, opened.start())
        except json.JSONDecodeError as error:
            budget -= error.pos - opened.start()
            start = opened.end()
        except (ValueError, RecursionError):
            budget -= _DEEPER
            start = opened.end()
        else:
            found = text[opened.start() : start]
    return found


def _strict(text: str) -> dict[str, Any] | None:
    try:
        value = loads(text.encode("utf-8", "surrogatepass"), max_bytes=1 << 20)
    except Refusal:
        return None
    return value if isinstance(value, dict) else None
