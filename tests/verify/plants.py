"""One fault at a time, planted in a complete run whose digests, links, roots and signatures are then made anew."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from builder import Story
from primitives import Signer
from stories import full_story

if TYPE_CHECKING:
    from proctor_verify import Report

STRANGER = Signer(2)
Alter = Callable[[Story], None]
Spoil = Callable[[Path], None]


@dataclass(frozen=True)
class Plant:
    """A fault: what it is, the one check that must find it, and how it comes about.

    `beside` makes what stands outside of the run, next to its folder; `options` are what else `verify` is told.
    `meanwhile` is done to a copy of the folder while its journal is read.
    """

    check: str
    what: str
    alter: Alter = lambda story: None
    spoil: Spoil = lambda folder: None
    key: str | None = None
    story: Callable[[], Story] = full_story
    beside: Callable[[Story, Path], None] = lambda story, folder: None
    options: Callable[[Path], dict[str, Any]] = lambda folder: {}
    meanwhile: Spoil | None = None

    @property
    def id(self) -> str:
        return f"{self.check}: {self.what}"

    def write(self, folder: Path) -> Signer:
        """The run with its fault; whose key it has."""
        story = self.story()
        self.alter(story)
        story.write(folder)
        self.spoil(folder)
        self.beside(story, folder)
        return story.signer

    def look(self, folder: Path, signer: Signer, *, blind: bool = False) -> Report:
        """What the second program says of it, `blind` without the check that must find it."""
        # imported here and not before: the mutation run makes plants once, and has them looked at by many programs
        from proctor_verify import verify
        from proctor_verify.checks import CHECKS

        checks = [check for check in CHECKS if not blind or check.id != self.check]
        with ExitStack() as after:
            if self.meanwhile is not None:
                copy = Path(after.enter_context(TemporaryDirectory(prefix=".seen", dir=folder))) / "run"
                folder = Path(shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".*")))
                checks.append(_meddling(self.meanwhile, folder))
            return verify(folder, self.key or signer.fingerprint, checks=checks, **self.options(folder))


class Plants(list[Plant]):
    """The faults of one module, in the order of their declaration, in a story of its own or in the full one."""

    def __init__(self, story: Callable[[], Story] = full_story) -> None:
        super().__init__()
        self.story = story

    def before_sealing(self, check: str, what: str) -> Callable[[Alter], Alter]:
        """Declare a fault that is planted in the story."""

        def declare(alter: Alter) -> Alter:
            self.append(Plant(check, what, alter, story=self.story))
            return alter

        return declare

    def afterwards(self, check: str, what: str) -> Callable[[Spoil], Spoil]:
        """Declare a fault that is done to the finished folder."""

        def declare(spoil: Spoil) -> Spoil:
            self.append(Plant(check, what, spoil=spoil, story=self.story))
            return spoil

        return declare

    def meanwhile(self, check: str, what: str) -> Callable[[Spoil], Spoil]:
        """Declare a fault that is done to the folder while its journal is read."""

        def declare(spoil: Spoil) -> Spoil:
            self.append(Plant(check, what, meanwhile=spoil, story=self.story))
            return spoil

        return declare


def _meddling(meanwhile: Spoil, folder: Path) -> Any:
    """A check that finds nothing, and does something to the folder when it sees the first entry."""
    from proctor_verify.check import Check

    class Meddling(Check):
        id = "none"
        kinds = ("run.admitted",)

        def entry(self, entry: Any) -> None:
            meanwhile(folder)

    return Meddling


def first_of(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


def flip(path: Path, at: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def all_plants() -> list[Plant]:
    """Of every module of plants that there is."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("plants_*.py"))
    return [plant for name in names for plant in importlib.import_module(name).PLANTS]


def all_sound() -> list[tuple[Callable[[], Story], Alter]]:
    """What looks odd and is sound: of each module that has such `SOUND` alterations, in the story that it alters."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("plants_*.py"))
    modules = [importlib.import_module(name) for name in names]
    return [(module.PLANTS.story, alter) for module in modules for alter in getattr(module, "SOUND", ())]
