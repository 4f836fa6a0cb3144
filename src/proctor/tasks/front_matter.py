"""A `task.md`: front matter (YAML between `---`, TOML between `+++`) and a body with prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.plain_yaml import read_yaml
from proctor.tasks.toml_reader import parse_toml

_HEADING = r"##[ \t]+(?:prompt|role:[A-Za-z0-9_.-]+|scene:[A-Za-z0-9_.-]+|user-persona)[ \t]*"
_SECTION = re.compile(rf"^{_HEADING}$", re.IGNORECASE | re.MULTILINE)
_ESCAPED = re.compile(rf"^\\({_HEADING})$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Document:
    """A file in its two halves: values, and sections by name.

    `prompt` is the section `## prompt`, or the body before the first section heading where there is none; `sections`
    are the others, such as `role:reviewer`.
    """

    values: Mapping[str, Any]
    prompt: str
    sections: Mapping[str, str]


def read_document(text: str, path: str) -> Document:
    """Take a file apart.

    Raises:
        Refusal: TASK_UNREADABLE (no front matter, one that does not end, is no mapping or cannot be parsed; a section
            that stands twice).
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    fence = lines[0].strip()
    if fence not in ("---", "+++"):
        raise _unreadable("it does not begin with --- or +++, the fence of its front matter", path)
    end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == fence), None)
    if end is None:
        raise _unreadable(f"its front matter has no end {fence}", path)
    front = "\n".join(lines[1:end])
    values = parse_toml(front, path) if fence == "+++" else read_yaml(front, "The front matter", path)
    if values is None:
        values = {}
    if not isinstance(values, dict) or not _named(values):
        raise _unreadable("its front matter is not a mapping with names as keys", path)
    preamble, sections = _sections("\n".join(lines[end + 1 :]), path)
    return Document(values, sections.pop("prompt", preamble), sections)


def _named(value: Any) -> bool:
    """Whether all keys are texts, at any depth."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _named(inner) for key, inner in value.items())
    return all(map(_named, value)) if isinstance(value, list) else True


def _sections(body: str, path: str) -> tuple[str, dict[str, str]]:
    found = list(_SECTION.finditer(body))
    if not found:
        return _unescaped(body), {}
    ends = [match.start() for match in found[1:]] + [len(body)]
    sections: dict[str, str] = {}
    for match, end in zip(found, ends, strict=True):
        kind, colon, name = match[0].strip().lstrip("# \t").partition(":")
        key = kind.lower() + colon + name
        if key in sections:
            raise _unreadable(f"the section {key} stands twice", path)
        sections[key] = _unescaped(body[match.end() : end])
    return _unescaped(body[: found[0].start()]), sections


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text).strip()


def _unreadable(what: str, path: str) -> Refusal:
    return Refusal(Reason.TASK_UNREADABLE, f"task.md cannot be read: {what}.", path=path)
