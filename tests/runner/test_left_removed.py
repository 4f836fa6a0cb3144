"""A run that is told to stop while it removes what a dead one left removes all of it before it ends."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from fake_worlds import FakeKind, write_study
from launching import Place, check_run
from proctor.admission.finish import Stop, listen_again
from proctor.core.exits import Exit
from proctor.core.reasons import Reason


def test_a_stop_at_its_opening_leaves_nothing_of_what_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, run = Place(tmp_path, monkeypatch), tmp_path / "run"
    (prepared,) = place.launch(study=write_study(tmp_path / "study"), out=run, prepare_only=True)
    assert prepared.exit is Exit.DONE
    (run / "scratch/0123abcd-1/layers").mkdir(parents=True)
    heard, drain = threading.Event(), Stop.drain

    def drained(stop: Stop, *words: Any) -> None:
        drain(stop, *words)
        heard.set()

    def prune(*_: object) -> list[str]:
        # the system gives a signal to any thread of the process: here to one that does not run the loop
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        assert heard.wait(600)
        return []

    def prepare(kind: FakeKind) -> None:
        monkeypatch.setattr(kind, "prune", prune)

    monkeypatch.setattr(Stop, "drain", drained)
    place.prepare = prepare
    try:
        finished = place.resume(run)
    finally:
        listen_again()
    assert (finished.exit, finished.reason) == (Exit.TERMINATED, Reason.INTERRUPTED)
    assert not (run / "scratch").exists()
    check_run(run)
