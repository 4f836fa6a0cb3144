"""Where anchors are: what a study may write as the address of a git repository or the path of a folder. Pure.

The text itself stands in the design and in every receipt, so nothing secret may be in it. What it means is decided
here alone: a path that is not absolute starts at the study's folder, wherever a command was typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

# others, `ext::` above all, run programs that the text names
SCHEMES = ("file", "git", "http", "https", "ssh")
MAX_CHARS = 1024

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HELPER = re.compile(r"[A-Za-z0-9]*::")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
_SCP = re.compile(r"(?:[^/:@\s]+@)?[^/:@\s]+:.+")


class AnchorKind(StrEnum):
    """The kinds of anchors, as they stand in records."""

    GIT = "git"
    DROP = "drop"


@dataclass(frozen=True)
class Place:
    """One anchor: its kind, the text of the study, and what the machine is asked for."""

    kind: AnchorKind
    location: str
    address: str

    def __str__(self) -> str:
        return f"{self.kind} {self.location}"


class BadAddress(ValueError):
    """What is wrong with an address, in a sentence that does not repeat it; `secret` where it may hold a secret."""

    def __init__(self, message: str, *, secret: bool = False) -> None:
        super().__init__(message)
        self.secret = secret


def check_git(text: str) -> str:
    """The text, if it is the address of a git repository: a URL, `[user@]host:path`, or a path.

    Raises:
        BadAddress: it is none, or holds a password.
    """
    _check_text(text)
    if text.startswith("-") or _HELPER.match(text):
        raise BadAddress(f"must be a path, host:path, or a URL of {', '.join(SCHEMES)}")
    scheme = _SCHEME.match(text)
    if scheme is None:
        return text
    if scheme[1].lower() not in SCHEMES or scheme[1] != scheme[1].lower():
        raise BadAddress(f"must be a path, host:path, or a URL of {', '.join(SCHEMES)}")
    try:
        parts = urlsplit(text)
        user, password = parts.username, parts.password
    except ValueError as error:
        raise BadAddress("is a URL that cannot be read", secret=True) from error
    if password is not None or (user is not None and parts.scheme in ("http", "https")):
        # a token is as often the user as the password
        raise BadAddress("holds a user or password, and would stand in the evidence", secret=True)
    if parts.query or parts.fragment:
        raise BadAddress("has a query or fragment, and would stand in the evidence", secret=True)
    return text


def check_drop(text: str) -> str:
    """The text, if it can be the path of a folder.

    Raises:
        BadAddress: it cannot.
    """
    _check_text(text)
    return text


def git_place(text: str, base: Path) -> Place:
    """The repository that `text` means in a study of the folder `base`.

    Raises BadAddress.
    """
    check_git(text)
    is_path = _SCHEME.match(text) is None and not _is_scp(text)
    return Place(AnchorKind.GIT, text, str(base.absolute() / text) if is_path else text)


def drop_place(text: str, base: Path) -> Place:
    """The folder that `text` means in a study of the folder `base`. Raises BadAddress."""
    return Place(AnchorKind.DROP, check_drop(text), str(base.absolute() / text))


def places(git: str | None, drop: str | None, base: Path) -> tuple[Place, ...]:
    """The anchors of a design, git first. Raises BadAddress."""
    found = [] if git is None else [git_place(git, base)]
    return tuple(found if drop is None else [*found, drop_place(drop, base)])


def is_relative(place: Place) -> bool:
    """Whether what the text means depends on where the study is."""
    return place.address != place.location and not Path(place.location).is_absolute()


def _is_scp(text: str) -> bool:
    # as git has it: a colon before any slash
    return _SCP.fullmatch(text) is not None


def _check_text(text: str) -> None:
    if not text.strip() or text != text.strip():
        raise BadAddress("must not be empty, or have white space at its ends")
    if len(text) > MAX_CHARS or _UNPRINTABLE.search(text):
        raise BadAddress(f"must have at most {MAX_CHARS} characters, none of them a control character")
