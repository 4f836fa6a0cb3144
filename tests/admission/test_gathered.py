"""Each guard speaks of real input: what is gathered of a study, a folder or a run is refused by it alone."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import tomlkit

from bundle_parts import make_bundle
from fake_worlds import FakeKind, Steps, _to_the_end
from journal_parts import KEY
from proctor.admission.admit import Admission, Verdict, admit
from proctor.admission.anchors import design_places
from proctor.admission.facts import Request
from proctor.admission.finish import Stop
from proctor.admission.guards import REGISTRY
from proctor.agents.base import Answered, RowTurn, Version
from proctor.core.exits import Exit
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Probe
from proctor.core.usage import Bucket
from proctor.evidence.lock import Lock
from proctor.evidence.runfolder import RunFolder
from proctor.runner.control import socket_path
from proctor.sandbox.base import Availability
from proctor.study.design import read_design

PRICE = {"input": "1", "output": "1", "per": "1M", "source": "a page"}
FREE = {**PRICE, "input": "0", "output": "0"}
ROWS: Mapping[str, Any] = {
    "study": {"name": "s"},
    "tasks": {"questions": "rows.jsonl"},
    "models": {"luna": {"provider": "practice", "model": "practice-1", "max_output_tokens": 100, "price": FREE}},
    "agent": {"name": "toolloop"},
    "grading": {"scorer": "number"},
    "stages": {"main": {"type": "standard"}},
}
FOLDERS: Mapping[str, Any] = {
    "study": {"name": "s"},
    "tasks": {"path": "tasks"},
    "agent": {"name": "command", "command": "true"},
    "sandbox": {"kind": "namespace"},
    "stages": {"main": {"type": "standard"}},
}
LUNA = {"provider": "mine", "model": "luna-1", "api": "chat", "base_url": "http://h/v1", "max_output_tokens": 100}
PAID: Mapping[str, Any] = {
    **ROWS,
    "models": {"luna": {**LUNA, "price": PRICE}},
    "stages": {
        "main": {
            "type": "standard",
            "budget": {"allocation": "6", "cap": "6", "margin": "1", "reserve_factor": 1},
            "expected_costs": {"luna": "2"},
            "caps": {"luna": "6"},
            "reserves": {"luna": "2"},
        }
    },
}


def changed(tables: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The tables with another value at a path of keys; `...` takes the key away."""
    name, _, rest = path.partition(".")
    whole = dict(tables)
    if rest:
        whole[name] = changed(whole.get(name, {}), rest, value)
    elif value is ...:
        del whole[name]
    else:
        whole[name] = value
    return whole


class Marking:
    """An agent handed over in Python, whose requests make tokens that a price may not name."""

    name = "marking"
    needs_solution = False
    needs_model = True
    marks: ClassVar[frozenset[Bucket]] = frozenset({Bucket.CACHE_WRITE})

    def __init__(self, settings: Mapping[str, Any], base: Path) -> None:
        pass

    def version(self) -> Version:
        return Version("1")

    async def answer(self, turn: RowTurn) -> Answered:
        return Answered(None)


class OldKind(FakeKind):
    """A kind of sandbox that can do what is asked of it, and what its probe finds otherwise."""

    found: ClassVar[dict[str, Any]] = {}
    networks: ClassVar[frozenset[Network]] = frozenset(Network)

    def probe(self, probe: Probe) -> Availability:
        found = super().probe(probe)
        return replace(found, **self.found, capabilities=replace(found.capabilities, networks=self.networks))


