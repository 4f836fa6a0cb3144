"""Which of the tasks, or rows, a study runs: include, ids, where, slice, all of them; pure, in a stable order."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from proctor.core.near import closest
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.questions import Row
from proctor.tasks.task import Task

_SLICE = re.compile(r"(\d*):(\d*)")


class Selectable(Protocol):
    """What can be selected: a task folder, or a question row."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its free values."""
        ...


Chosen = TypeVar("Chosen", bound=Selectable)


def select(
    tasks: Iterable[Chosen],
    *,
    include: Sequence[str] = ("*",),
    ids: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    slice_: str | None = None,
) -> list[Chosen]:
    """The tasks that fit all of it, sorted by name; the slice counts in what the rest leaves.

    `include` are shell patterns on names (case counts, `*` matches `/` too), `where` holds metadata values that must be
    equal and of the same type.

    Raises:
        Refusal: UNKNOWN_NAME (an id that no task has), INVALID_VALUE (a slice that is not `a:b`).
    """
    ordered = sorted(tasks, key=lambda task: task.name)
    wanted = None if ids is None else frozenset(ids)
    if ids is not None:
        _known(ids, {task.name for task in ordered})
    chosen = [
        task
        for task in ordered
        if any(fnmatch.fnmatchcase(task.name, pattern) for pattern in include)
        and (wanted is None or task.name in wanted)
        and all(_equal(task.metadata.get(key), value) for key, value in (where or {}).items())
    ]
    return chosen if slice_ is None else chosen[_slice(slice_)]


def duplicates(tasks: Sequence[Task | Row]) -> list[Refusal]:
    """A TASK_DUPLICATE refusal for each name that several folders, or a folder and a row, have."""
    more = {name for name, count in Counter(task.name for task in tasks).items() if count > 1}
    by_name: dict[str, list[str]] = defaultdict(list)
    for task in tasks if more else ():
        if task.name in more:
            by_name[task.name].append(str(task.path))
    return [
        Refusal(Reason.TASK_DUPLICATE, f"{len(paths)} tasks have the name {name!r}.", path=paths[1], observed=paths)
        for name, paths in sorted(by_name.items())
    ]


def _known(ids: Sequence[str], names: Collection[str]) -> None:
    unknown = [wanted for wanted in ids if wanted not in names]
    if not unknown:
        return
    near = closest(unknown[0], names, cutoff=0.0)
    hint = "" if near is None else f"; the closest is {near!r}"
    raise Refusal(
        Reason.UNKNOWN_NAME,
        f"No task has the name {unknown[0]!r}{hint}.",
        path="tasks.ids",
        observed=unknown,
        required=near,
    )


def _equal(value: Any, wanted: Any) -> bool:
    """Equal in type too: true is not 1. Numbers are compared as numbers."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(value == wanted)


def _slice(text: str) -> slice:
    match = _SLICE.fullmatch(text)
    if match is None or len(text) > 40:
        raise Refusal(
            Reason.INVALID_VALUE,
            "A slice is two counts around a colon.",
            path="tasks.slice",
            observed=text,
            required="a:b",
        )
    return slice(int(match[1]) if match[1] else None, int(match[2]) if match[2] else None)
