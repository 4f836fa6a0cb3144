"""Runs on Docker are interrupted in every way, resumed to their end, and leave nothing that is not found."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_left import OnTheEngine, Others, engine_or_skip, others, owner
from real_runs import (
    ENOUGH_SEC,
    Leftovers,
    Proctor,
    bodies,
    ended,
    entries,
    finals,
    is_live,
    proctor,
    stop_before,
    until,
    write_study,
    write_task,
)

from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind

__all__ = ["others", "proctor"]
pytestmark = pytest.mark.real

INTERRUPTIONS = int(os.environ.get("PROCTOR_INTERRUPTIONS", "8"))
SIGNALS = ("int", "int twice", "term", "kill", "kill", "kill all")
# entries of one undisturbed trial, about
ENTRIES = 15
WORD = 'if [ "$(cat /kept/answer 2>/dev/null)" = right ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n'
# the answer lies in a volume of the image; every second task has no right one, and each leaves a process behind
AGENT = """
said=$(cat); n=$(echo "$said" | sed -n 's/.*(t\\([0-9]\\)).*/\\1/p')
setsid sleep 1000 &
if [ $((n % 2)) = 0 ]; then echo right > /kept/answer; fi
dd if=/dev/urandom of=/app/big bs=1M count=8 2>/dev/null
sleep 0.2
"""


@pytest.fixture
def mark() -> Iterator[str]:
    engine_or_skip()
    yield f"mark{random.randrange(10**12):012}"


def make_study(folder: Path, mark: str, *, tasks: int, epochs: int) -> Path:
    study = write_study(folder, command=AGENT, tasks={"t0": WORD}, stage=f"epochs = {epochs}\nlanes = 3\n")
    study.write_text(study.read_text().replace('kind = "namespace"', 'kind = "docker"'))
    made = f"ENV MARK={mark}\nRUN mkdir /kept && touch /kept/{mark} && sleep 1\nVOLUME /kept\n"
    for number in range(tasks):
        task = folder / f"tasks/t{number}"
        if number:
            write_task(task, tests=WORD)
        (task / "environment/Dockerfile").write_text(
            f"FROM debian:bookworm-slim\nWORKDIR /app\n{made}RUN sleep 0.{number}\n"
        )
    return study


def send(process: subprocess.Popen[str], how: str) -> set[int]:
    """Interrupt it; the exit statuses that are right."""
    if how == "kill all":
        os.killpg(process.pid, signal.SIGKILL)
    elif how == "kill":
        process.kill()
    elif how == "term":
        process.send_signal(signal.SIGTERM)
        return {143}
    else:
        for _ in range(1 if how == "int" else 2):
            process.send_signal(signal.SIGINT)
        return {130}
    return {-signal.SIGKILL}


def grown(run: Path) -> int:
    path = run / "journal.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def interrupted(process: subprocess.Popen[str], run: Path, lines: int, chance: random.Random) -> str | None:
    """Interrupt it somewhere after that line of the journal; how, or None where it had ended before."""
    before = grown(run)
    with process:
        until("the journal grows", lambda: process.poll() is not None or grown(run) >= lines, ENOUGH_SEC)
        how = chance.choice(SIGNALS)
        try:
            # anywhere between one entry and the next: the engine builds, commits, starts and removes meanwhile
            process.wait(chance.random())
        except subprocess.TimeoutExpired:
            right = send(process, how)
        else:
            return None
        said = process.communicate(timeout=ENOUGH_SEC)[0]
    if grown(run) == before:
        # it was not listening yet, and had done nothing; an interpreter that only begins ends with status 1
        right |= {-signal.SIGTERM, -signal.SIGINT, *([1] if "KeyboardInterrupt" in said else [])}
    # what is heard after the last trial ended changes nothing any more
    assert process.returncode in {*right, 0}, (how, said)
    assert not is_live(run)
    return how


def test_interrupted_runs_come_to_the_same_grades_and_leave_nothing(
    proctor: Proctor, tmp_path: Path, mark: str, others: Others
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    tasks, epochs = 4, max(2, INTERRUPTIONS // 3)
    study, run, whole = (
        make_study(tmp_path / "study", mark, tasks=tasks, epochs=epochs),
        tmp_path / "run",
        tmp_path / "w",
    )
    beside(others, run)
    left, engine = Leftovers(), OnTheEngine(run, mark)
    happened: Counter[str] = Counter()
    for number in range(INTERRUPTIONS):
        words = ["resume", run] if (run / "journal.jsonl").exists() else ["run", study, "--out", run]
        process = proctor.start(*words, "--waive", "git_dirty", "--quiet", start_new_session=True)
        far = max(1, stop_before(tasks * epochs * ENTRIES, number, INTERRUPTIONS) - grown(run))
        lines = grown(run) + chance.choice([0, 1, 2, 4, *(chance.randint(1, far) for _ in range(4))])
        how = interrupted(process, run, lines, chance)
        if how is None:
            break
        happened[how] += 1
        known = entries(run) if (run / "journal.jsonl").exists() else []
        if "kill" not in how and known and known[-1].kind is Kind.RUN_ENDED:
            if not works(known):
                # it was told to stop before it had removed what one that was killed had left
                pruned(proctor, run, engine)
            engine.check()
            left.check(run)
            proctor.check(run)
        elif known and chance.random() < 0.5:
            pruned(proctor, run, engine)
    print(dict(happened))
    assert sum(happened.values()) > 0, "it ended before it was interrupted once"
    status, said = proctor("resume", run, "--waive", "git_dirty", "--quiet")
    assert (status, "run_complete" in said) in ((0, False), (3, True)), said
    assert proctor("run", study, "--out", whole, "--waive", "git_dirty", "--quiet")[0] == 0

    for each in (run, whole):
        proctor.check(each)
        left.check(each)
        pruned(proctor, each, OnTheEngine(each, mark))
    assert finals(run) == finals(whole)
    half = tasks * epochs // 2
    assert Counter(grade for grade, _, _ in finals(run).values()) == {"pass": half, "fail": half}
    assert ended(run)["totals"] == ended(whole)["totals"]
    assert [body for body in bodies(run, Kind.ATTEMPT_ADMITTED) if body["replaces"] is not None] == []
    assert others.stand()
    engine.remove_builds()


def works(known: list[Entry]) -> bool:
    """Whether the last opening of the run came so far as to admit an attempt."""
    openings = [at for at, entry in enumerate(known) if entry.kind in (Kind.RUN_ADMITTED, Kind.RUN_RESUMED)]
    return any(entry.kind is Kind.ATTEMPT_ADMITTED for entry in known[openings[-1] :])


def pruned(proctor: Proctor, run: Path, engine: OnTheEngine) -> None:
    """`prune` finds all that is left; what the engine was still making for a process that died comes a little later."""

    def again() -> bool:
        status, said = proctor("prune", run)
        assert status == 0, said
        return not engine.left()

    until(f"prune finds all: {engine.left()}", again)


def beside(others: Others, run: Path) -> None:
    """What looks like ours, and is others': nobody's, a live process's, another host's, a world that was kept."""
    scratch = str(run.resolve() / "scratch/other/a")
    ours = {"proctor.run": "proctor-x", "proctor.scratch": scratch}
    live = {**ours, "proctor.owner": owner(os.getpid())}
    far = {**ours, "proctor.owner": owner(1, host="elsewhere", started=0)}
    for labels in ({"proctor.run": "mine"}, {"proctor": "1"}, ours, live, far):
        others.container(labels)
        others.image(labels)
    others.container(live, start=False)
    dead = {**ours, "proctor.scratch": "/elsewhere/a", "proctor.owner": owner(1, started=0)}
    others.image(dead, tag=f"proctor-kept:{others.word}")
