"""What stands on a Docker engine that a run could have left, and what of others stands beside it."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from each_kind import kind_or_skip
from real_runs import until

from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe

BASE = "debian:bookworm-slim"


def docker(*words: str, stdin: bytes = b"") -> str:
    """What the engine's own program prints; fails where it fails."""
    done = subprocess.run(["docker", *words], input=stdin, capture_output=True, timeout=600)
    assert done.returncode == 0, (words, done.stderr.decode("utf-8", "replace"))
    return done.stdout.decode("utf-8", "replace").strip()


def engine_or_skip(*images: str) -> None:
    """Skips where no engine answers, or it lacks one of the images."""
    found = kind_or_skip("docker").images([*images, BASE], seal_probe(30), pull="never")
    absent = [name for name, image in found.items() if isinstance(image, Refusal)]
    if absent:
        pytest.skip(f"the engine lacks {absent}: .ci/images.sh makes them")


def seen(*words: str) -> list[dict[str, Any]]:
    """All that is listed, as the engine describes each; what goes meanwhile is left out."""
    ids = docker(*words).split()
    if not ids:
        return []
    kind = "image" if words[0] == "images" else words[0] if words[0] != "ps" else "container"
    done = subprocess.run(["docker", kind, "inspect", *dict.fromkeys(ids)], capture_output=True, timeout=600)
    found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
    return found


class OnTheEngine:
    """What a run whose worlds have scratch folders below `run` has on the engine; `mark` is a word in its builds.

    What stood there before is not its own.
    """

    def __init__(self, run: Path, mark: str) -> None:
        self.run, self.mark = run.resolve(), mark
        self.before: set[str] = set()
        self.before = set(self.left())

    def containers(self) -> list[str]:
        """Of its worlds and of its builds, running or not."""
        return [
            each["Id"]
            for each in seen("ps", "-aq", "--no-trunc")
            if self._is_ours(each["Config"]["Labels"]) or self.mark in json.dumps(each["Config"])
        ]

    def images(self) -> list[str]:
        """Of captured worlds; what was built stays, to be used again."""
        labelled = seen("images", "-q", "--no-trunc", "--filter", "label=proctor.run")
        return [each["Id"] for each in labelled if self._is_ours(each["Config"]["Labels"])]

    def volumes(self) -> list[str]:
        """Those that hold the mark, where this machine's engine keeps them in sight."""
        root = Path(docker("info", "--format", "{{.DockerRootDir}}")) / "volumes"
        if not os.access(root, os.R_OK):
            return []
        return [str(path.parent.parent) for path in root.glob(f"*/_data/{self.mark}")]

    def left(self) -> list[str]:
        """All of it."""
        found = [*self.containers(), *self.images(), *self.volumes()]
        return [each for each in found if each not in self.before]

    def check(self) -> None:
        """Nothing of it is left, now or very soon."""
        until(f"all that the run had on the engine goes: {self.left()}", lambda: not self.left())

    def remove_builds(self) -> None:
        """What the builds of the run came to."""
        for each in seen("images", "-q", "--no-trunc", "--filter", "label=proctor.key"):
            if self.mark in json.dumps(each["Config"]):
                docker("rmi", "-f", each["Id"])

    def _is_ours(self, labels: Mapping[str, str] | None) -> bool:
        scratch = (labels or {}).get("proctor.scratch")
        return scratch is not None and Path(scratch).is_relative_to(self.run)


def owner(pid: int, **changes: Any) -> str:
    """The label of a process of this machine, as runs write it, or one that differs from it."""
    stat = Path(f"/proc/{pid}/stat")
    said = {
        "host": socket.gethostname(),
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "pid": pid,
        "started": int(stat.read_bytes().rpartition(b")")[2].split()[19]) if stat.exists() else 1,
        "numbers": str(Path("/proc/self/ns/pid").readlink()),
    }
    return json.dumps({**said, **changes})


class Others:
    """Containers and images of others, with labels like ours."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.containers: list[str] = []
        self.images: list[str] = []

    def container(self, labels: Mapping[str, str], *, start: bool = True) -> str:
        words = [word for name, text in labels.items() for word in ("--label", f"{name}={text}")]
        made = docker("create", *words, BASE, "sleep", "600")
        self.containers.append(made)
        if start:
            docker("start", made)
        return made

    def image(self, labels: Mapping[str, str], tag: str | None = None) -> str:
        lines = [f"FROM {BASE}", f"ENV WHOSE={secrets.token_hex(8)}"]
        lines += [f"LABEL {json.dumps(name)}={json.dumps(text)}" for name, text in labels.items()]
        made = docker("build", "-q", *(["-t", tag] if tag else []), "-", stdin="\n".join(lines).encode())
        self.images.append(made)
        return made

    def stand(self) -> bool:
        """Whether all of them are as they were."""
        running = docker("ps", "-aq", "--no-trunc").split()
        images = docker("images", "-aq", "--no-trunc").split()
        return set(self.containers) <= set(running) and set(self.images) <= set(images)

    def remove(self) -> None:
        for each in self.containers:
            subprocess.run(["docker", "rm", "-fv", each], capture_output=True, timeout=600)
        for each in self.images:
            subprocess.run(["docker", "rmi", "-f", each], capture_output=True, timeout=600)


@pytest.fixture
def others(request: pytest.FixtureRequest) -> Iterator[Others]:
    engine_or_skip()
    made = Others(f"{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**6:06}")
    yield made
    made.remove()
