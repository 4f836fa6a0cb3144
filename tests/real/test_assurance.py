"""Where the verifier runs: what `isolated`, `shared` and `live` mean for processes, files and verdicts left behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from case_tasks import BOTH, Right, checked, judged
from each_kind import kind_or_skip
from real_runs import PASS, WORD, Leftovers, Proctor, bodies, write_study, write_task

from proctor.evidence.kinds import Kind

pytestmark = pytest.mark.real

LEVELS = ("isolated", "shared", "live")
ASK = "python3 -c \"import urllib.request as r; r.urlopen('http://127.0.0.1:8765/', timeout=600)\" 2>/dev/null"
SERVE = f"""\
setsid python3 -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 &
until {ASK}; do sleep 0.05; done
"""
SERVED = f"if {ASK}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
# no reward is written where the tests come to this
NOTHING = "exit 1\n"


@dataclass
class Place:
    """The program, and one kind of sandbox."""

    proctor: Proctor
    kind: str

    def graded(self, level: str, command: str, tests: str, *, toml: str = "") -> dict[str, Any]:
        """The grade of one attempt at that level, of a run that ends well, verifies and leaves nothing."""
        folder, run = self.proctor.home / "study", self.proctor.home / "run"
        study = write_study(
            folder,
            command=command,
            tasks={"one": tests},
            stage=f'[grading]\nassurance = "{level}"\n',
            top="pids = 200\n",
        )
        study.write_text(study.read_text().replace('kind = "namespace"', f'kind = "{self.kind}"'))
        with (folder / "tasks/one/task.toml").open("a") as file:
            file.write(toml)
        left = Leftovers()
        status, said = self.proctor("run", study, "--out", run, "--waive", "git_dirty", "--quiet")
        assert status in (0, 1), said
        self.proctor.check(run)
        left.check(run)
        (grade,) = bodies(run, Kind.ATTEMPT_GRADED)
        return grade


@pytest.fixture(params=["namespace", "docker"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    kind_or_skip(request.param)
    return Place(Proctor(tmp_path), request.param)


@pytest.mark.parametrize(("level", "wanted"), [("isolated", "fail"), ("shared", "fail"), ("live", "pass")])
def test_a_server_is_there_for_the_tests_under_live_alone(place: Place, level: str, wanted: str) -> None:
    # what is gathered before the tests ends nothing either
    grade = place.graded(level, SERVE, SERVED, toml='[[verifier.collect]]\ncommand = "true"\n')
    assert (grade["grade"], grade["assurance"]) == (wanted, level)
    said = " ".join(grade["disclosures"])
    assert ("could have written the verdict" in said) == (level == "live")
    assert ("the agent's own world" in said) == (level != "isolated")


@pytest.mark.parametrize("level", LEVELS)
def test_a_file_is_there_at_every_level(place: Place, level: str) -> None:
    grade = place.graded(level, "echo right > /app/answer", WORD)
    assert (grade["grade"], grade["assurance"]) == ("pass", level)


@pytest.mark.parametrize("level", LEVELS)
def test_a_verdict_that_the_agent_wrote_beforehand_is_gone(place: Place, level: str) -> None:
    grade = place.graded(level, "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt", NOTHING)
    assert (grade["grade"], grade["reason"]) == ("ungraded", "reward_missing")


@pytest.mark.parametrize("level", LEVELS)
def test_links_in_the_way_of_the_verdict_lead_nowhere(place: Place, level: str) -> None:
    grade = place.graded(level, "rm -rf /logs; echo 1 > /app/reward.txt; ln -s /app /logs", NOTHING)
    assert (grade["grade"], grade["reason"]) == ("ungraded", "reward_missing")


@pytest.mark.parametrize("level", LEVELS)
def test_a_verifier_with_a_world_of_its_own_is_isolated(place: Place, level: str) -> None:
    toml = '[verifier]\nenvironment_mode = "separate"\n'
    grade = place.graded(level, f"{SERVE} touch /app/left", f"test -e /app/left || {{ {PASS} }}", toml=toml)
    assert (grade["grade"], grade["assurance"]) == ("pass", "isolated")


def test_what_an_agent_leaves_at_its_deadline_is_ended_under_live_too(place: Place) -> None:
    grade = place.graded("live", SERVE + "sleep 100", SERVED, toml="[agent]\ntimeout_sec = 6.0\n")
    assert (grade["grade"], grade["assurance"]) == ("fail", "live")


def test_a_check_of_a_task_finds_that_its_server_must_live(place: Place) -> None:
    task = write_task(place.proctor.home / "one", tests=SERVED)
    (task / "solution/solve.sh").write_text(SERVE)
    status, (record,) = checked(place.proctor, [task], "--sandbox", place.kind)
    assert (status, judged(record), record["assurance"]) == (0, Right("ok", grades=BOTH), "live")
    for run in map(Path, record["runs"]):
        place.proctor.check(run)


def test_a_check_of_a_task_of_files_stays_isolated(place: Place) -> None:
    status, (record,) = checked(place.proctor, [write_task(place.proctor.home / "one")], "--sandbox", place.kind)
    assert (status, judged(record), record["assurance"]) == (0, Right("ok", grades=BOTH), "isolated")
    assert len(record["runs"]) == 2
