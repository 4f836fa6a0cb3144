"""What differs between two designs, field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proctor.core.canonical import encode
from proctor.study.design import Design


@dataclass(frozen=True)
class Change:
    """One field that differs; `(absent)` stands for a field that is not there."""

    field: str
    was: Any
    now: Any


_ABSENT = "(absent)"


def diff_designs(was: Design, now: Design) -> list[Change]:
    """Every field that differs, dotted, entries of named lists by their name; empty iff the digests are equal."""
    return _differences(was.to_json(), now.to_json(), "")


def _differences(was: Any, now: Any, path: str) -> list[Change]:
    if isinstance(was, dict) and isinstance(now, dict):
        keys = [*was, *(key for key in now if key not in was)]
        return [
            change
            for key in keys
            for change in _differences(
                was.get(key, _ABSENT), now.get(key, _ABSENT), f"{path}.{key}" if path else str(key)
            )
        ]
    named_was, named_now = _named(was), _named(now)
    if named_was is not None and named_now is not None:
        common_was = [name for name in named_was if name in named_now]
        common_now = [name for name in named_now if name in named_was]
        moved = [] if common_was == common_now else [Change(f"{path} (order)", common_was, common_now)]
        return moved + [
            change
            for name in [*named_was, *(name for name in named_now if name not in named_was)]
            for change in _differences(named_was.get(name, _ABSENT), named_now.get(name, _ABSENT), f"{path}[{name}]")
        ]
    return [] if encode(was) == encode(now) else [Change(path, was, now)]


def _named(value: Any) -> dict[str, Any] | None:
    """A list of objects by what names each (`name`, `id` or `path`), or None."""
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        return None
    key = next((key for key in ("name", "id", "path") if all(key in each for each in value)), None)
    return None if key is None else {str(each[key]): each for each in value}
