"""What a verifier left: for each verdict file, its bytes or why there are none."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

MAX_REWARD_BYTES = 65_536
MAX_REPORT_BYTES = 16 * 2**20
# Objects cost fifty times their bytes; a report of empty rows must not take the host's memory.
MAX_REPORT_ROWS = 200_000


@dataclass(frozen=True)
class Absent:
    """No such file."""


@dataclass(frozen=True)
class TooLarge:
    """A file that was not read; `size` in bytes."""

    size: int


@dataclass(frozen=True)
class NotAFile:
    """Something else at that path, not opened; `kind` names it ("symbolic link", "fifo", "folder")."""

    kind: str


@dataclass(frozen=True)
class Content:
    """A regular file's bytes, all of them."""

    data: bytes


VerdictFile = Absent | TooLarge | NotAFile | Content


@dataclass(frozen=True)
class VerdictFiles:
    """The verdict files of one verifier run; what is larger than its cap may be handed in as `TooLarge`, unread.

    Caps: `MAX_REWARD_BYTES` for the two reward files, `MAX_REPORT_BYTES` for the two reports.
    """

    reward_txt: VerdictFile = field(default_factory=Absent)
    reward_json: VerdictFile = field(default_factory=Absent)
    ctrf: VerdictFile = field(default_factory=Absent)
    junit: VerdictFile = field(default_factory=Absent)


def verdict_files(folder: Path) -> VerdictFiles:
    """What stands in a verifier's folder; nothing but regular files is opened. Raises OSError."""
    return VerdictFiles(
        reward_txt=_file(folder / "reward.txt"),
        reward_json=_file(folder / "reward.json"),
        ctrf=_file(folder / "ctrf.json"),
        junit=_file(folder / "junit.xml"),
    )


def _file(path: Path) -> VerdictFile:
    try:
        seen = path.lstat()
    except FileNotFoundError:
        return Absent()
    if not stat.S_ISREG(seen.st_mode):
        return NotAFile("a special file")
    if seen.st_size > MAX_REPORT_BYTES:
        return TooLarge(seen.st_size)
    return Content(path.read_bytes())
