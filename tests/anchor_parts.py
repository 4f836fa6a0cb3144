"""Real git repositories and folders to push to, and runs that push: what tests of anchors share."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socketserver
import subprocess
from collections.abc import Iterator
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.tokens import Admitted, seal_admitted
from proctor.evidence.anchors.base import AnchorFailed, CheckpointFile, Pushed
from proctor.evidence.anchors.git import GitAnchor
from proctor.evidence.anchors.places import AnchorKind, Place, git_place
from serving import serving

FINGERPRINT = "sha256:" + "5" * 64
AT = "2026-11-30T10:00:00.000000Z"
REF = "refs/proctor/run-1"


def git(repository: Path, *words: str, given: bytes = b"") -> bytes:
    """What git says of a repository; it must do what is asked."""
    return subprocess.run(
        ["git", "--git-dir", str(repository), *words],
        input=given,
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
        env={
            **os.environ,
            **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        },
    ).stdout


def repository(path: Path, kind: str = "sha1") -> Path:
    subprocess.run(["git", "init", "--quiet", "--bare", f"--object-format={kind}", str(path)], check=True, timeout=600)
    return path


def hook(path: Path, name: str, *lines: str) -> Path:
    """A hook of a repository, in shell; it can be taken away again."""
    file = path / "hooks" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(0o755)
    return file


def commits(path: Path, ref: str = REF) -> list[str]:
    """Of a ref, oldest first; none where it is not there."""
    if not git(path, "for-each-ref", ref):
        return []
    return git(path, "rev-list", "--reverse", ref).decode().split()


def contents(path: Path, ref: str = REF) -> list[bytes]:
    """The checkpoints that stand at a ref, oldest first."""
    return [git(path, "cat-file", "blob", f"{commit}:checkpoint") for commit in commits(path, ref)]


def admitted(run: Path, run_id: str = "run-1") -> Admitted:
    (run / "checkpoints").mkdir(parents=True, exist_ok=True)
    return seal_admitted(run_id=run_id, run_dir=run, design_sha256="0" * 64, label="proctor-test")


def checkpoint(run: Path, size: int) -> CheckpointFile:
    """A file below a run's checkpoints; what is in it matters to no anchor."""
    data = f"checkpoint over {size}\n".encode()
    (run / "checkpoints").mkdir(parents=True, exist_ok=True)
    (run / f"checkpoints/{size:012d}.note").write_bytes(data)
    return CheckpointFile("proctor/run/run-1", size, hashlib.sha256(data).hexdigest(), data)


class Scripted:
    """An anchor that fails as it is told, and takes everything then."""

    def __init__(self, *faults: Reason) -> None:
        self.place = Place(AnchorKind.DROP, "out", "/out")
        self.faults = list(faults)
        self.pushed: list[tuple[int, str]] = []

    def push(self, checkpoint: CheckpointFile, at: str) -> Pushed:
        if self.faults:
            raise AnchorFailed(self.faults.pop(0), "no", 7)
        self.pushed.append((checkpoint.size, at))
        return Pushed(0, {"path": f"run-1/{checkpoint.size:012d}.note", "sha256": checkpoint.sha256, "size": 1})

    def stands(self, checkpoint: CheckpointFile) -> bool:
        return checkpoint.size in [size for size, _ in self.pushed]

    def cancel(self) -> None:
        pass

    def close(self) -> None:
        pass


@contextlib.contextmanager
def git_anchor(run: Path, address: object, *, last: str | None = None) -> Iterator[GitAnchor]:
    anchor = GitAnchor(git_place(str(address), run), admitted(run), FINGERPRINT, last=last)
    try:
        yield anchor
    finally:
        anchor.close()


@contextlib.contextmanager
def daemon(folder: Path) -> Iterator[str]:
    """Repositories below a folder over git's own protocol on loopback; yields the address of the folder."""

    class Each(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            command = ["git", "daemon", "--inetd", "--export-all", "--enable=receive-pack", f"--base-path={folder}"]
            subprocess.run([*command, str(folder)], stdin=self.request, stdout=self.request, timeout=600, check=False)

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Each)) as at:
        yield f"git://{at}"
