"""Pushing while a run lives: what is entered, what waits for it, and what stops the run."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anchor_parts import admitted, commits, contents, git, hook, repository
from fake_worlds import Bench, bodies, check_record, entries, findings, write_study
from journal_parts import KEY, RUN_ID, create, ended, reopen
from proctor.admission.finish import Stop
from proctor.core.exits import Exit
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.anchors import receipts
from proctor.evidence.anchors.places import places
from proctor.evidence.anchors.pushing import Patience
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import read_lock
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.scan import scan
from proctor.runner import anchoring
from proctor.runner.anchoring import Anchoring, Tempo
from proctor_verify.report import Status
from proctor_verify.verification import verify

REF = f"refs/proctor/{RUN_ID}"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waits between tries, and no end of patience."""
    monkeypatch.setattr(anchoring, "TEMPO", Tempo(Patience(2, 0.0, 0.0), again_sec=0.0, give_up_sec=3600.0))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with both kinds of anchors."""
    repository(tmp_path / "a.git")
    (tmp_path / "out").mkdir()
    return tmp_path


class Hearing:
    """The journal; says when an entry that was waited for is durable."""

    def __init__(self, journal: Journal, heard: asyncio.Event) -> None:
        self._journal = journal
        self._heard = heard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def post(self, kind: Kind, body: Any) -> asyncio.Future[int]:
        posted = self._journal.post(kind, body)
        posted.add_done_callback(lambda _: self._heard.set())
        return posted


class Opening:
    """One opening of a run that pushes, and what it told."""

    def __init__(self, run: RunFolder, journal: Journal, **how: Any) -> None:
        self.run, self.journal, self.stop = run, journal, Stop()
        self.told: list[str] = []
        self._heard = asyncio.Event()
        words: dict[str, Any] = {"git": "a.git", "drop": "out", "every_sec": 3600.0, "required": True, **how}
        where = places(words.pop("git"), words.pop("drop"), run.path.parent)
        token = admitted(run.path, RUN_ID)
        hearing: Any = Hearing(journal, self._heard)
        self.pushes = Anchoring(token, run, hearing, where, KEY.fingerprint, notice=self._hear, **words)

    def _hear(self, notice: str) -> None:
        self.told.append(notice)
        self._heard.set()

    async def heard(self, words: str) -> None:
        """Wait until that was told."""
        await self.until(lambda: any(words in each for each in self.told))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it does; it is asked whenever something was told or entered."""
        while not holds():
            self._heard.clear()
            await self._heard.wait()

    async def work(self, work: Callable[[], Any]) -> Any:
        async with asyncio.timeout(60):
            return await self.pushes.beside(work(), self.stop)

    async def end(self) -> list[str]:
        await self.journal.close(ended(), keep_lock=True)
        told = await self.pushes.finish()
        self.journal.let_go()
        return told


async def opening(home: Path, **how: Any) -> Opening:
    return Opening(*await create(home / "run"), **how)


def kinds(run: RunFolder) -> list[str]:
    return [entry.kind.id for entry in entries(run.path) if isinstance(entry.kind, Kind)]


async def test_the_newest_checkpoint_is_pushed_at_once_and_the_last_at_the_end(home: Path) -> None:
    each = await opening(home)
    assert not each.pushes.gate.is_open
    await each.work(each.pushes.gate.passed)
    assert sorted(kinds(each.run)) == sorted(["run.admitted", "checkpoint.made", *["checkpoint.anchored"] * 2])
    stand = [(told["anchor"], told["location"], told["size"]) for told in each.pushes.as_record()]
    assert stand == [("git", "a.git", 1), ("drop", "out", 1)]
    assert await each.end() == []
    size = each.journal.size
    assert [receipt.size for receipt in receipts.standing(each.run)] == [1, 1, size, size]
    assert scan(each.run).unanchored == [receipt.entry() for receipt in receipts.standing(each.run)[2:]]
    notes = [path.read_bytes() for path in sorted(each.run.checkpoints.glob("*.note"))]
    assert contents(home / "a.git", REF) == notes
    assert [path.read_bytes() for path in sorted((home / "out" / RUN_ID).iterdir())] == notes
    assert not read_lock(each.run).live


async def test_an_opening_pushes_a_checkpoint_of_its_own(home: Path) -> None:
    first = await opening(home)
    await first.work(first.pushes.gate.passed)
    await first.end()
    again = Opening(*await reopen(home / "run"))
    begun = kinds(again.run)
    assert begun[-5:] == ["run.ended", "run.resumed", "checkpoint.made", *["checkpoint.anchored"] * 2]
    assert not again.pushes.gate.is_open, "what an earlier process pushed is not of this opening"
    await again.work(again.pushes.gate.passed)
    made = again.journal.newest
    assert made is not None and made["size"] > begun.index("run.resumed")
    assert {receipt.size for receipt in receipts.newest(receipts.standing(again.run)).values()} == {made["size"]}
    assert await again.end() == []


