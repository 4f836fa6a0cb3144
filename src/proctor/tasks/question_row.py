"""One row of a question set: its keys, their types, and the messages that it becomes. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from string import ascii_uppercase
from typing import Any

from proctor.core.models import Message, Role
from proctor.core.near import closest
from proctor.core.questions import Question, Scorer, Tolerance
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

MAX_ID_CHARS = 200
MAX_NAMES = 256

_KEYS = (
    "id",
    "prompt",
    "target",
    "choices",
    "files",
    "tolerance",
    "tools",
    "metadata",
    "cluster",
    "scorer",
    "scorer_function",
)
_NEEDED = ("id", "prompt", "target")
_ROLES = {"system": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SCORERS: Mapping[str, Scorer] = {scorer.value: scorer for scorer in Scorer}
_LATER_SCORERS = ("judge",)

Texts = Mapping[str, str]
"""Attached texts by path."""


class Fault(ValueError):
    """What is wrong with a row: `reason` is QUESTION_INVALID but for what a later version takes."""

    def __init__(
        self, message: str, observed: Any = None, required: Any = None, reason: Reason = Reason.QUESTION_INVALID
    ) -> None:
        super().__init__(message)
        self.message = message
        self.observed = observed
        self.required = required
        self.reason = reason

    def refusal(self, path: str) -> Refusal:
        """As a refusal about the row at `path`."""
        return Refusal(self.reason, self.message, path=path, observed=self.observed, required=self.required)


def read_row(value: Any, *, scorer: Scorer, scorer_function: str | None, texts: Callable[[str], str]) -> Question:
    """The question that a row's JSON value is.

    Args:
        value: any JSON value.
        scorer, scorer_function: the study's, where the row names none.
        texts: the text of an attached file, by its path.

    Raises:
        Fault: for the first thing that is wrong.
        Refusal: whatever `texts` raises.
    """
    if not isinstance(value, dict):
        raise Fault("a row is a JSON object", _kind(value), "an object")
    _known_keys(value)
    name = _id(value["id"])
    choices = _choices(value.get("choices"))
    own, function = _scorer(value, scorer, scorer_function)
    files = attached(value)
    return Question(
        id=name,
        messages=_messages(value["prompt"], choices, {path: texts(path) for path in files}),
        target=_target(value["target"]),
        choices=choices,
        tolerance=_tolerance(value.get("tolerance"), own),
        tools=None if "tools" not in value else _names(value["tools"], "tools"),
        metadata=_object(value.get("metadata", {}), "metadata"),
        cluster=None if "cluster" not in value else _text(value["cluster"], "cluster"),
        scorer=own,
        scorer_function=function,
        row=value,
    )


def attached(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths in `files`. Raises Fault where they are not relative paths that stay below the set's folder."""
    if "files" not in row:
        return ()
    paths = _names(row["files"], "files")
    for path in paths:
        parts = path.split("/")
        if path.startswith("/") or ".." in parts or "" in parts or "." in parts or "\\" in path:
            raise Fault("`files` holds paths below the question set's folder", path, "a relative path without ..")
    return paths


def _known_keys(row: Mapping[str, Any]) -> None:
    for key in row:
        if key not in _KEYS:
            near = closest(key, _KEYS, cutoff=0.0)
            raise Fault(f"`{_shown(key)}` is not a key of a row; the closest is `{near}`", _shown(key), list(_KEYS))
    for key in _NEEDED:
        if key not in row:
            raise Fault(f"the row has no `{key}`", sorted(row), list(_NEEDED))


def _id(value: Any) -> str:
    text = _text(value, "id")
    if len(text) > MAX_ID_CHARS or text != text.strip() or _CONTROL.search(text):
        raise Fault(
            "`id` names the row in evidence and on the command line",
            _shown(text),
            f"at most {MAX_ID_CHARS} characters of one line, without white space at the ends",
        )
    return text


def _messages(prompt: Any, choices: Mapping[str, str], texts: Texts) -> tuple[Message, ...]:
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    if not isinstance(prompt, list) or not prompt:
        raise Fault("`prompt` is the question", _kind(prompt), "a string, or a list of {role, content}")
    messages = [_message(each) for each in prompt]
    last = messages[-1]
    if last.role is not Role.USER or not any(message.text.strip() for message in messages):
        raise Fault("the last message of `prompt` asks", last.role.value, "a message of role user, with text")
    said = "".join(message.text + "\n" for message in messages)
    parts = [last.text, *(_fenced(path, text) for path, text in texts.items())]
    if choices and not _listed(said, choices):
        parts.append("\n".join(f"{letter}) {text}" for letter, text in choices.items()))
    messages[-1] = Message(Role.USER, "\n\n".join(parts))
    return tuple(messages)


