"""Checks of the files in the folder: those that entries name, and that there are no others."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Container, Iterator
from functools import partial

from proctor_verify.anchors import is_receipt_name
from proctor_verify.aside import InOrder
from proctor_verify.check import Check
from proctor_verify.checks.manifests import is_manifest_name
from proctor_verify.design import NO_TRIAL
from proctor_verify.errors import Unreadable
from proctor_verify.facts import OpenAttempt
from proctor_verify.folder import NotThere, is_safe
from proctor_verify.journal import Entry
from proctor_verify.report import SHOWN_FINDINGS
from proctor_verify.run import Run, folder_mark, is_note_name
from proctor_verify.schema import BLOB_FIELDS
from proctor_verify.withheld import LIST

_FOLDERS = frozenset({"manifests", "checkpoints", "packs", "blobs", "trials", "quarantine"})
_FILES = frozenset({"design.json", "journal.jsonl", "lock", LIST})
# Every folder is entered from the top, which is what keeps links out, and costs the square of the depth.
MAX_DEPTH = 200
_NUMBER = re.compile("0|[1-9][0-9]{0,8}")
_DIGITS = re.compile("[0-9a-f]{8}")
_Stranger = tuple[str, str]


class Digests(Check):
    id = "files.digests"
    doc = "each file that an entry names stands, with its size and digest: attempts', quarantined, derived"
    noun = "files"
    kinds = ("attempt.ended", "run.recovered")

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._order = InOrder(run.aside)
        self._quarantined: set[tuple[str, str, int]] = set()

    def entry(self, entry: Entry) -> None:
        if entry.kind == "run.recovered":
            # one file may be large, and named very often
            for said in entry.body["quarantined"]:
                named = said["path"], said["sha256"], said["size"]
                if named not in self._quarantined:
                    self._quarantined.add(named)
                    self._file(*named)
            return
        attempt = self.run.open.get(entry.body["attempt"])
        if attempt is not None:
            for path, fact in attempt.files.items():
                self._file(f"{attempt.folder}/{path}", fact.sha256, fact.size)

    def settle(self) -> None:
        self._order.finish()

    def finish(self) -> None:
        for path, fact in self.run.derived.items():
            self._file(path, fact.sha256, fact.size)
        self._order.finish()

    def _file(self, path: str, sha256: str, size: int) -> None:
        if self.run.withheld.has_file(path):
            return
        self.looked += 1
        self.run.folder.look(path, sha256, size, self._order, partial(self._told, path))

    def _told(self, path: str, fault: str | None) -> None:
        if fault is not None:
            self.fail_body(path, fault)


class Unlisted(Check):
    id = "files.unlisted"
    doc = (
        "nothing stands in the folder that no entry names, and nothing but plain files and folders; nobody looks at "
        "names that begin with a dot, at `lock`, and into `scratch/`"
    )
    noun = "attempts and places searched"
    kinds = ("attempt.ended", "run.recovered", *BLOB_FIELDS)
    needs_design = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._blobs: set[str] = set()
        self._packs: set[str] = set()
        self._quarantined: set[str] = set()

    def entry(self, entry: Entry) -> None:
        if entry.kind == "run.recovered":
            self._quarantined.update(named["path"] for named in entry.body["quarantined"])
        elif entry.kind == "attempt.ended":
            attempt = self.run.open.get(entry.body["attempt"])
            if attempt is not None and is_safe(attempt.folder) and self._is_own(attempt):
                self._search(_below(self.run, attempt.folder, attempt.files))
        else:
            for name in BLOB_FIELDS[entry.kind]:
                ref = entry.body[name]
                if ref is None:
                    continue
                if "path" in ref:
                    self._blobs.add(ref["path"].removeprefix("blobs/"))
                else:
                    self._packs.add(ref["pack"])

    def finish(self) -> None:
        self._search(self._top())
        self._search(_strangers(self.run, "manifests", is_manifest_name))
        self._search(_strangers(self.run, "checkpoints", lambda name: is_note_name(name) or is_receipt_name(name)))
        self._search(_below(self.run, "packs", self._packs))
        self._search(_below(self.run, "blobs", self._blobs))
        self._search(_below(self.run, "quarantine", {path.removeprefix("quarantine/") for path in self._quarantined}))
        self._search(self._trials())

    def _is_own(self, attempt: OpenAttempt) -> bool:
        """Whether it stands in its trial's folder; what it says otherwise is for attempts.joined."""
        mark = folder_mark(attempt.folder.split("/")[1:2])
        return attempt.trial == NO_TRIAL or self.trials.folders[attempt.trial] == mark

    def _search(self, strangers: Iterator[_Stranger]) -> None:
        """Take in what a search finds: sorted, so that a report does not depend on the order of a file system."""
        self.looked += 1
        found = 0

        def counted() -> Iterator[_Stranger]:
            nonlocal found
            for stranger in strangers:
                found += 1
                yield stranger

        for path, seen in heapq.nsmallest(SHOWN_FINDINGS, counted()):
            self.fail(path, seen)
        self.fail_unseen(found - min(found, SHOWN_FINDINGS))

    def _top(self) -> Iterator[_Stranger]:
        derived = self.run.derived
        for name in self.run.folder.names():
            path = name.name
            if path.startswith(".") or path == "scratch":
                continue
            wanted = "a folder" if path in _FOLDERS else "a file" if path in _FILES or path in derived else None
            if name.what != wanted:
                yield path, f"is {name.what}" + (f", not {wanted}" if wanted else " that no entry names")

    def _trials(self) -> Iterator[_Stranger]:
        for name, what in _names(self.run, "trials"):
            attempts = self._attempts_in(name) if what == "a folder" else 0
            if not attempts:
                yield f"trials/{name}", f"is {what} that no entry names"
                continue
            for number, below in _names(self.run, f"trials/{name}"):
                if below != "a folder" or _NUMBER.fullmatch(number) is None or int(number) >= attempts:
                    yield f"trials/{name}/{number}", f"is {below} that no entry names"

    def _attempts_in(self, name: str) -> int:
        """How many attempts the folder of that name may hold: 0 where it is no trial's."""
        digits, trials, mark = name[-8:], self.trials, folder_mark([name])
        if mark in trials.astray:
            return trials.astray[mark]  # said by attempts.joined
        if _DIGITS.fullmatch(digits) is None:
            return 0
        # a row's trial has none
        found = (t for t in trials.find_prefix(digits) if trials.folders[t] == mark)
        return max((trials.attempts[t] for t in found), default=0)


