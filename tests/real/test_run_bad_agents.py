"""Agents and verifiers that do what they should not: each a typed outcome, the run intact, and nothing left behind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from real_runs import PASS, WORD, Leftovers, Proctor, bodies, ended, finals, proctor, write_study

from proctor.evidence.kinds import Kind

__all__ = ["proctor"]
pytestmark = pytest.mark.real

RIGHT = "echo right > /app/answer; "


class Seen:
    """What one run of one trial came to."""

    def __init__(self, run: Path) -> None:
        self.run = run
        (final,) = finals(run).values()
        self.grade, self.reason, _ = final
        self.ends = [(body["outcome"], body["exception"]) for body in bodies(run, Kind.ATTEMPT_ENDED)]
        self.agents = bodies(run, Kind.AGENT_ENDED)
        self.folders = [run / body["folder"] for body in bodies(run, Kind.ATTEMPT_ADMITTED)]

    @property
    def graded(self) -> tuple[str, str | None]:
        return self.grade, self.reason

    @property
    def agent(self) -> dict[str, Any]:
        return dict(self.agents[-1]["ended"])


def run(
    proctor: Proctor,
    command: str = RIGHT,
    *,
    tests: str = WORD,
    top: str = "",
    agent: str = "",
    stage: str = "",
    status: int = 0,
) -> Seen:
    left, out = Leftovers(), proctor.home / "run"
    study = write_study(
        proctor.home / "study", command=command, tasks={"one": tests}, top=top, agent=agent, stage=stage
    )
    if agent:
        study.write_text(study.read_text().replace('timeout = "10m"\n', ""))
    code, said = proctor("run", study, "--out", out, "--waive", "git_dirty", "--quiet")
    assert code == status, said
    assert ended(out)["exit_status"] == status
    proctor.check(out)
    left.check(out)
    return Seen(out)


def test_processes_that_stay(proctor: Proctor) -> None:
    seen = run(proctor, RIGHT + "setsid sleep 1000 & (trap '' TERM HUP INT; sleep 1000) & exit 0")
    assert (seen.graded, seen.ends) == (("pass", None), [("completed", None)])
    assert seen.agent["leftovers"] >= 2


def test_a_flood_of_output(proctor: Proctor) -> None:
    seen = run(proctor, RIGHT + "head -c 1073741824 /dev/zero; head -c 67108864 /dev/zero >&2")
    assert (seen.graded, seen.ends) == (("pass", None), [("completed", "agent_output_capped")])
    kept = sum(path.stat().st_size for path in (seen.folders[0] / "agent").iterdir())
    assert kept + seen.agent["output_dropped"] == 1073741824 + 67108864
    assert kept <= 2 * 16 * 2**20


def test_forks_without_end(proctor: Proctor) -> None:
    fork = RIGHT + "i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; wait"
    seen = run(proctor, fork, top="pids = 60\n", agent='timeout = "10s"\n')
    assert seen.grade == "pass"
    ((outcome, exception),) = seen.ends
    assert (outcome, exception in ("agent_error", "agent_killed", "agent_timeout")) == ("completed", True)


def test_a_disk_that_is_filled(proctor: Proctor) -> None:
    fill = RIGHT + "cat /dev/zero > /app/big; exit 3"
    seen = run(proctor, fill, top='storage = "64MiB"\n')
    ((outcome, exception),) = seen.ends
    assert (outcome, exception in ("agent_error", "agent_killed")) == ("completed", True)


def test_memory_that_is_eaten(proctor: Proctor) -> None:
    eat = RIGHT + "exec python3 -c 'x = bytearray(1 << 30); print(len(x))'"
    seen = run(proctor, eat, top='memory = "128MiB"\n')
    ((outcome, exception),) = seen.ends
    assert seen.graded == ("pass", None)
    assert (outcome, exception in ("agent_error", "agent_killed")) == ("completed", True)


def test_a_forged_verdict(proctor: Proctor) -> None:
    forge = """
