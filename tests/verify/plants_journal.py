"""Faults of the journal, its checkpoints and keys, the manifests and the design."""

from __future__ import annotations

import os
from pathlib import Path

from builder import Story
from plants import STRANGER, Plant, Plants
from primitives import Signer, sha256
from steps import Checkpoint, Step

PLANTS = Plants()
plant = PLANTS.before_sealing
spoil = PLANTS.afterwards

# The journal as a journal.


@plant("journal.lines", "not JSON")
def _(s: Story) -> None:
    s.find("run.paused").raw = lambda line: b"{"


@plant("journal.lines", "not canonical")
def _(s: Story) -> None:
    s.find("run.paused").raw = lambda line: line.replace(b":", b": ", 1)


@plant("journal.lines", "a key twice")
def _(s: Story) -> None:
    s.find("run.paused").raw = lambda line: line.replace(b'{"body":{},', b'{"body":{},"body":{},')


@plant("journal.lines", "an empty line")
def _(s: Story) -> None:
    s.find("run.paused").raw = lambda line: b""


@plant("journal.lines", "too long")
def _(s: Story) -> None:
    s.find("run.draining").body["cause"] = "x" * 65_535


@plant("journal.lines", "far too long")
def _(s: Story) -> None:
    s.find("run.draining").body["cause"] = "x" * 3_000_000


@plant("journal.lines", "unterminated tail")
def _(s: Story) -> None:
    s.tail = b'{"body":{"cau'


@plant("journal.kinds", "a field more")
def _(s: Story) -> None:
    s.find("run.paused").body["more"] = 1


@plant("journal.kinds", "a field less")
def _(s: Story) -> None:
    del s.find("run.draining").body["cause"]


@plant("journal.kinds", "a boolean for a count")
def _(s: Story) -> None:
    s.find("block.ended").body["block"] = False


@plant("journal.kinds", "a word that is none of the kind's")
def _(s: Story) -> None:
    s.find("attempt.boundary").body["boundary"] = "lunch"


@plant("journal.kinds", "a nested field less")
def _(s: Story) -> None:
    del s.find("run.resumed").body["opening"]["pid"]


@plant("journal.kinds", "no time")
def _(s: Story) -> None:
    s.find("run.paused").after = lambda entry: entry.pop("time")


@plant("journal.kinds", "a time of another form")
def _(s: Story) -> None:
    s.find("run.paused").after = lambda entry: entry.update(time="2031-01-01T00:00:00Z")


@plant("journal.kinds", "not an object")
def _(s: Story) -> None:
    s.find("run.paused").raw = lambda line: b"[]"


@plant("journal.sequence", "a gap")
def _(s: Story) -> None:
    s.find("run.paused").after = lambda entry: entry.update(seq=entry["seq"] + 1)


@plant("journal.chain", "another line before")
def _(s: Story) -> None:
    s.find("run.paused").after = lambda entry: entry.update(prev=sha256(b"another"))


@plant("journal.mono", "time runs back")
def _(s: Story) -> None:
    s.find("run.unpaused").mono = 3


@plant("journal.openings", "hides that the opening before had no end")
def _(s: Story) -> None:
    s.find("run.resumed", 0).body["previous_ended"] = True


@plant("journal.openings", "hides that the opening before ended")
def _(s: Story) -> None:
    s.find("run.resumed", 1).body["previous_ended"] = False


@plant("journal.recovered", "an attempt in flight is not named")
def _(s: Story) -> None:
    s.find("run.recovered").body["lost"] = []


@plant("journal.recovered", "no recovery after an opening without an end")
def _(s: Story) -> None:
    s.drop(s.find("run.recovered", 1))


@plant("journal.recovered", "in the middle of an opening")
def _(s: Story) -> None:
    s.insert_before(s.find("run.paused"), Step("run.recovered", {"quarantined": [], "lost": []}))


@plant("journal.recovered", "lost without a recovery")
def _(s: Story) -> None:
    s.find("attempt.ended", outcome="interrupted").body |= {"outcome": "lost", "exception": "lost"}


@plant("journal.recovered", "work goes on before the lost attempt has its end")
def _(s: Story) -> None:
    s.insert_after(s.find("run.recovered"), Step("run.paused", {}))


@plant("run.ended", "no end")
def _(s: Story) -> None:
    s.drop(s.find("run.ended", -1))
    # The files that the end before it names are as they were then.
    s.find("run.ended").body["files"] = []
    del s.files["grade_summary.json"], s.files["summary.json"]


# Checkpoints and keys.


@plant("checkpoints.files", "named by no entry")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Checkpoint(named=False))


@plant("checkpoints.files", "another digest")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Checkpoint(entry=lambda body: body.update(sha256=sha256(b"another"))))


@plant("checkpoints.files", "another path")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Checkpoint(entry=lambda body: body.update(path="checkpoints/last.note")))


@spoil("checkpoints.files", "a file is gone")
def _(folder: Path) -> None:
    sorted(folder.glob("checkpoints/*"))[1].unlink()


@plant("checkpoints.signature", "signed by a stranger of the same name")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Checkpoint(signer=STRANGER))


@plant("checkpoints.signature", "no note")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Checkpoint(file=lambda note: note.replace(b"\n\n", b"\n")))


def _root(text: str) -> str:
    origin, size, _, _ = text.split("\n")
    return f"{origin}\n{size}\n{'A' * 43}=\n"


@plant("checkpoints.head", "another root")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Checkpoint(text=_root))


