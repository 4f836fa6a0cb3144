"""Judges mutants: each in a forked process that has the changed module in place of the real one."""

from __future__ import annotations

import ast
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from loading import Tree, forget_below
from mutants import Mutant, mutated
from shown import Reached, Shown, lines_reached, make_all
from targets import ANY_GUARDS, CHECKS, GUARDS, RULES

TESTS = Path(__file__).resolve().parent.parent
# what never ends is told apart by that
_CPU_SEC = 40
_WALL_SEC = 300
_MEMORY = 4 << 30
_FEW, _OTHERS = 2, 20
# imported before any fork, so that no process has to
_AHEAD = (
    "proctor_verify",
    "proctor.admission.guards",
    "proctor.admission.standalone",
    "pytest_asyncio",
    "_pytest.python",
)
_SECOND = "proctor_verify"


@dataclass(frozen=True)
class Verdict:
    """`killer` says what told the mutant from the real thing; None where nothing did."""

    mutant: Mutant
    killer: str | None
    seconds: float


@dataclass
class Judge:
    """Stories and tests, and as many processes at once as there are jobs."""

    tree: Tree
    place: Path
    jobs: int
    stories: bool = True
    tests: bool = True
    quick: bool = False
    traced: bool = False
    shown: list[Shown] = field(default_factory=list)
    reached: Reached = field(default_factory=dict)
    # what told one mutant of a line apart is likely to tell the next
    _killers: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for name in _AHEAD:
            importlib.import_module(name)
        hypothesis.settings.register_profile(
            "mutation",
            database=None,
            derandomize=True,
            max_examples=60,
            deadline=None,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )
        hypothesis.settings.load_profile("mutation")
        if self.stories:
            self.shown = make_all(self.place / "shown")

    def trace(self) -> None:
        """Find out which story reaches which line: worth its time where there are many mutants."""
        below = str(self.tree.folder / _SECOND)
        numbered = list(enumerate(self.shown))
        parts = {job: partial(_reached_by, numbered[job :: self.jobs], below) for job in range(self.jobs)}

        def done(job: int, said: object, seconds: float) -> None:
            if not isinstance(said, list):
                raise SystemExit(f"stories, traced: {said}")
            for file, line, numbers in said:
                self.reached.setdefault((file, line), set()).update(numbers)

        _forked(parts, self.jobs, done)
        self.traced = True

    def check_killers(self, verdicts: Iterable[Verdict]) -> None:
        """What told mutants apart says nothing where nothing is changed. Raises SystemExit."""
        wrong: list[str] = []

        def done(name: str, said: object, seconds: float) -> None:
            if said is not None:
                wrong.append(f"{name}: {said}")

        killed = {self._files(v.mutant.module): v.mutant.module for v in verdicts if str(v.killer).startswith("tests")}
        same: dict[str, Callable[[], str | None]] = {}
        for module in killed.values():
            same[f"the tests of {module}"] = partial(self._unchanged, module)
        used = sorted({number for numbers in self._killers.values() for number in numbers})
        for job in range(self.jobs):
            same[f"stories {job}"] = partial(self._calm, used[job :: self.jobs])
        _forked(same, self.jobs, done)
        if wrong:
            raise SystemExit("without any mutant:\n" + "\n".join(wrong))

    def judge(self, chosen: Sequence[Mutant], hear: Callable[[Verdict], None] = lambda _: None) -> list[Verdict]:
        """All verdicts, in the order in which they were made; `hear` hears of each at once."""
        verdicts: list[Verdict] = []
        tasks = {mutant: partial(self._judged, mutant) for mutant in chosen}

        def done(mutant: Mutant, said: object, seconds: float) -> None:
            if isinstance(said, int):
                for line in (mutant.line, 0):
                    self._killers[mutant.module, line].append(said)
                said = self.shown[said].name
            verdicts.append(Verdict(mutant, None if said is None else str(said), seconds))
            hear(verdicts[-1])

        _forked(tasks, self.jobs, done)
        return verdicts

    def _judged(self, mutant: Mutant) -> int | str | None:
        """In a process of its own: the story, or the tests, that tell it apart."""
        numbers = self._order(mutant)
        try:
            self.tree.substitute(mutant.module, mutated(self.tree.sources[mutant.module], mutant))
        except SyntaxError:
            return "it is no Python"
        return self._told_apart(numbers, mutant.module)

    def _unchanged(self, module: str) -> str | None:
        """The same way as a mutant."""
        self.tree.substitute(module, ast.parse(self.tree.sources[module]))
        return self._tested(self._files(module))

    def _calm(self, numbers: list[int]) -> str | None:
        self.tree.substitute(_SECOND, ast.parse(self.tree.sources[_SECOND]))
        return next((self.shown[number].name for number in numbers if not self.shown[number].is_as_ever()), None)

    def _told_apart(self, numbers: list[int], module: str) -> int | str | None:
        seen = self._seen(numbers[:_OTHERS])
        if seen is not None:
            return seen
        # the tests of a module take less than the hundreds of stories that are left
        tested = self._tested(self._files(module)) if self.tests else None
        return self._seen(numbers[_OTHERS:]) if tested is None else tested

    def _seen(self, numbers: list[int]) -> int | None:
        for number in numbers:
            try:
                if not self.shown[number].is_as_ever():
                    return number
            except Exception:
                return number
        return None

    def _order(self, mutant: Mutant) -> list[int]:
        """The stories that reach it: first what killed its neighbours, then those that the module's own checks find."""
        if not mutant.module.startswith(_SECOND):
            return []
        file = str(self.tree.paths[mutant.module])
        reaching = set(range(len(self.shown)))
        # what stands outside of functions is run before any story
        if self.traced and (
            mutant.where.rpartition(".")[2][:1].islower() or mutant.where.rpartition(".")[2].startswith("_")
        ):
            lines = range(mutant.line, mutant.end_line + 1)
            reaching = set().union(*(self.reached.get((file, line), set()) for line in lines))
        own = {check.id for check in sys.modules["proctor_verify.checks"].CHECKS if check.__module__ == mutant.module}
        often = [number for number, _ in Counter(self._killers[mutant.module, 0]).most_common(_OTHERS)]
        killers = [*reversed(self._killers[mutant.module, mutant.line]), *often]
        killers = [number for number in killers if number in reaching]

        def rank(number: int) -> tuple[int, int]:
            """A few sound runs, the faults that the module's own checks find, all that is no single fault, the rest."""
            plant = self.shown[number].plant
            if plant is None:
                return (0 if number < _FEW else 2), number
            return (1 if plant.check in own else 3), number

        ranked = list(dict.fromkeys([*killers, *sorted(reaching, key=rank)]))
        likely = [number for number in ranked if rank(number)[0] < 3]
        return list(dict.fromkeys([*likely, *ranked[:_OTHERS]])) if self.quick and own else ranked

    def _files(self, module: str) -> tuple[str, ...]:
        if module.startswith(_SECOND):
            return RULES.get(module) or CHECKS.get(module) or ()
        return GUARDS.get(module) or ANY_GUARDS

    def _tested(self, files: tuple[str, ...]) -> str | None:
        """None where all the tests pass; they are imported anew, and see the program as this process has it."""
        if not files:
            return None
        paths = [str((TESTS / file).resolve(strict=True)) for file in files]
        forget_below(TESTS, Path(__file__).parent)
        temporary = self.place / str(os.getpid())
        try:
            status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={temporary}", *paths])
        except BaseException as error:
            return f"tests: {type(error).__name__}"
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return None if status == 0 else f"tests of {' '.join(files)}"


