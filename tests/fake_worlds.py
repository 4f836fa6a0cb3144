"""A kind of sandbox that only pretends, for finding out what happens when any step of it fails, and runs on it."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from journal_parts import KEY
from proctor.admission import worlds
from proctor.admission.admit import Admission, Verdict, admit
from proctor.admission.facts import Request
from proctor.admission.finish import Stop, listen_again, run_to_the_end
from proctor.core.exits import Exit
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted, Probe
from proctor.evidence.disk import Appender, Disk
from proctor.evidence.entries import Entry
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.report.progress import Progress
from proctor.runner.control import socket_path
from proctor.runner.session import Session
from proctor.sandbox.base import (
    Availability,
    Capabilities,
    Ended,
    Exec,
    Fetched,
    LimitInForce,
    PutItem,
    SandboxSpec,
    Snapshot,
    Tier,
)
from proctor_verify.report import Report, Status
from proctor_verify.verification import verify

TROUBLE: dict[str, Callable[[], BaseException]] = {
    "refuses": lambda: Refusal(Reason.SANDBOX_LOST, "it went away \udcff" + "!" * 70_000),
    "finds no room": lambda: OSError(errno.ENOSPC, "no room"),
    "breaks": lambda: ValueError("a fault of ours"),
    "exits": lambda: SystemExit(0),
}


@dataclass
class Steps:
    """Counts what is done; the `at`-th step goes wrong as `how` says, once."""

    at: int | None = None
    how: str = ""
    done: int = 0
    names: list[str] = field(default_factory=list)

    def hit(self, name: str) -> bool:
        self.done += 1
        self.names.append(name)
        return self.done == self.at

    async def step(self, name: str) -> None:
        if self.hit(name):
            await self._go_wrong(name == "stop")

    async def _go_wrong(self, ending: bool) -> None:
        if self.how in TROUBLE:
            raise TROUBLE[self.how]()
        os.kill(os.getpid(), signal.SIGTERM)
        if self.how == "is aborted afterwards":
            return
        try:
            # the end of a world is waited for whatever comes; any other step is cancelled
            await asyncio.wait_for(asyncio.Event().wait(), 0 if ending else 60)
        except (asyncio.CancelledError, TimeoutError) as fault:
            if ending and self.how == "is aborted":
                return
            if self.how == "is aborted and cannot clean up":
                raise Refusal(Reason.SANDBOX_LOST, "what was made could not be removed") from fault
            raise


ABORTS = ("is aborted", "is aborted afterwards", "is aborted and cannot clean up")


class FakeKind:
    name = "namespace"

    def __init__(self, steps: Steps, reward: bytes = b"1") -> None:
        self.steps = steps
        self.reward = reward
        self.on_exec: Callable[[Exec], None] = lambda command: None
        self.refusal: Reason | None = None
        self.facts: Mapping[str, Any] = {"kind": "namespace", "tier": "privileged", "network": "none"}
        self.live: set[Path] = set()
        self.made = 0

    def probe(self, probe: Probe) -> Availability:
        capabilities = Capabilities(frozenset(Network), True, True, True, False, frozenset())
        return Availability(self.name, True, Tier.PRIVILEGED, capabilities)

    async def start(self, spec: SandboxSpec, admitted: Admitted) -> FakeWorld:
        await self.steps.step("start")
        if self.refusal is not None:
            raise Refusal(self.refusal, "not here")
        return self._made(spec)

    async def fork(self, snapshot: Snapshot, spec: SandboxSpec, admitted: Admitted) -> FakeWorld:
        await self.steps.step("fork")
        return self._made(spec)

    def _made(self, spec: SandboxSpec) -> FakeWorld:
        self.made += 1
        home = spec.scratch / str(self.made)
        home.mkdir(parents=True)
        self.live.add(home)
        return FakeWorld(self, home)

    def keep(self, snapshot: Snapshot) -> None:
        pass

    def enter(self, scratch: Path) -> list[str] | None:
        return None

    def release(self, snapshot: Snapshot, admitted: Admitted) -> None:
        if self.steps.hit("release"):
            if self.steps.how in TROUBLE:
                raise TROUBLE[self.steps.how]()
            os.kill(os.getpid(), signal.SIGTERM)

    def prune(self, scratch_root: Path, admitted: Admitted) -> list[str]:
        return []


class FakeWorld:
    limits_enforced: tuple[LimitInForce, ...] = ()

    def __init__(self, kind: FakeKind, home: Path) -> None:
        self._kind = kind
        self._home = home
        self._step = kind.steps.step
        self.facts = kind.facts

    async def exec(self, command: Exec) -> Ended:
        await self._step("exec")
        self._kind.on_exec(command)
        command.stdout.write_bytes(b"said\n")
        return Ended(exit_code=0, signal=None, timed_out=False, duration_ns=1, output_bytes=5)

    async def put(self, items: Sequence[PutItem]) -> None:
        await self._step("put")

    async def get(self, paths: Sequence[str], into: Path, *, cap_bytes: int, cap_files: int) -> list[Fetched]:
        await self._step("get")
        found = []
        for path in paths:
            name, content = ("reward.txt", self._kind.reward) if path == "/logs/verifier" else ("log.txt", b"log")
            target = into / path.lstrip("/") / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            found.append(Fetched(path, target.parent, len(content)))
        return found

    async def freeze(self) -> None:
        await self._step("freeze")

    async def thaw(self) -> None:
        await self._step("thaw")

    async def kill_all(self) -> int:
        await self._step("kill_all")
        return 0

    async def mark(self, apart: Sequence[str] = ()) -> None:
        await self._step("mark")

    async def capture(self) -> Snapshot:
        await self._step("capture")
        return Snapshot("namespace", None, (self._home,), {"changed": {}})

    async def stop(self) -> None:
        self._kind.live.discard(self._home)
        await self._step("stop")


class CountingJournal:
    """The journal; after the `at`-th entry that is posted the run is aborted."""

    def __init__(self, journal: Journal, steps: Steps) -> None:
        self._journal = journal
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def post(self, kind: Kind, body: Mapping[str, Any], **blobs: Any) -> asyncio.Future[int]:
        posted = self._journal.post(kind, body, **blobs)
        if self._steps.hit(kind.id):
            os.kill(os.getpid(), signal.SIGTERM)
        return posted

    async def append(self, kind: Kind, body: Mapping[str, Any], **blobs: Any) -> int:
        return await self.post(kind, body, **blobs)


class FullDisk(Disk):
    """No room from the `at`-th operation on, until what the journal holds in reserve is given back."""

    def __init__(self, run: RunFolder, steps: Steps) -> None:
        self._run = run
        self._steps = steps
        self._full = False

    def _use(self, name: str) -> None:
        self._full = self._full or self._steps.hit(name)
        if self._full and self._run.reserve_path.exists():
            raise OSError(errno.ENOSPC, "no room")

    def open_append(self, path: Path, *, new: bool = False) -> Appender:
        self._use(f"open {path.name}")
        opened = super().open_append(path, new=new)
        return _Appender(path, opened._descriptor, opened.size, self._use)

    def make_dir(self, path: Path) -> None:
        self._use(f"mkdir {path.name}")
        super().make_dir(path)


class _Appender(Appender):
    def __init__(self, path: Path, descriptor: int, size: int, use: Callable[[str], None]) -> None:
        super().__init__(path, descriptor, size)
        self._use = use

    def append(self, data: bytes) -> None:
        try:
            self._use(f"write {self.path.name}")
        except OSError:
            super().append(data[: len(data) // 2])
            raise
        super().append(data)

    def sync(self) -> None:
        self._use(f"sync {self.path.name}")
        super().sync()


def write_study(folder: Path, *, tasks: int = 1, arms: int = 1, replacements: int = 1, epochs: int = 1) -> Path:
    for number in range(tasks):
        task = folder / "tasks" / f"t{number}"
        (task / "environment").mkdir(parents=True)
        (task / "tests").mkdir()
        (task / "task.toml").write_text('version = "1.0"\n')
        (task / "instruction.md").write_text("Do it.\n")
        (task / "environment/Dockerfile").write_text("FROM debian:bookworm-slim\nWORKDIR /app\n")
        (task / "tests/test.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")
    names = [f"arm{number}" for number in range(arms)]
    study = folder / "study.toml"
    study.write_text(
        '[study]\nname = "s"\n[tasks]\npath = "tasks"\n[draw]\nseed = 7\n'
        '[agent]\nname = "command"\ncommand = "true"\n[sandbox]\nkind = "namespace"\n'
        + "".join(f"[arms.{name}]\n" for name in names)
        + f'[stages.main]\ntype = "standard"\narms = {names}\nepochs = {epochs}\nlanes = 2\n'
        + f"replacements = {replacements}\n".replace("'", '"')
    )
    return study


class Bench:
    """Runs one study on fake worlds, again and again."""

    def __init__(self, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.study = study
        self._patch = monkeypatch
        self.kind = FakeKind(Steps())
        self.prepare: Callable[[FakeKind], None] = lambda kind: None

    async def run(
        self,
        out: Path,
        steps: Steps | None = None,
        *,
        resume: bool = False,
        journal: Steps | None = None,
        disk: Steps | None = None,
    ) -> Exit:
        """One invocation, to its exit status; trouble comes from worlds, the journal or the disk."""
        self.kind = FakeKind(steps or Steps())
        self.prepare(self.kind)
        self._patch.setattr(worlds, "sandbox_kind", lambda name: self.kind)
        request = Request(command="resume" if resume else "run", out=out, study=None if resume else self.study)
        control = socket_path(f"test{os.getpid()}")
        admission = await admit(request, KEY, Stop(), control=str(control))
        if isinstance(admission, Verdict):
            raise admission.refusals[0]
        if journal is not None:
            admission = replace(admission, journal=CountingJournal(admission.journal, journal))
        if disk is not None:
            admission.run.disk = FullDisk(admission.run, disk)
        return await _to_the_end(admission, request, control)


async def _to_the_end(admission: Admission, request: Request, control: Path) -> Exit:
    with Progress(io.StringIO(), quiet=True) as progress:
        session = Session(admission, progress, request, control)
        try:
            return await run_to_the_end(session.work, session.close, Stop())
        finally:
            listen_again()


def entries(out: Path) -> list[Entry]:
    return list(read_entries(out / "journal.jsonl"))


def bodies(out: Path, kind: Kind) -> list[dict[str, Any]]:
    return [dict(entry.body) for entry in entries(out) if entry.kind is kind]


def findings(report: Report) -> list[str]:
    return [f"{result.check}: {result.findings}" for result in report.results if result.status is Status.FAIL]


def check_record(out: Path) -> None:
    """Every attempt has one end, nothing is live on the disk, and the second program finds nothing wrong."""
    admitted = Counter(body["attempt"] for body in bodies(out, Kind.ATTEMPT_ADMITTED))
    assert Counter(body["attempt"] for body in bodies(out, Kind.ATTEMPT_ENDED)) == admitted
    assert entries(out)[-1].kind is Kind.RUN_ENDED
    report = verify(out, KEY.fingerprint)
    assert (report.unreadable, findings(report)) == (None, [])
    assert not (out / "scratch").exists()
