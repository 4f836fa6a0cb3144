"""The whole verification: one pass over the journal, each entry handed to the checks that want it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from proctor_verify import notes
from proctor_verify.check import Check
from proctor_verify.checks import CHECKS
from proctor_verify.checks.manifests import manifest_names, read_manifest
from proctor_verify.elsewhere import Asked, look_elsewhere
from proctor_verify.errors import Unreadable
from proctor_verify.folder import Folder
from proctor_verify.journal import Line, read_blocks
from proctor_verify.readers import Readers, how_many
from proctor_verify.report import Report, plain
from proctor_verify.run import Run
from proctor_verify.walk import Walk

JOURNAL = "journal.jsonl"
NO_KEY = "who signed: any key could have; give the operator's with --key"
NO_ANCHOR = (
    "when: no anchor shows that this journal stood at an earlier time, so its operator could have made it anew, "
    "or left a run out"
)


def verify(
    path: str | PathLike[str],
    key: str | None = None,
    *,
    anchors: Sequence[str] = (),
    since: str | None = None,
    witnesses: Sequence[str] = (),
    checks: Sequence[type[Check]] = CHECKS,
) -> Report:
    """Re-check a run from its evidence alone. What cannot be read is a finding, never an exception.

    Args:
        path: the run folder.
        key: whose signature counts: a vkey, a file that holds one, or `sha256:` and the digest of the raw key.
        anchors: where checkpoints of the run stand too: addresses or folders of git repositories, folders, note files.
        since: the file of a checkpoint of the run that was kept from an earlier look.
        witnesses: who else must have signed a checkpoint: vkeys, or files that hold one.
        checks: what to check, for tests that leave one out.
    """
    try:
        trust = notes.trust_root(key) if key is not None else None
    except Unreadable as error:
        return Report((), unreadable=f"--key: {error}", strict=True)
    try:
        asked = Asked.of(anchors, since, witnesses)
    except Unreadable as error:
        return Report((), unreadable=plain(error), strict=key is not None)
    try:
        folder = Folder(Path(path))
    except Unreadable as error:
        return Report((), unreadable=f"{plain(path)}: {error}", strict=key is not None)
    try:
        return _verify(Run(folder, trust, look_elsewhere(asked, folder)), checks)
    finally:
        folder.close()


def _verify(run: Run, checks: Sequence[type[Check]]) -> Report:
    strict = run.trust is not None
    try:
        stream = run.folder.open(JOURNAL)
    except Unreadable as error:
        return Report((), unreadable=_without_journal(run, str(error)), strict=strict)
    made = [check(run) for check in checks]
    walk = Walk(run, made)
    try:
        size = os.fstat(stream.fileno()).st_size
        with stream, Readers(how_many(size)) as readers:
            for piece in readers.judged(read_blocks(stream)):
                if isinstance(piece, Line):
                    walk.line(piece)
                else:
                    walk.block(*piece)
                if walk.over:
                    break
    except OSError as error:
        return Report((), unreadable=f"{JOURNAL} cannot be read: {error.strerror}", strict=strict)
    for check in made:
        if run.blind is not None and not check.unblinded:
            check.cannot_tell(run.blind)
        elif run.design is None and check.needs_design:
            check.cannot_tell(f"there is no design to go by: {run.design_fault}")
        else:
            check.finish()
    return Report(
        results=tuple(check.result() for check in made),
        caveats=(*(() if strict else (NO_KEY,)), NO_ANCHOR, *walk.caveats(), *run.withheld.caveats()),
        strict=strict,
        run_id=run.first["run_id"] if run.first is not None else None,
        entries=run.size,
        synthetic=run.design.parts.synthetic if run.design is not None else (),
    )


def _without_journal(run: Run, why: str) -> str:
    names = manifest_names(run)
    refused = 0
    for name in names:
        try:
            refused += read_manifest(run, f"manifests/{name}")["verdict"] == "refused"
        except Unreadable:
            continue
    if names and refused == len(names):
        return f"nothing was admitted here: {refused} manifests, each a refusal, and no journal"
    if names:
        return f"{JOURNAL} {why}; {len(names)} manifests stand, {refused} of them refusals"
    return f"{JOURNAL} {why}: this is no run folder"
