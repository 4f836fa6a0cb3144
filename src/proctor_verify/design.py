"""The frozen design as far as the checks use it, and the table of the trials that it plans."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from proctor_verify import canonical
from proctor_verify.design_parts import Parts, read_parts, read_selection
from proctor_verify.errors import Unreadable
from proctor_verify.schema import ASSURANCE
from proctor_verify.shapes import NUMBER, SHA256, TEXT, list_of, or_null, record
from proctor_verify.strictjson import loads_canonical
from proctor_verify.verdicts import Rule
from proctor_verify.vocabulary import NETWORKS

MAX_TRIALS = 5_000_000
# Of `design.json`; parts are its bytes `{`, `[` and `,`: what they enclose and separate takes memory.
MAX_BYTES = 64 << 20
MAX_PARTS = 1_000_000
NO_TRIAL = -1


_SKILLS = list_of(record(name=TEXT, sha256=SHA256))


@dataclass(frozen=True)
class ArmPlan:
    """What an arm runs with: agent, settings, skills, deadline, kind of world, network (a place in `NETWORKS`).

    Settings and skills are kept as `repr`, which tells 1 from true as `==` does not: of values read from canonical
    JSON it is equal exactly where they are.
    """

    agent: str
    settings: str
    skills: str
    timeout_sec: float | None
    kind: str
    network: int

    @classmethod
    def read(cls, arm: Any, design: Any) -> ArmPlan:
        """An arm's own agent and sandbox where it has them, else the design's.

        Raises:
            Unreadable: one of them is missing, or a field of it is of another type.
        """
        agent = _get(arm if "agent" in arm else design, "agent", dict)
        sandbox = _get(arm if "sandbox" in arm else design, "sandbox", dict)
        skills = [
            {"name": skill.get("name"), "sha256": skill.get("sha256")} if isinstance(skill, dict) else skill
            for skill in (_get(arm, "skills", list) if "skills" in arm else [])
        ]
        timeout_sec, network = agent.get("timeout_sec", ""), _get(sandbox, "network", str)
        if not _SKILLS.holds(skills) or not or_null(NUMBER).holds(timeout_sec) or network not in NETWORKS:
            raise Unreadable(f"arm {arm['name']} has skills, a timeout or a network of no known form")
        return cls(
            agent=_get(agent, "name", str),
            settings=repr(_get(agent, "settings", dict)),
            skills=repr(skills),
            timeout_sec=timeout_sec,
            kind=_get(sandbox, "kind", str),
            network=NETWORKS.index(network),
        )


@dataclass(frozen=True)
class Design:
    """Names and numbers of the design. `models` is `(None,)` where the stage uses no model.

    `rule` is what counts as solved, None where test reports decide; `selection` is what was chosen of the
    stage, None where all of it is there; `assurance` is where verifiers run whose task has no world for them.
    """

    study: str
    stage: str
    tasks: tuple[str, ...]
    models: tuple[str | None, ...]
    arms: tuple[str, ...]
    epochs: int
    replacements: int
    seed: int
    rule: Rule | None
    assurance: str
    plans: dict[str, ArmPlan]
    parts: Parts
    selection: dict[str, Any] | None

    @property
    def blocks(self) -> int:
        """How many (task, model, epoch) are planned."""
        return len(self.tasks) * len(self.models) * self.epochs

    @property
    def trials(self) -> int:
        """How many (task, model, arm, epoch) are planned."""
        return self.blocks * len(self.arms)

    @classmethod
    def of(cls, raw: bytes) -> Design:
        """From the bytes of `design.json`. Raises Unreadable."""
        parts = sum(map(raw.count, (b"{", b"[", b",")))
        if parts > MAX_PARTS:
            raise Unreadable(f"has {parts:,} parts, more than {MAX_PARTS:,}")
        return cls.read(loads_canonical(raw, max_bytes=MAX_BYTES))

    @classmethod
    def read(cls, value: Any) -> Design:
        """From the JSON value of `design.json`.

        Raises:
            Unreadable: a field that the checks need is missing or of another type, or a rule on names is broken.
        """
        if _get(value, "format", int) != 1:
            raise Unreadable(f"format {value['format']}, where this program reads 1")
        study, stage = _get(value, "study", dict), _get(value, "stage", dict)
        tasks, arms, models = _names(value, "tasks"), _names(value, "arms"), _names(value, "models")
        if not tasks or not arms:
            raise Unreadable("there are no tasks or no arms")
        if list(tasks) != sorted(tasks):
            raise Unreadable("tasks are not sorted by name")
        if not all(SHA256.holds(task.get("sha256")) for task in value["tasks"]):
            raise Unreadable("a task has no digest")
        epochs, replacements = _get(stage, "epochs", int), _get(stage, "replacements", int)
        if epochs < 1 or replacements < 0:
            raise Unreadable("epochs below 1 or replacements below 0")
        grading = _get(value, "grading", dict)
        assurance = grading.get("assurance", "isolated")
        if not ASSURANCE.holds(assurance):
            raise Unreadable("the assurance of grading is of no known form")
        return cls(
            study=_get(study, "name", str),
            stage=_get(stage, "name", str),
            tasks=tasks,
            models=models or (None,),
            arms=arms,
            epochs=epochs,
            replacements=replacements,
            seed=_get(_get(value, "draw", dict), "seed", int),
            rule=Rule.read(_get(grading, "solved", str)),
            assurance=assurance,
            plans={arm["name"]: ArmPlan.read(arm, value) for arm in value["arms"]},
            parts=read_parts(value),
            selection=read_selection(value),
        )


class Trials:
    """Every planned trial as a number, and what is known of each, in about 50 bytes a trial.

    Trials are numbered block by block, arms within; blocks by task, model, epoch. Ids are found through an open
    hash table over their first bits, so that their first 8 digits (folder names) find them too.
    """

    def __init__(self, design: Design) -> None:
        """Raises Unreadable where the design plans more trials than this program holds."""
        if design.trials > MAX_TRIALS:
            raise Unreadable(f"{design.trials:,} trials are planned, more than {MAX_TRIALS:,}")
        self._tasks = {name: i for i, name in enumerate(design.tasks)}
        self._models = {name: i for i, name in enumerate(design.models)}
        self._arms = {name: i for i, name in enumerate(design.arms)}
        self.design = design
        self.count = design.trials
        self._trials_of_a_task = len(design.models) * design.epochs * len(design.arms)
        self.ids = array("Q", _ids(design))
        self.attempts = array("I", bytes(4 * self.count))
        self.replaced = array("I", bytes(4 * self.count))
        self.admitted_in = array("I", bytes(4 * self.count))
        self.folders = array("Q", bytes(8 * self.count))
        # folders that are not called as their trials' are: how many attempts each may hold
        self.astray: dict[int, int] = {}
        self.final = bytearray(self.count)
        self._bits = max(8, (2 * self.count).bit_length())
        self._slots = array("I", bytes(4 << self._bits))
        for trial, number in enumerate(self.ids):
            self._put(trial, number)

    def _put(self, trial: int, number: int) -> None:
        slots, mask = self._slots, (1 << self._bits) - 1
        slot = number >> (64 - self._bits)
        while slots[slot]:
            slot = (slot + 1) & mask
        slots[slot] = trial + 1

    def find(self, trial_id: str) -> int:
        """The trial of that id (16 hex digits), or NO_TRIAL."""
        number = int(trial_id, 16)
        slots, ids, mask = self._slots, self.ids, (1 << self._bits) - 1
        slot = number >> (64 - self._bits)
        while held := slots[slot]:
            if ids[held - 1] == number:
                return held - 1
            slot = (slot + 1) & mask
        return NO_TRIAL

    def find_prefix(self, digits: str) -> Iterator[int]:
        """The trials whose id starts with these 8 hex digits."""
        prefix, mask = int(digits, 16), (1 << self._bits) - 1
        slot = prefix >> (32 - self._bits) if self._bits <= 32 else prefix << (self._bits - 32)
        while held := self._slots[slot]:
            if self.ids[held - 1] >> 32 == prefix:
                yield held - 1
            slot = (slot + 1) & mask

    def locate(self, task: str, model: str | None, arm: str, epoch: int) -> int:
        """The planned trial of these names, or NO_TRIAL."""
        block = self.locate_block(task, model, epoch)
        at = self._arms.get(arm)
        return NO_TRIAL if block < 0 or at is None else block * len(self._arms) + at

    def locate_block(self, task: str, model: str | None, epoch: int) -> int:
        """The planned block of these names, or NO_TRIAL."""
        at, with_model = self._tasks.get(task), self._models.get(model)
        if at is None or with_model is None or not 1 <= epoch <= self.design.epochs:
            return NO_TRIAL
        return (at * len(self._models) + with_model) * self.design.epochs + epoch - 1

    def block_of(self, trial: int) -> int:
        """The block that a trial belongs to."""
        return trial // len(self._arms)

    def group_of(self, trial: int) -> tuple[str | None, str]:
        """The (model, arm) that a trial counts for."""
        block, arm = divmod(trial, len(self._arms))
        model = block // self.design.epochs % len(self._models)
        return self.design.models[model], self.design.arms[arm]

    def is_row(self, trial: int) -> bool:
        """Whether the trial's task is a question row."""
        return self.design.parts.rows[trial // self._trials_of_a_task] == 1

    def id_of(self, trial: int) -> str:
        """The trial's id, 16 hex digits."""
        return f"{self.ids[trial]:016x}"


def _ids(design: Design) -> Iterator[int]:
    arms = [canonical.encode(arm) for arm in design.arms]
    for task in design.tasks:
        for model in design.models:
            start = canonical.encode([task, model])[:-1]
            for epoch in range(1, design.epochs + 1):
                for arm in arms:
                    name = b"%b,%b,%d]" % (start, arm, epoch)
                    yield int.from_bytes(hashlib.sha256(name).digest()[:8], "big")


def _get(value: Any, key: str, kind: type) -> Any:
    if type(value) is not dict or type(value.get(key)) is not kind:
        raise Unreadable(f"{key} is missing or of another type")
    return value[key]


def _names(value: Any, key: str) -> tuple[str, ...]:
    names = tuple(_get(item, "name", str) for item in _get(value, key, list))
    if len(set(names)) != len(names):
        raise Unreadable(f"two of {key} have one name")
    return names
