"""Agents handed over in Python: on the record by their file's digest, kept to their attempts, missed on a resume."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.api import Exit, Refused, Run, Study, write_questions, write_task
from proctor.core.exits import Exit as CoreExit
from proctor.runner.launch import resume

MODULE = '''
import asyncio
import proctor

class Parrot:
    """Answers with the question."""

    name = "parrot"
    needs_solution = False
    needs_model = False

    def __init__(self, settings, base):
        self.how = settings.get("how", "well")
        if self.how == "not made":
            raise KeyError("how")

    def version(self):
        return proctor.Version("7")

    async def answer(self, turn):
        if self.how == "raises":
            raise ValueError("no idea")
        if self.how == "is late":
            raise TimeoutError
        if self.how == "hangs":
            await asyncio.Event().wait()
        if self.how == "returns nothing":
            return None
        if self.how == "answers a number":
            return proctor.Answered(7)
        return proctor.Answered(turn.messages[-1].text)

class Blocking(Parrot):
    name = "parrot"

    def answer(self, turn):
        return proctor.Answered("")

class Idle:
    name = "parrot"
    needs_solution = False
    needs_model = False
    version = Parrot.version

class Silent(Parrot):
    needs_model = None

def factory(settings, base):
    return Parrot(settings, base)
'''


class Place:
    """A folder with a question, a module of agents, and a study of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.module = importlib.import_module("parrots")
        write_questions(folder / "units.jsonl", [{"id": "q", "prompt": "polly", "target": "polly"}])

    def study(self, **settings: Any) -> Study:
        return Study.from_tables(
            {
                "study": {"name": "birds"},
                "tasks": {"questions": "units.jsonl"},
                "agent": {"name": "parrot", "timeout": "1s", "settings": settings},
            },
            self.folder,
        )

    def run(self, agent: Any = None, **settings: Any) -> Run:
        return self.study(**settings).run(agents={"parrot": agent or self.module.Parrot})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("PROCTOR_RUNS", raising=False)
    (tmp_path / "parrots.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield Place(tmp_path)
    sys.modules.pop("parrots", None)


def test_it_answers_and_is_on_the_record(place: Place) -> None:
    run = place.run()
    assert (run.exit, [trial.grade for trial in run.trials]) == (Exit.DONE, ["pass"])
    agent = json.loads((run.path / "design.json").read_bytes())["agent"]
    assert agent["code"] == {
        "name": "parrots:Parrot",
        "sha256": hashlib.sha256((place.folder / "parrots.py").read_bytes()).hexdigest(),
    }
    (attempt,) = run.tries()
    assert attempt.entries["agent.started"][0]["version"]["value"] == "7"
    assert (attempt.answer, attempt.instruction, attempt.folder) == ("polly", "polly", None)
    assert run.verify().findings == ()


@pytest.mark.parametrize(
    ("how", "exception", "said"),
    [
        ("raises", "agent_error", "ValueError: no idea"),
        ("is late", "agent_error", "TimeoutError"),
        ("hangs", "agent_timeout", None),
        ("returns nothing", "agent_error", "Parrot returned NoneType"),
        ("answers a number", "agent_error", "answered with int, not a text"),
    ],
)
def test_its_faults_are_its_own(place: Place, how: str, exception: str, said: str | None) -> None:
    run = place.run(how=how)
    (trial,) = run.trials
    assert (run.exit, trial.grade, trial.reason, trial.exception) == (Exit.DONE, "fail", "no_answer", exception)
    (attempt,) = run.tries()
    assert attempt.outcome == "completed"
    assert (attempt.message is None) if said is None else (said in (attempt.message or ""))
    assert run.verify().findings == ()


@pytest.mark.parametrize(
    ("agent", "settings", "reason", "said"),
    [
        ("factory", {}, "agent_invalid", "is no class"),
        ("Blocking", {}, "agent_invalid", "no `async def answer`"),
        ("Idle", {}, "agent_invalid", "no `async def act`"),
        ("Silent", {}, "agent_invalid", "does not say `needs_model`"),
        ("Parrot", {"how": "not made"}, "agent_options_invalid", "KeyError: 'how'"),
    ],
)
def test_what_is_no_agent_is_refused(
    place: Place, agent: str, settings: dict[str, str], reason: str, said: str
) -> None:
    with pytest.raises(Refused) as refused:
        place.run(getattr(place.module, agent), **settings)
    assert refused.value.reasons == (reason,)
    assert said in str(refused.value)
    assert refused.value.run is not None
    (manifest,) = (refused.value.run / "manifests").iterdir()
    assert json.loads(manifest.read_bytes())["verdict"] == "refused"


def test_a_class_that_stands_in_no_file_is_refused(place: Place) -> None:
    made = type("Made", (place.module.Parrot,), {"__module__": "nowhere"})
    with pytest.raises(Refused, match="stands in no file"):
        place.run(made)


def test_another_name_is_refused(place: Place) -> None:
    checked = place.study().check(agents={"parrot": place.module.Parrot, "other": place.module.Parrot})
    assert [refusal.reason.id for refusal in checked.refusals] == ["unknown_agent"]
    checked = place.study().check(agents={"other": place.module.Parrot})
    assert {refusal.reason.id for refusal in checked.refusals} == {"unknown_agent"}


def test_task_folders_are_for_agents_that_act(place: Place) -> None:
    write_task(place.folder / "tasks/t", instruction="Do it.", tests="true")
    tables = {**(place.study().tables or {}), "tasks": {"path": "tasks", "questions": "units.jsonl"}}
    checked = Study.from_tables(tables, place.folder).check(agents={"parrot": place.module.Parrot})
    assert [refusal.reason.id for refusal in checked.refusals if refusal.guard == "agent-sound"] == ["agent_unsuitable"]


def test_the_name_of_an_installed_one_is_taken(place: Place) -> None:
    tables = {**(place.study().tables or {}), "agent": {"name": "oracle"}}
    checked = Study.from_tables(tables, place.folder).check(agents={"oracle": place.module.Parrot})
    assert [refusal.reason.id for refusal in checked.refusals] == ["duplicate_name"]


def prepared(place: Place) -> Run:
    return place.study().run(prepare_only=True, agents={"parrot": place.module.Parrot})


def test_a_resume_needs_it_again(place: Place) -> None:
    run = prepared(place)
    with pytest.raises(Refused) as refused:
        run.resume()
    assert refused.value.reasons == ("unknown_agent",)
    assert "Run.open(RUN).resume(agents={'parrot': …})" in str(refused.value)
    finished = resume(run.path, study=None, jobs=None, waive=(), quiet=True, say=lambda text: None)
    assert finished is not None and finished.exit is CoreExit.REFUSED
    again = run.resume(agents={"parrot": place.module.Parrot})
    assert (again.exit, again.complete) == (Exit.DONE, True)


def test_a_resume_with_another_file_is_refused(place: Place) -> None:
    run = prepared(place)
    with (place.folder / "parrots.py").open("a") as module:
        module.write("# changed\n")
    with pytest.raises(Refused) as refused:
        run.resume(agents={"parrot": place.module.Parrot})
    assert refused.value.reasons == ("design_changed",)
    assert [refusal.path for refusal in refused.value.refusals] == ["agent.code.sha256"]
