"""The frozen design of one stage: what `design.json` holds, and nothing that did not apply.

Every default that applies is written out; a block that was not used is absent, so that a feature that comes later
never changes an old digest. Paths are as the study writes them, relative to its folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from proctor.core.canonical import encode
from proctor.core.files import read_regular
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.strictjson import loads
from proctor.evidence.disk import unreadable
from proctor.study.actors import (
    ABSENT_IF_UNUSED,
    AgentDesign,
    ArmDesign,
    FunctionDesign,
    ModelDesign,
    SandboxDesign,
    ToolDesign,
)

FORMAT: Final = 1
# the format of a task that is a row of a question set
QUESTION = "question"
# a design is bytes and parts, each `{`, `[` and `,` counted: what is read as a value of many small parts takes memory
MAX_DESIGN_BYTES = 64 * 2**20
MAX_DESIGN_PARTS = 1_000_000
# of more than these the second program would not draw the order either
MAX_TRIALS = 5_000_000

_TASKS = "\0tasks"
_TOGETHER = 256


@dataclass(frozen=True)
class StudyName:
    """Which study; `question` is null where it asks none."""

    name: str
    question: str | None


@dataclass(frozen=True)
class StageDesign:
    """The stage; `deadline_sec` is null where it has none."""

    name: str
    type: str
    epochs: int
    lanes: int
    deadline_sec: int | None
    replacements: int


@dataclass(frozen=True)
class HypothesisDesign:
    """One preregistered claim; `compare` is treatment, baseline."""

    id: str
    endpoint: str
    compare: tuple[str, str]
    test: str
    direction: str
    alpha: float


@dataclass(frozen=True)
class DrawDesign:
    """How orders are drawn."""

    seed: int


@dataclass(frozen=True)
class ModelMoney:
    """The money of one model of the stage; `blocks` counts those of the whole stage, before any selection."""

    name: str
    expected: str
    cap: str
    reserve: str
    blocks: int


@dataclass(frozen=True)
class PriorSpendDesign:
    """Money spent outside of any run, as declared."""

    amount: str
    source: str
    sha256: str


@dataclass(frozen=True)
class BudgetDesign:
    """The money of a stage; amounts have 12 decimals. `models` are all of the stage, selected or not."""

    spent_before: str
    allocation: str
    cap: str
    margin: str
    cap_quantum: str
    reserve_quantum: str
    reserve_factor: int | float
    models: tuple[ModelMoney, ...]
    prior_spend: PriorSpendDesign | None = field(default=None, metadata=ABSENT_IF_UNUSED)


@dataclass(frozen=True, slots=True)
class FrozenTask:
    """One task: its name, the digest of its folder or row, its format and where the study finds it.

    `cluster` is what question rows that belong together share.
    """

    name: str
    sha256: str
    format: str
    path: str
    cluster: str | None = field(default=None, metadata=ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class QuestionsDesign:
    """The question set that rows come from: its bytes' digest, and how rows that say nothing are scored."""

    path: str
    sha256: str
    scorer: str
    scorer_timeout_sec: int
    scorer_function: FunctionDesign | None = field(default=None, metadata=ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class GradingDesign:
    """What counts as solved, as the rule's own text. `assurance` is shared | live, absent where it is isolated."""

    solved: str
    duplicate_tests: str
    verifier_timeout_sec: int | None
    assurance: str | None = field(default=None, metadata=ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class ImageDesign:
    """An image that tasks name: its id, or the digest by which it is pulled."""

    name: str
    id: str


@dataclass(frozen=True)
class AnchorDesign:
    """Where checkpoints are pushed: texts as the study writes them, a path from the study's folder on."""

    every_sec: int
    required: bool
    git: str | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    drop: str | None = field(default=None, metadata=ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class Selection:
    """What the command line narrows: the first `limit` tasks in order of names, some arms, some models."""

    limit: int | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    arms: tuple[str, ...] = field(default=(), metadata=ABSENT_IF_UNUSED)
    models: tuple[str, ...] = field(default=(), metadata=ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class Design:
    """A stage, frozen. Tasks are sorted by name, arms and models stand in the order of the study."""

    format: Literal[1]
    study: StudyName
    stage: StageDesign
    draw: DrawDesign
    agent: AgentDesign
    models: tuple[ModelDesign, ...]
    arms: tuple[ArmDesign, ...]
    tasks: tuple[FrozenTask, ...]
    sandbox: SandboxDesign
    grading: GradingDesign
    tools: tuple[ToolDesign, ...] = field(default=(), metadata=ABSENT_IF_UNUSED)
    questions: QuestionsDesign | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    images: tuple[ImageDesign, ...] = field(default=(), metadata=ABSENT_IF_UNUSED)
    budget: BudgetDesign | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    hypotheses: tuple[HypothesisDesign, ...] = field(default=(), metadata=ABSENT_IF_UNUSED)
    baseline: str | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    anchor: AnchorDesign | None = field(default=None, metadata=ABSENT_IF_UNUSED)
    selection: Selection | None = field(default=None, metadata=ABSENT_IF_UNUSED)

    def to_json(self) -> dict[str, Any]:
        """The design as JSON values; their canonical JSON is `design.json`."""
        plain = _plain(self)
        assert isinstance(plain, dict)
        return plain

    def to_bytes(self) -> bytes:
        """The bytes of `design.json`."""
        return b"".join(self._written())

    @cached_property
    def sha256(self) -> str:
        """The design's identity: SHA-256 of `design.json`, hex."""
        return self._measured[0]

    @property
    def is_too_large(self) -> bool:
        """Whether `design.json` would be larger than anybody reads, or plans more trials."""
        _, size, parts = self._measured
        return size > MAX_DESIGN_BYTES or parts > MAX_DESIGN_PARTS or self.trials > MAX_TRIALS

    @property
    def trials(self) -> int:
        """How many are planned."""
        return len(self.tasks) * len(self.model_names) * len(self.arms) * self.stage.epochs

    @cached_property
    def _measured(self) -> tuple[str, int, int]:
        """Digest, bytes and parts of what is written."""
        digest, size, parts = hashlib.sha256(), 0, 0
        for written in self._written():
            digest.update(written)
            size, parts = size + len(written), parts + _parts(written)
        return digest.hexdigest(), size, parts

    def _written(self) -> Iterator[bytes]:
        # tasks some at a time: 100,000 of them as JSON values at once would be most of what a run takes of memory
        whole = encode({**_plain(replace(self, tasks=())), "tasks": _TASKS})
        before, _, after = whole.partition(encode(_TASKS))
        del whole
        yield before
        yield b"["
        for start in range(0, len(self.tasks), _TOGETHER):
            some = encode([_plain(task) for task in self.tasks[start : start + _TOGETHER]])
            yield b"," + some[1:-1] if start else some[1:-1]
        yield b"]"
        yield after

    @property
    def model_names(self) -> tuple[str | None, ...]:
        """Models in order; one None where the stage uses no model."""
        return tuple(model.name for model in self.models) or (None,)

    @property
    def synthetic(self) -> tuple[str, ...]:
        """The models that are made up: whatever shows a result of theirs says so."""
        return tuple(model.name for model in self.models if model.synthetic)

    def model(self, name: str, arm: str) -> ModelDesign:
        """The model as that arm calls it. Raises KeyError."""
        own = next((model for model in self.models if model.name == name), None)
        if own is None:
            raise KeyError(name)
        changed = self.arm(arm).model
        if changed is None:
            return own
        return replace(
            own,
            effort=changed.effort or own.effort,
            max_output_tokens=changed.max_output_tokens or own.max_output_tokens,
        )

    def tools_of(self, arm: str) -> tuple[ToolDesign, ...]:
        """The tools that rows have in that arm."""
        chosen = self.arm(arm).tools
        return tuple(tool for tool in self.tools if chosen is None or tool.name in chosen)

    def arm(self, name: str) -> ArmDesign:
        """The arm of that name. Raises KeyError."""
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise KeyError(name)

    def agent_of(self, arm: str) -> AgentDesign:
        """The agent with which that arm really runs."""
        return self.arm(arm).agent or self.agent

    def sandbox_of(self, arm: str) -> SandboxDesign:
        """The world in which that arm really runs."""
        return self.arm(arm).sandbox or self.sandbox


def read_design(file: Path) -> Design:
    """The frozen design of a run, from its `design.json`.

    Raises:
        Refusal: `evidence_unreadable`, `evidence_damaged` (not in canonical form, too), `json_invalid`,
            `format_unknown`.
    """
    try:
        data = read_regular(file, MAX_DESIGN_BYTES)
    except OSError as error:
        raise unreadable("the design", file.name, error) from error
    if data is None or _parts(data) > MAX_DESIGN_PARTS:
        message = f"the design is no file of at most {MAX_DESIGN_BYTES:,} bytes and {MAX_DESIGN_PARTS:,} parts"
        raise Refusal(Reason.EVIDENCE_UNREADABLE, message, path=file.name)
    found = hashlib.sha256(data).hexdigest()
    try:
        # straight from the bytes: what no strict reader would take is not what is written back, and its digest differs
        design: Design | None = _READER.validate_json(data)
    except ValidationError:
        design = None
    if design is None:
        design = _design(loads(data, max_bytes=MAX_DESIGN_BYTES, path=file.name), file.name)
    # a design may be one text of 64 MiB: the fewer copies of it at once, the better
    del data
    if found != design.sha256:
        raise _damaged("it is not in its canonical form, or holds what no design does", file.name)
    if design.trials > MAX_TRIALS:
        message = f"the design plans {design.trials:,} trials, more than the {MAX_TRIALS:,} that are read at most"
        raise Refusal(Reason.EVIDENCE_UNREADABLE, message, path=file.name)
    return design


def _parts(data: bytes) -> int:
    return sum(map(data.count, (b"{", b"[", b",")))


def _design(value: object, path: str) -> Design:
    if isinstance(value, dict) and value.get("format", FORMAT) != FORMAT:
        raise Refusal(
            Reason.FORMAT_UNKNOWN,
            "the design is in a format that this version does not know",
            path=path,
            observed=repr(value["format"])[:40],
            required=FORMAT,
        )
    try:
        design: Design = _READER.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _damaged(f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}", path) from error
    return design


def _damaged(what: str, path: str) -> Refusal:
    return Refusal(Reason.EVIDENCE_DAMAGED, f"the design cannot be read: {what}", path=path)


def as_json(model: ModelDesign) -> Any:
    """A model as it stands in `design.json`."""
    return _plain(model)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        pairs = ((each, getattr(value, each.name)) for each in fields(value))
        return {each.name: _plain(held) for each, held in pairs if _is_said(held, each.metadata)}
    if isinstance(value, Mapping):
        return {key: _plain(held) for key, held in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(held) for held in value]
    return value


def _is_said(held: Any, metadata: Mapping[str, Any]) -> bool:
    if metadata.get("absent_if_none"):
        return held is not None
    return bool(held) or not metadata.get("absent_if_unused")


def _first_fault(schema: Any) -> Any:
    """The schema of a reader that stops at the first item of a list or table that is none: each fault is remembered
    with what it is about, and of a million of them that is more than a gigabyte."""
    if isinstance(schema, list):
        return [_first_fault(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    stops = {"fail_fast": True} if schema.get("type") in ("list", "tuple", "dict") else {}
    return {name: _first_fault(each) for name, each in schema.items()} | stops


_READER = SchemaValidator(_first_fault(TypeAdapter(Design).core_schema))
