"""`choice`: the answer names one of the choices, by letter or by text. The first rule that finds something decides.

1. The whole answer is a letter, alone or in brackets, quotes, stars or with `.`, `)` or `:` after it; lower case too.
2. The whole answer is a choice's text, or a letter with its text (`B) Paris`).
3. `answer` with `is`, `:` or `=` before a letter (`ANSWER: B`, `the answer is (B)`), or `\\boxed{B}`: the last such.
4. In the last line that is not blank, capital letters that stand alone, not after `not`: one, as often as it likes.
   `A` and `I` before a word are words of the language, unless brackets or stars mark them or the word is `and`, `or`,
   `nor`, `but`, `is`, `because` or `since`.
5. In the last 4,000 characters of that line, a choice's text as whole words: of one choice only. A text within the
   text of another choice does not count where that one stands.

Two letters or texts (`A or B`; after `answer:` too) are ambiguous, which is wrong. Texts are compared in NFC, case
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
_ALONE = re.compile(r"(?<![\w'’-])(?<![Nn]ot )(?<!NOT )([A-Z])(?![\w'’-])")
_ANOTHER = re.compile(
    r"[\s)\]}\"'`*_$.]*(?:[,/&]|or\b|and\b)[\s(*]*([A-Z])(?![\w'’-])(?=[\s).*]*$|[).,*/&]|\s+(?:or|and)\b)",
    re.MULTILINE,
)
_WORD_FOLLOWS = re.compile(r"\s+(?!(?:and|or|nor|but|is|because|since)\b)\w")
_LINE_CHARS = 4_000
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
    if (declared := _declared(stripped, choices)) is not None:
        return declared
    line = stripped.rpartition("\n")[2]
    letters = {found[1] for found in _ALONE.finditer(line) if found[1] in choices and _is_choice(found, line)}
    if len(letters) == 1:
        return letters.pop(), "the letter in the last line"
    if letters:
        return None, f"ambiguous: the last line names {', '.join(sorted(letters))}"
    return _named(line, choices)


def _declared(answer: str, choices: Mapping[str, str]) -> tuple[str | None, str] | None:
    last = None
    for found in _DECLARED.finditer(answer):
        letter = found[1] or found[2]
        # `the answer is a bird`: an article, not a choice
        if letter.upper() in choices and not (letter == "a" and _follows(_WORD_FOLLOWS, found, answer)):
            last = found
    if last is None:
        return None
    letter = (last[1] or last[2]).upper()
    another = _follows(_ANOTHER, last, answer)
    if another and another[1] in choices and another[1] != letter:
        return None, f"ambiguous: {letter} and {another[1]} are declared as the answer"
    return letter, "declared as the answer"


def _follows(pattern: re.Pattern[str], found: re.Match[str], text: str) -> re.Match[str] | None:
    return pattern.match(text[found.end() : found.end() + 60])


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
    return _follows(_WORD_FOLLOWS, found, line) is None


def _named(line: str, choices: Mapping[str, str]) -> tuple[str | None, str]:
    left = f" {_words(line[-_LINE_CHARS:])} "
    named = []
    for letter, text in sorted(choices.items(), key=lambda each: -len(_words(each[1]))):
        words = f" {_words(text)} "
        if words.strip() and words in left:
            named.append(letter)
            left = left.replace(words, " | ")
    if len(named) == 1:
        return named[0], "the choice's text in the last line"
    if named:
        return None, f"ambiguous: the last line has the texts of {', '.join(sorted(named))}"
    return None, "no choice was found in the answer"


def _by_text(text: str, choices: Mapping[str, str]) -> str | None:
    folded = _folded(text)
    return next((letter for letter, each in choices.items() if _folded(each) == folded), None)


def _folded(text: str) -> str:
    joined = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return joined.removesuffix(".").rstrip() or joined


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", _folded(text)))
