"""The whole verification: one pass over the journal, each entry handed to the checks that want it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from proctor_verify import notes, proves
from proctor_verify.check import Check
from proctor_verify.checks import CHECKS
from proctor_verify.contradicted import contradicted
from proctor_verify.elsewhere import Asked
from proctor_verify.errors import Unreadable
from proctor_verify.folder import Folder
from proctor_verify.journal import Block, Line, read_blocks
from proctor_verify.places import look_elsewhere
from proctor_verify.readers import Readers, how_many
from proctor_verify.report import Report, plain
from proctor_verify.run import Run
from proctor_verify.standing import JOURNAL, Standing, without_journal
from proctor_verify.walk import Walk


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
        asked = Asked.of(anchors, since, witnesses, apart_from=Path(path))
    except Unreadable as error:
        return Report((), unreadable=plain(error), strict=key is not None)
    try:
        folder = Folder(Path(path))
    except Unreadable as error:
        return Report((), unreadable=f"{plain(path)}: {error}", strict=key is not None)
    try:
        run = Run(folder, trust, look_elsewhere(asked, folder))
        try:
            return _verify(run, checks)
        finally:
            run.aside.close()
    finally:
        folder.close()


def _verify(run: Run, checks: Sequence[type[Check]]) -> Report:
    strict = run.trust is not None
    made = [check(run) for check in checks]
    walk = Walk(run, made)
    try:
        with Standing(run.folder, JOURNAL) as journal:
            _read(journal, walk, run.cuts)
            run.journal_bytes, run.journal_changed = journal.size, journal.changed()
    except OSError as error:
        return Report((), unreadable=f"{JOURNAL} cannot be read: {error.strerror}", strict=strict)
    except Unreadable as error:
        why = without_journal(run, error)
        if why is not None:
            return Report((), unreadable=why, strict=strict)
        run.no_journal = str(error)
    for check in made:
        check.settle()
        if run.no_journal is not None and check.needs_journal:
            check.cannot_tell("there is no journal to go by")
        elif run.blind is not None and not check.unblinded:
            check.cannot_tell(run.blind)
        elif run.design is None and check.needs_design:
            check.cannot_tell(f"there is no design to go by: {run.design_fault}")
        else:
            check.finish()
    results = tuple(check.result() for check in made)
    return Report(
        results=results,
        shown=proves.shown(run, results),
        caveats=(*proves.caveats(run, strict=strict), *walk.caveats(), *contradicted(run), *run.withheld.caveats()),
        strict=strict,
        run_id=run.first["run_id"] if run.first is not None else None,
        entries=run.size,
        synthetic=run.design.parts.synthetic if run.design is not None else (),
        scope=proves.scope_of(run),
        open_at=run.last_kind if run.blind is None and run.no_journal is None and not run.ended else None,
        groups=proves.groups_of(run),
    )


def _read(journal: Standing, walk: Walk, cuts: Sequence[int]) -> None:
    def pieces() -> Iterator[Block | Line]:
        for piece in read_blocks(journal):
            yield piece if isinstance(piece, Line) else piece.cut_at(cuts)

    with Readers(how_many(journal.size)) as readers:
        for piece in readers.judged(pieces()):
            if isinstance(piece, Line):
                walk.line(piece)
            else:
                walk.block(*piece)
            if walk.over:
                break
