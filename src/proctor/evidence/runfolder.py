"""The run folder: where everything of a run stands, and small files that are replaced whole."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from proctor.core import strictjson
from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.disk import Disk, is_regular, open_regular, unreadable, write_refusal
from proctor.evidence.withheld import WITHHELD, Withheld, read_withheld

_MAX_MANIFEST_BYTES = 64 * 1024 * 1024

MANIFEST_NAME = re.compile(r"([0-9]{4,9})\.json", re.ASCII)
_TRIES = 1000


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file of the run: path relative to the run folder, SHA-256 (hex) and size in bytes of its content."""

    path: str
    sha256: str
    size: int

    @classmethod
    def of(cls, path: str, data: bytes) -> FileRef:
        """The reference to `data` under `path`."""
        return cls(path, hashlib.sha256(data).hexdigest(), len(data))

    def named(self) -> dict[str, str]:
        """`{path, sha256}`, as manifests stand in entries."""
        return {"path": self.path, "sha256": self.sha256}

    def as_record(self) -> dict[str, str | int]:
        """`{path, sha256, size}`, as other files stand in entries."""
        return {"path": self.path, "sha256": self.sha256, "size": self.size}


@dataclass(frozen=True)
class Manifest:
    """A manifest that stands in the run; `body` is None where it cannot be read as one."""

    file: FileRef
    body: dict[str, Any] | None

    @property
    def pending(self) -> bool:
        """Whether its invocation has not come to a verdict (yet)."""
        return self.body is None or self.body.get("verdict") == "pending"

    @property
    def is_open(self) -> bool:
        """Whether it is no record of a refusal: then an entry names it."""
        return self.body is None or self.body.get("verdict") != "refused"


