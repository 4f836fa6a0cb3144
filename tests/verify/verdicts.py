"""What several checks say at once, or cannot tell: faults that cannot come alone, runs of which a part is missing."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import Story
from designs import make_design
from money_stories import money_story
from plants import Alter, Spoil, first_of
from plants_spent import free_story, no_price_for_what_was_asked
from primitives import Signer, sha256
from steps import Step
from stories import full_story


@dataclass(frozen=True)
class Case:
    """A run, the checks that fail, and those that cannot tell; with `...` among them there are more, which follow."""

    what: str
    failed: frozenset[str]
    doubtful: frozenset[str]
    alter: Alter
    spoil: Spoil
    story: Callable[[], Story]
    key: bool

    def write(self, folder: Path) -> Signer:
        """The run; whose key it has."""
        story = self.story()
        self.alter(story)
        story.write(folder)
        self.spoil(folder)
        return story.signer

    def holds(self, folder: Path, signer: Signer) -> bool:
        """Whether that is what is said of it."""
        failed, doubtful = self.said(folder, signer)
        return _is(failed, self.failed) and _is(doubtful, self.doubtful)

    def said(self, folder: Path, signer: Signer) -> tuple[frozenset[str], frozenset[str]]:
        """What fails, and what cannot be told."""
        # imported here and not before: as plants have it
        from proctor_verify import Status, verify

        results = verify(folder, signer.fingerprint if self.key else None).results
        named = {status: frozenset(r.check for r in results if r.status is status) for status in Status}
        return named[Status.FAIL], named[Status.CANNOT_TELL]


def _is(said: frozenset[str], wanted: frozenset[str]) -> bool:
    return said > wanted - {"..."} if "..." in wanted else said == wanted


CASES: list[Case] = []


def case(
    what: str,
    failed: str = "",
    doubtful: str = "",
    *,
    story: Callable[[], Story] = full_story,
    spoil: Spoil = lambda folder: None,
    key: bool = True,
) -> Callable[[Alter], Alter]:
    """Declare a run by how its story is altered, and what is then done to its folder."""

    def declare(alter: Alter) -> Alter:
        wanted = frozenset(failed.split()), frozenset(doubtful.split())
        CASES.append(Case(what, *wanted, alter, spoil, story, key))
        return alter

    return declare


def spoiled(what: str, failed: str = "", doubtful: str = "", *, key: bool = True) -> Callable[[Spoil], Spoil]:
    """Declare a run by what is done to its folder."""

    def declare(spoil: Spoil) -> Spoil:
        wanted = frozenset(failed.split()), frozenset(doubtful.split())
        CASES.append(Case(what, *wanted, lambda story: None, spoil, full_story, key))
        return spoil

    return declare


# Parts that are not there.


@case("nobody said whose key it should be", "", "key.trust", key=False)
def _(s: Story) -> None:
    pass


@spoiled("no design", "design.digest", "design.plan grades.recomputed ...")
def _(folder: Path) -> None:
    (folder / "design.json").unlink()


@spoiled("a design that is no JSON", "design.digest design.plan", "grades.recomputed ...")
def _(folder: Path) -> None:
    (folder / "design.json").write_bytes(b"{")


@case(
    "no design, and no entry that could name one",
    "design.digest journal.openings ...",
    "design.plan ...",
    spoil=lambda folder: (folder / "design.json").unlink(),
)
def _(s: Story) -> None:
    s.find("run.admitted").after = lambda entry: entry.update(kind="run.paused", body={})


@spoiled(
    "no entry at all",
    "checkpoints.head files.unlisted journal.lines manifests.unbound run.ended",
    "checkpoints.signature design.digest design.plan key.trust",
)
def _(folder: Path) -> None:
    (folder / "journal.jsonl").write_bytes(b"")


@spoiled("a manifest is gone", "manifests.bound", "manifests.verdict")
def _(folder: Path) -> None:
    (folder / "manifests/0002.json").unlink()


@spoiled("a verdict file is gone", "files.digests grades.recomputed")
def _(folder: Path) -> None:
    first_of(folder, "trials/*/*/verifier/reward.txt").unlink()


@spoiled(
    "a verdict file is gone, in a copy of which nobody knows what it leaves out",
    "withheld.named",
    "files.digests grades.recomputed",
)
def _(folder: Path) -> None:
    first_of(folder, "trials/*/*/verifier/reward.txt").unlink()
    _list_of_nothing(folder)


@spoiled("a folder in the place of the list of what is left out", "files.unlisted", "withheld.named")
def _(folder: Path) -> None:
    (folder / "withheld.json").mkdir()


@spoiled("a folder that is called as a receipt is", "anchors.receipts files.unlisted")
def _(folder: Path) -> None:
    (folder / "checkpoints/000000000001.git.json").mkdir()


@spoiled("dot files and scratch are nobody's business")
def _(folder: Path) -> None:
    (folder / ".hidden").touch()
    (folder / "scratch").mkdir()
    (folder / "scratch/anything").touch()
    (folder / "trials/.hidden").mkdir()


@case("a kind that is not known", "", "journal.kinds")
def _(s: Story) -> None:
    s.find("run.paused").kind = "run.dreaming"


@case("a checkpoint of entries that are yet to come", "checkpoints.files checkpoints.head")
def _(s: Story) -> None:
    note = s.signer.note(f"proctor/run/{s.run_id}\n999\n{'A' * 43}=\n")
    path = f"checkpoints/{999:012d}.note"
    named = {"path": path, "sha256": sha256(note), "size": 999, "root": "0" * 64}
    s.insert_after(s.find("run.paused"), Step("checkpoint.made", named))
    s.afterwards.append(lambda _, folder: folder.joinpath(path).write_bytes(note) and None)


# The run's outline.


@case("a kind that is not known, and an entry of another shape", "journal.kinds", "run.ended journal.openings ...")
def _(s: Story) -> None:
    s.find("run.paused").kind = "run.dreaming"
    s.find("run.unpaused").body = {"more": 1}


@case(
    "the first entry is another",
    "journal.openings manifests.unbound manifests.verdict summary.recomputed",
    "design.digest design.plan key.trust",
)
def _(s: Story) -> None:
    s.find("run.admitted").after = lambda entry: entry.update(kind="run.paused", body={})


@case("admitted a second time", "journal.openings manifests.bound")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Step("run.admitted", dict(s.find("run.admitted").body)))


@case("something after the end of an opening", "journal.openings journal.recovered")
def _(s: Story) -> None:
    s.insert_after(s.find("run.ended"), Step("run.paused", {}))


@case("something after the last end", "journal.openings run.ended")
def _(s: Story) -> None:
    s.insert_after(s.find("run.ended", -1), Step("run.paused", {}))


@case("no end", "run.ended summary.recomputed")
def _(s: Story) -> None:
    s.drop(s.find("run.ended", -1))


def cut_short() -> Story:
    """A run whose process died in its first attempt, or goes on."""
    s = Story(make_design())
    s.admit()
    s.block(0)
    s.start(0, s.arms(0)[0])
    s.checkpoint(named=False)
    return s


@case("no end, and an attempt in flight", "run.ended flight.empty", story=cut_short)
def _(s: Story) -> None:
    pass


def _a_file_in_its_place(folder: Path) -> None:
    """Of the folder of the one attempt, which has none."""
    body = cut_short().find("attempt.admitted").body
    place = folder / body["folder"]
    place.parent.mkdir()
    place.touch()


@case(
    "no end, and a file in the place of the folder of an attempt in flight",
    "run.ended flight.empty files.unlisted",
    story=cut_short,
    spoil=_a_file_in_its_place,
)
def _(s: Story) -> None:
    pass


def going_on() -> Story:
    """The same, after its last checkpoint."""
    s = Story(make_design())
    s.admit()
    s.checkpoint()
    return s


@case("no end, and entries that no checkpoint covers yet", "run.ended", "checkpoints.last", story=going_on)
def _(s: Story) -> None:
    pass


@case(
    "a line that cannot be read, after the last checkpoint",
    "journal.lines checkpoints.last",
    "run.ended checkpoints.files ...",
    story=going_on,
)
def _(s: Story) -> None:
    s.add("run.paused").raw = lambda line: line[:-1]


@case("a vkey that is none, in every opening", "key.stated key.trust", "checkpoints.signature")
def _(s: Story) -> None:
    for step in s.entries():
        if "key" in step.body:
            step.body["key"] = {**step.body["key"], "vkey": "nobody"}


# Faults that bring others.


@case("an attempt within a block that ended before its finals", "blocks.ended blocks.admitted")
def _(s: Story) -> None:
    early = s.find("block.ended")
    s.drop(early)
    s.insert_before(s.find("attempt.admitted", 1), early)


@case("a graded attempt without a verifier", "agents.ended attempts.assured grades.recomputed")
def _(s: Story) -> None:
    s.drop(s.find("verifier.ended"))


def lost_for_good() -> Story:
    """Who took the run up said what was lost, and did something else before that had its end."""
    s = cut_short()
    attempt = s.find("attempt.admitted").body["attempt"]
    s.resume(previous_ended=False)
    s.add("run.recovered", quarantined=[], lost=[attempt])
    s.add("checkpoint.made")
    s.add("run.paused")
    s.checkpoint(named=False)
    return s


@case("a lost attempt that never ends", "journal.recovered run.ended flight.empty", story=lost_for_good)
def _(s: Story) -> None:
    pass


@case("a recovery that names one attempt twice", "journal.recovered")
def _(s: Story) -> None:
    body: Any = s.find("run.recovered").body
    body["lost"] = body["lost"] * 2


def _list_of_nothing(folder: Path) -> None:
    (folder / "withheld.json").write_bytes(b"{")


@case(
    "a map of chunks that is none, in a copy of which nobody knows what it leaves out",
    "withheld.named",
    "exchanges.chunks",
    story=money_story,
    spoil=_list_of_nothing,
)
def _(s: Story) -> None:
    ended = next(step for step in s.entries() if step.body.get("chunks") is not None)
    ended.body["chunks"] = s.blob(b"[[0,0],[0,0]]")
    s.repack()


@case(
    "a list of what is left out that is none, and nothing is",
    "withheld.named",
    story=money_story,
    spoil=_list_of_nothing,
)
def _(s: Story) -> None:
    pass


# What is sound in a run of its own.


@case("a model that is free, and a request that would have cost something all the same", story=free_story)
def _(s: Story) -> None:
    pass


case("a request for which there is no price", story=free_story)(no_price_for_what_was_asked)


def of_one_block(**design: Any) -> Story:
    """A run before its end, in which every trial of each block failed, with less than nothing for its reward."""
    s = Story(make_design(tasks=1, epochs=1, **design))
    s.design["models"].reverse()
    s.admit()
    for index in range(len(s.drawn())):
        s.block(index)
        for arm in s.arms(index):
            attempt = s.start(index, arm)
            s.grade(attempt, "fail", -0.25, "below_threshold")
            s.end(attempt)
            s.final(attempt)
        s.add("block.ended", block=index)
    return s


@case("rewards below nothing, of models that the design has in another order", story=lambda: of_one_block(models=2))
def _(s: Story) -> None:
    s.stop(0)
    s.checkpoint(named=False)


@case("a run that was interrupted when all of it was done has no summaries", story=of_one_block)
def _(s: Story) -> None:
    s.add("run.draining", cause="SIGINT")
    totals = {"trials": 2, "finals": 2, "pass": 0, "fail": 2, "ungraded": 0}
    s.add("run.ended", exit_status=130, reason="interrupted", complete=True, totals=totals, files=[])
    s.checkpoint(named=False)


@case("more is charged than is held, without a budget", "costs.recomputed ceiling.disclosed", story=free_story)
def _(s: Story) -> None:
    s.find("exchange.ended").body.update(charged="0.000000000001", overrun=True)


def all_cases() -> list[Case]:
    """Those that are declared here, and in each module of more."""
    for path in sorted(Path(__file__).parent.glob("verdicts_*.py")):
        importlib.import_module(path.stem)
    return CASES
