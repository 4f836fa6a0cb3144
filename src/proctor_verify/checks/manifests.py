"""Checks of the manifests: one for each invocation, bound by the opening that it led to, or refused."""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from typing import Any

from proctor_verify.check import Check
from proctor_verify.errors import Unreadable
from proctor_verify.folder import NotThere
from proctor_verify.journal import Entry
from proctor_verify.run import Run
from proctor_verify.shapes import OBJECT, SHA256, TEXT, TIME, Shape, integer, list_of, one_of, or_null, record
from proctor_verify.strictjson import loads_canonical
from proctor_verify.vocabulary import SIGNALS

MAX_MANIFEST = 64 << 20
_REFUSAL = Shape("an object with a text reason", lambda v: type(v) is dict and type(v.get("reason")) is str)
_MANIFEST = record(
    format=integer(1, 1),
    command=TEXT,
    requested=OBJECT,
    started=TIME,
    verdict=one_of("pending", "admitted", "refused"),
    exit_status=or_null(integer(0, 255)),
    refusals=list_of(_REFUSAL),
    waivers=record(requested=list_of(TEXT), used=list_of(TEXT)),
    probes=OBJECT,
    design_sha256=or_null(SHA256),
)
_REFUSED, _INFRASTRUCTURE = 3, 5
_NAME = re.compile(r"(?:(?!0000)[0-9]{4}|[1-9][0-9]{4,8})\.json")
# What a command line may select of a stage, by the names in `requested` and in the design's `selection`.
SELECTED = ("limit", "arms", "models")
_OPENING = ("run.admitted", "run.resumed")


def read_manifest(run: Run, path: str) -> Any:
    """A manifest's value, its fields as they should be.

    Raises:
        Unreadable: it is no manifest.
    """
    value = loads_canonical(run.folder.read(path, MAX_MANIFEST), max_bytes=MAX_MANIFEST)
    if not _MANIFEST.holds(value):
        raise Unreadable("does not have exactly the fields of a manifest, each of its type")
    return value


def is_manifest_name(name: str) -> bool:
    """Whether this is how a manifest's file is called."""
    return _NAME.fullmatch(name) is not None


def is_manifest_path(path: str) -> bool:
    """Whether this is where a manifest stands."""
    folder, _, name = path.partition("/")
    return folder == "manifests" and is_manifest_name(name)


def manifest_names(run: Run) -> list[str]:
    """The names of manifests that stand, sorted; empty where there is no such folder."""
    try:
        return sorted(name.name for name in run.folder.names("manifests") if _NAME.fullmatch(name.name))
    except Unreadable:
        return []


class Bound(Check):
    id = "manifests.bound"
    doc = "each opening names its invocation's manifest by its digest, and those that were abandoned by theirs"
    noun = "manifests"
    kinds = _OPENING

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._named: set[str] = set()

    def entry(self, entry: Entry) -> None:
        for named in (entry.body["manifest"], *entry.body["abandoned"]):
            self.looked += 1
            path = named["path"]
            if path in self._named or not is_manifest_path(path):
                self.fail_at(entry, f"names {path}, which is no manifest's path or named before")
                continue
            self._named.add(path)
            try:
                raw = self.run.folder.read(path, MAX_MANIFEST)
            except Unreadable as error:
                self.fail(path, str(error))
                continue
            if hashlib.sha256(raw).hexdigest() != named["sha256"]:
                self.fail(path, f"is not the file that line {entry.line + 1} names")


class Unbound(Check):
    id = "manifests.unbound"
    doc = "manifests are numbered without a gap, and each that no opening names is a refusal"
    noun = "manifests"
    kinds = _OPENING

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._named: set[str] = set()

    def entry(self, entry: Entry) -> None:
        self._named.add(entry.body["manifest"]["path"])
        self._named.update(named["path"] for named in entry.body["abandoned"])

    def finish(self) -> None:
        standing = manifest_names(self.run)
        named = {path.removeprefix("manifests/") for path in self._named if path.startswith("manifests/")}
        numbers = {int(name.partition(".")[0]) for name in [*standing, *named] if is_manifest_name(name)}
        self.looked = len(numbers)
        for before, after in pairwise([0, *sorted(numbers)]):
            if after > before + 1:
                missing = f"{after - before - 1} before {after:04d}.json"
                self.fail("manifests", f"{missing} are missing: the record of an invocation is gone")
        for name in standing:
            if name not in named:
                self._judge(f"manifests/{name}")

    def _judge(self, path: str) -> None:
        try:
            manifest = read_manifest(self.run, path)
        except Unreadable as error:
            self.fail(path, str(error))
            return
        if manifest["verdict"] != "refused":
            self.fail(path, f"says {manifest['verdict']}, and no entry names it")
            return
        status, reasons = manifest["exit_status"], {refusal["reason"] for refusal in manifest["refusals"]}
        if not reasons or status not in (_REFUSED, _INFRASTRUCTURE, *SIGNALS):
            self.fail(path, f"says refused, with {len(reasons)} reasons and exit status {status}")
        elif (status in SIGNALS) != ("interrupted" in reasons):
            self.fail(path, f"has exit status {status} and reasons {', '.join(sorted(reasons))}")


class Verdict(Check):
    id = "manifests.verdict"
    doc = (
        "a bound manifest says `admitted`, of this design, with no refusal that was not waived, and what it says of "
        "stage and selection is the design's"
    )
    noun = "manifests"
    kinds = _OPENING

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        path = entry.body["manifest"]["path"]
        if not is_manifest_path(path):
            self.cannot_tell(f"{path} is no manifest's path")  # said by manifests.bound
            return
        try:
            manifest = read_manifest(self.run, path)
        except NotThere as error:
            self.cannot_tell(f"{path} {error}")  # said by manifests.bound
            return
        except Unreadable as error:
            self.fail(path, str(error))
            return
        waivers = manifest["waivers"]
        unwaived = [r["reason"] for r in manifest["refusals"] if r["reason"] not in waivers["used"]]
        design = (self.run.first or entry.body).get("design_sha256")
        if manifest["verdict"] != "admitted" or manifest["exit_status"] is not None:
            self.fail(path, f"says {manifest['verdict']} with exit status {manifest['exit_status']}")
        elif manifest["design_sha256"] != design:
            self.fail(path, f"is of design {manifest['design_sha256']}, and the run of {design}")
        elif unwaived:
            self.fail(path, f"holds a refusal that was not waived: {unwaived[0]}")
        elif not set(waivers["used"]) <= set(waivers["requested"]):
            self.fail(path, "uses a waiver that was not requested")
        elif (name := self._otherwise(manifest["requested"])) is not None:
            self.fail(path, f"says that another {name} was requested than the design has")

    def _otherwise(self, requested: dict[str, Any]) -> str | None:
        """What was requested otherwise than the design has it."""
        design = self.run.design
        if design is None:
            return None
        if requested.get("stage") not in (None, design.stage):
            return "stage"
        selection = design.selection or {}
        said = (name for name in SELECTED if name in requested)
        return next((name for name in said if _chosen(requested[name]) != _chosen(selection.get(name))), None)


def _chosen(value: Any) -> str:
    """What is selected, in no order, as text; empty, where it is all."""
    words = repr(sorted(map(repr, value)) if type(value) is list else value)
    return "" if value in (None, []) else words
