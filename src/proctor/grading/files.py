"""What a verifier left: for each verdict file, its bytes or why there are none."""

from __future__ import annotations

from dataclasses import dataclass, field

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
