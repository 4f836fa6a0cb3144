"""One fault at a time, planted in a complete run whose digests, links, roots and signatures are then made anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import Checkpoint, Late, Signer, Step, Story, canonical, sha256

STRANGER = Signer(2)
Alter = Callable[[Story], None]
Spoil = Callable[[Path], None]


@dataclass(frozen=True)
class Plant:
    """A fault: what it is, the one check that must find it, and how it comes about."""

    check: str
    what: str
    alter: Alter = lambda story: None
    spoil: Spoil = lambda folder: None
    key: str | None = None

    @property
    def id(self) -> str:
        return f"{self.check}: {self.what}"


PLANTS: list[Plant] = []


def plant(check: str, what: str) -> Callable[[Alter], Alter]:
    """Declare a fault that is planted before sealing."""

    def declare(alter: Alter) -> Alter:
        PLANTS.append(Plant(check, what, alter))
        return alter

    return declare


def spoil(check: str, what: str) -> Callable[[Spoil], Spoil]:
    """Declare a fault that is done to the finished folder."""

    def declare(spoil: Spoil) -> Spoil:
        PLANTS.append(Plant(check, what, spoil=spoil))
        return spoil

    return declare


def first_of(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


def flip(path: Path, at: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


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
    s.find("attempt.ended", outcome="interrupted").body["outcome"] = "lost"


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


@plant("design.plan", "no epochs")
def _(s: Story) -> None:
    s.design["stage"]["epochs"] = True


# Blocks and attempts.


@plant("blocks.admitted", "never")
def _(s: Story) -> None:
    s.drop(s.find("block.admitted"))


@plant("blocks.admitted", "twice in one opening")
def _(s: Story) -> None:
    first = s.find("block.admitted")
    s.insert_after(first, Step(first.kind, dict(first.body)))


@plant("blocks.admitted", "after its end")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Step("block.admitted", dict(s.find("block.admitted").body)))


@plant("blocks.admitted", "one that is not planned")
def _(s: Story) -> None:
    planned = s.find("block.admitted").body
    s.insert_after(s.find("run.paused"), Step("block.admitted", {**planned, "task": "another"}))


@plant("blocks.drawn", "at another place")
def _(s: Story) -> None:
    s.find("block.admitted").body["block"] = 1


@plant("blocks.ended", "no end")
def _(s: Story) -> None:
    s.drop(s.find("block.ended"))


@plant("blocks.ended", "twice")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Step("block.ended", {"block": 0}))


@plant("blocks.ended", "before its last final")
def _(s: Story) -> None:
    early = s.find("block.ended")
    s.drop(early)
    s.insert_before(s.find("trial.final", 1), early)


@plant("attempts.admitted", "a sandbox before the admission")
def _(s: Story) -> None:
    early = s.find("sandbox.started")
    s.drop(early)
    s.insert_before(s.find("attempt.admitted"), early)


@plant("attempts.admitted", "done in the name of nobody")
def _(s: Story) -> None:
    nobody = {"attempt": "0" * 16 + "/0", "boundary": "env-ready"}
    s.insert_after(s.find("run.paused"), Step("attempt.boundary", nobody))


@plant("attempts.joined", "another arm")
def _(s: Story) -> None:
    s.find("attempt.admitted").body["arm"] = "arm-1"


@plant("attempts.joined", "an arm that is not planned")
def _(s: Story) -> None:
    s.find("attempt.admitted").body["arm"] = "arm-9"


@plant("attempts.joined", "another epoch")
def _(s: Story) -> None:
    body = s.find("attempt.admitted").body
    body["epoch"] = 3 - body["epoch"]


@plant("attempts.joined", "a model where there is none")
def _(s: Story) -> None:
    s.find("attempt.admitted").body["model"] = "model-0"


@plant("attempts.joined", "another block")
def _(s: Story) -> None:
    s.find("attempt.admitted").body["block"] = 3


@plant("attempts.joined", "the final of a trial that is not planned")
def _(s: Story) -> None:
    final = {"trial": "0" * 16, "attempt": None, "grade": "ungraded", "reason": "not_run", "reward": None}
    s.insert_after(s.find("run.paused"), Step("trial.final", final))


@plant("attempts.numbered", "does not say which lost attempt it supersedes")
def _(s: Story) -> None:
    superseding = next(step for step in s.steps if isinstance(step, Step) and step.body.get("supersedes"))
    superseding.body["supersedes"] = None


@plant("attempts.numbered", "calls a replacement superseding")
def _(s: Story) -> None:
    body = next(step for step in s.steps if isinstance(step, Step) and step.body.get("replaces")).body
    body["supersedes"], body["replaces"] = body["replaces"], None


@plant("attempts.numbered", "a first attempt that replaces another's")
def _(s: Story) -> None:
    s.find("attempt.admitted", 1).body["replaces"] = s.find("attempt.admitted", 0).body["attempt"]


@plant("attempts.numbered", "more replacements than the design allows")
def _(s: Story) -> None:
    s.design["stage"]["replacements"] = 0


@plant("attempts.numbered", "one more after a completed one")
def _(s: Story) -> None:
    first = s.find("trial.final")
    again = _moved(s, first, lambda: _once_more(s, index=0, arm="arm-0", final=False))
    first.body["attempt"] = again


@plant("attempts.numbered", "two at a time")
def _(s: Story) -> None:
    first = s.find("attempt.ended", outcome="infrastructure")
    s.drop(first)
    s.insert_after(s.find("attempt.admitted", replaces=first.body["attempt"]), first)


@plant("attempts.phases", "an agent ends that did not start")
def _(s: Story) -> None:
    s.drop(s.find("agent.started", 1))


@plant("attempts.phases", "an agent ends twice")
def _(s: Story) -> None:
    there = s.find("agent.ended")
    s.insert_after(there, Step(there.kind, dict(there.body)))


@plant("attempts.phases", "an agent starts twice")
def _(s: Story) -> None:
    there = s.find("agent.started")
    s.insert_after(there, Step(there.kind, dict(there.body)))


@plant("attempts.graded", "twice")
def _(s: Story) -> None:
    there = s.find("attempt.graded")
    s.insert_after(there, Step(there.kind, {**there.body, "grade": "fail", "reason": "below_threshold", "reward": 0}))


@plant("attempts.graded", "completed without a grade")
def _(s: Story) -> None:
    there = s.find("attempt.graded", grade="ungraded")
    s.drop(there)
    trial = there.body["attempt"][:16]
    s.finals[trial]["reason"] = s.find("trial.final", trial=trial).body["reason"] = "not_graded"


@plant("attempts.graded", "a pass with a reason")
def _(s: Story) -> None:
    for kind in ("attempt.graded", "trial.final"):
        s.find(kind, grade="pass").body["reason"] = "because"
    s.finals[s.find("trial.final").body["trial"]] = s.find("trial.final").body


@plant("attempts.ended", "twice")
def _(s: Story) -> None:
    there = s.find("attempt.ended")
    s.insert_after(there, Step(there.kind, dict(there.body)))


@plant("attempts.ended", "something after the end")
def _(s: Story) -> None:
    attempt = s.find("attempt.ended").body["attempt"]
    s.insert_after(s.find("run.paused"), Step("attempt.boundary", {"attempt": attempt, "boundary": "post-verify"}))


@plant("flight.empty", "an attempt in flight when the opening ends")
def _(s: Story) -> None:
    interrupted = s.find("attempt.ended", outcome="interrupted")
    s.drop(interrupted)
    s.insert_after(s.find("run.resumed", 1), interrupted)


# Finals and totals.


def _once_more(s: Story, index: int, arm: str, *, final: bool, **links: Any) -> str:
    attempt = s.start(index, arm, **links)
    s.grade(attempt, "pass", 1)
    s.end(attempt)
    if final:
        s.final(attempt)
    return attempt


def _moved(s: Story, before: Step, make: Callable[[], str]) -> str:
    """Lets a story go on at its end, and moves what that adds to before a step."""
    length = len(s.steps)
    attempt = make()
    added = s.steps[length:]
    del s.steps[length:]
    s.insert_before(before, *added)
    return attempt


@plant("finals.one", "twice")
def _(s: Story) -> None:
    there = s.find("trial.final")
    s.insert_after(there, Step(there.kind, dict(there.body)))


@plant("finals.one", "an attempt after it")
def _(s: Story) -> None:
    third = s.find("attempt.ended", exception="sandbox_start_failed").body["attempt"]
    _moved(
        s,
        s.find("block.ended", block=2),
        lambda: _once_more(s, index=2, arm="arm-1", final=False, replaces=third),
    )


@plant("finals.one", "while its attempt is open")
def _(s: Story) -> None:
    there = s.find("trial.final")
    s.drop(there)
    s.insert_before(s.find("attempt.ended"), there)


@plant("finals.one", "of an attempt that is not the last")
def _(s: Story) -> None:
    replaced = s.find("attempt.ended", outcome="infrastructure").body["attempt"]
    s.find("trial.final", trial=replaced[:16]).body["attempt"] = replaced


@plant("finals.agree", "another reward")
def _(s: Story) -> None:
    final = s.find("trial.final").body
    final["reward"] = 2
    s.finals[final["trial"]] = final


@plant("finals.agree", "another reason")
def _(s: Story) -> None:
    final = s.find("trial.final", grade="fail").body
    final["reason"] = "another"
    s.finals[final["trial"]] = final


@plant("finals.agree", "a pass without an attempt")
def _(s: Story) -> None:
    s.find("trial.final").body["attempt"] = None


@plant("finals.agree", "a reason that an ungraded attempt does not have")
def _(s: Story) -> None:
    final = s.find("trial.final", grade="ungraded", reason="not_graded").body
    final["reason"] = "another"
    s.finals[final["trial"]] = final


@plant("finals.agree", "of an attempt that was interrupted")
def _(s: Story) -> None:
    third = s.find("attempt.ended", exception="sandbox_start_failed")
    third.body["outcome"] = "interrupted"


@plant("totals.agree", "another count")
def _(s: Story) -> None:
    s.find("run.ended").body["totals"]["pass"] += 1


@plant("totals.agree", "complete before it is")
def _(s: Story) -> None:
    s.find("run.ended").body["complete"] = True


@plant("status.agrees", "0 with an ungraded final")
def _(s: Story) -> None:
    s.find("run.ended", -1).body["exit_status"] = 0


@plant("status.agrees", "1 before it is complete")
def _(s: Story) -> None:
    s.find("run.ended", 0).body["exit_status"] = 1


# Bytes.


@plant("packs.frames", "altered")
def _(s: Story) -> None:
    s.packs["0001.pack"][0] ^= 1


@plant("packs.frames", "altered within gzip")
def _(s: Story) -> None:
    s.packs["0002.pack"][-1] ^= 1


@plant("packs.frames", "bytes at the end that no entry names")
def _(s: Story) -> None:
    s.packs["0002.pack"] += b"x"


@plant("packs.frames", "bytes at the end of an earlier pack that no entry names")
def _(s: Story) -> None:
    s.packs["0001.pack"] += b"x"


@plant("packs.frames", "a gap between frames")
def _(s: Story) -> None:
    at = s.find("agent.started").body["instruction"]["length"]
    s.packs["0001.pack"][at:at] = b"x"
    for step in s.steps:
        if isinstance(step, Step) and step.kind == "agent.started" and step.body["instruction"].get("offset"):
            step.body["instruction"]["offset"] += 1


@plant("packs.frames", "another size")
def _(s: Story) -> None:
    for step in s.steps:
        if isinstance(step, Step) and step.kind == "agent.started" and step.body["instruction"].get("offset") == 0:
            step.body["instruction"]["size"] += 1


@plant("packs.frames", "a pack that is not there")
def _(s: Story) -> None:
    s.find("agent.started").body["instruction"]["pack"] = "0003.pack"


@spoil("packs.frames", "cut short")
def _(folder: Path) -> None:
    os.truncate(folder / "packs/0002.pack", 20)


@spoil("blobs.files", "altered")
def _(folder: Path) -> None:
    flip(first_of(folder, "blobs/*/*"))


@spoil("blobs.files", "gone")
def _(folder: Path) -> None:
    first_of(folder, "blobs/*/*").unlink()


@spoil("blobs.files", "a symbolic link to the same bytes")
def _(folder: Path) -> None:
    blob = first_of(folder, "blobs/*/*")
    blob.rename(folder / ".elsewhere")
    blob.symlink_to(folder / ".elsewhere")


@spoil("files.digests", "altered")
def _(folder: Path) -> None:
    flip(first_of(folder, "trials/*/*/agent/stdout.log"))


@spoil("files.digests", "gone")
def _(folder: Path) -> None:
    first_of(folder, "trials/*/*/agent/stdout.log").unlink()


@spoil("files.digests", "longer")
def _(folder: Path) -> None:
    with first_of(folder, "trials/*/*/agent/stdout.log").open("ab") as file:
        file.write(b"\n")


@spoil("files.digests", "a quarantined file is altered")
def _(folder: Path) -> None:
    flip(folder / "quarantine/0001-journal.tail")


@plant("files.digests", "a path that leads out of the attempt")
def _(s: Story) -> None:
    files = s.find("attempt.files").body
    was = files["files"]
    out = {"path": "../../../design.json", "sha256": Late(lambda s: sha256(canonical(s.design))), "role": "source"}
    out["size"] = Late(lambda s: len(canonical(s.design)))
    files["files"] = Late(lambda s: [*s.settled(was), out])


@spoil("files.unlisted", "a file in the run folder")
def _(folder: Path) -> None:
    (folder / "notes.txt").touch()


@spoil("files.unlisted", "a file in an attempt's folder")
def _(folder: Path) -> None:
    (first_of(folder, "trials/*/*/agent") / "more.log").touch()


@spoil("files.unlisted", "a symbolic link in an attempt's folder")
def _(folder: Path) -> None:
    (first_of(folder, "trials/*/*/agent") / "link").symlink_to("stdout.log")


@spoil("files.unlisted", "a FIFO in an attempt's folder")
def _(folder: Path) -> None:
    os.mkfifo(first_of(folder, "trials/*/*/agent") / "pipe")


@spoil("files.unlisted", "a trial that nobody admitted")
def _(folder: Path) -> None:
    (folder / "trials/another-00000000/0").mkdir(parents=True)


@spoil("files.unlisted", "a trial's folder under another name")
def _(folder: Path) -> None:
    there = first_of(folder, "trials/*")
    (folder / f"trials/another-{there.name[-8:]}").mkdir()


@spoil("files.unlisted", "an attempt that nobody admitted")
def _(folder: Path) -> None:
    (first_of(folder, "trials/*") / "9").mkdir()


@spoil("files.unlisted", "a pack that no entry names")
def _(folder: Path) -> None:
    (folder / "packs/0003.pack").touch()


@spoil("files.unlisted", "a blob that no entry names")
def _(folder: Path) -> None:
    blob = folder / "blobs/00" / ("0" * 64)
    blob.parent.mkdir()
    blob.touch()


@spoil("files.unlisted", "a checkpoint under another name")
def _(folder: Path) -> None:
    (folder / "checkpoints/last.note").touch()


@spoil("files.unlisted", "a quarantined file that no entry names")
def _(folder: Path) -> None:
    (folder / "quarantine/0002").touch()


@spoil("files.unlisted", "a manifest under another name")
def _(folder: Path) -> None:
    (folder / "manifests/0001.json~").touch()


# What is derived.


@plant("grades.recomputed", "a pass whose reward file says otherwise")
def _(s: Story) -> None:
    folder = s.find("attempt.admitted", attempt=s.find("attempt.graded", grade="pass").body["attempt"]).body["folder"]
    s.files[f"{folder}/verifier/reward.txt"] = b"0\n"


@plant("grades.recomputed", "a pass below the design's threshold")
def _(s: Story) -> None:
    s.design["grading"]["solved"] = "reward > 1"


@plant("grades.recomputed", "a pass without a verdict file")
def _(s: Story) -> None:
    attempt = s.find("attempt.graded", grade="pass").body["attempt"]
    folder = s.find("attempt.admitted", attempt=attempt).body["folder"]
    listed = s.find("attempt.files", attempt=attempt).body
    del s.files[f"{folder}/verifier/reward.txt"]
    listed["files"] = Late(lambda s: [s.fact(f"{folder}/", "agent/stdout.log", role="source")])


@plant("grades.recomputed", "two verdict files that disagree")
def _(s: Story) -> None:
    attempt = s.find("attempt.graded", grade="pass").body["attempt"]
    folder = s.find("attempt.admitted", attempt=attempt).body["folder"]
    s.files[f"{folder}/verifier/reward.json"] = b'{"reward": 0}'
    listed = s.find("attempt.files", attempt=attempt).body
    was = listed["files"]
    listed["files"] = Late(lambda s: [*s.settled(was), s.fact(f"{folder}/", "verifier/reward.json", role="source")])


@plant("summary.recomputed", "another headline")
def _(s: Story) -> None:
    was = s.file("grade_summary.json")
    s.files["grade_summary.json"] = was.replace(b'"pass":4', b'"pass":5')
    assert was != s.files["grade_summary.json"]


@plant("summary.recomputed", "another count of replacements")
def _(s: Story) -> None:
    was = s.file("summary.json")
    s.files["summary.json"] = was.replace(b'"replaced":1', b'"replaced":0')
    assert was != s.files["summary.json"]


@plant("summary.recomputed", "a summary is not among the files of a complete run")
def _(s: Story) -> None:
    files = Late(lambda s: [s.fact("", "grade_summary.json")])
    for end in (s.find("run.ended", 0), s.find("run.ended", 1)):
        end.body["files"] = files
    del s.files["summary.json"]
