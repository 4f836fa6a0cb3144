"""The Dockerfile's own grammar: lines to instructions, words, and `$VAR` in them. What they mean is in `recipe`.

After Docker's reference: parser directives, continuations, comments inside them, heredocs, JSON forms, quoting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

_DIRECTIVE = re.compile(r"#\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.*?)\s*")
# a word by itself: `"a<<b"`, `$((1<<2))` and `<<<` are none
_HEREDOC = re.compile(r"""\d*<<-?(["']?)([A-Za-z_][A-Za-z0-9_.]*)\1""")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NotPlain(ValueError):
    """A construct that only an image builder can follow; the message says which."""


@dataclass(frozen=True)
class Instruction:
    """One instruction: first and last line (from 1), upper-case keyword, flags, the rest with continuations joined."""

    line: int
    last: int
    keyword: str
    flags: tuple[tuple[str, str], ...]
    rest: str
    heredoc: bool
    escape: str

    @property
    def text(self) -> str:
        """The instruction on one line of at most 200 characters, for messages."""
        flags = (f"--{name}={value}" if value else f"--{name}" for name, value in self.flags)
        line = " ".join([self.keyword, *flags, *self.rest.split()])
        return line if len(line) <= 200 else line[:199] + "…"

    def json_words(self) -> tuple[str, ...] | None:
        """The words of the JSON form, or None where this is not one (Docker then takes it as shell words)."""
        if not self.rest.startswith("["):
            return None
        try:
            words = json.loads(self.rest)
        except (ValueError, RecursionError):
            return None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            return None
        return tuple(words)


def parse(text: str, where: str) -> tuple[Instruction, ...]:
    """Split a Dockerfile into instructions.

    Raises:
        Refusal: TASK_UNREADABLE for a heredoc without its end or an escape directive that Docker does not know.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    escape, at = _directives(lines, where)
    found: list[Instruction] = []
    while at < len(lines):
        first = at
        logical, at = _logical(lines, at, escape)
        if not logical:
            continue
        keyword, _, rest = logical.partition(" ")
        keyword = keyword.upper()
        flags, rest = _flags(rest.strip())
        words = split_words(rest, escape) if keyword in ("RUN", "COPY", "ADD") else ()
        heredocs = [match[2] for match in map(_HEREDOC.fullmatch, words) if match is not None]
        for word in heredocs:
            at = _skip_heredoc(lines, at, word, first + 1, where)
        found.append(Instruction(first + 1, at, keyword, flags, rest, bool(heredocs), escape))
    return tuple(found)


def split_words(text: str, escape: str) -> tuple[str, ...]:
    """Split at white space outside of quotes; quotes and escapes stay in the words."""
    words: list[str] = []
    word = ""
    quote = ""
    at = 0
    while at < len(text):
        char = text[at]
        if char == escape and at + 1 < len(text) and quote != "'":
            word += text[at : at + 2]
            at += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char.isspace():
            if word:
                words.append(word)
            word = ""
            at += 1
            continue
        word += char
        at += 1
    if word:
        words.append(word)
    return tuple(words)


def expand(word: str, variables: Mapping[str, str | None], escape: str) -> str:
    """Remove quotes and put variables in, as Docker does outside of RUN.

    Raises:
        NotPlain: a variable that neither ARG nor ENV sets (the base image might), or a form beyond `:-` and `:+`.
    """
    out = ""
    quote = ""
    at = 0
    while at < len(word):
        char = word[at]
        if quote == "'":
            if char == "'":
                quote = ""
            else:
                out += char
        elif char == escape and at + 1 < len(word):
            following = word[at + 1]
            out += following if not quote or following in f'"${escape}' else char + following
            at += 1
        elif char == "$":
            value, at = _variable(word, at, variables, escape)
            out += value
            continue
        elif quote:
            if char == '"':
                quote = ""
            else:
                out += char
        elif char in "\"'":
            quote = char
        else:
            out += char
        at += 1
    return out


def _directives(lines: list[str], where: str) -> tuple[str, int]:
    escape = "\\"
    for at, line in enumerate(lines):
        match = _DIRECTIVE.fullmatch(line.strip())
        if match is None or match[1].lower() not in ("escape", "syntax", "check"):
            return escape, at
        if match[1].lower() == "escape":
            if match[2] not in ("\\", "`"):
                raise Refusal(
                    Reason.TASK_UNREADABLE, "The escape directive is neither \\ nor `.", path=where, observed=match[2]
                )
            escape = match[2]
    return escape, len(lines)


def _logical(lines: list[str], at: int, escape: str) -> tuple[str, int]:
    """One instruction's text from line `at` on, and the line after it; empty for a comment or a blank."""
    parts: list[str] = []
    while at < len(lines):
        line = lines[at]
        at += 1
        bare = line.strip()
        if not bare or bare.startswith("#"):
            if not parts:
                return "", at
            continue
        trimmed = line.rstrip()
        if not trimmed.endswith(escape):
            parts.append(trimmed)
            break
        parts.append(trimmed[:-1])
    joined = "".join(parts).strip()
    return re.sub(r"\A(\S+)\s+", r"\1 ", joined), at


def _flags(rest: str) -> tuple[tuple[tuple[str, str], ...], str]:
    flags: list[tuple[str, str]] = []
    while match := re.match(r"--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|$)", rest):
        flags.append((match[1], match[2] or ""))
        rest = rest[match.end() :]
    return tuple(flags), rest


def _skip_heredoc(lines: list[str], at: int, word: str, line: int, where: str) -> int:
    while at < len(lines):
        at += 1
        if lines[at - 1].strip() == word:
            return at
    raise Refusal(Reason.TASK_UNREADABLE, f"The heredoc of line {line} has no end {word}.", path=f"{where}:{line}")


def _variable(word: str, at: int, variables: Mapping[str, str | None], escape: str) -> tuple[str, int]:
    """The value of the variable that starts at `at`, and where the word goes on."""
    if not word.startswith("${", at):
        match = _VARIABLE.match(word, at + 1)
        if match is None:
            return "$", at + 1
        return _value(match[0], variables), match.end()
    end = _closing(word, at + 2)
    inner = word[at + 2 : end]
    match = _VARIABLE.match(inner)
    if match is None:
        raise NotPlain(f"${{{inner}}} is not a variable")
    operator = inner[match.end() :]
    if not operator:
        return _value(match[0], variables), end + 1
    form = re.match(r":?[-+]", operator)
    if form is None:
        raise NotPlain(f"${{{inner}}} uses a form that only an image builder follows")
    known = match[0] in variables
    value = _value(match[0], variables) if known else ""
    other = operator[form.end() :]
    there = bool(value) if ":" in form[0] else known
    if not known:
        raise NotPlain(f"${match[0]} is not set in this Dockerfile and might be by its base image")
    if form[0].endswith("-"):
        return (value if there else expand(other, variables, escape)), end + 1
    return (expand(other, variables, escape) if there else ""), end + 1


def _closing(word: str, at: int) -> int:
    depth = 1
    while at < len(word):
        depth += {"{": 1, "}": -1}.get(word[at], 0)
        if depth == 0:
            return at
        at += 1
    raise NotPlain("a ${ has no end")


def _value(name: str, variables: Mapping[str, str | None]) -> str:
    value = variables.get(name)
    if value is None:
        raise NotPlain(f"${name} is not set in this Dockerfile and might be by its base image")
    return value
