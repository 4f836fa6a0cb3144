"""What the practice model answers to a question: what it can read or reckon, and whether it gets it right.

What it understands, the first that fits:

1. a convention: the question names `NAME` between backticks, and a system message has a line "- **NAME**: `VALUE`".
   It answers VALUE, always;
2. named sums, where the question says JSON: "`NAME`: 17 * 23" once or more. It answers one JSON object;
3. "`WORD` backwards" or "`WORD` in capital letters";
4. a sum of numbers with + - * / (and the printed signs × ÷ −), multiplication first.

Where there are choices ("A) 391"), it answers the letter of the one that is what it found.

Whether 2 to 4 are answered right is drawn from the model's name and the question alone: in 60 of 100 cases, with a
skill in the system prompt (a line "# Skill") in 85 of 100, and whatever is right without the skill is right with it.
A wrong number is too large by 1 to 9, a wrong word is as it was given, a wrong choice is one of the others.

With a tool that takes one text it has a sum reckoned by that tool first, and answers the number that came back.
Of what it does not understand it picks a choice; without choices it says that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

from proctor.gateway.rules.talk import Move, Talk

RIGHT_OF_100 = 60
RIGHT_OF_100_SKILLED = 85
UNKNOWN = "I do not know."
# A row's files may follow its question, and are not read.
_READ_CHARS = 4_000
_NUMBER = r"\d{1,18}(?:\.\d{1,9})?"
_SUM = rf"(?<![\w.]){_NUMBER}(?:[ \t]{{0,4}}[-+*/×÷−][ \t]{{0,4}}{_NUMBER}){{1,20}}(?!\w)"
_SUMS = re.compile(_SUM)
_NAMED = re.compile(rf"`([A-Za-z_]\w{{0,60}})`:[ \t]{{0,4}}({_SUM})")
_TOKENS = re.compile(rf"{_NUMBER}|[-+*/]")
_PLAIN = str.maketrans("×÷−", "*/-")
_FACT = re.compile(r"^- \*\*([^*\n]{1,100})\*\*: `([^`\n]{1,400})`", re.MULTILINE)
_QUOTED = re.compile(r"`([^`\n]{1,100})`")
_WORD = re.compile(r"`([^`\n]{1,100})` (backwards|in capital letters)")
_CHOICE = re.compile(r"^\(?([A-Z])\)[ \t](.{1,400})$", re.MULTILINE)
_SKILLED = re.compile(r"^# Skill\b", re.MULTILINE)
_RESULT = re.compile(r"-?\d{1,400}(?:\.\d{1,400})?")


@dataclass(frozen=True, slots=True)
class _Found:
    """What the model makes of a question: the right answer, and what it says where it gets it wrong."""

    right: str
    wrong: str
    certain: bool = False


def move(talk: Talk, model: str) -> Move:
    """The call of a tool, or the answer."""
    question = talk.question[:_READ_CHARS]
    drawn = sha256(f"{model}\0{question}".encode("utf-8", "replace")).digest()
    share, pick = int.from_bytes(drawn[:8]) * 100 >> 64, drawn[8]
    found = _fact(question, talk.system) or _reckoned(talk, question) or _understood(question, pick)
    if isinstance(found, Move):
        return found
    right = share < (RIGHT_OF_100_SKILLED if _SKILLED.search(talk.system) else RIGHT_OF_100)
    choices = dict(_CHOICE.findall(question))
    if choices:
        return Move(_chosen(choices, found, right, pick))
    if found is None:
        return Move(UNKNOWN)
    return Move(found.right if right or found.certain else found.wrong)


def _fact(question: str, system: str) -> _Found | None:
    named = set(_QUOTED.findall(question))
    facts = _FACT.findall(system) if named else []
    value = next((value for name, value in facts if name in named), None)
    return None if value is None else _Found(value, value, certain=True)


def _reckoned(talk: Talk, question: str) -> _Found | Move | None:
    tool, asked = _text_tool(talk.tools), _SUMS.search(question)
    if tool is None or asked is None:
        return None
    if not talk.done:
        return Move("I have it reckoned.", tool[0], {tool[1]: asked.group().translate(_PLAIN)})
    result = talk.done[-1].result.strip()
    return _Found(result, result, certain=True) if _RESULT.fullmatch(result) else None


def _understood(question: str, pick: int) -> _Found | None:
    if "JSON" in question and (named := _NAMED.findall(question)):
        sums = {name: reckon(text) for name, text in named}
        if None not in sums.values():
            values = {name: value for name, value in sums.items() if value is not None}
            off = {name: _off(value, pick) for name, value in values.items()}
            return _Found(_outputs(values), _outputs(off))
    if word := _WORD.search(question):
        text = word[1]
        return _Found(text[::-1] if word[2] == "backwards" else text.upper(), text)
    asked = _SUMS.search(question)
    value = None if asked is None else reckon(asked.group())
    return None if value is None else _Found(_number(value), _number(_off(value, pick)))


def reckon(text: str) -> Fraction | None:
    """The value of a sum, multiplication and division first; None where it divides by zero."""
    tokens = _TOKENS.findall(text.translate(_PLAIN))
    total, product = Fraction(0), Fraction(tokens[0])
    for sign, number in zip(tokens[1::2], map(Fraction, tokens[2::2]), strict=True):
        if sign in "+-":
            total, product = total + product, number if sign == "+" else -number
        elif sign == "*":
            product *= number
        elif number == 0:
            return None
        else:
            product /= number
    return total + product


def _off(value: Fraction, pick: int) -> Fraction:
    return value + 1 + pick % 9


def _number(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    # six decimals, without zeros at the end
    return f"{Decimal(value.numerator) / Decimal(value.denominator):.6f}".rstrip("0").rstrip(".")


def _outputs(values: Mapping[str, Fraction]) -> str:
    return "{" + ", ".join(f'"{name}": {_number(value)}' for name, value in values.items()) + "}"


def _chosen(choices: Mapping[str, str], found: _Found | None, right: bool, pick: int) -> str:
    letters = list(choices)
    known = None if found is None else next((at for at in letters if choices[at].strip() == found.right), None)
    if known is None or found is None:
        return letters[pick % len(letters)]
    others = [letter for letter in letters if letter != known]
    return known if right or found.certain or not others else others[pick % len(others)]


def _text_tool(tools: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first tool that takes exactly one text: its name, and its parameter's."""
    for name, schema in tools.items():
        parameters = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(parameters, dict) and len(parameters) == 1:
            [(parameter, said)] = parameters.items()
            if isinstance(said, dict) and said.get("type") == "string":
                return name, parameter
    return None
