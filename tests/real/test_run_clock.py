"""Somebody sets the wall clock back and forth while a whole run goes on: it completes, verifies, and says so."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from row_runs import prepare, study

from proctor.core.clock import SystemClock
from proctor.evidence.keys import config_dir, load_or_create
from proctor.evidence.reader import read_entries
from proctor_verify import verify

pytestmark = pytest.mark.real

_STEPS = [-86_400 * 400, -7_200, -90, -1, 30, 3_600, 86_400 * 300]


@pytest.mark.parametrize("seed", range(3))
def test_a_run_while_the_clock_is_set(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("PROCTOR_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    chance, off = random.Random(seed), timedelta(0)

    def utc(clock: SystemClock) -> str:
        nonlocal off
        if chance.random() < 0.4:
            off += timedelta(seconds=chance.choice(_STEPS))
        return f"{(datetime.now(UTC) + off).isoformat(timespec='microseconds')[:26]}Z"

    monkeypatch.setattr(SystemClock, "utc", utc)
    run = study().run(agree=True, out=tmp_path / "run", prepare_only=True)
    run = run.resume(agree=True)
    assert run.complete
    times = [entry.time for entry in read_entries(run.path / "journal.jsonl")]
    assert times != sorted(times)
    key, _ = load_or_create(config_dir(os.environ))
    report = verify(run.path, key.fingerprint)
    assert (report.exit_status, report.failed()) == (0, [])
    assert any("the wall clock falls by" in caveat for caveat in report.caveats)
