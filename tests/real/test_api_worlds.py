"""Tasks written and agents handed over in Python, in real worlds."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_runs import Proctor, proctor

from proctor.agents import handed
from proctor.api import Exit, Run, Study

ROOT = Path(__file__).resolve().parents[2]
MODULE = """
import asyncio
import proctor

class Greeter:
    name = "greeter"
    needs_solution = False
    needs_model = False

    def __init__(self, settings, base):
        self.how = settings.get("how", "writes")

    def version(self):
        return proctor.Version("1")

    async def act(self, turn):
        await turn.sandbox.put([proctor.PutItem(f"{turn.workdir}/greeting.txt", content=b"hello")])
        if self.how == "raises":
            raise ValueError("done, and confused")
        if self.how == "hangs":
            await asyncio.Event().wait()
        if self.how == "returns nothing":
            return None
        command = ("sh", "-c", "cat greeting.txt && test -f README")
        return await turn.sandbox.exec(
            proctor.Exec(command, stdout=turn.output / "log.txt", cwd=turn.workdir, deadline_sec=turn.deadline_sec)
        )
"""

__all__ = ["proctor"]
pytestmark = pytest.mark.real


@pytest.fixture
def greeters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """A folder with the task of docs/api.md, and the class of an agent."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "greeters.py").write_text(MODULE)
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(proctor\.write_task\(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    subprocess.run(
        [sys.executable, "-c", f"import proctor\n{example}"],
        env={"PYTHONPATH": str(ROOT / "src")},
        check=True,
        timeout=600,
    )
    from greeters import Greeter

    yield Greeter
    del sys.modules["greeters"]


def study(agent: str, **settings: str) -> Study:
    # one that hangs has the time that it takes to come so far
    timeout = "10s" if settings.get("how") == "hangs" else "10m"
    return Study.from_tables(
        {
            "study": {"name": "greetings"},
            "tasks": {"path": "tasks"},
            "agent": {"name": agent, "timeout": timeout, "settings": settings},
            "sandbox": {"network": "none"},
        }
    )


def test_the_task_of_the_page_holds(proctor: Proctor, greeters: type, tmp_path: Path) -> None:
    status, said = proctor("tasks", "check", tmp_path / "tasks/greeting")
    assert status == 0, said


@pytest.mark.parametrize("loop", [False, True])
def test_an_agent_works_in_a_world(greeters: type, loop: bool) -> None:
    async def main() -> Run:
        return study("greeter").run(agents={"greeter": greeters})

    run = asyncio.run(main()) if loop else study("greeter").run(agents={"greeter": greeters})
    (trial,) = run.trials
    assert (run.exit, trial.grade, trial.exception) == (Exit.DONE, "pass", None)
    (attempt,) = trial.tries()
    assert attempt.folder is not None and attempt.folder / "agent/log.txt" in attempt.files
    assert (attempt.folder / "agent/log.txt").read_text() == "hello"
    assert attempt.instruction == "Write `hello` into greeting.txt.\n"
    assert run.verify().findings == ()


@pytest.mark.parametrize(
    ("how", "exception", "said"),
    [
        ("raises", "agent_error", "ValueError: done, and confused"),
        ("returns nothing", "agent_error", "Greeter returned NoneType"),
        ("hangs", "agent_timeout", None),
    ],
)
def test_what_it_did_before_a_fault_is_graded(
    greeters: type, how: str, exception: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handed, "GRACE_SEC", 0.0)
    run = study("greeter", how=how).run(agents={"greeter": greeters})
    (trial,) = run.trials
    assert (run.exit, trial.grade, trial.exception) == (Exit.DONE, "pass", exception)
    (attempt,) = trial.tries()
    assert attempt.folder is not None
    error = attempt.folder / "agent/error.txt"
    assert (error in attempt.files) == (said is not None)
    assert said is None or error.read_text().startswith(said)
    assert run.verify().findings == ()
