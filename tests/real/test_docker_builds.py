"""Builds that fail or are broken off with their run: of their layers none is left on the engine."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_left import BASE, OnTheEngine, Others, engine_or_skip, others, seen
from real_runs import ENOUGH_SEC, Proctor, bodies, finals, proctor, until, write_study, write_task

from proctor.evidence.kinds import Kind
from proctor.sandbox.docker.owner import BUILDING

__all__ = ["others", "proctor"]
pytestmark = pytest.mark.real


class Layers:
    """Images that the builds of a test left; `mark` is a word in all of them."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def left(self) -> list[str]:
        """Those that belong to no image with a name."""
        dangling = seen("images", "-q", "--no-trunc", "--filter", "dangling=true")
        return [each["Id"] for each in dangling if f"MARK={self.mark}" in (each["Config"]["Env"] or ())]


@pytest.fixture
def layers(others: Others, tmp_path: Path) -> Iterator[Layers]:
    """With a dangling image of somebody else beside them."""
    engine_or_skip()
    made = Layers(f"mark{others.word}")
    others.image({"whose": "another's"})
    others.image({BUILDING: "another's"})
    yield made
    assert others.stand()
    OnTheEngine(tmp_path / "run", made.mark).remove_builds()


def make_study(folder: Path, mark: str, *steps: str) -> Path:
    """A task for each, whose image needs that step."""
    study = write_study(folder, tasks={"t0": "exit 1\n"}, stage="epochs = 1\nreplacements = 2\n")
    study.write_text(study.read_text().replace('kind = "namespace"', 'kind = "docker"'))
    for number, step in enumerate(steps):
        task = folder / f"tasks/t{number}"
        if number:
            write_task(task)
        text = (
            f"FROM {BASE} AS one\nENV MARK={mark}\nRUN echo {number} > /made\nFROM one\nCOPY --from=one /made /again\n"
        )
        (task / "environment/Dockerfile").write_text(f"{text}WORKDIR /app\n{step}\n")
    return study


def until_sleeps(process: subprocess.Popen[str], word: str) -> None:
    def sleeps() -> bool:
        assert process.poll() is None, process.communicate()[0]
        return any(word in str(each["Config"]["Cmd"]) for each in seen("ps", "-q", "--no-trunc"))

    until("the build begins", sleeps)


def test_a_build_that_fails_leaves_no_layers_and_the_others_their_images(
    proctor: Proctor, tmp_path: Path, layers: Layers
) -> None:
    study, run = make_study(tmp_path / "study", layers.mark, "RUN exit 7", "RUN true"), tmp_path / "run"
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--quiet")
    assert status == 1 and sorted(finals(run).values(), key=str) == [
        ("pass", None, 1),
        ("ungraded", "image_build_failed", None),
    ], said
    assert [body["replaces"] for body in bodies(run, Kind.ATTEMPT_ADMITTED)] == [None, None]
    proctor.check(run)
    assert layers.left() == []
    named = seen("images", "-q", "--no-trunc", "--filter", "label=proctor.key")
    assert sum(f"MARK={layers.mark}" in (each["Config"]["Env"] or ()) for each in named) == 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_build_that_ends_with_its_run_leaves_no_layers_that_prune_does_not_find(
    proctor: Proctor, tmp_path: Path, layers: Layers, how: signal.Signals
) -> None:
    word = f"sleep 98{layers.mark[-4:]}"
    study, run = make_study(tmp_path / "study", layers.mark, f"RUN {word}", "RUN exit 7"), tmp_path / "run"
    with proctor.start("run", study, "--out", run, "--waive", "git_dirty", "--quiet") as process:
        until_sleeps(process, word)
        assert layers.left() != []  # of the one that is at work
        assert proctor("prune", run)[0] != 0 and layers.left() != []
        process.send_signal(how)
        process.communicate(timeout=ENOUGH_SEC)
    assert how is signal.SIGKILL or layers.left() == []

    def pruned() -> bool:
        status, said = proctor("prune", run)
        assert status == 0, said
        return layers.left() == []

    # what the engine was still making for a process that died comes a little later
    until(f"prune finds all: {layers.left()}", pruned)
