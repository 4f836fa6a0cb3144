"""What is said of the reasons about provenance, the run folder and evidence."""

from __future__ import annotations

from proctor.core.families import Family, Words

GIT_DIRTY = Words(
    Family.PROVENANCE,
    "The study's repository has changes that no commit holds.",
    "Commit them, or `--waive git_dirty`.",
    waivable=True,
)
GIT_BROKEN = Words(
    Family.PROVENANCE,
    "The study lies in a git repository that git cannot read.",
    "Mend the repository (`git status` must work).",
)
VERSION_UNSUPPORTED = Words(
    Family.PROVENANCE,
    "A component is outside of the versions that this design may depend on.",
    "Install a version in the range.",
)
RUN_EXISTS = Words(Family.RUN, "A run was admitted there already.", "Use `proctor resume`, or another --out.")
RUN_NOT_FOUND = Words(
    Family.RUN, "There is no run at that path.", "Name a run folder (it holds design.json and journal.jsonl)."
)
RUN_LOCKED = Words(Family.RUN, "Another process writes this run.", "Wait for it, or end it; `proctor status` names it.")
RUN_NOT_LIVE = Words(Family.RUN, "No process writes this run now.", "Use `proctor resume` to go on with it.")
RUN_COMPLETE = Words(
    Family.RUN,
    "The run is complete: there is nothing left to do.",
    "Start another run; what its anchors lack `proctor anchor` pushes.",
)
OUT_UNUSABLE = Words(Family.RUN, "The run folder cannot be made or written there.", "Choose another --out.")
DESIGN_CHANGED = Words(
    Family.RUN,
    "What is frozen in the run differs from what stands there now.",
    "Restore the field that the message names, or start another run.",
)
TASK_CHANGED = Words(
    Family.RUN, "A task's content differs from what the run admitted.", "Restore the task, or start another run."
)
PREPARED_ONLY = Words(Family.RUN, "The run was prepared and not started, as asked.", "`proctor resume` starts it.")
STAGE_DEADLINE = Words(
    Family.RUN, "The stage reached its deadline: nothing new was started.", "`proctor resume` goes on."
)
DISK_FULL = Words(
    Family.RUN, "There is no space left where the run is kept.", "Free space and `proctor resume`.", ends_run=True
)
EVIDENCE_UNREADABLE = Words(Family.EVIDENCE, "Evidence cannot be read.", "Restore the run folder from a copy.")
EVIDENCE_DAMAGED = Words(
    Family.EVIDENCE,
    "Evidence is not what was written: a line, a digest or a link does not fit.",
    "Restore the run folder from a copy; nothing was changed. `proctor verify` still says what holds.",
)
JSON_INVALID = Words(
    Family.EVIDENCE,
    "Bytes are not strict JSON within bounds.",
    "Write plain JSON: UTF-8, no duplicate keys, finite numbers.",
)
ENTRY_TOO_LARGE = Words(
    Family.EVIDENCE, "A journal entry is larger than 65,535 bytes.", "Keep the payload as a blob, by its digest."
)
FORMAT_UNKNOWN = Words(
    Family.EVIDENCE,
    "The run was written in a format that this version does not know.",
    "Use the version that wrote it, or a newer one.",
)
WRITE_FAILED = Words(
    Family.EVIDENCE,
    "Writing evidence failed; the run stopped.",
    "Mend the disk and `proctor resume`.",
    ends_run=True,
)
KEY_UNREADABLE = Words(
    Family.EVIDENCE, "A key cannot be read.", "Name a file of `proctor keys`, a vkey or sha256: of the raw key."
)
EVIDENCE_WITHHELD = Words(
    Family.EVIDENCE,
    "This is a public copy of a run: what was asked for needs bodies that are withheld in it.",
    "Ask whoever has the run itself; digests of what is withheld stand in the journal.",
)
TRIAL_UNFINISHED = Words(
    Family.EVIDENCE, "The trial has no final yet: there is nothing to prove of it.", "Finish it with `proctor resume`."
)
ANCHOR_UNREACHABLE = Words(
    Family.EVIDENCE,
    "An anchor of the study does not answer.",
    "Look at its address and the network; `proctor resume` goes on, `proctor anchor` pushes what was not.",
)
ANCHOR_REJECTED = Words(
    Family.EVIDENCE,
    "An anchor answered, and did not take the checkpoint.",
    "Look at what it says; the run needs the right to push to its own ref, and to nothing else.",
)
ANCHOR_DIFFERS = Words(
    Family.EVIDENCE,
    "What an anchor holds is not what was pushed there.",
    "Find out who else writes there: a run's ref and folder are its own.",
)
TIMESTAMP_FAILED = Words(
    Family.EVIDENCE, "A timestamp authority gave no answer that holds.", "Try again, or name another authority."
)