async def test_it_goes_on_pushing_as_long_as_there_is_something_new(home: Path) -> None:
    each = await opening(home, every_sec=0.001)

    def covered(seq: int) -> bool:
        return all(told["size"] > seq for told in each.pushes.as_record())

    async def work() -> None:
        await each.pushes.gate.passed()
        for size in (0, 1, 2):
            seq = await each.journal.append(Kind.RUN_PAUSED if size % 2 else Kind.RUN_UNPAUSED, {})
            await each.until(lambda seq=seq: covered(seq))

    await each.work(work)
    await each.end()
    named = bodies(each.run.path, Kind.CHECKPOINT_ANCHORED)
    assert len({body["path"] for body in named}) == len(named) >= 4
    sizes = [body["size"] for body in named if body["anchor"] == "drop"]
    assert sizes == sorted(set(sizes))
    assert len(kinds(each.run)) < 60, "its own entries are nothing new"


async def test_a_failure_is_entered_told_and_shuts_the_gate_until_a_push_works(home: Path) -> None:
    no = hook(home / "a.git", "pre-receive", "exit 1")
    each = await opening(home, drop=None)

    async def work() -> None:
        await each.heard("did not take")
        assert not each.pushes.gate.is_open
        (now,) = each.pushes.as_record()
        assert (now["size"], now["failing"], now["waited_for"]) == (None, "anchor_rejected", True)
        no.unlink()
        await each.pushes.gate.passed()
        await each.heard("takes checkpoints again")
        (now,) = each.pushes.as_record()
        assert (now["size"], now["failing"], now["waited_for"]) == (1, None, False)

    await each.work(work)
    (failure, *_) = bodies(each.run.path, Kind.ANCHOR_FAILED)
    assert failure["attempts"] == 2 and failure["size"] == 1
    assert (failure["anchor"], failure["reason"], failure["return_code"]) == ("git", "anchor_rejected", 1)
    assert kinds(each.run)[-1] == "checkpoint.anchored"
    assert not each.stop.draining.is_set()
    await each.end()


async def test_no_block_is_admitted_behind_a_failure_however_late_it_comes(home: Path) -> None:
    each = await opening(home, drop=None, every_sec=0.001)

    async def work() -> None:
        await each.pushes.gate.passed()
        hook(home / "a.git", "pre-receive", "exit 1")
        await each.journal.append(Kind.RUN_PAUSED, {})
        await each.heard("did not take")
        waiting = asyncio.create_task(each.pushes.gate.passed())
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()

    await each.work(work)
    failed = kinds(each.run).index("anchor.failed")
    assert "checkpoint.anchored" in kinds(each.run)[:failed]
    assert "checkpoint.anchored" not in kinds(each.run)[failed:]
    (told,) = await each.end()
    assert "anchor_rejected" in told and "proctor anchor" in told


@pytest.mark.parametrize("case", ["rejects", "is gone", "differs"])
@pytest.mark.parametrize("required", [True, False])
async def test_what_fails_for_good_stops_a_run_that_requires_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, case: str, required: bool
) -> None:
    patience = 0.0 if case != "differs" else 3600.0
    monkeypatch.setattr(anchoring, "TEMPO", replace(anchoring.TEMPO, give_up_sec=patience))
    match case:
        case "rejects":
            hook(home / "a.git", "pre-receive", "exit 1")
        case "is gone":
            shutil.rmtree(home / "a.git")
        case "differs":
            tree = git(home / "a.git", "mktree").decode().strip()
            other = git(home / "a.git", "commit-tree", "-m", "mine", tree).decode().strip()
            git(home / "a.git", "update-ref", REF, other)
    reason = {"rejects": "anchor_rejected", "is gone": "anchor_unreachable", "differs": "anchor_differs"}[case]
    each = await opening(home, required=required)
    await each.work(each.stop.draining.wait if required else lambda: each.heard("did not take"))
    assert (each.stop.cause, each.stop.exit) == ((reason, Exit.STOPPED) if required else (None, None))
    assert each.pushes.gate.is_open is not required
    (told,) = await each.end()
    # durable by now: the stop is heard when it was posted
    assert {body["reason"] for body in bodies(each.run.path, Kind.ANCHOR_FAILED)} == {reason}
    assert reason in told, "the other anchor has it"
    assert [receipt.anchor for receipt in receipts.standing(each.run)][-1] == "drop"


async def test_a_receipt_that_cannot_be_written_ends_the_work(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "no room")

    monkeypatch.setattr(receipts, "write", full)
    each = await opening(home, git=None)
    with pytest.raises(Refusal) as raised:
        await each.work(asyncio.Event().wait)
    assert raised.value.reason is Reason.DISK_FULL
    (told,) = await each.end()
    assert "not pushed" in told


