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

from proctor.core.canonical import encode
from proctor.core.files import read_regular
from proctor.core.prices import Prices
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.strictjson import loads

FORMAT: Final = 1
# the format of a task that is a row of a question set
QUESTION = "question"
MAX_DESIGN_BYTES = 256 * 2**20

_ABSENT_IF_UNUSED = {"absent_if_unused": True}
# an empty list says something: none of them
_ABSENT_IF_NONE = {"absent_if_none": True}
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
class FolderDigest:
    """A folder that goes into the sandbox: the digest of its tree, and what it lists (path, kind, mode …)."""

    path: str
    sha256: str
    files: tuple[dict[str, str | int], ...]


@dataclass(frozen=True)
class FunctionDesign:
    """A Python function: `module:function` or an entry point's name, and the digest of its module's file."""

    name: str
    sha256: str


@dataclass(frozen=True)
class BundleDesign:
    """The program of an agent that runs inside: its version, and the digest of its files."""

    version: str
    sha256: str


@dataclass(frozen=True)
class AgentDesign:
    """Who works: `settings` are what the agent's class takes; `files` is the folder that `settings.files` names.

    `code` is the class, as `module:class`, of an agent that was handed over in Python and is not installed; `bundle`
    is the program of one that was installed for use inside.
    """

    name: str
    settings: dict[str, Any]
    timeout_sec: int | None
    files: FolderDigest | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    code: FunctionDesign | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    bundle: BundleDesign | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    expect_version: str | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    idle_timeout_sec: int | None = field(default=None, metadata=_ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class ToolDesign:
    """A tool of question rows: a function in worker processes, `pool` of them for each model."""

    name: str
    python: FunctionDesign
    pool: int


@dataclass(frozen=True)
class ModelDesign:
    """One model as it is called. `api` is chat | responses | anthropic | gemini | practice; `rpm`, `tpm` null where
    unlimited.

    `synthetic` says that no model was called: its answers, and its costs, are made up by rules. `context_window` is in
    tokens; `mutations` are the changes that requests of agents inside may undergo.
    """

    name: str
    provider: str
    model: str
    api: str
    base_url: str | None
    effort: str | None
    max_output_tokens: int
    request_timeout_sec: int
    api_key_env: str | None
    rpm: int | None
    tpm: int | None
    price: Prices
    synthetic: bool = field(default=False, metadata=_ABSENT_IF_UNUSED)
    context_window: int | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    mutations: tuple[str, ...] = field(default=(), metadata=_ABSENT_IF_UNUSED)


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
    prior_spend: PriorSpendDesign | None = field(default=None, metadata=_ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class ArmModel:
    """Model settings that an arm changes; null where it leaves the model's own."""

    effort: str | None
    max_output_tokens: int | None


@dataclass(frozen=True)
class SandboxDesign:
    """The world; null where the study says nothing and the task's own value stands."""

    kind: str
    network: str
    cpus: int | float | None
    memory_bytes: int | None
    storage_bytes: int | None
    pids: int | None
    rootfs: str | None
    substitute: dict[str, str]


@dataclass(frozen=True)
class PromptDesign:
    """Text put after the task's instruction, a blank line between; `file` is where the study keeps it."""

    append: str
    file: str | None = field(default=None, metadata=_ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class SkillDesign:
    """One skill, put at `/skills/<name>`."""

    name: str
    path: str
    sha256: str
    files: tuple[dict[str, str | int], ...]


@dataclass(frozen=True)
class ArmDesign:
    """One arm: its differences. `config` is as the study writes it; `agent` and `sandbox` are the whole result."""

    name: str
    prompt: PromptDesign | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    skills: tuple[SkillDesign, ...] = field(default=(), metadata=_ABSENT_IF_UNUSED)
    config: dict[str, Any] = field(default_factory=dict, metadata=_ABSENT_IF_UNUSED)
    agent: AgentDesign | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    sandbox: SandboxDesign | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    tools: tuple[str, ...] | None = field(default=None, metadata=_ABSENT_IF_NONE)
    model: ArmModel | None = field(default=None, metadata=_ABSENT_IF_UNUSED)

    @property
    def is_control(self) -> bool:
        """Whether it differs from the study in nothing (facts about it aside)."""
        changed = self.prompt or self.skills or self.agent or self.sandbox or self.model
        return not changed and self.tools is None

    def instruct(self, instruction: str) -> str:
        """The task's instruction as this arm's agent is handed it: unchanged, or with the arm's text after it."""
        return f"{instruction.rstrip()}\n\n{self.prompt.append}" if self.prompt else instruction


@dataclass(frozen=True, slots=True)
class FrozenTask:
    """One task: its name, the digest of its folder or row, its format and where the study finds it.

    `cluster` is what question rows that belong together share.
    """

    name: str
    sha256: str
    format: str
    path: str
    cluster: str | None = field(default=None, metadata=_ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class QuestionsDesign:
    """The question set that rows come from: its bytes' digest, and how rows that say nothing are scored."""

    path: str
    sha256: str
    scorer: str
    scorer_timeout_sec: int
    scorer_function: FunctionDesign | None = field(default=None, metadata=_ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class GradingDesign:
    """What counts as solved, as the rule's own text. `assurance` is shared | live, absent where it is isolated."""

    solved: str
    duplicate_tests: str
    verifier_timeout_sec: int | None
    assurance: str | None = field(default=None, metadata=_ABSENT_IF_UNUSED)


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
    git: str | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    drop: str | None = field(default=None, metadata=_ABSENT_IF_UNUSED)


@dataclass(frozen=True)
class Selection:
    """What the command line narrows: the first `limit` tasks in order of names, some arms, some models."""

    limit: int | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    arms: tuple[str, ...] = field(default=(), metadata=_ABSENT_IF_UNUSED)
    models: tuple[str, ...] = field(default=(), metadata=_ABSENT_IF_UNUSED)


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
    tools: tuple[ToolDesign, ...] = field(default=(), metadata=_ABSENT_IF_UNUSED)
    questions: QuestionsDesign | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    images: tuple[ImageDesign, ...] = field(default=(), metadata=_ABSENT_IF_UNUSED)
    budget: BudgetDesign | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    hypotheses: tuple[HypothesisDesign, ...] = field(default=(), metadata=_ABSENT_IF_UNUSED)
    baseline: str | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    anchor: AnchorDesign | None = field(default=None, metadata=_ABSENT_IF_UNUSED)
    selection: Selection | None = field(default=None, metadata=_ABSENT_IF_UNUSED)

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
        digest = hashlib.sha256()
        for part in self._written():
            digest.update(part)
        return digest.hexdigest()

    def _written(self) -> Iterator[bytes]:
        # tasks some at a time: 100,000 of them as JSON values at once would be most of what a run takes of memory
        whole = encode({**_plain(replace(self, tasks=())), "tasks": _TASKS})
        before, _, after = whole.partition(encode(_TASKS))
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
        message = f"the design cannot be read: {error.strerror or error}"
        raise Refusal(Reason.EVIDENCE_UNREADABLE, message, path=file.name) from error
    if data is None:
        message = f"the design is no file of at most {MAX_DESIGN_BYTES:,} bytes"
        raise Refusal(Reason.EVIDENCE_UNREADABLE, message, path=file.name)
    try:
        # straight from the bytes: what no strict reader would take is not what is written back, and its digest differs
        design = _ADAPTER.validate_json(data)
    except ValidationError:
        design = _design(loads(data, max_bytes=MAX_DESIGN_BYTES, path=file.name), file.name)
    if hashlib.sha256(data).hexdigest() != design.sha256:
        raise _damaged("it is not in its canonical form, or holds what no design does", file.name)
    return design


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
        return _ADAPTER.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _damaged(f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}", path) from error


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


_ADAPTER = TypeAdapter(Design)