echo 1 > /logs/verifier/reward.txt
echo '{"reward": 1}' > /logs/verifier/reward.json
echo '{"results": {}}' > /logs/verifier/ctrf.json
mkdir -p /tests; printf 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh
echo 'echo 1 > /logs/verifier/reward.txt' > /tests/conftest.py
setsid sh -c 'while :; do echo 1 > /logs/verifier/reward.txt; done' &
exit 0
"""
    seen = run(proctor, forge)
    assert (seen.graded, seen.ends) == (("fail", "below_threshold"), [("completed", None)])
    names = {path.name for path in (seen.folders[0] / "verifier").iterdir()}
    assert names == {"reward.txt", "test-stdout.txt"}


def test_links_in_the_place_of_verdicts_and_artifacts(proctor: Proctor) -> None:
    secret = proctor.home / "secret.txt"
    secret.write_text("a secret of the host")
    link = f"""
rm -rf /logs/verifier; ln -s /tmp /logs/verifier
for target in /etc/passwd {secret} /proc/1/environ; do
  ln -s $target /logs/agent/$(basename $target); ln -s $target /logs/artifacts/$(basename $target)
done
ln -s / /logs/artifacts/all; mkfifo /logs/agent/pipe; exit 0
"""
    seen = run(proctor, RIGHT + link)
    assert (seen.graded, seen.ends) == (("pass", None), [("completed", None)])
    for path in seen.folders[0].rglob("*"):
        assert not path.is_symlink()
        assert path.is_dir() or path.is_file()
        assert (
            path.is_dir()
            or b"a secret of the host" not in path.read_bytes()
            or path.name
            in (
                "skipped.txt",
                "attempt.json",
            )
        )


def test_a_verdict_that_is_a_link(proctor: Proctor) -> None:
    seen = run(proctor, tests="echo 1 > /tmp/x; ln -s /tmp/x /logs/verifier/reward.txt\n", status=1)
    assert seen.grade == "ungraded"
    assert seen.reason in ("reward_missing", "reward_unreadable")


def test_log_folders_that_are_gone_or_files(proctor: Proctor) -> None:
    seen = run(proctor, RIGHT + "rm -rf /logs; echo x > /logs; exit 0")
    assert seen.graded == ("pass", None)


def test_tools_of_the_world_that_are_replaced_are_disclosed_with_the_grade(proctor: Proctor) -> None:
    """Isolated means: another world, on the files that the agent left. Its tools go along, and that is said."""
    # an ordinary user's world keeps files of others as they are
    tool = "/usr/bin/env" if os.geteuid() == 0 else "/usr/local/env"
    seen = run(proctor, f"rm -f /app/answer; cp /usr/bin/true {tool}; exit 0")
    assert seen.graded == ("fail", "below_threshold")
    (said,) = bodies(seen.run, Kind.ATTEMPT_GRADED)[-1]["disclosures"]
    assert tool in said


def test_what_an_agent_leaves_in_its_own_folders_needs_no_disclosure(proctor: Proctor) -> None:
    seen = run(proctor, RIGHT + "mkdir -p /app/sub /tmp/x; touch /app/sub/y /tmp/x/z /logs/agent/log.txt; exit 0")
    assert seen.graded == ("pass", None)
    assert bodies(seen.run, Kind.ATTEMPT_GRADED)[-1]["disclosures"] == []


def test_a_world_without_a_shell_is_ungraded_and_not_replaced(proctor: Proctor) -> None:
    seen = run(proctor, RIGHT + "rm -f /usr/bin/sh /usr/bin/dash /usr/bin/bash /bin/sh /bin/bash; exit 0", status=1)
    assert (seen.grade, seen.ends) == ("ungraded", [("completed", None)])
    assert seen.reason == "verifier_crashed"


@pytest.mark.parametrize("command", ["kill -9 1; kill -9 -1", "exit 137", "kill -9 $$"])
def test_signals_to_itself_and_all(proctor: Proctor, command: str) -> None:
    seen = run(proctor, RIGHT + command)
    ((outcome, exception),) = seen.ends
    assert (seen.graded, outcome) == (("pass", None), "completed")
    assert exception in ("agent_error", "agent_killed")


def test_a_right_answer_that_comes_before_the_timeout(proctor: Proctor) -> None:
    seen = run(proctor, RIGHT + "sleep 1000", agent='timeout = "8s"\n')
    assert (seen.graded, seen.ends) == (("pass", None), [("completed", "agent_timeout")])


@pytest.mark.parametrize("replacements", [0, 2])
def test_a_program_that_is_not_there(proctor: Proctor, replacements: int) -> None:
    study = write_study(proctor.home / "study", stage=f"replacements = {replacements}\n")
    study.write_text(
        study.read_text().replace('command = "echo right > /app/answer"', 'command = ["/no/such/program"]')
    )
    out = proctor.home / "run"
    code, said = proctor("run", study, "--out", out, "--waive", "git_dirty", "--quiet")
    assert code == 1, said
    proctor.check(out)
    seen = Seen(out)
    assert seen.graded == ("ungraded", "agent_start_failed")
    assert seen.ends == [("infrastructure", "agent_start_failed")] * (1 + replacements)


def test_names_and_output_that_are_no_text(proctor: Proctor) -> None:
    odd = (
        RIGHT
        + """
