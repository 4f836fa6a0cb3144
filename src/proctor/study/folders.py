"""What a study names on disk: folders and files, each looked at once, relative to the study's folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study.actors import FolderDigest, SkillDesign
from proctor.study.schema.values import NAME
from proctor.tasks.tree import Tree, read_tree

MAX_TEXT_BYTES = 256 * 1024
# Each is listed in the design by name and digest; a root file system belongs into `rootfs`.
MAX_LISTED = 5_000

_SKILL = "SKILL.md"


class Folders:
    """The files that one study names; what was read is kept, so that it is read once."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._trees: dict[Path, Tree] = {}

    @property
    def trees(self) -> dict[str, Tree]:
        """Every tree that was read, by its digest."""
        return {tree.digest: tree for tree in self._trees.values()}

    def require_folder(self, written: str, key: str) -> list[Refusal]:
        """Whether a folder stands there."""
        return [] if self._is(written, stat.S_ISDIR) else [_missing("folder", written, key)]

    def require_file(self, written: str, key: str) -> list[Refusal]:
        """Whether a regular file stands there."""
        return [] if self._is(written, stat.S_ISREG) else [_missing("file", written, key)]

    def text(self, written: str, key: str) -> tuple[str | None, list[Refusal]]:
        """A UTF-8 text, at most 256 KiB."""
        if problems := self.require_file(written, key):
            return None, problems
        try:
            with (self._base / written).open("rb") as file:
                data = file.read(MAX_TEXT_BYTES + 1)
            if len(data) > MAX_TEXT_BYTES:
                return None, [_unreadable(f"is larger than {MAX_TEXT_BYTES} bytes", written, key)]
            return data.decode("utf-8"), []
        except UnicodeDecodeError:
            return None, [_unreadable("is not UTF-8 text", written, key)]
        except OSError as error:
            return None, [_unreadable(f"cannot be read: {os.strerror(error.errno or 0)}", written, key)]

    def folder(self, written: str, key: str) -> tuple[FolderDigest | None, list[Refusal]]:
        """A folder with all that it holds."""
        if problems := self.require_folder(written, key):
            return None, problems
        tree, problems = self._tree(self._base / written, written, key)
        return (None if tree is None else FolderDigest(written, tree.digest, tuple(tree.listing()))), problems

    def skills(self, written: str, key: str) -> tuple[tuple[SkillDesign, ...], list[Refusal]]:
        """The skills of a pack, by name: one where the folder itself holds SKILL.md, else each folder in it."""
        if problems := self.require_folder(written, key):
            return (), problems
        pack = self._base / written
        try:
            single = (pack / _SKILL).is_file()
            inside = sorted(each.name for each in pack.iterdir() if each.is_dir() and not each.name.startswith("."))
        except OSError as error:
            return (), [_unreadable(f"cannot be read: {os.strerror(error.errno or 0)}", written, key)]
        if not single and not inside:
            return (), [_no_skill(written, key)]
        places = (
            [(pack.resolve().name, written)] if single else [(name, f"{written.rstrip('/')}/{name}") for name in inside]
        )
        skills: list[SkillDesign] = []
        found: list[Refusal] = []
        for name, place in places:
            skill, problems = self._skill(name, place, key)
            found += problems
            skills += [skill] if skill is not None else []
        return tuple(skills), found

    def _skill(self, name: str, place: str, key: str) -> tuple[SkillDesign | None, list[Refusal]]:
        if not self._is(f"{place}/{_SKILL}", stat.S_ISREG):
            return None, [_no_skill(place, key)]
        if not NAME.fullmatch(name):
            what = f"the skill folder {place!r} has a name that cannot stand in evidence"
            return None, [Refusal(Reason.INVALID_VALUE, what, path=key, observed=name, required=NAME.pattern)]
        tree, problems = self._tree(self._base / place, place, key)
        if tree is None:
            return None, problems
        return SkillDesign(name, place, tree.digest, tuple(tree.listing())), []

    def _tree(self, folder: Path, written: str, key: str) -> tuple[Tree | None, list[Refusal]]:
        try:
            tree = self._trees.get(folder) or read_tree(folder)
        except Refusal as refusal:
            return None, [_unreadable(f"cannot be taken as it is: {refusal.message}", written, key)]
        except OSError as error:
            return None, [_unreadable(f"cannot be read: {os.strerror(error.errno or 0)}", written, key)]
        if len(tree.entries) > MAX_LISTED:
            what = f"the folder {written!r} holds more files than a design can list"
            return None, [
                Refusal(Reason.INVALID_VALUE, what, path=key, observed=len(tree.entries), required=MAX_LISTED)
            ]
        self._trees[folder] = tree
        return tree, []

    def _is(self, written: str, kind: Callable[[int], bool]) -> bool:
        try:
            return kind((self._base / written).stat().st_mode)
        except (OSError, ValueError):
            return False


def _missing(what: str, written: str, key: str) -> Refusal:
    return Refusal(
        Reason.FILE_MISSING, f"`{key}` names the {what} {written!r}, which is not there", path=key, observed=written
    )


def _no_skill(written: str, key: str) -> Refusal:
    what = f"`{key}` names the folder {written!r}, which holds no {_SKILL}"
    return Refusal(Reason.FILE_MISSING, what, path=key, observed=written, required=f"{written}/{_SKILL}")


def _unreadable(what: str, written: str, key: str) -> Refusal:
    return Refusal(Reason.FILE_UNREADABLE, f"`{key}` names {written!r}, which {what}", path=key, observed=written)
