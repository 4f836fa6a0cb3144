"""Checks of who signs: what the run says of its key, and whether that is who we trust."""

from __future__ import annotations

from proctor_verify import notes
from proctor_verify.check import Check
from proctor_verify.checks.heads import witnessed
from proctor_verify.elsewhere import first_entries
from proctor_verify.errors import Unreadable
from proctor_verify.journal import Entry
from proctor_verify.run import Run

_OPENING = ("run.admitted", "run.resumed")


def stated_key(entry: Entry) -> notes.Key | None:
    """The key that an opening names, or None where its vkey is none."""
    try:
        return notes.verifier_key(entry.body["key"]["vkey"])
    except Unreadable:
        return None


class Stated(Check):
    id = "key.stated"
    doc = "each opening names its key by a vkey and that key's own fingerprint"
    noun = "openings"
    kinds = _OPENING

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        key = stated_key(entry)
        if key is None:
            self.fail_at(entry, "its vkey is none")
        elif key.fingerprint != entry.body["key"]["fingerprint"]:
            self.fail_at(entry, f"its fingerprint is not that of its vkey, {key.fingerprint}")


class Same(Check):
    id = "key.same"
    doc = "every opening has the key of the first"
    noun = "openings"
    kinds = _OPENING

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        if self.run.first is not None and entry.body["key"]["vkey"] != self.run.first["key"]["vkey"]:
            self.fail_at(entry, f"names another key: {entry.body['key']['vkey']}")


class Trust(Check):
    id = "key.trust"
    doc = "the key of the first opening is the one given with `--key`"
    noun = "keys"
    unblinded = True

    def finish(self) -> None:
        trust, first = self.run.trust, self.run.first
        if trust is None:
            self.cannot_tell("cannot tell who signed: no --key was given")
            return
        if first is None:
            self.cannot_tell("no opening names a key")
            return
        self.looked = 1
        try:
            key = notes.verifier_key(first["key"]["vkey"])
        except Unreadable as error:
            self.fail("journal.jsonl:1", f"the run's vkey is none: {error}")
            return
        if not trust.trusts(key):
            self.fail("journal.jsonl:1", f"signed by {key.name} {key.fingerprint}, and {trust.fingerprint} is trusted")


class Seen(Check):
    id = "key.witnessed"
    doc = (
        "each key given with `--witness` is not the run's own, and signed a checkpoint of this journal: one in the "
        "run, at an anchor that was given, or the one given with `--since`"
    )
    noun = "key was given with --witness"
    kinds = _OPENING
    unblinded = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._own: set[bytes] = set()

    def entry(self, entry: Entry) -> None:
        key = stated_key(entry)
        if key is not None:
            self._own.add(key.raw)

    def finish(self) -> None:
        heads, said = list(witnessed(self.run)), []
        for at, witness in enumerate(self.run.elsewhere.asked.witnesses):
            self.looked += 1
            signed = [(head.size, seen.time) for head in heads if (seen := head.seen_by[at]) is not None]
            if witness.key.raw in self._own:
                self.fail(witness.label, f"{witness.key.fingerprint} is the run's own key, and nobody else's")
            elif not signed:
                self.fail(witness.label, f"{witness.key.fingerprint} signed no checkpoint of this journal")
            else:
                # the largest, and of those the one that was signed last, as far as that is said
                said.append(signed_words(witness, *max(signed, key=lambda each: (each[0], each[1] or 0))))
        self.said = "; ".join(said)


def signed_words(witness: notes.Witness, size: int, time: int | None) -> str:
    """That a witness signed up to an entry, and when, by its own clock."""
    when = f" on {notes.date_of(time)}" if time is not None else ""
    return f"{witness.label} signed {first_entries(size)}{when}"