printf 'bytes \\377\\376 \\000 end\\n'
for folder in /logs/agent /logs/artifacts /app; do
  cd $folder
  printf x > "$(printf 'bad\\377name')"; printf x > "$(printf 'new\\nline')"; printf x > ' -rf'
  mkdir "$(printf 'fold\\377er')"; printf x > "$(printf 'fold\\377er')/in"
  printf x > "$(head -c 255 /dev/zero | tr '\\000' n)"
  d=deep; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
    d=$d/$(head -c 200 /dev/zero | tr '\\000' d)
  done
  mkdir -p "$d"; echo x > "$d/in"
  d=d; i=0; while [ $i -lt 300 ]; do d=$d/d; i=$((i+1)); done
  mkdir -p "$d"; echo x > "$d/in"
done
exit 0
"""
    )
    seen = run(proctor, odd)
    assert (seen.graded, seen.ends) == (("pass", None), [("completed", None)])


def test_verdict_names_that_collide(proctor: Proctor) -> None:
    tests = (
        "cd /logs/verifier; echo 1 > reward.txt; echo forged > test-stdout.txt; echo x > test-stdout.txt.inside; "
        "mkdir skipped.txt .coming tests.json attempt.json; echo x > .hidden; "
        "printf x > \"$(head -c 250 /dev/zero | tr '\\000' n)\"\n"
    )
    seen = run(proctor, tests=tests)
    assert seen.graded == ("pass", None)


VERIFIERS = {
    "times out": ("sleep 1000\n", "verifier_timeout", 'verifier_timeout = "2s"'),
    "times out after a verdict": (PASS + "sleep 1000\n", "verifier_timeout", 'verifier_timeout = "2s"'),
    "kills itself": ("kill -9 $$\n", "verifier_killed", ""),
    "writes nothing": ("exit 0\n", "reward_missing", ""),
    "crashes": ("exit 7\n", "reward_missing", ""),
    "disagrees with itself": (PASS + "echo '{\"reward\": 0}' > /logs/verifier/reward.json\n", "verdicts_disagree", ""),
    "writes 1 MB": ("head -c 1000000 /dev/zero > /logs/verifier/reward.txt\n", "reward_too_large", ""),
    # so much is not even brought out, which `skipped.txt` beside it says
    "writes 100 MB": ("head -c 100000000 /dev/zero > /logs/verifier/reward.txt\n", "reward_missing", ""),
    "writes no number": ("echo pass > /logs/verifier/reward.txt\n", "reward_unreadable", ""),
    "writes NaN": ("echo nan > /logs/verifier/reward.txt\n", "reward_unreadable", ""),
}


@pytest.mark.parametrize("name", VERIFIERS)
def test_a_verifier_that(proctor: Proctor, name: str) -> None:
    tests, reason, grading = VERIFIERS[name]
    seen = run(proctor, tests=tests, stage=f"[grading]\n{grading}\n" if grading else "", status=1)
    assert (seen.graded, seen.ends) == (("ungraded", reason), [("completed", None)])
    summary = json.loads((seen.run / "summary.json").read_bytes())
    assert summary["groups"][0]["reasons"] == {reason: 1}
