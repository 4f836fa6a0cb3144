"""Power fails at any moment of a whole run: what survives is taken up again, completed, and verifies.

Everything that a run of questions writes goes through one disk that logs: manifests, the design, the journal, packs,
checkpoints, receipts of an anchor and what stands there, derived files. Any prefix of the log may be what happened, and
of what no sync covers, any part. PROCTOR_CRASHES says how many crashes are tried, or `all`: every prefix, twice.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from row_runs import DROP, acknowledged_in, check_acknowledged, hear, prepare, study

from disks import LoggingDisk, materialise, replay
from proctor.api import Refused, Run
from proctor.evidence import runfolder
from proctor.evidence.anchors import drop
from proctor.evidence.keys import config_dir, load_or_create
from proctor.evidence.runfolder import RunFolder
from proctor.runner.anchor_run import anchor_run
from proctor_verify import verify

pytestmark = pytest.mark.real

CRASHES = os.environ.get("PROCTOR_CRASHES", "12")
RUN = "run"


@dataclass
class Recorded:
    """A run that was prepared, taken up and completed: what was done to the disk, and what was acknowledged."""

    root: Path
    log: list[tuple[Any, ...]] = field(default_factory=list)


class Logging(LoggingDisk):
    """One log for every disk that a run makes."""

    def __init__(self, log: list[tuple[Any, ...]]) -> None:
        self.log = log


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    root = tmp_path_factory.mktemp("recorded")
    made = Recorded(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(root.parent / "config"))
        patch.delenv("PROCTOR_RUNS", raising=False)
        patch.chdir(root)
        prepare(root)
        made.log += [("sync_dir", root.parent), ("make_dir", root / DROP), ("sync_dir", root)]
        for module in (runfolder, drop):
            patch.setattr(module, "Disk", lambda: Logging(made.log))
        hear(patch, made.log)
        first = study().run(agree=True, out=root / RUN, limit=1, prepare_only=True)
        assert first.reason == "prepared_only"
        assert first.resume(agree=True).complete
    return made


@pytest.fixture
def key(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(recorded.root.parent / "config"))
    monkeypatch.delenv("PROCTOR_RUNS", raising=False)
    key, made = load_or_create(config_dir(os.environ))
    assert not made
    return key.fingerprint


def _cases(operations: int) -> list[tuple[int, int]]:
    """Prefixes and seeds: all of them, or some of each part of the run."""
    if CRASHES == "all":
        return [(cut, seed) for cut in range(1, operations + 1) for seed in (0, 1)]
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance, many = random.Random(seed), int(CRASHES)
    bounds = [1 + number * operations // many for number in range(many + 1)]
    return [(chance.randrange(low, max(low + 1, high)), chance.randrange(2**32)) for low, high in pairwise(bounds)]


def _choose(seed: int) -> Callable[[int], int]:
    """What of the unsynced survives: nothing, all, or any part."""
    chance = random.Random(seed)
    return {0: lambda most: 0, 1: lambda most: most}.get(seed, lambda most: chance.randint(0, most))


def test_a_run_survives_power_failures(
    recorded: Recorded, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cut, seed in _cases(len(recorded.log)):
        _crash(recorded.root, recorded.log[:cut], seed, tmp_path / f"{cut}-{seed}", key, monkeypatch)


def test_a_sync_that_is_missing_is_found(
    recorded: Recorded, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = max(at for at, step in enumerate(recorded.log) if step[0] == "acknowledged")
    log = [step for step in recorded.log[: last + 1] if step != ("sync", recorded.root / RUN / "journal.jsonl")]
    with pytest.raises((AssertionError, Refused)):
        _crash(recorded.root, log, 0, tmp_path / "crash", key, monkeypatch)


def _crash(
    root: Path, log: list[tuple[Any, ...]], seed: int, where: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write down what survives of these operations, go on with the run there, and check that it holds."""
    where.mkdir()
    materialise(replay(log), root, where, _choose(seed))
    prepare(where)
    monkeypatch.chdir(where)
    path, what = where / RUN, f"after {len(log)} operations, seed {seed}"
    if RunFolder(path).is_admitted():
        run = _gone_on_with(Run(path))
    else:
        assert acknowledged_in(log) == [], what
        run = study().run(agree=True, out=path, limit=1)
    assert run.complete, what
    report = verify(path, key)
    assert (report.exit_status, report.failed()) == (0, []), (what, report)
    check_acknowledged(path, acknowledged_in(log), what)
    shutil.rmtree(where)


def _gone_on_with(run: Run) -> Run:
    """What a person does: go on, and where nothing is left but a receipt, push the last checkpoint."""
    try:
        return run.resume(agree=True)
    except Refused as refused:
        assert refused.reasons == ("run_complete",)
    assert all(last.there for last in anchor_run(RunFolder(run.path)))
    return run
