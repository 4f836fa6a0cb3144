"""The whole verification: one pass over the journal, each entry handed to the checks that want it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path

from proctor_verify import notes
from proctor_verify.check import Check
from proctor_verify.checks import CHECKS
from proctor_verify.checks.manifests import manifest_names, read_manifest
from proctor_verify.elsewhere import Asked, look_elsewhere
from proctor_verify.errors import Unreadable
from proctor_verify.folder import Folder
from proctor_verify.journal import MAX_HASHED, Entry, Line, read_lines
from proctor_verify.report import Report, plain
from proctor_verify.run import Run
from proctor_verify.schema import KINDS, body_fault, envelope_fault
from proctor_verify.strictjson import loads_canonical

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
    walk = _Walk(run, made)
    try:
        with stream:
            for line in read_lines(stream):
                walk.line(line)
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
        caveats=(*(() if strict else (NO_KEY,)), NO_ANCHOR, *walk.clock.caveats(), *run.withheld.caveats()),
        strict=strict,
        run_id=run.first["run_id"] if run.first is not None else None,
        entries=run.size,
        synthetic=run.design.parts.synthetic if run.design is not None else (),
    )


class _Clock:
    """How far the wall clock falls within an opening: clocks are set back, and then times order nothing."""

    def __init__(self) -> None:
        self.latest = ""
        self._worst = timedelta(minutes=1)
        self._line: int | None = None

    def fell(self, entry: Entry) -> None:
        """An entry whose time is before `latest` (times have one width: text compares as they do), or an opening's."""
        if entry.kind == "run.resumed":
            self.latest = entry.time
            return
        fall = datetime.fromisoformat(self.latest) - datetime.fromisoformat(entry.time)
        if fall > self._worst:
            self._worst, self._line = fall, entry.line + 1

    def caveats(self) -> tuple[str, ...]:
        """What to say of it: nothing for a minute or less."""
        if self._line is None:
            return ()
        seconds = f"{self._worst.total_seconds():,.0f}"
        return (f"times: the wall clock falls by {seconds} seconds within an opening, up to line {self._line}",)


class _Walk:
    """Hands each line to the checks that want it, then to the facts."""

    def __init__(self, run: Run, checks: Sequence[Check]) -> None:
        self._run = run
        self.clock = _Clock()
        self._lines = [check.line for check in checks if type(check).line is not Check.line]
        self._every: list[Callable[[Entry], None]] = [check.entry for check in checks if check.every]
        self._kinds: dict[str, list[Callable[[Entry], None]]] = defaultdict(list)
        for check in checks:
            if run.design is not None or not check.needs_design:
                for kind in check.kinds:
                    self._kinds[kind].append(check.entry)

    def line(self, line: Line) -> None:
        entry = _parse(line)
        for look in self._lines:
            look(line)
        run = self._run
        if entry is not None:
            if entry.time < self.clock.latest or entry.kind == "run.resumed":
                self.clock.fell(entry)
            else:
                self.clock.latest = entry.time
            for see in self._every:
                see(entry)
        if (line.fault or line.misshapen) and run.blind is None:
            run.blind = f"line {line.number + 1} of the journal cannot be read, and what follows depends on it"
        if entry is not None and run.blind is None:
            for see in self._kinds[entry.kind]:
                see(entry)
            run.take(entry)
        if line.terminated:
            run.advance(line.digest, line.leaf)


def _parse(line: Line) -> Entry | None:
    """The line as an entry, as far as it is one; what it is not is noted on the line."""
    if line.given_up:
        line.fault = f"no newline ends it within {MAX_HASHED:,} bytes, and nothing from there on was read"
        return None
    if not line.terminated:
        line.fault = "no newline ends the last line: it was cut, or never finished"
        return None
    if line.raw is None:
        line.fault = "is longer than an entry may be"
        return None
    try:
        value = loads_canonical(line.raw)
    except Unreadable as error:
        line.fault = str(error)
        return None
    line.misshapen = envelope_fault(value)
    if line.misshapen is not None:
        return None
    kind, body = value["kind"], value["body"]
    if kind in KINDS:
        line.misshapen = body_fault(kind, body)
    else:
        line.unknown_kind = kind
    return Entry(line.number, value["seq"], value["prev"], value["time"], value["mono"], kind, body)


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
