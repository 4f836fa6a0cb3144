"""Runs that spend are interrupted in every way, gone on with to their end, and equal one that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from real_runs import (
    ENOUGH_SEC,
    Leftovers,
    Proctor,
    bodies,
    ended,
    finals,
    is_live,
    is_over,
    proctor,
    stop_before,
    until,
)

from money_runs import Plan, check_money, sums, write_study
from proctor.core.money import Usd
from proctor.evidence.kinds import Kind
from proctor_verify.report import Status
from proctor_verify.verification import verify

__all__ = ["proctor"]
pytestmark = pytest.mark.real

QUICKSTART = Path(__file__).resolve().parents[2] / "examples/quickstart"
STOPS = int(os.environ.get("PROCTOR_STOPS", "8"))
WAYS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}


class Disturbed:
    """A run that is stopped again and again; `entries` is about how many an undisturbed one has."""

    def __init__(self, proctor: Proctor, study: Path, run: Path, entries: int, stops: int) -> None:
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        self.chance = random.Random(seed)
        self.proctor, self.study, self.run = proctor, study, run
        self.entries = entries
        # every way at least once; first a kill, of what is in flight then
        rest = [*WAYS[1:], *self.chance.choices(WAYS, k=stops)][: stops - 1]
        self.chance.shuffle(rest)
        self.ways = [WAYS[0], *rest]
        self.known = b""
        # exchanges that were in flight when it was killed
        self.unheard: set[str] = set()

    def go(self) -> None:
        """Stop it in every way, then let it end; a busy machine may let it end sooner."""
        for number, way in enumerate(self.ways):
            admitted = (self.run / "journal.jsonl").exists()
            words = ["resume", self.run] if admitted else ["run", self.study, "--out", self.run]
            with self.proctor.start(*words, "--waive", "git_dirty", "--quiet") as process:
                self._stop(process, way, stop_before(self.entries, number, len(self.ways)), soon=number > 0)
            assert not is_live(self.run)
            if is_over(self.run):
                assert number > 0, "it ended before it was stopped once"
                break
            if way is signal.SIGKILL:
                self._check_killed()
            else:
                self.proctor.check(self.run)
                check_money(self.run)
                assert (ended(self.run)["exit_status"], ended(self.run)["complete"]) == (STATUS[way], False)
        else:
            status, said = self.proctor("resume", self.run, "--waive", "git_dirty", "--quiet")
            assert status == 0, said
        assert (self.run / "journal.jsonl").read_bytes().startswith(self.known)
        self.proctor.check(self.run)

    def _check_killed(self) -> None:
        """Nothing is wrong with what there is but that its end, and that of what was in flight, is missing."""
        if not (self.run / "journal.jsonl").exists():
            return
        report = verify(self.run, self.proctor.key)
        wrong = {result.check for result in report.results if result.status is Status.FAIL}
        assert report.unreadable is None
        # a request is kept before the entry that names it
        assert wrong <= {"run.ended", "flight.empty", "packs.frames"}, wrong
        self.unheard |= _in_flight(self.run)

    def _stop(self, process: subprocess.Popen[str], way: signal.Signals, latest: int, *, soon: bool) -> None:
        path = self.run / "journal.jsonl"

        def seen() -> bytes:
            data = path.read_bytes() if path.exists() else b""
            return data[: data.rfind(b"\n") + 1]

        # a process that has not begun its opening hears no signal but the one that nobody hears
        least = 0 if way is signal.SIGKILL else 1
        before = seen().count(b"\n")
        far = self.chance.randint(30, max(30, latest - before))
        lines = before + self.chance.choice([*([least, least + 3] if soon else []), *[far] * 5])
        until("the journal grows", lambda: process.poll() is not None or seen().count(b"\n") >= lines, ENOUGH_SEC)
        durable = seen()
        process.send_signal(way)
        said = process.communicate(timeout=ENOUGH_SEC)[0]
        # what is heard after the last trial ended changes nothing any more
        assert process.returncode in (STATUS[way], 0), said
        assert durable.startswith(self.known)
        self.known = durable


def _in_flight(run: Path) -> set[str]:
    held: set[str] = set()
    for line in (run / "journal.jsonl").read_bytes().splitlines(keepends=True):
        # a last line that is cut was never said
        entry = json.loads(line) if line.endswith(b"\n") else {"kind": None}
        if entry["kind"] == "exchange.admitted":
            held.add(entry["body"]["exchange"])
        elif entry["kind"] == "exchange.ended":
            held.discard(entry["body"]["exchange"])
    return held


def check_alike(again: Disturbed, whole: Path) -> None:
    """The same grades and counts, and the same money but for what was cut short, which is disclosed."""
    run = again.run
    unknown = {body["exchange"] for body in bodies(run, Kind.EXCHANGE_ENDED) if body["outcome"] == "unknown"}
    assert unknown == again.unheard
    assert finals(run) == finals(whole)
    assert ended(run)["totals"] == ended(whole)["totals"]
    disturbed, quiet = check_money(run), check_money(whole)
    assert (quiet.superseded.pico, quiet.estimated, set(quiet.outcomes)) == (0, 0, {"settled"})
    assert disturbed.total - disturbed.superseded == quiet.total
    superseded = [body for body in bodies(run, Kind.ATTEMPT_ENDED) if body["outcome"] in ("lost", "interrupted")]
    groups = json.loads((run / "summary.json").read_bytes())["groups"]
    assert sum(group["superseded"] for group in groups) == len(superseded) > 0
    assert sum(Usd.parse(group["cost"]["charged"]).pico for group in groups) == disturbed.total.pico
    assert sum(group["cost"]["estimated"] for group in groups) == disturbed.estimated


def test_a_thousand_rows(proctor: Proctor, tmp_path: Path) -> None:
    study = write_study(
        tmp_path / "study",
        rows=sums(1_000),
        money=Plan({"practice": "0.20"}, allocation="0.30", margin="0.01"),
        arms='[arms.plain]\n[arms.skilled]\nskills = "skills"\n',
        stage="lanes = 16\n",
    )
    run, whole = tmp_path / "run", tmp_path / "whole"
    disturbed = Disturbed(proctor, study, run, 20_000, STOPS)
    disturbed.go()
    assert proctor("run", study, "--out", whole, "--waive", "git_dirty", "--quiet")[0] == 0
    proctor.check(whole)
    check_alike(disturbed, whole)
    assert ended(run)["totals"]["ungraded"] == 0
    status, said = proctor("results", run)
    assert (status, "superseded" in said, "SYNTHETIC" in said) == (0, True, True), said


def test_task_folders_with_a_shell(proctor: Proctor, tmp_path: Path) -> None:
    """A model that works in sandboxes: what was cut short there is paid for, done anew, and graded the same."""
    tasks, epochs, stops = len(list((QUICKSTART / "tasks").iterdir())), 4, 4
    study = write_study(
        tmp_path / "study",
        tasks=str(QUICKSTART / "tasks"),
        money=Plan({"practice": "1"}, allocation="1.5", margin="0.1"),
        models={"practice": 'provider = "practice"\nmodel = "practice-1"\nmax_output_tokens = 1000\n'},
        blocks=tasks * epochs,
        arms=f"[arms.no-skill]\n[arms.with-skill]\nskills = {json.dumps(str(QUICKSTART / 'skills'))}\n",
        agent='name = "toolloop"\ntimeout = "10m"\n[agent.settings]\nsteps = 12\n',
        grading="",
        stage=f"epochs = {epochs}\nlanes = 4\n",
    )
    run, whole, left = tmp_path / "run", tmp_path / "whole", Leftovers()
    # entries of one attempt, about
    disturbed = Disturbed(proctor, study, run, tasks * epochs * 2 * 22, stops)
    disturbed.go()
    left.check(run)
    assert proctor("run", study, "--out", whole, "--waive", "git_dirty", "--quiet")[0] == 0
    proctor.check(whole)
    check_alike(disturbed, whole)
    assert ended(run)["totals"]["ungraded"] == 0
