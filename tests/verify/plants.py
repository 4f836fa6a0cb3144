"""One fault at a time, planted in a complete run whose digests, links, roots and signatures are then made anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from builder import Story
from primitives import Signer
from stories import full_story

STRANGER = Signer(2)
Alter = Callable[[Story], None]
Spoil = Callable[[Path], None]


@dataclass(frozen=True)
class Plant:
    """A fault: what it is, the one check that must find it, and how it comes about."""

    check: str
    what: str
    alter: Alter = lambda story: None
    spoil: Spoil = lambda folder: None
    key: str | None = None
    story: Callable[[], Story] = full_story

    @property
    def id(self) -> str:
        return f"{self.check}: {self.what}"


class Plants(list[Plant]):
    """The faults of one module, in the order of their declaration, in a story of its own or in the full one."""

    def __init__(self, story: Callable[[], Story] = full_story) -> None:
        super().__init__()
        self._story = story

    def before_sealing(self, check: str, what: str) -> Callable[[Alter], Alter]:
        """Declare a fault that is planted in the story."""

        def declare(alter: Alter) -> Alter:
            self.append(Plant(check, what, alter, story=self._story))
            return alter

        return declare

    def afterwards(self, check: str, what: str) -> Callable[[Spoil], Spoil]:
        """Declare a fault that is done to the finished folder."""

        def declare(spoil: Spoil) -> Spoil:
            self.append(Plant(check, what, spoil=spoil, story=self._story))
            return spoil

        return declare


def first_of(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


def flip(path: Path, at: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
