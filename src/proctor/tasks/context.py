"""Which files of a build context a COPY takes: Go's file patterns and `.dockerignore`, over a task's listing."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.recipe import Copy
from proctor.tasks.tree import Entry, Kind, Tree

# Folders of any Linux root: COPY of a file to one of them goes into it.
_TOP = ("bin", "boot", "dev", "etc", "home", "lib", "media", "mnt", "opt", "root", "run", "sbin", "srv", "tmp", "usr")
_DEEPER = ("/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/usr/sbin", "/usr/share")
_ROOT_FOLDERS = frozenset({"/", *(f"/{name}" for name in _TOP), *_DEEPER, "/var", "/var/lib", "/var/log", "/var/tmp"})


@dataclass(frozen=True)
class CopyIn:
    """Bring a host file, or a folder's content, to an absolute path inside. `mode` is of the target itself.

    With `whole` False a folder is only made: what is brought below it follows as entries of its own.
    """

    source: Path
    target: str
    mode: int | None = None
    owner: str | None = None
    whole: bool = True


class Ignore:
    """`.dockerignore`: the last pattern that matches a path or a folder above it decides."""

    def __init__(self, text: str = "") -> None:
        self._rules: list[tuple[re.Pattern[str], bool]] = []
        for line in text.removeprefix("\ufeff").splitlines():
            pattern = line.strip()
            if not pattern or line.startswith("#"):
                continue
            wanted = pattern.startswith("!")
            cleaned = posixpath.normpath(pattern[wanted:].strip().lstrip("/") or ".")
            if cleaned != ".":
                self._rules.append((_compiled(cleaned, deep=True, tail=r"(?:/.*)?"), not wanted))

    def __contains__(self, path: str) -> bool:
        ignored = False
        for pattern, excludes in self._rules:
            if pattern.fullmatch(path):
                ignored = excludes
        return ignored


@dataclass(frozen=True)
class Context:
    """A folder of the task (relative, such as `environment`) as a build context."""

    tree: Tree
    folder: str
    ignore: Ignore

    def copy(self, step: Copy, folders: set[str], where: str) -> list[CopyIn]:
        """What a COPY brings in. `folders` are absolute folders known to exist inside, and is added to.

        Raises:
            Refusal: TASK_UNREADABLE (no file matches), TASK_UNSAFE (a source leaves the context).
        """
        found: list[tuple[str, Entry]] = []
        for source in step.sources:
            matches = list(self._matches(source, where))
            if not matches:
                raise Refusal(
                    Reason.TASK_UNREADABLE, f"Nothing in {self.folder} matches the source {source!r}.", path=where
                )
            found.extend(matches)
        into = step.into or len(found) > 1 or step.destination in folders | _ROOT_FOLDERS
        items: list[CopyIn] = []
        for name, entry in found:
            if entry.kind is Kind.FOLDER:
                items.extend(self._folder(name, entry, step))
                _known(step.destination, folders)
            else:
                target = posixpath.join(step.destination, posixpath.basename(name)) if into else step.destination
                items.append(self._item(entry, target, step))
                _known(posixpath.dirname(target), folders)
        return items

    def _matches(self, source: str, where: str) -> Iterator[tuple[str, Entry]]:
        cleaned = posixpath.normpath(source.lstrip("/") or ".")
        if cleaned == ".." or cleaned.startswith("../"):
            raise Refusal(Reason.TASK_UNSAFE, f"The source {source!r} leaves its build context.", path=where)
        if cleaned == ".":
            root = self.tree.find(self.folder)
            if root is not None:
                yield "", root
            return
        pattern = _compiled(cleaned, deep=False)
        for name in self._names():
            if pattern.fullmatch(name) and self._kept(name):
                entry = self.tree.find(f"{self.folder}/{name}")
                if entry is not None:
                    yield name, self._inside(entry, where)

    def _inside(self, entry: Entry, where: str) -> Entry:
        if not entry.path.startswith(os.fsencode(self.folder) + b"/"):
            message = f"A source is a link that leaves its build context, to {entry.text}."
            raise Refusal(Reason.TASK_UNSAFE, message, path=where)
        return entry

    def _names(self) -> Iterator[str]:
        prefix = len(os.fsencode(self.folder)) + 1
        for entry in self.tree.below(self.folder):
            yield os.fsdecode(entry.path[prefix:])

    def _kept(self, name: str) -> bool:
        """Not ignored, or a folder that holds something which is not."""
        if name not in self.ignore:
            return True
        return any(inner.startswith(name + "/") and inner not in self.ignore for inner in self._names())

    def _folder(self, name: str, folder: Entry, step: Copy) -> Iterator[CopyIn]:
        inner = self.tree.below(folder.path)
        names = [os.fsdecode(item.path[len(folder.path) + 1 :]) for item in inner]
        dropped = {short for short in names if (f"{name}/{short}" if name else short) in self.ignore}
        whole = not dropped and step.chmod is None and step.chown is None
        yield CopyIn(self._host(folder), step.destination, owner=step.chown, whole=whole)
        if whole:
            return
        for short, item in zip(names, inner, strict=True):
            if short not in dropped:
                yield self._item(item, posixpath.join(step.destination, short), step)

    def _item(self, entry: Entry, target: str, step: Copy) -> CopyIn:
        mode = None if entry.kind is Kind.LINK else step.chmod
        return CopyIn(self._host(entry), target, mode, step.chown, whole=entry.kind is not Kind.FOLDER)

    def _host(self, entry: Entry) -> Path:
        return self.tree.root / os.fsdecode(entry.path)


def _known(path: str, folders: set[str]) -> None:
    while path not in folders and path != "/":
        folders.add(path)
        path = posixpath.dirname(path)


def _compiled(pattern: str, *, deep: bool, tail: str = "") -> re.Pattern[str]:
    try:
        return re.compile(_regex(pattern, deep=deep) + tail, re.DOTALL)
    except re.error as error:
        raise Refusal(Reason.TASK_UNREADABLE, f"{pattern!r} is not a file pattern: {error}.") from error


def _regex(pattern: str, *, deep: bool) -> str:
    """Go's filepath.Match as a regular expression: nothing crosses `/`, except `**` where `deep`."""
    out = ""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if deep and pattern.startswith("**", at):
            at += 2
            if pattern.startswith("/", at):
                out += "(?:.*/)?"
                at += 1
            else:
                out += ".*"
            continue
        at += 1
        if char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "[" and (end := pattern.find("]", at + 1)) > 0:
            inner = pattern[at:end].replace("\\", "\\\\").replace("[", "\\[")
            out += f"[{inner}]"
            at = end + 1
        elif char == "\\" and at < len(pattern):
            out += re.escape(pattern[at])
            at += 1
        else:
            out += re.escape(char)
    return out
