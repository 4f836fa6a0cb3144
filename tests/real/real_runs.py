"""Real runs of the whole product, as a user starts them: studies made here, processes, and what they leave behind."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from proctor.core.tokens import seal_probe
from proctor.evidence.entries import Entry
from proctor.evidence.keys import load_or_create
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import read_lock
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.sandbox.namespace.kind import NamespaceKind
from proctor_verify.report import Report, Status
from proctor_verify.verification import verify

SOURCES = Path(__file__).resolve().parents[2] / "src"
# for whatever ends by itself, on a machine that others keep busy
ENOUGH_SEC = 600.0
PASS = "echo 1 > /logs/verifier/reward.txt\n"
# passes iff the agent left the right word
WORD = 'if [ "$(cat /app/answer 2>/dev/null)" = right ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n'


def write_task(folder: Path, *, tests: str = WORD, toml: str = "", dockerfile: str = "") -> Path:
    for part in ("environment", "tests", "solution"):
        (folder / part).mkdir(parents=True)
    (folder / "task.toml").write_text('version = "1.0"\n' + textwrap.dedent(toml))
    (folder / "instruction.md").write_text(f"Write the right word into /app/answer. ({folder.name})\n")
    (folder / "environment/Dockerfile").write_text(f"FROM debian:bookworm-slim\nWORKDIR /app\n{dockerfile}")
    (folder / "tests/test.sh").write_text(tests)
    (folder / "solution/solve.sh").write_text("echo right > /app/answer\n")
    return folder


def write_study(
    folder: Path,
    *,
    command: str = "echo right > /app/answer",
    tasks: Mapping[str, str] | None = None,
    arms: tuple[str, ...] = ("plain",),
    arm_text: str = "",
    stage: str = "",
    top: str = "",
    agent: str = "",
) -> Path:
    """A study of the command agent; `tasks` are test scripts by name."""
    for name, tests in (tasks or {"one": WORD}).items():
        write_task(folder / "tasks" / name, tests=tests)
    tables = arm_text or "".join(f"[arms.{arm}]\n" for arm in arms)
    study = folder / "study.toml"
    study.write_text(
        f"""
[study]
name = "real"
[tasks]
path = "tasks"
[draw]
seed = 20261130
[agent]
name = "command"
command = {json.dumps(command)}
timeout = "10m"
{agent}
[sandbox]
kind = "namespace"
{top}
{tables}
[stages.main]
type = "standard"
arms = {json.dumps(list(arms))}
{stage}
"""
    )
    return study


class Proctor:
    """The program, with a configuration folder of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.key = load_or_create(home / "config" / "proctor")[0].fingerprint
        paths = [str(SOURCES), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        self.env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "XDG_CONFIG_HOME": str(home / "config"),
        }

    def start(self, *words: object, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "proctor", *map(str, words)]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **options}
        return subprocess.Popen(command, env=self.env, cwd=self.home, **streams)

    def __call__(self, *words: object) -> tuple[int, str]:
        with self.start(*words) as process:
            said = process.communicate(timeout=ENOUGH_SEC)[0]
        return process.returncode, said

    def check(self, run: Path) -> Report:
        """The second program finds nothing wrong, and says who signed."""
        report = verify(run, self.key)
        found = {result.check: result.findings for result in report.results if result.status is Status.FAIL}
        assert (report.unreadable, found) == (None, {})
        return report


@pytest.fixture
def proctor(tmp_path: Path) -> Proctor:
    seen = NamespaceKind().probe(seal_probe(30))
    if not seen.available:
        pytest.skip(f"no namespaces here: {[str(refusal) for refusal in seen.refusals]}")
    return Proctor(tmp_path)


def entries(run: Path) -> list[Entry]:
    return list(read_entries(run / "journal.jsonl"))


def bodies(run: Path, kind: Kind) -> list[dict[str, Any]]:
    return [dict(entry.body) for entry in entries(run) if entry.kind is kind]


def finals(run: Path) -> dict[str, tuple[Any, ...]]:
    """Grade, reason and reward by trial."""
    return {body["trial"]: (body["grade"], body["reason"], body["reward"]) for body in bodies(run, Kind.TRIAL_FINAL)}


def ended(run: Path) -> dict[str, Any]:
    last = entries(run)[-1]
    assert last.kind is Kind.RUN_ENDED
    return dict(last.body)


