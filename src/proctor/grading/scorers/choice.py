"""`choice`: the answer names one of the choices, by letter or by text. The first rule that finds something decides.

1. The whole answer is a letter, alone or in brackets, quotes, stars or with `.`, `)` or `:` after it; lower case too.
2. The whole answer is a choice's text, or a letter with its text (`B) Paris`).
3. `answer` with `is`, `:` or `=` before a letter (`ANSWER: B`, `the answer is (B)`), or `\\boxed{B}`: the last such.
4. In the last line that is not blank, capital letters that stand alone: one, which may stand there more than once.
   `A` and `I` before a word are words of the language unless brackets or stars mark them.
5. In that line, a choice's text as whole words: of one choice only.

Two letters under rule 4 and two texts under rule 5 are ambiguous, which is wrong. Texts are compared in NFC, case
folded, white space runs as one space, without a full stop at the end.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from proctor.grading.scorers.base import Scored, right, shown, wrong

_OPEN = r"[\s(\[{\"'`*_$]"
_CLOSE = r"[\s)\]}\"'`*_$.:,]"
_WHOLE = re.compile(rf"{_OPEN}*+(?:\\boxed\{{)?([A-Za-z]){_CLOSE}*+")
_DECLARED = re.compile(
    r"\banswer\b[\s*_]{0,8}(?:is\b|[:=])[\s*_]{0,8}(?:is\b|[:=])?[\s(\[{\"'`*_$]{0,8}"
    r"(?:\\(?:boxed|text|mathrm)\{){0,3}([A-Za-z])(?![\w'’-])"
    r"|\\boxed\{(?:\\(?:text|mathrm)\{)?\(?([A-Za-z])\)?\}",
    re.IGNORECASE,
)
_ALONE = re.compile(r"(?<![\w'’-])([A-Z])(?![\w'’-])")
_MARKED_BEFORE = "([{*\"'`_"


def check(target: Any, choices: Mapping[str, str]) -> str | None:
    """What stands against the row."""
    if not choices:
        return "the scorer `choice` needs `choices`"
    if not isinstance(target, str):
        return "the target of `choice` is a letter or a choice's text"
    by_text = _by_text(target, choices)
    if target in choices and by_text not in (None, target):
        return f"the target {target!r} is a letter, and the text of choice {by_text}"
    if target not in choices and by_text is None:
        return f"the target {shown(target)} is none of the choices"
    if len({_folded(text) for text in choices.values()}) < len(choices):
        return "two choices differ in case or white space only"
    return None


def right_letter(target: str, choices: Mapping[str, str]) -> str | None:
    """The letter that the target means."""
    return target if target in choices else _by_text(target, choices)


def score(target: Any, answer: str, choices: Mapping[str, str]) -> Scored:
    """Find what was chosen, and compare."""
    wanted = right_letter(str(target), choices)
    chosen, how = chosen_letter(answer, choices)
    if chosen is None:
        return wrong(f"{how}; the target is {wanted}")
    said = f"{chosen} was chosen ({how})"
    return right(said) if chosen == wanted else wrong(f"{said}, not {wanted}")


def chosen_letter(answer: str, choices: Mapping[str, str]) -> tuple[str | None, str]:
    """The letter that an answer chooses, or None; and by which rule, or why not."""
    stripped = answer.strip()
    if not stripped:
        return None, "the answer is empty"
    if len(stripped) <= 1_000 and (whole := _whole(stripped, choices)) is not None:
        return whole
    declared = None
    for found in _DECLARED.finditer(stripped):
        letter = found[1] or found[2]
        # `the answer is a bird`: an article, not a choice
        article = letter.islower() and re.match(r"\s+\w", stripped[found.end() : found.end() + 40])
        if letter.upper() in choices and not article:
            declared = letter.upper()
    if declared is not None:
        return declared, "declared as the answer"
    line = stripped.rpartition("\n")[2]
    letters = {found[1] for found in _ALONE.finditer(line) if found[1] in choices and _is_choice(found, line)}
    if len(letters) == 1:
        return letters.pop(), "the letter in the last line"
    if letters:
        return None, f"ambiguous: the last line names {', '.join(sorted(letters))}"
    return _named(line, choices)


def _whole(answer: str, choices: Mapping[str, str]) -> tuple[str, str] | None:
    if (found := _WHOLE.fullmatch(answer)) and found[1].upper() in choices:
        return found[1].upper(), "the whole answer"
    if (letter := _by_text(answer, choices)) is not None:
        return letter, "the choice's text"
    head = re.match(r"\(?([A-Za-z])[).:]\s*", answer)
    if head and (letter := head[1].upper()) in choices and _by_text(answer[head.end() :], choices) == letter:
        return letter, "letter and text"
    return None


def _is_choice(found: re.Match[str], line: str) -> bool:
    if found[1] not in "AI" or (found.start() and line[found.start() - 1] in _MARKED_BEFORE):
        return True
    return re.match(r"\s+\w", line[found.end() : found.end() + 40]) is None


def _named(line: str, choices: Mapping[str, str]) -> tuple[str | None, str]:
    folded = f" {_words(line)} "
    named = sorted(letter for letter, text in choices.items() if _words(text) and f" {_words(text)} " in folded)
    if len(named) == 1:
        return named[0], "the choice's text in the last line"
    if named:
        return None, f"ambiguous: the last line has the texts of {', '.join(named)}"
    return None, "no choice was found in the answer"


def _by_text(text: str, choices: Mapping[str, str]) -> str | None:
    folded = _folded(text)
    return next((letter for letter, each in choices.items() if _folded(each) == folded), None)


def _folded(text: str) -> str:
    joined = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return joined.removesuffix(".").rstrip() or joined


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", _folded(text)))
