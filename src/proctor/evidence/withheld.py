"""Which bodies a public copy of a run leaves out: `withheld.json`, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.core import strictjson
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.disk import open_regular, unreadable

WITHHELD = "withheld.json"
# Of each list; the second program reads as many.
MAX_BLOBS, MAX_FILES = 10_000_000, 1_000_000
_MAX_BYTES = 2 << 30


@dataclass(frozen=True)
class Withheld:
    """What is left out: sizes in bytes, of blobs by digest (hex), of files by path relative to the run folder."""

    blobs: Mapping[str, int]
    files: Mapping[str, int]


def read_withheld(path: Path) -> Withheld | None:
    """What the list at `path` names; None where there is none, and the run is no public copy.

    Raises:
        Refusal: `evidence_unreadable`, `evidence_damaged`.
    """
    try:
        with open_regular(path) as file:
            data = file.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable("what the copy leaves out", path.name, error) from error
    try:
        value = strictjson.loads(data, max_bytes=_MAX_BYTES)
        blobs = {_text(item["blob"]): _size(item["size"]) for item in value["blobs"]}
        files = {_text(item["path"]): _size(item["size"]) for item in value["files"]}
    except (Refusal, KeyError, TypeError, ValueError) as error:
        message = f"the list of what the copy leaves out is none: {error}"
        raise Refusal(Reason.EVIDENCE_DAMAGED, message, path=path.name) from error
    return Withheld(blobs, files)


def withheld_refusal(what: str, path: str | None = None) -> Refusal:
    """That something was asked for which is left out."""
    return Refusal(Reason.EVIDENCE_WITHHELD, f"{what} is withheld in this public copy of the run", path=path)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("a name is no text")
    return value


def _size(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("a size is no integer")
    return value