def _message(value: Any) -> Message:
    if not isinstance(value, dict) or value.keys() != {"role", "content"}:
        observed = sorted(map(_shown, value)) if isinstance(value, dict) else _kind(value)
        raise Fault("a message of `prompt` has a role and a content", observed, ["role", "content"])
    role, content = value["role"], value["content"]
    if not isinstance(role, str) or role not in _ROLES:
        raise Fault("a message of `prompt` has a role", _shown(role), sorted(_ROLES))
    if not isinstance(content, str):
        raise Fault("the content of a message of `prompt` is text", _kind(content), "a string")
    return Message(_ROLES[role], content)


def _fenced(path: str, text: str) -> str:
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    body = text if text.endswith("\n") else text + "\n"
    return f"{path}:\n{fence}\n{body}{fence}"


def _listed(said: str, choices: Mapping[str, str]) -> bool:
    """Whether the prompt has a line for each choice, which starts with its letter and `)`, `.` or `:`."""
    letters = set(re.findall(r"^[ \t]*\(?([A-Z])[).:]", said, re.MULTILINE))
    return letters.issuperset(choices)


def _choices(value: Any) -> Mapping[str, str]:
    if value is None:
        return {}
    if isinstance(value, list):
        if not 2 <= len(value) <= len(ascii_uppercase):
            raise Fault("`choices` are what can be chosen", len(value), f"from 2 to {len(ascii_uppercase)} texts")
        value = dict(zip(ascii_uppercase, value, strict=False))
    if not isinstance(value, dict) or len(value) < 2 or not all(re.fullmatch("[A-Z]", letter) for letter in value):
        observed = sorted(map(_shown, value)) if isinstance(value, dict) else _kind(value)
        raise Fault("`choices` are texts", observed, "a list of strings, or an object of letters A to Z")
    for letter, text in value.items():
        if not isinstance(text, str) or not text.strip():
            raise Fault(f"choice {letter} is a text", _kind(text), "a string that is not empty")
    if len({text.strip() for text in value.values()}) < len(value):
        raise Fault("two choices are the same text", None, "different texts")
    return {letter: value[letter].strip() for letter in sorted(value)}


def _scorer(row: Mapping[str, Any], scorer: Scorer, function: str | None) -> tuple[Scorer, str | None]:
    own = scorer
    if "scorer" in row:
        named = row["scorer"]
        if not isinstance(named, str) or named not in _SCORERS:
            later = Reason.NOT_IN_THIS_VERSION if named in _LATER_SCORERS else Reason.QUESTION_INVALID
            raise Fault("`scorer` is one of the scorers of this version", _shown(named), list(_SCORERS), later)
        own = _SCORERS[named]
    if "scorer_function" in row:
        if own is not Scorer.PYTHON:
            raise Fault("only the scorer `python` calls a `scorer_function`", own.value, Scorer.PYTHON.value)
        return own, _text(row["scorer_function"], "scorer_function")
    if own is Scorer.PYTHON and function is None:
        raise Fault("the scorer `python` needs a `scorer_function`", None, "module:function")
    return own, function if own is Scorer.PYTHON else None


def _target(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float | dict):
        raise Fault("`target` is the right answer", _kind(value), "a string, a number or an object of named outputs")
    return value


def _tolerance(value: Any, scorer: Scorer) -> Tolerance | None:
    if value is None:
        return None
    if scorer not in (Scorer.NUMBER, Scorer.JSON, Scorer.PYTHON):
        raise Fault(f"the scorer `{scorer.value}` knows no tolerance", _shown(value), "no `tolerance`")
    relative = False
    amount = value
    if isinstance(value, dict) and len(value) == 1 and value.keys() <= {"absolute", "relative"}:
        relative = "relative" in value
        (amount,) = value.values()
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not math.isfinite(amount) or amount < 0:
        raise Fault("`tolerance` is how far a number may be off", _shown(value), 'a number, or {"relative": number}')
    return Tolerance(Fraction(repr(amount)), relative)


def _names(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise Fault(f"`{key}` is a list of names", _kind(value), "a list of strings")
    if len(set(value)) < len(value) or len(value) > MAX_NAMES:
        raise Fault(f"`{key}` names each once", len(value), f"at most {MAX_NAMES} different strings")
    return tuple(value)


def _object(value: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Fault(f"`{key}` is an object", _kind(value), "an object")
    return value


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value:
        raise Fault(f"`{key}` is a text", _kind(value), "a string that is not empty")
    return value


def _kind(value: Any) -> str:
    """What a JSON value is, for a person."""
    if value is None:
        return "null"
    if isinstance(value, str) and not value:
        return "an empty string"
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list"}
    return kinds.get(type(value), "an object")


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
