"""Runs that spend, and what happens around them: a full disk, a pause, others who start the same, a death."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from provider_runs import KEY, VARIABLE, model, provider, study_of
from real_runs import ENOUGH_SEC, Proctor, bodies, ended, finals, has_entry, proctor, until
from small_disks import fill, mounted

from money_runs import check_money
from proctor.core.money import Usd
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_blob
from proctor.evidence.runfolder import RunFolder
from scripted_provider import USAGE, ScriptedProvider

__all__ = ["proctor", "provider"]
pytestmark = pytest.mark.real

QUIET = ("--waive", "git_dirty", "--yes", "--quiet")
AT_ONCE = 4


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path, "24m")


def test_a_disk_that_fills_up_while_money_is_spent(
    proctor: Proctor, provider: ScriptedProvider, small_disk: Path
) -> None:
    proctor.env[VARIABLE] = KEY
    models = {"mine": model("mine", f"{provider.url}/well")}
    study, run = study_of(proctor, models, rows=200, stage="lanes = 8\n"), small_disk / "run"
    provider.held_from = 68
    with proctor.start("run", study, "--out", run, *QUIET) as process:
        until("it spends", lambda: process.poll() is not None or has_entry(run, Kind.EXCHANGE_ENDED, 60)())
        fill(small_disk / "others")
        provider.go_on()
        said = process.communicate(timeout=ENOUGH_SEC)[0]
    assert process.returncode == 5, said
    assert (ended(run)["exit_status"], ended(run)["reason"]) == (5, "disk_full"), said
    proctor.check(run)
    before = check_money(run)
    (small_disk / "others").unlink()
    status, said = proctor("resume", run, *QUIET)
    assert status == 0, said
    proctor.check(run)
    assert len(finals(run)) == 200
    after = check_money(run)
    assert after.superseded == before.superseded, "what was lost is said once"
    assert after.total - after.superseded == Usd(200 * sum(USAGE) * 10**12)


def test_a_pause_spends_nothing_until_it_ends(proctor: Proctor, provider: ScriptedProvider) -> None:
    proctor.env[VARIABLE] = KEY
    models = {"mine": model("mine", f"{provider.url}/takes-its-time")}
    study, run = study_of(proctor, models, rows=80, stage="lanes = 4\n"), proctor.home / "run"
    provider.held_from = 12
    with proctor.start("run", study, "--out", run, *QUIET) as process:
        until("it spends", lambda: process.poll() is not None or has_entry(run, Kind.EXCHANGE_ENDED, 8)())
        assert proctor("pause", run)[0] == 0
        provider.go_on()

        def at_rest() -> bool:
            said = json.loads(proctor("status", run, "--json")[1])
            return said["paused"] is True and said["in_flight"] == []

        until("what was in flight is over", at_rest)
        paused = check_money(run).total, len(provider.asked)
        # as many looks as it would take to see a lane go on
        for _ in range(3):
            assert at_rest()
        assert (check_money(run).total, len(provider.asked)) == paused
        assert proctor("resume", run)[0] == 0
        said = process.communicate(timeout=ENOUGH_SEC)[0]
    assert process.returncode == 0, said
    proctor.check(run)
    assert check_money(run).total == Usd(80 * sum(USAGE) * 10**12)
    assert len(provider.asked) == 80


def test_several_runs_into_one_folder_pay_once(proctor: Proctor, provider: ScriptedProvider) -> None:
    proctor.env[VARIABLE] = KEY
    models = {"mine": model("mine", f"{provider.url}/takes-its-time")}
    study, run = study_of(proctor, models, rows=10, stage="lanes = 2\n"), proctor.home / "run"
    started = [proctor.start("run", study, "--out", run, *QUIET) for _ in range(AT_ONCE)]
    ends = []
    for process in started:
        with process:
            said = process.communicate(timeout=ENOUGH_SEC)[0]
        ends.append((process.returncode, said))
    assert sorted(status for status, _ in ends) == [0] + [3] * (AT_ONCE - 1), ends
    proctor.check(run)
    assert len(provider.asked) == 10
    assert check_money(run).total == Usd(10 * sum(USAGE) * 10**12)
    again, said = proctor("run", study, "--out", run, *QUIET)
    assert (again, "run_exists" in said, len(provider.asked)) == (3, True, 10), said


def test_what_was_asked_before_a_death_is_on_the_record(proctor: Proctor, provider: ScriptedProvider) -> None:
    """Each request that reached the provider was admitted, each that was answered and lost is charged as unknown."""
    proctor.env[VARIABLE] = KEY
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    models = {"mine": model("mine", f"{provider.url}/takes-its-time")}
    study, run = study_of(proctor, models, rows=130, each=200_000, stage="lanes = 6\n"), proctor.home / "run"
    for _ in range(4):
        words = ["resume", run] if (run / "journal.jsonl").exists() else ["run", study, "--out", run]
        more = len(provider.asked) + chance.randint(1, 20)
        with proctor.start(*words, *QUIET, start_new_session=True) as process:
            until("it asks", lambda process=process, more=more: process.poll() is not None or _asked(provider) >= more)
            os.killpg(process.pid, signal.SIGKILL)
            said = process.communicate(timeout=ENOUGH_SEC)[0]
        assert process.returncode == -signal.SIGKILL, said
    status, said = proctor("resume", run, *QUIET)
    assert status == 0, said
    proctor.check(run)
    counted = check_money(run)
    assert counted.total - counted.superseded == Usd(130 * sum(USAGE) * 10**12)
    assert counted.outcomes["unknown"] > 0
    came = Counter(json.dumps(asked.body, sort_keys=True) for asked in provider.asked)
    settled, unknown = Counter[str](), Counter[str]()
    said_of = {body["exchange"]: body for body in bodies(run, Kind.EXCHANGE_ADMITTED)}
    for body in bodies(run, Kind.EXCHANGE_ENDED):
        request = json.dumps(
            json.loads(read_blob(RunFolder(run), said_of[body["exchange"]]["request"])), sort_keys=True
        )
        (unknown if body["outcome"] == "unknown" else settled)[request] += 1
    assert set(came) <= set(settled)
    for request, times in came.items():
        assert settled[request] <= times <= settled[request] + unknown[request]


@pytest.mark.parametrize(
    ("signals", "status"), [((signal.SIGTERM,), 143), ((signal.SIGINT, signal.SIGINT), 130)], ids=["SIGTERM", "Ctrl-C"]
)
def test_an_abort_while_a_limited_provider_is_waited_for(
    proctor: Proctor, provider: ScriptedProvider, signals: tuple[signal.Signals, ...], status: int
) -> None:
    """Nothing is held while it is waited for, so nothing is charged; and nobody waits the minute that was asked for."""
    proctor.env[VARIABLE] = KEY
    models = {"mine": model("mine", f"{provider.url}/limited-for-long")}
    study, run = study_of(proctor, models, rows=4, stage="lanes = 2\n"), proctor.home / "run"
    with proctor.start("run", study, "--out", run, *QUIET) as process:
        until("two wait", lambda: process.poll() is not None or has_entry(run, Kind.EXCHANGE_ENDED, 2)())
        for number in signals:
            process.send_signal(number)
            until("it is heard", lambda: process.poll() is not None or has_entry(run, Kind.RUN_DRAINING)())
        said = process.communicate(timeout=45)[0]
    assert (process.returncode, ended(run)["exit_status"]) == (status, status), said
    proctor.check(run)
    counted = check_money(run)
    assert (counted.total, counted.outcomes) == (Usd(0), {"released": 2})
    assert {body["outcome"] for body in bodies(run, Kind.ATTEMPT_ENDED)} == {"interrupted"}


def _asked(provider: ScriptedProvider) -> int:
    return len(provider.asked)
