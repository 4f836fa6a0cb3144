"""All checks, in the order in which a report has them. This list is the one source of the table in the docs."""

from __future__ import annotations

from proctor_verify.check import Check
from proctor_verify.checks import attempts, checkpoints, derived, design, files, finals, journal, keys, manifests, packs

CHECKS: tuple[type[Check], ...] = (
    journal.Lines,
    journal.Kinds,
    journal.Sequence,
    journal.Chain,
    journal.Mono,
    journal.Openings,
    journal.Recovered,
    journal.Ended,
    checkpoints.Files,
    checkpoints.Signature,
    checkpoints.Head,
    checkpoints.Last,
    keys.Stated,
    keys.Same,
    keys.Trust,
    manifests.Bound,
    manifests.Unbound,
    manifests.Verdict,
    design.Digest,
    design.Plan,
    attempts.BlocksAdmitted,
    attempts.BlocksDrawn,
    attempts.BlocksEnded,
    attempts.AttemptsAdmitted,
    attempts.AttemptsJoined,
    attempts.AttemptsNumbered,
    attempts.AttemptsPhases,
    attempts.AttemptsGraded,
    attempts.AttemptsEnded,
    attempts.Flight,
    finals.One,
    finals.Agree,
    finals.Totals,
    finals.ExitStatus,
    packs.Frames,
    packs.Blobs,
    files.Digests,
    files.Unlisted,
    derived.Grades,
    derived.Summary,
)
