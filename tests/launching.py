"""Runs as the command line starts them, on worlds that only pretend."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_worlds import FakeKind, Steps, findings
from proctor.admission import gather, worlds
from proctor.admission.facts import FolderFacts, Request
from proctor.admission.guards import REGISTRY
from proctor.admission.ready import Ready
from proctor.core.tokens import seal_probe
from proctor.runner.launch import Launch, launch, resume
from proctor.runner.session import Finished
from proctor_verify.verification import verify


class Place:
    """A folder to work in, with a configuration of its own, where every kind of sandbox is a fake one."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.config = folder / "config"
        self.kinds: list[FakeKind] = []
        self.prepare: Callable[[FakeKind], None] = lambda kind: None
        self.said: list[str] = []
        monkeypatch.setenv("XDG_CONFIG_HOME", str(self.config))
        monkeypatch.delenv("PROCTOR_RUNS", raising=False)
        monkeypatch.setattr(worlds, "sandbox_kind", self._kind)
        monkeypatch.chdir(folder)

    def _kind(self, name: str) -> FakeKind:
        kind = FakeKind(Steps())
        self.prepare(kind)
        self.kinds.append(kind)
        return kind

    def launch(self, **words: Any) -> list[Finished]:
        return launch(Launch(command="run", **words), quiet=True, say=self.said.append)

    def resume(self, run: Path, study: Path | None = None) -> Finished:
        finished = resume(run, study=study, jobs=None, waive=(), quiet=True, say=self.said.append)
        assert finished is not None
        return finished


def check_run(run: Path) -> None:
    """The second program finds nothing wrong with it."""
    report = verify(run, None)
    assert (report.unreadable, findings(report)) == (None, [])


def ready_of(study: Path, out: Path) -> Ready:
    """What admission makes ready of a study that nothing speaks against."""
    gathered = gather.gather(Request("run", out, study=study), FolderFacts(), None, seal_probe(30))
    assert [str(refusal) for refusal in REGISTRY.run(gathered.facts)] == []
    assert gathered.ready is not None
    return gathered.ready


def manifests(run: Path) -> list[dict[str, Any]]:
    """All manifests of a run folder, by number."""
    return [json.loads(path.read_bytes()) for path in sorted((run / "manifests").iterdir())]


def refusals_of(manifest: dict[str, Any]) -> list[str]:
    return [refusal["reason"] for refusal in manifest["refusals"]]