@dataclass
class Bench:
    """A study that is good until a fault is planted; `tables` are its own, `before` is done to its folder."""

    folder: Path
    patch: pytest.MonkeyPatch
    tables: Mapping[str, Any] = field(default_factory=lambda: ROWS)
    request: dict[str, Any] = field(default_factory=dict)
    agrees: bool = True
    held: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.out = self.folder / "run"
        # whatever agents this user has installed
        self.agents = self.folder / "data/proctor/agents"
        self.patch.setenv("XDG_DATA_HOME", str(self.folder / "data"))
        self.study.mkdir()
        self.rows({"id": "a", "prompt": "What is 1 + 1?", "target": 2})
        self.sandbox({})
        for name in ("tests", "environment", "solution"):
            (self.study / "tasks/one" / name).mkdir(parents=True)
        task = self.study / "tasks/one"
        (task / "task.toml").write_text('version = "1.0"\n')
        (task / "instruction.md").write_text("Do it.\n")
        (task / "environment/Dockerfile").write_text("FROM debian:bookworm-slim\nWORKDIR /app\n")
        (task / "tests/test.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")

    @property
    def study(self) -> Path:
        return self.folder / "study"

    def rows(self, *rows: Mapping[str, Any]) -> None:
        (self.study / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def sandbox(self, found: Mapping[str, Any], networks: frozenset[Network] = frozenset(Network)) -> None:
        kind = type("Kind", (OldKind,), {"found": found, "networks": networks})
        self.patch.setattr("proctor.admission.worlds.sandbox_kind", lambda name: kind(Steps()))

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", str(self.study), *words], check=True, capture_output=True, timeout=60)

    async def ask(self, command: str = "run") -> Admission | Verdict:
        """What admission says; `agrees` answers for a person."""

        async def confirm(_: object) -> bool:
            return self.agrees

        (self.study / "study.toml").write_text(tomlkit.dumps(self.tables))
        return await admit(self.asked(command), KEY, Stop(), control="nowhere", confirm=confirm)

    def asked(self, command: str) -> Request:
        study = {} if command == "resume" else {"study": self.study / "study.toml"}
        return Request(command, self.out, **{**study, **self.request})

    async def leave(self, *, complete: bool = False) -> None:
        """Leave a run: one that went to its end, or what a process that died after its admission leaves."""
        made = await self.ask()
        assert isinstance(made, Admission), [str(refusal) for refusal in made.refusals]
        if complete:
            assert await _to_the_end(made, self.asked("run"), socket_path("gathered")) is Exit.DONE
        else:
            await made.journal.close(None)


Fault = Callable[[Bench], Any]
FAULTS: dict[str, tuple[Fault, Reason]] = {}


def fault(guard_id: str, reason: Reason) -> Callable[[Fault], Fault]:
    def declare(plant: Fault) -> Fault:
        FAULTS[guard_id] = plant, reason
        return plant

    return declare


def tables(guard_id: str, reason: Reason, base: Mapping[str, Any], *changes: tuple[str, Any]) -> None:
    """A fault that stands in the study itself."""

    @fault(guard_id, reason)
    def _(bench: Bench) -> None:
        bench.tables = base
        for path, value in changes:
            bench.tables = changed(bench.tables, path, value)


tables("study-sound", Reason.UNKNOWN_KEY, ROWS, ("tasks.inclde", ["*"]))
tables("anchor-reachable", Reason.ANCHOR_UNREACHABLE, ROWS, ("anchor", {"drop": "nowhere", "required": True}))
tables("study-in-this-version", Reason.NOT_IN_THIS_VERSION, ROWS, ("scoring", {"build": "2026.11"}))
tables("tasks-selected", Reason.NOTHING_SELECTED, ROWS, ("tasks.include", ["b*"]))
tables("agent-sound", Reason.AGENT_OPTIONS_INVALID, ROWS, ("agent.settings", {"stepps": 1}))
tables("agent-version", Reason.RUNTIME_SKEW, ROWS, ("agent.expect_version", "999"))
tables("model-named", Reason.MODEL_NEEDED, ROWS, ("models", ...))
tables("model-used", Reason.MODEL_UNUSED, ROWS, ("agent.name", "oracle"))
_ROWS_TOO = ("tasks.questions", "rows.jsonl"), ("grading.scorer", "number")
tables("agent-answers", Reason.AGENT_UNSUITABLE, FOLDERS, *_ROWS_TOO)
tables("functions-found", Reason.TOOL_INVALID, ROWS, ("tools", {"calc": {"python": "nowhere:near"}}))
tables("models-callable", Reason.PRICE_UNKNOWN, ROWS, ("models.luna", LUNA))
tables("keys-there", Reason.KEY_MISSING, PAID, ("models.luna.api_key_env", "PROCTOR_NO_SUCH_KEY"))
tables("budget-there", Reason.BUDGET_ABSENT, PAID, ("stages.main", {"type": "standard"}))
tables("budget-whole", Reason.BUDGET_INCOMPLETE, PAID, ("stages.main.caps", {}))
tables(
    "expected-positive",
    Reason.BUDGET_INCONSISTENT,
    PAID,
    *[(f"stages.main.{table}", {"luna": "0"}) for table in ("expected_costs", "caps", "reserves")],
)
tables("caps-proportional", Reason.BUDGET_INCONSISTENT, PAID, ("stages.main.caps.luna", "5.99"))
tables("reserves-proportional", Reason.BUDGET_INCONSISTENT, PAID, ("stages.main.reserves.luna", "1.9"))
tables("allocation-in-cap", Reason.BUDGET_INCONSISTENT, PAID, ("stages.main.budget.cap", "5.99"))
tables(
    "reserves-in-caps",
    Reason.BUDGET_INCONSISTENT,
    PAID,
    *(("stages.main.budget.allocation", "1"), ("stages.main.caps.luna", "1")),
)
tables(
    "prior-spend-counted",
    Reason.PRIOR_SPEND_UNCOUNTED,
    PAID,
    ("prior_spend", {"amount": "0.01", "source": "a bill", "sha256": "0" * 64}),
)
tables("ceiling-free", Reason.CEILING_REACHED, PAID, ("stages.main.budget.spent_before", "7"))
tables(
    "gateway-reachable",
    Reason.GATEWAY_NEEDED,
    FOLDERS,
    *(("models", ROWS["models"]), ("sandbox.network", "none")),
)


@fault("waivers-known", Reason.UNKNOWN_WAIVER)
def _(bench: Bench) -> None:
    bench.request["waive"] = ("run_exists",)


@fault("model-suitable", Reason.MODEL_UNSUITABLE)
def _(bench: Bench) -> None:
    make_bundle(bench.agents, "codex", "1.0")
    bench.tables = changed(FOLDERS, "agent", {"name": "codex"})
    bench.tables = changed(bench.tables, "models.luna", {**LUNA, "api": "gemini", "price": FREE})
    bench.tables = changed(bench.tables, "sandbox.network", "gateway-only")


@fault("tasks-readable", Reason.TASK_UNREADABLE)
def _(bench: Bench) -> None:
    bench.tables = FOLDERS
    (bench.study / "tasks/one/task.toml").write_text("version = \n")


@fault("tasks-runnable", Reason.TASK_NEEDS_GPU)
def _(bench: Bench) -> None:
    bench.tables = FOLDERS
    (bench.study / "tasks/one/task.toml").write_text('version = "1.0"\n[environment]\ngpus = 1\n')


@fault("sandbox-available", Reason.USER_NAMESPACES_FORBIDDEN)
def _(bench: Bench) -> None:
    bench.tables = FOLDERS
    why = Refusal(Reason.USER_NAMESPACES_FORBIDDEN, "this machine forbids them")
    bench.sandbox({"available": False, "refusals": (why,)})


@fault("sandbox-network", Reason.NETWORK_UNAVAILABLE)
def _(bench: Bench) -> None:
    # of a task that wants less than the study offers, no obstacle speaks
    own = '[agent]\nnetwork_mode = "no-network"\n[verifier]\nnetwork_mode = "no-network"\n'
    (bench.study / "tasks/one/task.toml").write_text(f'version = "1.0"\n{own}')
    bench.tables = changed(FOLDERS, "sandbox.network", "public")
    bench.sandbox({}, frozenset({Network.NONE, Network.GATEWAY_ONLY}))


@fault("components-supported", Reason.VERSION_UNSUPPORTED)
def _(bench: Bench) -> None:
    bench.tables = FOLDERS
    bench.sandbox({"facts": {"bwrap_version": "0.10.9"}})


@fault("prices-whole", Reason.PRICE_UNKNOWN)
def _(bench: Bench) -> None:
    bench.tables = changed(PAID, "agent.name", "marking")
    bench.request["agents"] = {"marking": Marking}


@fault("questions-sound", Reason.QUESTION_INVALID)
def _(bench: Bench) -> None:
    bench.rows({"id": "a", "prompt": "What is 1 + 1?", "target": None})


@fault("spend-confirmed", Reason.SPEND_NOT_CONFIRMED)
def _(bench: Bench) -> None:
    bench.tables, bench.agrees = PAID, False


@fault("git-readable", Reason.GIT_BROKEN)
def _(bench: Bench) -> None:
    (bench.study / ".git").write_text("gitdir: nowhere\n")


@fault("git-clean", Reason.GIT_DIRTY)
def _(bench: Bench) -> None:
    bench.git("init")


@fault("folder-free", Reason.RUN_LOCKED)
def _(bench: Bench) -> None:
    run = RunFolder(bench.out)
    run.create()
    bench.held.callback(Lock.acquire(run, extra={}).release)


@fault("run-new", Reason.RUN_EXISTS)
async def _(bench: Bench) -> str:
    await bench.leave()
    return "run"


@fault("run-there", Reason.RUN_NOT_FOUND)
async def _(bench: Bench) -> str:
    bench.tables = changed(ROWS, "tasks.inclde", [])
    assert isinstance(await bench.ask(), Verdict)
    return "resume"


@fault("evidence-sound", Reason.EVIDENCE_DAMAGED)
async def _(bench: Bench) -> str:
    await bench.leave()
    journal = bench.out / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"seq":0', b'"seq":1'))
    return "resume"


@fault("run-incomplete", Reason.RUN_COMPLETE)
async def _(bench: Bench) -> str:
    await bench.leave(complete=True)
    return "resume"


@fault("design-same", Reason.DESIGN_CHANGED)
async def _(bench: Bench) -> str:
    await bench.leave()
    bench.tables = changed(ROWS, "stages.main.epochs", 2)
    return "resume"


@fault("tasks-same", Reason.TASK_CHANGED)
async def _(bench: Bench) -> str:
    bench.tables = FOLDERS
    await bench.leave()
    (bench.study / "tasks/one/instruction.md").write_text("Do another thing.\n")
    return "resume"


def test_every_guard_has_its_input() -> None:
    assert {guard.id for guard in REGISTRY} == FAULTS.keys()


@pytest.mark.parametrize("base", [ROWS, FOLDERS, PAID], ids=["rows", "folders", "paid"])
async def test_good_input_is_admitted(base: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch, base)
    await bench.leave()
    again = await bench.ask("resume")
    assert isinstance(again, Admission), [str(refusal) for refusal in again.refusals]
    await again.journal.close(None)


@pytest.mark.parametrize("guard_id", FAULTS)
async def test_one_input_is_refused_by_one_guard(
    guard_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, reason = FAULTS[guard_id]
    bench = Bench(tmp_path, monkeypatch)
    with bench.held:
        planted = plant(bench)
        command = await planted if planted is not None else "run"
        verdict = await bench.ask(command)
    assert isinstance(verdict, Verdict), "it was admitted"
    assert [(refusal.guard, refusal.reason) for refusal in verdict.refusals] == [(guard_id, reason)]


async def test_where_anchors_are_is_known_as_long_as_the_study_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drop").mkdir()
    bench = Bench(tmp_path, monkeypatch, changed(ROWS, "anchor", {"drop": "../drop"}))
    await bench.leave()
    run = RunFolder(bench.out)
    design = read_design(run.design_path)
    assert len(design_places(run, design)) == 1
    shutil.rmtree(bench.study)
    with pytest.raises(Refusal) as refused:
        design_places(run, design)
    assert (refused.value.reason, refused.value.path) == (Reason.STUDY_NOT_FOUND, "anchor.drop")
