"""What a run says of its own admission: its first entry, and what the invocation that it is bound to had declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.entries import damaged
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import MANIFEST_NAME, RunFolder

# As many as one entry has room for, and more than anybody's processes leave one after the other.
MAX_ABANDONED = 400


def admitted_of(run: RunFolder) -> Mapping[str, Any]:
    """The body of its `run.admitted`.

    Raises:
        Refusal: RUN_NOT_FOUND, or the evidence cannot be read.
    """
    first = next(read_entries(run.journal_path, validate=False), None)
    if first is None or first.kind is not Kind.RUN_ADMITTED:
        raise Refusal(Reason.EVIDENCE_UNREADABLE, "the journal has no first entry", path=str(run.path))
    return first.body


def require_manifests(run: RunFolder, bound: Mapping[str, str]) -> None:
    """See that each manifest that the journal names stands as it was written, and that an entry can name the others.

    `bound` has SHA-256 by path.

    Raises:
        Refusal: `evidence_damaged`, `evidence_unreadable`.
    """
    found = run.manifests()
    stand = {manifest.file.path: manifest.file.sha256 for manifest in found}
    for path, sha256 in bound.items():
        if stand.get(path) != sha256:
            raise damaged("a manifest is not what its entry names, or is missing", path, stand.get(path), sha256)
    left = [manifest.file.path for manifest in found if manifest.file.path not in bound and manifest.is_open]
    if len(left) > MAX_ABANDONED:
        message = "more manifests stand there that no entry names than processes leave that die: move them away"
        raise damaged(message, f"{left[0]} …", observed=len(left), required=MAX_ABANDONED)


def last_named(run: RunFolder) -> int:
    """The highest number of a manifest that the journal names, as far as it can be read."""
    last = 0
    try:
        for entry in read_entries(run.journal_path, validate=False):
            if entry.kind in (Kind.RUN_ADMITTED, Kind.RUN_RESUMED):
                for file in [entry.body["manifest"], *entry.body["abandoned"]]:
                    name = str(file["path"]).rpartition("/")[2]
                    last = max(last, int(name.partition(".")[0]) if MANIFEST_NAME.fullmatch(name) else 0)
    except (Refusal, KeyError, TypeError):
        pass  # what comes after it names none that could be put back
    return last


def first_request(run: RunFolder, admitted: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the invocation that admitted the run had declared; empty where no manifest says so."""
    for manifest in run.manifests():
        if manifest.file.path == admitted["manifest"]["path"] and manifest.body is not None:
            requested = manifest.body.get("requested")
            return requested if isinstance(requested, dict) else {}
    return {}