def is_over(run: Path) -> bool:
    """Whether it ended with nothing left to do."""
    path = run / "journal.jsonl"
    last = path.read_bytes().splitlines(keepends=True)[-1:] if path.exists() else []
    said = json.loads(last[0]) if last and last[0].endswith(b"\n") else {"kind": None}
    return bool(said["kind"] == Kind.RUN_ENDED.id and said["body"]["complete"])


def stop_before(entries: int, number: int, stops: int) -> int:
    """Where the stop of that number comes at the latest in a run of about so many entries, so that all have room."""
    return entries * (number + 1) // (stops + 2)


def until(what: str, done: Callable[[], object], seconds: float = ENOUGH_SEC) -> None:
    """Wait for another process; what it waits for has no event that reaches here."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"this did not come: {what}")
        time.sleep(0.01)


def has_entry(run: Path, kind: Kind, count: int = 1) -> Callable[[], bool]:
    """Whether the journal holds so many entries of that kind."""

    def seen() -> bool:
        path = run / "journal.jsonl"
        return path.is_file() and path.read_bytes().count(f'"kind":"{kind.id}"'.encode()) >= count

    return seen


class Held:
    """A command in a world of namespaces that lasts until the test lets it go, however busy the machine is."""

    def __init__(self) -> None:
        self._seconds = str(10**8 + secrets.randbelow(10**8))
        self.command = f"sleep {self._seconds} || true"

    def let_go(self) -> int:
        """End it wherever it lasts; how many there were."""
        line, ended = f"sleep\0{self._seconds}\0".encode(), 0
        for path in Path("/proc").iterdir():
            with suppress(OSError):
                if path.name.isdecimal() and (path / "cmdline").read_bytes() == line:
                    os.kill(int(path.name), signal.SIGKILL)
                    ended += 1
        return ended

    @contextmanager
    def going(self) -> Iterator[None]:
        """Let go of all that begin while the block lasts."""
        over = threading.Event()

        def work() -> None:
            while not over.wait(0.05):
                self.let_go()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def is_live(run: Path) -> bool:
    return read_lock(RunFolder(run)).live


class Leftovers:
    """What stands on the machine that a run could have left: processes inside its worlds, groups, mounts."""

    def __init__(self) -> None:
        self.groups = _groups()

    def check(self, run: Path) -> None:
        """Nothing of the run is left, now or very soon."""
        until("its processes end", lambda: not _processes(str(run)))
        suspects = _groups() - self.groups

        def gone() -> bool:
            left = suspects & _groups()
            return not left or {Path(group).name for group in left} <= _of_others(run)

        until("its groups go", gone)
        assert str(run) not in Path("/proc/self/mountinfo").read_text()
        scratch = run / "scratch"
        assert not scratch.exists() or not list(scratch.iterdir())


def _groups() -> set[str]:
    """Of worlds of this user."""
    walk = os.walk("/sys/fs/cgroup")
    found = {Path(here, name) for here, names, _ in walk for name in names if re.fullmatch("s[0-9a-f]{8}", name)}
    return {str(group) for group in found if _owner(group) == os.geteuid()}


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None  # it has just gone


def _of_others(run: Path) -> set[str]:
    """Names of the groups of other runs, of which some live and some were left dead: as long as a group is there, the
    folder of its world says so."""
    found: set[str] = set()
    top = Path(tempfile.gettempdir())
    roots = {each for name in ("pytest-of-*", "u*", "tmp*") for each in top.glob(name)}
    if run.is_relative_to(top):
        roots.add(top / run.relative_to(top).parts[0])
    for here, folders, _ in (each for root in roots for each in os.walk(root)):
        if Path(here) == run:
            folders.clear()
        elif Path(here).name == "scratch":
            for folder in folders:
                with suppress(OSError, ValueError):
                    said = json.loads(Path(here, folder, "marker.json").read_bytes())
                    found |= {Path(group).name for group in said.get("groups", ())}
            folders.clear()
    return found


def _processes(word: str) -> list[int]:
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and int(path.name) != os.getpid():
            try:
                line = (path / "cmdline").read_bytes() + (path / "mountinfo").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(int(path.name))
    return found


def kill(process: subprocess.Popen[str], number: signal.Signals = signal.SIGKILL) -> None:
    process.send_signal(number)


def outcomes(run: Path) -> Counter[str]:
    return Counter(body["outcome"] for body in bodies(run, Kind.ATTEMPT_ENDED))
