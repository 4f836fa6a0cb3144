"""Every kind of journal entry: the closed registry from which `docs/evidence-format.md` is made.

A field written as `name?` may be null; `[...]` is a list. The second program holds its own copy of the written
spec, never this module.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

FORMAT = 1


class KindDoc(NamedTuple):
    """The dotted name in the journal, one line of meaning, and the body's fields."""

    kind: str
    doc: str
    fields: dict[str, str]


_FILE_REF = "{path, sha256}"
_OPENING = "{boot_id?, host, pid, version}: the process that writes from here on"
_STAND_IN = "{image, root, explicit, skipped_installs, version_notes, ignored_lines}: what stands in for the image"
_EXCHANGE = "exchange id: `<attempt id>/<index in the attempt, from 0>`"
_ATTEMPT = "attempt id: `<trial id>/<number>`"
_SEEN = "{exit_code?, signal?, timed_out, output_bytes, output_dropped, leftovers, limit_hit?, start_error?}"


class Kind(Enum):
    """Kinds, in the order in which a run meets them."""

    RUN_ADMITTED = KindDoc(
        "run.admitted",
        "Entry 0: the run exists. Nothing has acted on the world before it.",
        {
            "format": "1",
            "run_id": "random id of the run",
            "study": "name of the study",
            "stage": "name of the stage",
            "manifest": f"{_FILE_REF} of the invocation's final manifest",
            "design_sha256": "SHA-256 of `design.json`",
            "abandoned": f"[{_FILE_REF}] manifests of invocations that died before their verdict was bound",
            "opening": _OPENING,
            "key": "{vkey, fingerprint} of the key that signs checkpoints",
            "planned": "{trials, blocks} counts of the design",
        },
    )
    RUN_RESUMED = KindDoc(
        "run.resumed",
        "Another process opened the journal: the first entry that it appends.",
        {
            "manifest": f"{_FILE_REF}",
            "abandoned": f"[{_FILE_REF}]",
            "opening": _OPENING,
            "key": "{vkey, fingerprint}",
            "previous_ended": "whether the entry before this one is a `run.ended`",
        },
    )
    RUN_RECOVERED = KindDoc(
        "run.recovered",
        "Follows `run.resumed` where the previous opening had no end, or bytes had to be set aside.",
        {
            "quarantined": "[{path, sha256, size, source}] bytes of an unfinished line or frame, in `quarantine/`",
            "lost": "[attempt id] attempts in flight; each gets its `attempt.ended` (outcome `lost`) next",
        },
    )
    CHECKPOINT_MADE = KindDoc(
        "checkpoint.made",
        "Names a checkpoint file that stands: all of them but the one made after the last entry are named.",
        {
            "path": "`checkpoints/<size, 12 digits>.note`",
            "sha256": "of the file",
            "size": "entries covered",
            "root": "hex tree head",
        },
    )
    CHECKPOINT_ANCHORED = KindDoc(
        "checkpoint.anchored",
        "Names a receipt that stands: a checkpoint is at an anchor too. All are named but those of the last "
        "checkpoint.",
        {
            "anchor": "git | drop",
            "path": "`checkpoints/<size, 12 digits>.<anchor>.json`",
            "sha256": "of the receipt",
            "size": "entries covered",
        },
    )
    ANCHOR_FAILED = KindDoc(
        "anchor.failed",
        "A checkpoint could not be pushed to an anchor, and what it said was asked for again in vain.",
        {
            "anchor": "git | drop",
            "size": "entries covered by the checkpoint",
            "attempts": "how often it was tried, from 1",
            "return_code?": "of the last command that pushed; null where none ended",
            "reason": "reason id",
            "message": "one sentence",
        },
    )
    BLOCK_ADMITTED = KindDoc(
        "block.admitted",
        "A block (task, model, epoch, with all its arms) may run. Again after a resume, if its end was not reached.",
        {
            "block": "index in the drawn order, from 0",
            "task": "name",
            "model?": "name",
            "epoch": "from 1",
            "reserve?": "money set aside for it; null where nothing of the run is priced",
        },
    )
    ATTEMPT_ADMITTED = KindDoc(
        "attempt.admitted",
        "One try at a trial may act: durable before its sandbox starts.",
        {
            "attempt": _ATTEMPT,
            "trial": "trial id",
            "number": "from 0, without gaps",
            "block": "index of its block",
            "task": "name",
            "model?": "name",
            "arm": "name",
            "epoch": "from 1",
            "folder": "the attempt's folder, relative to the run; never made for a question row",
            "supersedes?": "the lost or interrupted attempt whose place this one takes; uses no replacement",
            "replaces?": "the attempt that ended by infrastructure; counts against `replacements`",
        },
    )
    SANDBOX_STARTED = KindDoc(
        "sandbox.started",
        "A world is up, and what is really in force in it.",
        {
            "attempt": _ATTEMPT,
            "role": "agent | verifier",
            "from_snapshot": "whether it was forked from the attempt's own pre-verify world",
            "facts": "`kind`, `network` (none | gateway-only | allowlist | public) and what else was read back",
            "limits": "[{name, wanted?, enforced?, how?, why_not?}]",
            "base_substituted?": _STAND_IN,
        },
    )
    ATTEMPT_BOUNDARY = KindDoc(
        "attempt.boundary",
        "A boundary of the rollout was reached.",
        {"attempt": _ATTEMPT, "boundary": "env-ready | pre-verify | post-verify"},
    )
    AGENT_STARTED = KindDoc(
        "agent.started",
        "The agent is about to act: who it is, and what it is told.",
        {
            "attempt": _ATTEMPT,
            "agent": "name",
            "version": "{available, value?, reason?} as attested",
            "settings": "the agent's settings for this arm",
            "instruction": "blob reference: the text handed to the agent",
            "skills": "[{name, sha256}] skill packs put into the sandbox",
            "timeout_sec?": "the deadline in force",
        },
    )
    EXCHANGE_ADMITTED = KindDoc(
        "exchange.admitted",
        "One request to a model may be sent: its worst case is held, durably, before it is.",
        {
            "attempt": _ATTEMPT,
            "exchange": _EXCHANGE,
            "model": "name in the design",
            "route": "method and path at the provider, without host and query",
            "request": "blob reference: the body as sent, decoded, secrets taken out",
            "request_digest": "SHA-256 of canonical JSON `{messages, tools}` in the provider's own words, as sent",
            "input_bound": "tokens that go in at most",
            "output_bound": "tokens that come out at most",
            "held": "money: the worst case within these bounds",
            "retries?": "the exchange whose request this one sends again",
            "mutations": "[text] what was changed in the request of an agent inside, as the design admits it",
        },
    )
    EXCHANGE_ENDED = KindDoc(
        "exchange.ended",
        "The end of an exchange, exactly once: what came back, what it used, what is charged.",
        {
            "attempt": _ATTEMPT,
            "exchange": _EXCHANGE,
            "outcome": "settled | released (nothing was sent or nothing is owed) | unknown (the process died)",
            "http_status?": "of the answer",
            "error?": "reason id where there is no usable answer",
            "resolved_model?": "the provider's name of the model that answered",
            "finish?": "stop | tools | length | refused | other",
            "response?": "blob reference: the body as it came, decoded, secrets taken out",
            "chunks?": "blob reference: the chunk map of a streamed response; null where there is none",
            "usage?": "{bucket: tokens}, zeros left out; null where the provider gave none that can be used",
            "charged": "money",
            "estimated": "whether `charged` is the worst case, for want of a usage",
            "overrun": "whether more was charged than held",
            "flags": "[text] what of the answer does not fit together",
            "timing": "{phase: ns} monotonic: `sent`, `first_byte`, `last_byte`, since the admission",
        },
    )
    EXCHANGE_REFUSED = KindDoc(
        "exchange.refused",
        "A request that was not sent, because it may not be paid for or priced, or is not for this gateway to pass on.",
        {
            "attempt": _ATTEMPT,
            "model": "name in the design",
            "reason": "reason id",
            "held": "money that it would have held",
            "message": "one sentence",
            "route?": "method and path at the provider; null where it was not made",
            "request?": "blob reference: the body, decoded, secrets taken out; null where none was read or kept",
        },
    )
    AGENT_ENDED = KindDoc(
        "agent.ended",
        "The agent is over and nothing of it runs any more.",
        {
            "attempt": _ATTEMPT,
            "exception?": "reason id where it did not end by itself with status 0",
            "ended": _SEEN,
            "duration_ns": "monotonic",
        },
    )
    VERIFIER_ENDED = KindDoc(
        "verifier.ended",
        "The tests are over.",
        {
            "attempt": _ATTEMPT,
            "assurance": "isolated | shared | live",
            "ended": _SEEN,
            "duration_ns": "monotonic",
        },
    )
    ANSWER_SCORED = KindDoc(
        "answer.scored",
        "A question row's answer, and what its scorer made of it.",
        {
            "attempt": _ATTEMPT,
            "answer": "blob reference: the text that was submitted",
            "scorer": "exact | choice | regex | number | json | python",
            "detail": "one sentence: what was compared with what",
        },
    )
    ATTEMPT_FILES = KindDoc(
        "attempt.files",
        "Files of an attempt's folder and their digests. Several entries may follow each other; later ones win.",
        {
            "attempt": _ATTEMPT,
            "files": "[{path, sha256, size, role}] path below the attempt's folder; role source | derived | partial",
        },
    )
    ATTEMPT_GRADED = KindDoc(
        "attempt.graded",
        "The grade, at most once for each attempt.",
        {
            "attempt": _ATTEMPT,
            "grade": "pass | fail | ungraded",
            "reason?": "reason id; null for pass",
            "reward?": "the number that decided",
            "rewards": "named numbers as written by the verifier",
            "assurance?": "isolated | shared | live; null where no verifier ran",
            "tests?": "{rows, identities, all_pass, all_fail, all_skip, all_other, mixed, last_row_fails, duplicates}",
            "disclosures": "[text]",
        },
    )
    ATTEMPT_ENDED = KindDoc(
        "attempt.ended",
        "The end of an attempt, exactly once.",
        {
            "attempt": _ATTEMPT,
            "outcome": "completed | infrastructure | interrupted | lost",
            "exception?": "reason id: what happened beside the grade",
            "message?": "one sentence",
            "timing": "{phase: ns} monotonic",
        },
    )
    TRIAL_FINAL = KindDoc(
        "trial.final",
        "The one attempt that counts for a trial, exactly once in a complete run.",
        {
            "trial": "trial id",
            "attempt": "attempt id of its last attempt",
            "grade": "pass | fail | ungraded",
            "reason?": "reason id",
            "reward?": "number",
        },
    )
    BLOCK_ENDED = KindDoc("block.ended", "All trials of the block have their final.", {"block": "index"})
    CEILING_REACHED = KindDoc(
        "ceiling.reached",
        "Money ran out, or more was charged than held: what is said here is admitted no more.",
        {
            "scope": "ceiling (hard: nothing more) | overrun (no block more) | cap (no block more) | model_cap (of it)",
            "model?": "name, for the scope model_cap",
            "spent": "money: spent before, settled and open",
            "wanted": "money that was asked for on top; zero where the limit is passed already",
            "limit": "money",
        },
    )
    RUN_PAUSED = KindDoc("run.paused", "No new attempt starts until `run.unpaused`.", {})
    RUN_UNPAUSED = KindDoc("run.unpaused", "Attempts start again.", {})
    RUN_DRAINING = KindDoc(
        "run.draining",
        "Nothing new starts; what is in flight ends by itself.",
        {"cause": "signal name, `deadline`, `prepare-only`, or the id of a reason that would end every attempt"},
    )
    RUN_ENDED = KindDoc(
        "run.ended",
        "The end of this opening, with the status that the operating system sees.",
        {
            "exit_status": "0, 1, 4, 5, 129, 130 or 143",
            "reason?": "reason id where the run did not just end; null for status 0 and 1, but for `prepared_only`",
            "complete": "whether every planned trial has its final",
            "totals": "{trials, finals, pass, fail, ungraded}",
            "files": "[{path, sha256, size}] derived files of the run: `summary.json`, `grade_summary.json`",
        },
    )

    @property
    def id(self) -> str:
        """The name in the journal."""
        return self.value.kind

    @classmethod
    def by_id(cls, kind: str) -> Kind | None:
        """The kind of that name, or None."""
        return _BY_ID.get(kind)


_BY_ID = {kind.value.kind: kind for kind in Kind}
