"""What of a Dockerfile reaches further than its image: files of the host's own network, labels of this program's own.

A builder fetches the URL of an ADD by itself, from the host's loopback, too, where no RUN comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.dockerfile import Instruction, NotPlain, expand, parse, split_words

_URL = re.compile(r"https?://", re.IGNORECASE)
# names that the world outside gives out; no number, however written, ends in letters alone
_NAME = re.compile(r"(?:[a-z0-9_-]+\.)+([a-z]{2,63}|xn--[a-z0-9-]+)\.?", re.IGNORECASE)
# by RFC 6761, 6762 and 8375, and by what clouds and homes use
_INSIDE = frozenset({"localhost", "localdomain", "local", "internal", "intranet", "lan", "home", "corp", "arpa"})
_OWN_LABELS = "proctor."


def too_far(instructions: Iterable[Instruction], file: str) -> list[Refusal]:
    """Each instruction that does so, as TASK_UNSAFE. Raises Refusal (TASK_UNREADABLE)."""
    return [
        Refusal(
            Reason.TASK_UNSAFE,
            f"line {instruction.line} {why}: {instruction.text}.",
            path=f"{file}:{instruction.line}",
            observed=instruction.text,
        )
        for instruction, why in _found(instructions, file)
    ]


def _found(instructions: Iterable[Instruction], file: str) -> Iterator[tuple[Instruction, str]]:
    variables: dict[str, str | None] = {}
    for instruction in instructions:
        done = instruction
        if instruction.keyword == "ONBUILD":
            done = next(iter(parse(instruction.rest, file)), instruction)
        if done.keyword in ("ARG", "ENV"):
            variables |= _set(done, variables)
        elif done.keyword == "ADD" and any(_is_inside(each) for each in _sources(done, variables)):
            yield instruction, "may add a file of the host's own network"
        elif done.keyword == "LABEL" and any(_is_own(each) for each in _names(done, variables)):
            yield instruction, "sets a label by which this program knows what it made itself"


def _set(instruction: Instruction, variables: Mapping[str, str | None]) -> dict[str, str | None]:
    words = split_words(instruction.rest, instruction.escape)
    if instruction.keyword == "ENV" and words and "=" not in words[0]:
        name, _, value = instruction.rest.partition(" ")
        return {name: _known(value.strip(), variables, instruction.escape)}
    parts = [word.partition("=") for word in words]
    return {name: _known(value, variables, instruction.escape) if given else None for name, given, value in parts}


def _sources(instruction: Instruction, variables: Mapping[str, str | None]) -> Iterator[str | None]:
    words = instruction.json_words() or split_words(instruction.rest, instruction.escape)
    for word in words[:-1]:
        yield _known(word, variables, instruction.escape) or _certain_start(word)


def _certain_start(word: str) -> str | None:
    """What stands before the first variable, where that says already which host it is, or that it is none."""
    start, _, _ = word.partition("$")
    url = _URL.match(start)
    is_told = "/" in start[url.end() :] if url is not None else "/" in start and not start.lower().startswith("http")
    return start if is_told and not set(start) & set("\"'\\`") else None


def _names(instruction: Instruction, variables: Mapping[str, str | None]) -> Iterator[str | None]:
    words = split_words(instruction.rest, instruction.escape)
    if words and "=" not in words[0]:
        words = words[:1]
    return (_known(word.partition("=")[0], variables, instruction.escape) for word in words)


def _known(word: str, variables: Mapping[str, str | None], escape: str) -> str | None:
    """The word with variables replaced; None where the base image, or who builds, has a say in it."""
    try:
        return expand(word, variables, escape)
    except NotPlain:
        return None


def _is_inside(source: str | None) -> bool:
    if source is None:
        return True
    if _URL.match(source) is None:
        return False
    try:
        host = urlsplit(source).hostname or ""
    except ValueError:
        return True
    named = _NAME.fullmatch(host)
    return named is None or named[1].lower() in _INSIDE


def _is_own(name: str | None) -> bool:
    return name is None or name.strip("\"'").startswith(_OWN_LABELS)