async def test_the_work_s_own_fault_is_its_own(home: Path) -> None:
    each = await opening(home)

    async def work() -> None:
        await each.pushes.gate.passed()
        raise Refusal(Reason.LOST, "mine")

    with pytest.raises(Refusal, match="mine"):
        await each.work(work)
    await each.end()


async def test_the_end_waits_for_no_anchor_for_ever(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchoring, "TEMPO", replace(anchoring.TEMPO, last_sec=1.0))
    each = await opening(home, drop=None)
    await each.work(each.pushes.gate.passed)
    # it opens a pipe that nobody writes to
    hook(home / "a.git", "pre-receive", f"mkfifo {home}/pipe", f"cat {home}/pipe")
    (told,) = await each.end()
    assert "anchor_unreachable" in told
    assert len(receipts.standing(each.run)) == 1


async def test_where_pushes_fail_the_end_says_that_it_waits(home: Path) -> None:
    hook(home / "a.git", "pre-receive", "exit 1")
    each = await opening(home, drop=None)
    await each.work(lambda: each.heard("did not take"))
    assert not any("its end is on the record" in said for said in each.told)
    (told,) = await each.end()
    assert "anchor_rejected" in told
    assert sum("its end is on the record" in said for said in each.told) == 1


def check_anchored(run: Path, *where: Path) -> None:
    """The second program finds there what the run says, and says so of each place."""
    report = verify(run, KEY.fingerprint, anchors=[str(each) for each in where])
    assert report.exit_status == 0, findings(report)
    looked = {result.check: result.status for result in report.results if result.check.startswith("anchors.")}
    assert looked["anchors.remote"] is Status.PASS
    assert set(looked.values()) <= {Status.PASS, Status.NOT_APPLICABLE}


def with_anchor(study: Path, **words: Any) -> Path:
    """The study, with anchors beside its folder."""
    lines = [
        f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {str(value).lower()}"
        for name, value in words.items()
    ]
    study.write_text("\n".join([study.read_text(), "[anchor]", *lines, ""]))
    return study


@pytest.mark.parametrize("required", [True, False])
async def test_a_whole_run(home: Path, monkeypatch: pytest.MonkeyPatch, required: bool) -> None:
    study = with_anchor(write_study(home / "study", tasks=2), git="../a.git", drop="../out", required=required)
    run = home / "run"
    assert await Bench(study, monkeypatch).run(run) is Exit.DONE
    check_record(run)
    check_anchored(run, home / "a.git", home / "out")
    first = [entry.kind for entry in entries(run)].index(Kind.BLOCK_ADMITTED)
    before = [body["anchor"] for body in bodies(run, Kind.CHECKPOINT_ANCHORED)]
    named = [entry.kind for entry in entries(run)[:first]].count(Kind.CHECKPOINT_ANCHORED)
    assert not required or (named, sorted(before)) == (2, ["drop", "git"])
    last = receipts.newest(receipts.standing(RunFolder(run)))
    assert [(each.size, each.location) for each in last.values()] == [
        (len(entries(run)), "../out"),
        (len(entries(run)), "../a.git"),
    ]


async def test_a_run_that_requires_an_anchor_stops_and_goes_on_once_it_takes_something(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchoring, "TEMPO", replace(anchoring.TEMPO, give_up_sec=0.0))
    study = with_anchor(write_study(home / "study", tasks=2), git="../a.git", required=True)
    bench, run = Bench(study, monkeypatch), home / "run"
    no = hook(home / "a.git", "pre-receive", "exit 1")
    assert await bench.run(run) is Exit.STOPPED
    assert entries(run)[-1].body["reason"] == "anchor_rejected"
    assert bodies(run, Kind.RUN_DRAINING) == [{"cause": "anchor_rejected"}]
    assert bodies(run, Kind.BLOCK_ADMITTED) == []
    no.unlink()
    monkeypatch.chdir(home / "out")
    assert await bench.run(run, resume=True) is Exit.DONE
    check_record(run)
    check_anchored(run, home / "a.git")
    (ref,) = git(home / "a.git", "for-each-ref", "--format=%(refname)").decode().split()
    assert len(commits(home / "a.git", ref)) >= 2


@pytest.mark.parametrize("required", [True, False])
async def test_admission_looks_whether_anchors_are_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, required: bool
) -> None:
    study = with_anchor(write_study(home / "study"), git="../gone.git", drop="../nowhere", required=required)
    bench, run = Bench(study, monkeypatch), home / "run"
    if required:
        with pytest.raises(Refusal) as raised:
            await bench.run(run)
        assert (raised.value.reason, raised.value.path) == (Reason.ANCHOR_UNREACHABLE, "anchor.git")
        assert not (run / "journal.jsonl").exists()
        return
    assert await bench.run(run) is Exit.DONE
    check_record(run)
    assert not (home / "nowhere").exists()
