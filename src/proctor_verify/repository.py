"""A git repository as hostile ground: one ref of it is fetched into a folder of our own, and its objects are read.

Git is started with nothing of the person's configuration, asks nobody for anything, and may use only so much time,
memory and disk. Who needs a password for a repository can fetch it first, and name the copy.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from proctor_verify.errors import Unreadable

SECONDS = 120
MAX_DISK = 256 << 20
MAX_MEMORY = 2 << 30
# The one entry of a tree: `100644 checkpoint`, a NUL and the raw id of a blob.
TREE_START = b"100644 checkpoint\0"
_RAW_ID = (20, 32)
_HEX_ID = (40, 64)
_NO_TREE = "has a tree that is not of one checkpoint"
_MAX_HEADER = 256

# What dash and bash call 512-byte blocks, and 1024-byte units of address space.
_LIMITED = f'ulimit -f {MAX_DISK // 512}; ulimit -v {MAX_MEMORY // 1024}; ulimit -c 0; exec git "$@"'
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.bigFileThreshold=1m",
    "core.askPass=",
    "credential.helper=",
    "fetch.unpackLimit=1",
    "gc.auto=0",
    "maintenance.auto=false",
    "pack.threads=1",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=30",
)
_BOUNDS = f"{MAX_DISK >> 20} MiB of disk and {MAX_MEMORY >> 20} of memory"
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@contextlib.contextmanager
def opened(address: str, ref: str, pattern: str) -> Iterator[Ref]:
    """A ref of a repository, and how many others there match a pattern of git's.

    Raises:
        Unreadable: the repository cannot be reached.
    """
    with tempfile.TemporaryDirectory(prefix="proctor-verify-", ignore_cleanup_errors=True) as scratch:
        git = _Git(Path(scratch))
        tip, others = git.look(address, ref, pattern)
        yield Ref(git, address, ref, tip, others)


class Ref:
    """A ref of a repository. `others` counts those that stand beside it."""

    def __init__(self, git: _Git, address: str, ref: str, tip: str | None, others: int) -> None:
        self.others = others
        self._git = git
        self._address = address
        self._ref = ref
        self._tip = tip

    def commits(self, most: int, most_bytes: int) -> Iterator[tuple[str, bytes | Unreadable]]:
        """The checkpoint of each commit that the ref leads to, at most so many; nothing where there is no such ref.

        Each comes with its commit's id; what is no commit of the form of section 8, or longer than `most_bytes`, comes
        with why.

        Raises:
            Unreadable: the repository cannot be read, or not within bounds.
        """
        if self._tip is None:
            return
        git = self._git
        git.fetch(self._address, self._ref, self._tip)
        commits = git.history(most)
        trees = [f"{commit}^{{tree}}" for commit in commits]
        faults: dict[int, Unreadable] = {}
        for at, (kind, size) in enumerate(git.sizes(trees)):
            if kind != "tree" or size not in [len(TREE_START) + length for length in _RAW_ID]:
                faults[at] = Unreadable(_NO_TREE)
        blobs = git.blobs_of(trees, faults)
        for at, (kind, size) in zip(blobs, git.sizes(blobs.values()), strict=True):
            if kind != "blob" or size > most_bytes:
                faults[at] = Unreadable(f"has a checkpoint of {size:,} bytes")
        fitting = {at: blob for at, blob in blobs.items() if at not in faults}
        yield from ((commits[at], why) for at, why in faults.items())
        contents = git.contents(fitting.values())
        yield from ((commits[at], content) for at, content in zip(fitting, contents, strict=True))


class _Git:
    """Git in a bare repository of its own below a folder."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._repository = scratch / "repository"
        names = (*_KEPT, *_PROXIES, *(name.upper() for name in _PROXIES))
        self._environment = {name: os.environ[name] for name in names if name in os.environ} | {
            "GIT_DIR": str(self._repository),
            "GIT_ALLOW_PROTOCOL": "file:ssh:https:git",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "false",
            "SSH_ASKPASS": "false",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=30",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }

    def look(self, address: str, ref: str, pattern: str) -> tuple[str | None, int]:
        """The id that a ref has there, None where there is no such ref; and how many others match."""
        self._make("sha1")
        tip, others = None, 0
        with self._running(["ls-remote", "--quiet", "--refs", "--", address, ref, pattern]) as listed:
            while line := listed.readline(_MAX_HEADER):
                found, _, name = line.rstrip(b"\n").partition(b"\t")
                if name == ref.encode():
                    tip = found.decode("ascii", "replace")
                else:
                    others += len(found) in _HEX_ID
        return tip, others

    def fetch(self, address: str, ref: str, tip: str) -> None:
        """Everything that the ref leads to: where that is more than `MAX_DISK`, git fails."""
        if len(tip) == 64:
            self._make("sha256")
        how = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        try:
            self._said("fetch", *how, "--", address, f"+{ref}:refs/anchor")
        except Unreadable as error:
            raise Unreadable(f"{error} (it may take {_BOUNDS})") from error

    def history(self, most: int) -> list[str]:
        """The ids of the commits, the oldest first."""
        listed = self._said("rev-list", "--reverse", "--topo-order", f"--max-count={most}", "refs/anchor")
        return listed.decode("ascii", "replace").split()

    def blobs_of(self, trees: Sequence[str], faults: dict[int, Unreadable]) -> dict[int, str]:
        """By its place in the list, the blob that each tree without a fault leads to; those that have one are added."""
        places = [at for at in range(len(trees)) if at not in faults]
        blobs: dict[int, str] = {}
        for at, content in zip(places, self.contents(trees[at] for at in places), strict=True):
            if content.startswith(TREE_START):
                blobs[at] = content.removeprefix(TREE_START).hex()
            else:
                faults[at] = Unreadable(_NO_TREE)
        return blobs

    def sizes(self, names: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Type and size of each object; the type is `missing` where there is none."""
        with self._batch("--batch-check=%(objecttype) %(objectsize)", names) as (answers, count):
            for _ in range(count):
                kind, _, size = _line(answers).partition(" ")
                yield (kind, int(size)) if size.isdecimal() else ("missing", 0)

    def contents(self, names: Iterable[str]) -> Iterator[bytes]:
        """The content of each object, which must be there."""
        with self._batch("--batch=%(objectsize)", names) as (answers, count):
            for _ in range(count):
                size = _line(answers)
                if not size.isdecimal() or int(size) > MAX_DISK:
                    raise Unreadable("has objects that cannot be read")
                content = answers.read(int(size) + 1)
                if len(content) != int(size) + 1:
                    raise Unreadable("has objects that cannot be read to their end")
                yield content[:-1]

    def _make(self, object_format: str) -> None:
        if self._repository.exists():
            # made anew for the other kind of ids: nothing stands in it yet
            self._repository = self._scratch / f"repository-{object_format}"
            self._environment["GIT_DIR"] = str(self._repository)
        self._said("init", "--bare", "--quiet", "--template=", f"--object-format={object_format}")

    @contextlib.contextmanager
    def _batch(self, how: str, names: Iterable[str]) -> Iterator[tuple[IO[bytes], int]]:
        """Answers of one process to many questions; they stand in a file, so that neither side waits for the other."""
        questions = self._scratch / "questions"
        count = 0
        with questions.open("w", encoding="ascii") as asked:
            for name in names:
                asked.write(f"{name}\n")
                count += 1
        with questions.open("rb") as file, self._running(["cat-file", "--buffer", how], file) as answers:
            yield answers, count

    def _said(self, *arguments: str) -> bytes:
        with self._running(arguments) as output:
            return output.read(MAX_DISK)

    @contextlib.contextmanager
    def _running(self, arguments: Sequence[str], questions: IO[bytes] | None = None) -> Iterator[IO[bytes]]:
        """What a command says; it is ended, with all that it started, when the time is up or nobody listens.

        Raises:
            Unreadable: it did not succeed.
        """
        options = [part for option in _OPTIONS for part in ("-c", option)]
        command = ["sh", "-c", _LIMITED, "sh", *options, *arguments]
        late = threading.Event()
        with (self._scratch / "errors").open("w+b") as errors:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=questions if questions is not None else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=self._environment,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise Unreadable(f"git cannot be started: {error}") from error

            def end() -> None:
                late.set()
                _kill(process)

            timer = threading.Timer(SECONDS, end)
            timer.daemon = True
            timer.start()
            assert process.stdout is not None
            try:
                with process.stdout as output:
                    yield output
                    while output.read(1 << 16):
                        pass
                status = process.wait()
                if status != 0:
                    errors.seek(0)
                    why = _why(errors.read(4096))
                    raise Unreadable(f"git {arguments[0]} ended with {status}: {why}")
            except Unreadable as error:
                if late.is_set():
                    raise Unreadable(f"git {arguments[0]} did not end within {SECONDS} seconds") from error
                raise
            finally:
                timer.cancel()
                _kill(process)
                process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    # its group, for git starts other programs; it is not waited for yet, so the number is still its own
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _line(answers: IO[bytes]) -> str:
    line = answers.readline(_MAX_HEADER)
    if not line.endswith(b"\n"):
        raise Unreadable("has objects that cannot be read")
    return line[:-1].decode("ascii", "replace")


def _why(said: bytes) -> str:
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line and not line.startswith("warning:")]
    return lines[0] if lines else "it did not say why"