def _reached_by(part: list[tuple[int, Shown]], below: str) -> list[tuple[str, int, list[int]]]:
    reached = lines_reached(part, below)
    return [(file, line, sorted(numbers)) for (file, line), numbers in reached.items()]


def _forked(tasks: Mapping[Any, Callable[[], object]], jobs: int, done: Callable[[Any, object, float], None]) -> None:
    """Run each task in a process of its own; `done` hears what it returned, or how it died."""
    waiting, running = list(tasks.items()), dict[int, tuple[int, Any, float, list[bytes]]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            name, task = waiting.pop(0)
            reader, writer = os.pipe()
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                os.close(reader)
                _in_child(task, writer)
            os.close(writer)
            running[reader] = child, name, time.monotonic(), []
        for reader in select.select(list(running), [], [])[0]:
            child, name, since, heard = running[reader]
            if data := os.read(reader, 1 << 20):
                heard.append(data)
                continue
            _, status = os.waitpid(child, 0)
            os.close(reader)
            del running[reader]
            said = b"".join(heard)
            died = f"ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {status}"
            heard_all = json.loads(said) if said and status == 0 else died
            if isinstance(heard_all, dict) and "broken" in heard_all:
                raise SystemExit(f"{name}: {heard_all['broken']}")
            done(name, heard_all, time.monotonic() - since)


def _in_child(task: Callable[[], object], writer: int) -> None:
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_WALL_SEC)
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SEC, _CPU_SEC))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        if not os.environ.get("PROCTOR_MUTATION_TELL"):
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
        said = json.dumps(task()).encode()
        while said:
            said = said[os.write(writer, said) :]
        os._exit(0)
    except BaseException:
        os.write(writer, json.dumps({"broken": traceback.format_exc()}).encode())
        os._exit(0)