@plant("checkpoints.head", "another root in the entry")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Checkpoint(entry=lambda body: body.update(root=sha256(b""))))


@plant("checkpoints.head", "another run")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Checkpoint(text=lambda text: text.replace(s.run_id, "another")))


@plant("checkpoints.head", "another size")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Checkpoint(text=lambda text: text.replace("\n", "\n1", 1)))


@plant("checkpoints.head", "signed, and no checkpoint")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Checkpoint(text=lambda text: "hello\n"))


@spoil("checkpoints.head", "covers more than stands")
def _(folder: Path) -> None:
    text = f"proctor/run/run{'a' * 23}\n1000\n{'A' * 43}=\n"
    (folder / "checkpoints/000000001000.note").write_bytes(Signer().note(text))


@plant("checkpoints.last", "entries at the end that none covers")
def _(s: Story) -> None:
    s.drop(s.steps[-1])


@plant("key.stated", "another fingerprint")
def _(s: Story) -> None:
    s.find("run.resumed").body["key"]["fingerprint"] = STRANGER.fingerprint


@plant("key.same", "a stranger resumes")
def _(s: Story) -> None:
    last = s.find("run.resumed", -1)
    last.body["key"] = {"vkey": STRANGER.vkey, "fingerprint": STRANGER.fingerprint}
    for step in s.steps[s.at(last) :]:
        if isinstance(step, Checkpoint):
            step.signer = STRANGER


PLANTS.append(Plant("key.trust", "signed anew by a stranger", key=STRANGER.fingerprint))

# Manifests and design.


@plant("manifests.bound", "another digest")
def _(s: Story) -> None:
    s.find("run.resumed").body["manifest"]["sha256"] = sha256(b"another")


@plant("manifests.bound", "another digest of an abandoned one")
def _(s: Story) -> None:
    s.find("run.resumed").body["abandoned"][0]["sha256"] = sha256(b"another")


@spoil("manifests.bound", "gone")
def _(folder: Path) -> None:
    (folder / "manifests/0002.json").unlink()


@plant("manifests.unbound", "a refusal is gone")
def _(s: Story) -> None:
    del s.manifests["manifests/0001.json"]


@plant("manifests.unbound", "pending, and no entry names it")
def _(s: Story) -> None:
    s.manifest("pending")


@plant("manifests.unbound", "admitted, and no entry names it")
def _(s: Story) -> None:
    s.manifest("admitted")


@plant("manifests.unbound", "refused without a refusal")
def _(s: Story) -> None:
    s.manifests["manifests/0001.json"]["refusals"] = []


@plant("manifests.verdict", "the run's own manifest says refused")
def _(s: Story) -> None:
    s.manifests["manifests/0002.json"]["verdict"] = "refused"


@plant("manifests.verdict", "a refusal that was not waived")
def _(s: Story) -> None:
    s.manifests["manifests/0002.json"]["refusals"] = s.manifests["manifests/0001.json"]["refusals"]


@plant("manifests.verdict", "a waiver that nobody asked for")
def _(s: Story) -> None:
    s.manifests["manifests/0002.json"]["waivers"]["used"] = ["git_dirty"]


@plant("manifests.verdict", "of another design")
def _(s: Story) -> None:
    s.manifests["manifests/0004.json"]["design_sha256"] = sha256(b"another")


@plant("manifests.verdict", "a field less")
def _(s: Story) -> None:
    del s.manifests["manifests/0002.json"]["probes"]


@plant("design.digest", "another design than the one that was admitted")
def _(s: Story) -> None:
    s.find("run.admitted").body["design_sha256"] = sha256(b"another")
    for manifest in s.manifests.values():
        manifest["design_sha256"] = sha256(b"another")


@plant("design.plan", "another count of trials")
def _(s: Story) -> None:
    s.find("run.admitted").body["planned"] = {"trials": 9, "blocks": 4}


@plant("design.plan", "another study")
def _(s: Story) -> None:
    s.find("run.admitted").body["study"] = "another"


@plant("design.plan", "two tasks of one name")
def _(s: Story) -> None:
    s.design["tasks"].append(s.design["tasks"][-1])


@plant("design.plan", "tasks in another order")
def _(s: Story) -> None:
    s.design["tasks"].reverse()


@plant("design.plan", "an assurance that there is not")
def _(s: Story) -> None:
    s.design["grading"]["assurance"] = "total"


@plant("design.plan", "no epochs")
def _(s: Story) -> None:
    s.design["stage"]["epochs"] = True


@plant("journal.recovered", "an attempt in flight is not named, and goes on")
def _(s: Story) -> None:
    going_on = s.find("agent.ended", -1)
    length = len(s.steps)
    s.resume(previous_ended=False)
    s.add("run.recovered", quarantined=[], lost=[])
    added = s.steps[length:]
    del s.steps[length:]
    s.insert_before(going_on, *added)


def a_clock_that_stands_still(s: Story) -> None:
    """No fault: two entries come at one moment."""
    s.find("run.unpaused").after = lambda entry: entry.update(mono=entry["mono"] - 10)


def a_clock_that_begins_anew(s: Story) -> None:
    """No fault: the machine was started anew between two openings."""
    s.find("run.resumed").mono = 0


@spoil("journal.lines", "a tail that no newline ends, longer than what is read of a line")
def _(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    os.truncate(journal, journal.stat().st_size + (17 << 20))


SOUND = (a_clock_that_stands_still, a_clock_that_begins_anew)
