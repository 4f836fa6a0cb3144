"""What a run says of its own admission: its first entry, and what the invocation that it is bound to had declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder


def admitted_of(run: RunFolder) -> Mapping[str, Any]:
    """The body of its `run.admitted`.

    Raises:
        Refusal: RUN_NOT_FOUND, or the evidence cannot be read.
    """
    first = next(read_entries(run.journal_path, validate=False), None)
    if first is None or first.kind is not Kind.RUN_ADMITTED:
        raise Refusal(Reason.EVIDENCE_UNREADABLE, "the journal has no first entry", path=str(run.path))
    return first.body


def first_request(run: RunFolder, admitted: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the invocation that admitted the run had declared; empty where no manifest says so."""
    for manifest in run.manifests():
        if manifest.file.path == admitted["manifest"]["path"] and manifest.body is not None:
            requested = manifest.body.get("requested")
            return requested if isinstance(requested, dict) else {}
    return {}
