"""Every value that the entries, the design and the manifests of a story hold, altered or left out one at a time.

What follows from an altered value is made anew, as by somebody who has the key.
"""

from __future__ import annotations

import copy
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import Story
from steps import Late, Step

from proctor_verify import verify

Road = tuple[Any, ...]
# of each kind of value, whether a check found that it was altered, at some place
Told = dict[str, bool]
# in the place of a new value: there is none
GONE = object()
# objects of entries whose members no shape names
_FREE_FORM = {("facts",), ("settings",), ("rewards",), ("timing",), ("usage",)}
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MONEY = re.compile(r"[0-9]+\.[0-9]{12}")


@dataclass(frozen=True)
class Value:
    """One value: `where` is the number of a step, the name of a manifest, or None for the design."""

    where: int | str | None
    kind: str
    road: Road
    # within what is worked out late
    below: Road = ()
    at_first: Any = None

    @property
    def name(self) -> str:
        """How the table calls all values of its kind."""
        return (
            f"{self.kind} {'.'.join('*' if isinstance(part, int) else str(part) for part in (*self.road, *self.below))}"
        )


def alter_each(make: Callable[[], Story], folder: Path, told: Told) -> None:
    """Alter each kind of value of the story at some places, until it is seen."""
    values: dict[str, list[Value]] = defaultdict(list)
    for value in _values(make()):
        values[value.name].append(value)
    for name, places in values.items():
        words = list(dict.fromkeys(place.at_first for place in places))
        for place in dict.fromkeys((places[0], places[len(places) // 2], places[-1])):
            for new in _others(place.at_first, words):
                if not told.get(name):
                    failed = _failed(make(), place, new, folder)
                    told.update({} if failed is None else {name: bool(failed)})


def delete_each(make: Callable[[], Story], folder: Path, told: Told) -> None:
    """Leave out each kind of element and member at some places, until it is seen; fields of entries are for schemas."""
    parts: dict[str, list[Value]] = defaultdict(list)
    for part in _parts(make()):
        parts[part.name].append(part)
    for name, places in parts.items():
        for place in dict.fromkeys((places[0], places[len(places) // 2], places[-1])):
            if not told.get(name):
                failed = _failed(make(), place, GONE, folder)
                told.update({} if failed is None else {name: bool(failed)})


def _failed(story: Story, place: Value, new: Any, folder: Path) -> list[str] | None:
    """The checks that see it; None where nothing that fits could be made around it."""
    try:
        _put(story, place, new)
    except (LookupError, TypeError):
        return None
    shutil.rmtree(folder, ignore_errors=True)
    try:
        story.write(folder)
    except (LookupError, ValueError, StopIteration):
        return None
    return verify(folder, story.signer.fingerprint).failed()


def _values(story: Story) -> Iterator[Value]:
    for where, kind, body in _bodies(story):
        for road, leaf in _leaves(body):
            settled = story.settled(leaf)
            for below, value in _leaves(settled):
                yield Value(where, kind, road, below, value)


def _parts(story: Story) -> Iterator[Value]:
    for where, kind, body in _bodies(story):
        for road, part in _all(body):
            late = [below for below, _ in _all(story.settled(part))] if isinstance(part, Late) else []
            for below in ([()] if road else []) + [each for each in late if each]:
                whole = (*road, *below)
                if where is None or isinstance(where, str) or type(whole[-1]) is int or whole[-2:-1][:1] in _FREE_FORM:
                    yield Value(where, kind, road, below)


def _bodies(story: Story) -> list[tuple[int | str | None, str, Any]]:
    bodies: list[tuple[int | str | None, str, Any]] = [
        (number, step.kind, step.body) for number, step in enumerate(story.steps) if isinstance(step, Step)
    ]
    bodies += [(None, "design", story.design)]
    return [*bodies, *((name, "manifest", manifest) for name, manifest in story.manifests.items())]


def _all(value: Any, road: Road = ()) -> Iterator[tuple[Road, Any]]:
    """A value and all parts of it, but for those of what is worked out late."""
    yield road, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from _all(part, (*road, key))


def _leaves(value: Any, road: Road = ()) -> Iterator[tuple[Road, Any]]:
    parts: Mapping[Any, Any] = {}
    if isinstance(value, dict):
        parts = value
    elif isinstance(value, list):
        parts = dict(enumerate(value))
    elif value is not None:
        yield road, value
    for key, part in parts.items():
        yield from _leaves(part, (*road, key))


def _others(value: Any, words: list[Any]) -> list[Any]:
    """What may stand in its place: something near, and a word that stands elsewhere in such a place."""
    near: list[Any]
    if isinstance(value, bool):
        near = [not value]
    elif isinstance(value, int | float):
        near = [value + 1] + ([value - 1] if value >= 1 else [])
    elif _DIGEST.fullmatch(value):
        near = ["5" * 64]
    elif _MONEY.fullmatch(value):
        near = [f"{value[:-1]}{'2' if value[-1] == '1' else '1'}", "0.000000000000"]
    else:
        near = [f"{value}x"]
    return [new for new in dict.fromkeys([*near, *words[:2]]) if new != value]


def _put(story: Story, place: Value, new: Any) -> None:
    held: Any = story.design if place.where is None else None
    if isinstance(place.where, int):
        step = story.steps[place.where]
        assert isinstance(step, Step)
        held = step.body
    elif isinstance(place.where, str):
        held = story.manifests[place.where]
    for part in place.road[:-1]:
        held = held[part]
    last = place.road[-1]
    before = held[last]
    late = isinstance(before, Late)
    if new is GONE and not place.below:
        del held[last]
        return
    held[last] = Late(lambda story: _within(story.settled(before), place.below, new)) if late else new


def _within(value: Any, road: Road, new: Any) -> Any:
    if not road:
        return new
    altered = held = copy.deepcopy(value)
    for part in road[:-1]:
        held = held[part]
    if new is GONE:
        del held[road[-1]]
    else:
        held[road[-1]] = new
    return altered
