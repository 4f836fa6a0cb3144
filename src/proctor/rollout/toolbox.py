"""Tools of question rows: Python functions of the study's, called in worker processes.

What goes wrong with a call is text that the model reads: it may call again, and no attempt ends for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.core.models import ToolCall, ToolSpec
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.rollout.workers import FaultKind, Pool, Returned, WorkerError, Workers
from proctor.study.actors import ToolDesign

TOOL_SEC = 60.0
MAX_RESULT_CHARS = 100_000

_ACCEPTS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


@dataclass(frozen=True)
class FunctionTools:
    """A `ToolBox` over pools of workers."""

    specs: tuple[ToolSpec, ...]
    pools: Mapping[str, Pool]

    def only(self, names: Sequence[str] | None) -> FunctionTools:
        """The tools that a row may use: those named, of all that are here; all for None."""
        if names is None:
            return self
        return FunctionTools(tuple(spec for spec in self.specs if spec.name in names), self.pools)

    async def call(self, call: ToolCall) -> str:
        """The result as text: a string as it is, anything else as JSON; `error: …` for what went wrong."""
        spec = next((each for each in self.specs if each.name == call.name), None)
        if spec is None:
            known = ", ".join(each.name for each in self.specs) or "none"
            return f"error: there is no tool {call.name[:80]!r}; there are: {known}"
        if call.arguments is None:
            return "error: the arguments are not a JSON object"
        required = spec.parameters["required"]
        # models write null for what they leave out
        arguments = {name: value for name, value in call.arguments.items() if value is not None or name in required}
        if (why := unfit(spec, arguments)) is not None:
            return f"error: {why}"
        result = await self.pools[spec.name].call(kwargs=arguments, deadline_sec=TOOL_SEC)
        return _bounded(_text(result))


async def open_tools(workers: Workers, designs: Sequence[ToolDesign], model: str | None) -> FunctionTools:
    """The tools of an arm for a model, in the design's order; one worker of each is started.

    Raises:
        Refusal: TOOL_INVALID (it cannot be found, imported or described), TASK_CHANGED (not what was admitted).
    """
    specs: list[ToolSpec] = []
    pools: dict[str, Pool] = {}
    for tool in designs:
        pool = workers.pool(tool.python.name, tool.python.sha256, size=tool.pool, model=model)
        described = await pool.describe(deadline_sec=TOOL_SEC)
        if isinstance(described, WorkerError):
            raise Refusal(
                Reason.TOOL_INVALID,
                f"the tool {tool.name!r} cannot be used: {described.message}",
                path=f"tools.{tool.name}",
                observed=tool.python.name,
            )
        said: dict[str, Any] = described.value
        specs.append(ToolSpec(tool.name, said["description"], said["parameters"]))
        pools[tool.name] = pool
    return FunctionTools(tuple(specs), pools)


def unfit(spec: ToolSpec, arguments: Mapping[str, Any]) -> str | None:
    """Why a tool cannot be called with these arguments; None where it can."""
    properties: Mapping[str, Any] = spec.parameters["properties"]
    unknown = [name for name in arguments if name not in properties]
    if unknown:
        return f"{spec.name} has no argument {unknown[0][:80]!r}; it has: {', '.join(properties) or 'none'}"
    missing = [name for name in spec.parameters["required"] if name not in arguments]
    if missing:
        return f"{spec.name} needs the argument {missing[0]!r}"
    for name, value in arguments.items():
        wanted = properties[name]["type"]
        if not isinstance(value, _ACCEPTS[wanted]) or (isinstance(value, bool) and wanted != "boolean"):
            return f"the argument {name!r} of {spec.name} is of type {wanted}"
    return None


def _text(result: Returned | WorkerError) -> str:
    match result:
        case Returned(value=str() as text):
            return text
        case Returned(value=value):
            return json.dumps(value, ensure_ascii=False)
        case WorkerError(kind=FaultKind.RAISED, message=message):
            return f"error: {message}"
        case WorkerError(message=message):
            return f"error: the tool failed: {message}"


def _bounded(text: str) -> str:
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return text[:MAX_RESULT_CHARS] + f"\n[{len(text) - MAX_RESULT_CHARS} more characters were cut]"