class RunFolder:
    """Paths of a run, and durable writes of small files into it. Making one touches nothing."""

    def __init__(self, path: Path, *, disk: Disk | None = None) -> None:
        self.path = path
        self.disk = disk if disk is not None else Disk()
        self.design_path = path / "design.json"
        self.journal_path = path / "journal.jsonl"
        self.checkpoints = path / "checkpoints"
        self.packs = path / "packs"
        self.blobs = path / "blobs"
        self.trials = path / "trials"
        self.manifests_dir = path / "manifests"
        self.quarantine = path / "quarantine"
        self.scratch = path / "scratch"
        self.lock_path = path / "lock"
        self.reserve_path = path / ".reserve"

    @cached_property
    def withheld(self) -> Withheld | None:
        """What this public copy leaves out, read once; None where it is the run itself.

        Raises:
            Refusal: `evidence_unreadable`, `evidence_damaged`.
        """
        return read_withheld(self.path / WITHHELD)

    def create(self) -> None:
        """Make the folder and those above it, durably; one that exists is taken.

        Raises:
            Refusal: `disk_full`, `out_unusable`.
        """
        if (inside := inside_run(self.path)) is not None:
            raise Refusal(Reason.OUT_UNUSABLE, inside, path=str(self.path))
        try:
            self.disk.make_dirs(self.path.absolute())
        except OSError as error:
            refusal = write_refusal(error, str(self.path))
            if refusal.reason is Reason.WRITE_FAILED:
                refusal = Refusal(
                    Reason.OUT_UNUSABLE,
                    f"the run folder cannot be made: {error.strerror or error}",
                    path=str(self.path),
                )
            raise refusal from error

    def is_admitted(self) -> bool:
        """Whether a run was admitted here: the journal is put in place whole, with its entry 0.

        Raises:
            Refusal: `out_unusable` where that cannot be seen.
        """
        try:
            return self.journal_path.is_file()
        except OSError as error:
            message = f"the run folder cannot be looked into: {error.strerror or error}"
            raise Refusal(Reason.OUT_UNUSABLE, message, path=str(self.path)) from error

    def require_own_folders(self) -> None:
        """See that each folder of the run that stands is one, and no link: what is written must stay in the run.

        Raises:
            Refusal: `evidence_damaged` names the first that is not.
        """
        own = (self.manifests_dir, self.checkpoints, self.packs, self.blobs, self.trials, self.quarantine, self.scratch)
        for folder in own:
            if folder.is_symlink():
                message = "a link stands in the place of a folder of the run, and nothing is written through it"
                raise Refusal(Reason.EVIDENCE_DAMAGED, message, path=folder.name)

    def write_atomic(self, relative: str, data: bytes) -> FileRef:
        """Make or replace a small file, whole or not at all, durably, with its folders. Blocks for some fsyncs.

        Raises:
            Refusal: `disk_full`, `write_failed`; `evidence_damaged` where a folder of the run is a link.
        """
        self.require_own_folders()
        target = self.path / relative
        try:
            self.disk.make_dirs(target.parent)
            self.disk.put(target, data)
        except OSError as error:
            raise write_refusal(error, relative) from error
        return FileRef.of(relative, data)

    def write_together(self, files: Mapping[str, bytes]) -> list[FileRef]:
        """Make or replace small files in the run folder itself, by name, durably: all of them, or none.

        Raises:
            Refusal: `disk_full`, `write_failed`.
        """
        try:
            self.disk.put_together(self.path, files)
        except OSError as error:
            raise write_refusal(error, ", ".join(files)) from error
        return [FileRef.of(name, data) for name, data in files.items()]

    def relative(self, path: Path) -> str:
        """A path inside as it stands in entries, with `/`."""
        return path.relative_to(self.path).as_posix()

    def new_manifest(self, body: Mapping[str, Any], *, after: int = 0) -> ManifestHandle:
        """Write the manifest of an invocation under the next free number; invocations at once get one each.

        Args:
            after: the last number that is taken although no file may have it.

        Raises:
            Refusal: `disk_full`, `write_failed`, `json_invalid`; `evidence_damaged` as above.
        """
        self.require_own_folders()
        data = encode(dict(body))
        try:
            self.disk.make_dirs(self.manifests_dir)
            last = max([after, *(int(path.stem) for path in self._manifest_paths())])
            for number in range(last + 1, last + _TRIES):
                path = self.manifests_dir / f"{number:04d}.json"
                try:
                    self.disk.put_new(path, data)
                except FileExistsError:
                    continue
                return ManifestHandle(self, FileRef.of(self.relative(path), data))
        except OSError as error:
            raise write_refusal(error, self.relative(self.manifests_dir)) from error
        raise Refusal(Reason.WRITE_FAILED, "no number is free for a manifest", path=self.relative(self.manifests_dir))

    def manifests(self) -> list[Manifest]:
        """All manifests by number, read strictly.

        Raises:
            Refusal: `evidence_unreadable` where the system does not let one be read.
        """
        found = []
        try:
            for path in self._manifest_paths():
                with open_regular(path) as file:
                    data = file.read(_MAX_MANIFEST_BYTES + 1)
                found.append(Manifest(FileRef.of(self.relative(path), data), _manifest_body(data)))
        except OSError as error:
            raise unreadable("the manifests", self.relative(self.manifests_dir), error) from error
        return found

    def _manifest_paths(self) -> list[Path]:
        if not self.manifests_dir.is_dir():
            return []
        found = [
            path for path in self.manifests_dir.iterdir() if MANIFEST_NAME.fullmatch(path.name) and is_regular(path)
        ]
        return sorted(found, key=lambda path: int(path.stem))


def run_around(path: Path) -> Path | None:
    """The admitted run that `path` lies inside of, by whatever links; None where that is none, or cannot be seen."""
    try:
        above = path.resolve().parents
        return next(
            (each for each in above if (run := RunFolder(each)).is_admitted() and run.design_path.exists()), None
        )
    except (OSError, RuntimeError, Refusal):
        return None


def inside_run(path: Path) -> str | None:
    """Why nothing else is written there: `path` lies inside of a run; None where it does not."""
    around = run_around(path)
    return None if around is None else f"it lies inside the run {around}, where every file is evidence"


class ManifestHandle:
    """This invocation's manifest. `file` is how it stands now."""

    def __init__(self, run: RunFolder, file: FileRef) -> None:
        self._run = run
        self._final = False
        self.file = file

    @property
    def path(self) -> str:
        """Relative to the run folder."""
        return self.file.path

    def rewrite(self, body: Mapping[str, Any]) -> FileRef:
        """Put the final body in place, once.

        Raises:
            Refusal: `disk_full`, `write_failed`, `json_invalid`.
            RuntimeError: it is final already.
        """
        if self._final:
            raise RuntimeError(f"{self.path} is final")
        self.file = self._run.write_atomic(self.path, encode(dict(body)))
        self._final = True
        return self.file


def _manifest_body(data: bytes) -> dict[str, Any] | None:
    try:
        body = strictjson.loads(data, max_bytes=_MAX_MANIFEST_BYTES)
    except Refusal:
        return None
    return body if isinstance(body, dict) else None
