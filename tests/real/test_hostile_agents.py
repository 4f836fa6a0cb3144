"""Agents that attack, in runs of the whole product: no grade but that of what was delivered, and nothing is reached.

What can be tried on one kind alone runs again as an ordinary user.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from each_kind import kind_or_skip
from real_runs import SOURCES, WORD, Leftovers, Proctor, bodies, ended, finals, write_study

from proctor.evidence.kinds import Kind

pytestmark = pytest.mark.real

HOSTILE = Path(__file__).resolve().parent / "hostile"
RIGHT = "echo right > /app/answer; "
WAYS = ("/proc/1/root", "/proc/self/root", "/proc/1/cwd", "/proc/self/cwd", "/oldroot", "/..", "/proc/1/fd/0")
# how a deed may end: refused by the kernel or the filter, with nothing there to do it to, or without a use of it
REFUSED = ("EPERM", "EACCES", "EROFS", "ENOENT", "ENOSYS", "EIO", "ENXIO", "none")
# the keeper of a container is a program of its root like others; triggers of pressure are any user's, on any machine
LET = {
    "namespace": (),
    "docker": (
        "ptrace attach 1",
        "ptrace seize 1",
        "read memory of 1",
        "write memory of 1",
        "open /proc/1/",
        "write /proc/pressure/",
    ),
}
FAIL, PASS = ("fail", "below_threshold"), ("pass", None)


@dataclass
class Attacked:
    """A run that is over: what each of its tasks came to, by name."""

    out: Path
    grades: dict[str, tuple[Any, ...]]
    ends: dict[str, tuple[str, str | None]]
    stdout: dict[str, Path]


@dataclass
class Field:
    """Where attacks are run: the program, and one kind of sandbox."""

    proctor: Proctor
    kind: str

    def attack(
        self,
        command: str,
        *,
        tasks: tuple[str, ...] = ("one",),
        tests: str = WORD,
        timeout: str = "10m",
        top: str = "",
        stage: str = "",
        words: dict[str, Any] | None = None,
    ) -> Attacked:
        """Run one attack in each of the tasks, all at once; the run itself ends well, verifies and leaves nothing."""
        folder, out = self.proctor.home / "study", self.proctor.home / "run"
        study = write_study(
            folder,
            command=command,
            tasks=dict.fromkeys(tasks, tests),
            top=top,
            stage=f"lanes = {len(tasks)}\n{stage}",
        )
        files = folder / "hostile"
        files.mkdir()
        for source in HOSTILE.glob("*.py"):
            (files / source.name).write_bytes(source.read_bytes())
        (files / "words.json").write_text(json.dumps(words or {}))
        text = study.read_text().replace('kind = "namespace"', f'kind = "{self.kind}"')
        study.write_text(text.replace('timeout = "10m"', f'timeout = "{timeout}"\nfiles = "hostile"'))
        left = Leftovers()
        code, said = self.proctor("run", study, "--out", out, "--waive", "git_dirty", "--quiet")
        assert code == 0, said
        assert ended(out)["exit_status"] == 0
        self.proctor.check(out)
        left.check(out)
        return self._seen(out)

    def _seen(self, out: Path) -> Attacked:
        admitted = {body["attempt"]: body for body in bodies(out, Kind.ATTEMPT_ADMITTED)}
        task_of = {body["trial"]: body["task"] for body in admitted.values()}
        return Attacked(
            out,
            {task_of[trial]: final[:2] for trial, final in finals(out).items()},
            {
                admitted[body["attempt"]]["task"]: (body["outcome"], body["exception"])
                for body in bodies(out, Kind.ATTEMPT_ENDED)
            },
            {body["task"]: out / body["folder"] / "agent/stdout.txt" for body in admitted.values()},
        )


@pytest.fixture(params=["namespace", "docker"])
def field(request: pytest.FixtureRequest, tmp_path: Path) -> Field:
    kind_or_skip(request.param)
    return Field(Proctor(tmp_path), request.param)


def test_a_looker_finds_nothing_that_is_hidden(field: Field) -> None:
    hidden = [secrets.token_hex(8) for _ in range(4)]
    field.proctor.env["HELD_BY_THE_RUNNER"] = hidden[0]
    keys = [path for path in (field.proctor.home / "config").rglob("*") if path.is_file()]
    words = [*hidden[:3], *(path.read_text("latin-1").strip().splitlines()[-1][:40] for path in keys)]
    words += [str(field.proctor.home), str(SOURCES), hidden[3]]
    paths = [str(field.proctor.home), str(SOURCES), str(HOSTILE), *map(str, keys), "/tests", "/solution"]
    seen = field.attack(
        'if grep -q looker /agent/instruction.md; then exec python3 -I /agent/looker.py "$(cat /agent/words.json)";'
        " else exec python3 -I /agent/sibling.py; fi",
        tasks=("looker", "sibling"),
        tests=f"# {hidden[1]}\n{WORD}",
        words={
            "reversed": [word[::-1] for word in words],
            "paths": [path[::-1] for path in paths],
            "ways": WAYS,
            "seconds": 6,
        },
    )
    assert seen.grades == {"looker": FAIL, "sibling": PASS}
    report = json.loads(seen.stdout["looker"].read_text())
    assert (report["found"], report["reached"]) == ({}, []) and report["looked"] > 1000


def test_a_breaker_breaks_nothing(field: Field) -> None:
    seen = field.attack("exec python3 -I /agent/breaker.py")
    assert seen.grades == {"one": FAIL}
    rows = json.loads(seen.stdout["one"].read_text())
    breaches = {what for what, how in rows if how not in REFUSED}
    assert {what for what in breaches if not what.startswith(LET[field.kind])} == set() and len(rows) > 100


@pytest.mark.parametrize("assurance", ["isolated", "shared"])
@pytest.mark.parametrize("solved", [False, True])
def test_writers_of_the_verdict_that_stay_write_none(field: Field, solved: bool, assurance: str) -> None:
    command = f"{RIGHT if solved else ''}python3 -I /agent/writer.py 3; until [ -e /tmp/wrote ]; do sleep 0.01; done"
    seen = field.attack(command, stage=f'[grading]\nassurance = "{assurance}"\n')
    assert seen.grades == {"one": PASS if solved else FAIL}
    (agent,) = bodies(seen.out, Kind.AGENT_ENDED)
    assert agent["ended"]["leftovers"] >= 3


@pytest.mark.parametrize("assurance", ["isolated", "shared"])
def test_who_answers_for_the_keeper_of_the_world_stays_no_longer(field: Field, assurance: str) -> None:
    command = "cd /agent && python3 thief.py; until [ -e /tmp/wrote ]; do sleep 0.01; done"
    seen = field.attack(command, stage=f'[grading]\nassurance = "{assurance}"\n')
    assert seen.grades == {"one": FAIL}


def test_work_after_the_timeout_is_no_work(field: Field) -> None:
    seen = field.attack("python3 -I /agent/writer.py 3 3; sleep 1000", timeout="2s")
    assert (seen.grades, seen.ends) == ({"one": FAIL}, {"one": ("completed", "agent_timeout")})


def test_a_fork_bomb_hits_itself_alone(field: Field) -> None:
    bomb = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
    seen = field.attack(
        f"if grep -q bomb /agent/instruction.md; then {RIGHT} exec python3 -c '{bomb}';"
        f" else for i in $(seq 20); do sleep 0.1; done; {RIGHT} fi",
        tasks=("bomb", "sibling"),
        timeout="12s",
        top="pids = 80\n",
    )
    assert seen.grades == {"bomb": PASS, "sibling": PASS}
    assert seen.ends["sibling"] == ("completed", None)
    outcome, exception = seen.ends["bomb"]
    assert outcome == "completed" and exception in ("agent_timeout", "agent_killed", "agent_error")


def test_a_filler_of_the_disk_fills_its_own(field: Field) -> None:
    seen = field.attack(f"{RIGHT} exec python3 -I /agent/filler.py", top='storage = "64MiB"\n')
    outcome, _ = seen.ends["one"]
    assert (seen.grades, outcome) == ({"one": PASS}, "completed")
