"""Checks of who signs: what the run says of its key, and whether that is who we trust."""

from __future__ import annotations

from proctor_verify import notes
from proctor_verify.check import Check
from proctor_verify.errors import Unreadable
from proctor_verify.journal import Entry

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