def _names(run: Run, path: str) -> Iterator[_Stranger]:
    """Name and kind of what stands in a folder but for names that start with a dot; nothing where it is not there."""
    try:
        for name in run.folder.names(path):
            if not name.name.startswith("."):
                yield name.name, name.what
    except NotThere:
        return
    except Unreadable as error:
        yield "", f"what {error}"


def _strangers(run: Run, path: str, known: Callable[[str], bool]) -> Iterator[_Stranger]:
    for name, what in _names(run, path):
        if what != "a file" or not known(name):
            yield f"{path}/{name}", f"is {what} that no entry names"


def _below(run: Run, top: str, listed: Container[str]) -> Iterator[_Stranger]:
    """Whatever stands below a folder, at any depth, and is neither a folder nor listed by its path below it."""
    pending = [""]
    while pending:
        folder = pending.pop()
        if folder.count("/") > MAX_DEPTH:
            yield f"{top}/{folder}", "nests too deeply to be searched"
            continue
        try:
            for name in run.folder.names(f"{top}/{folder}".rstrip("/")):
                path = f"{folder}{name.name}"
                if name.what == "a folder":
                    pending.append(f"{path}/")
                elif path not in listed and not any(part.startswith(".") for part in path.split("/")):
                    yield f"{top}/{path}", f"is {name.what} that no entry names"
        except NotThere:
            continue
        except Unreadable as error:
            yield f"{top}/{folder}", str(error)
