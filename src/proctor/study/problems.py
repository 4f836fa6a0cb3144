"""What is wrong with a table, as refusals: pydantic's findings by their type, never by their text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import date, time
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from proctor.core.near import closest
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study.schema.values import Table

Loc = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_KEY_ITSELF = "[key]"


def dotted(loc: Iterable[str | int]) -> str:
    """`stages.main.arms[0]`; keys that TOML would quote are quoted."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if _BARE.fullmatch(part) else f'"{part}"')
    return text


def unknown_name(what: str, name: str, known: Iterable[str], path: str) -> Refusal:
    """A name that refers to nothing, with the closest that it could mean."""
    names = sorted(known)
    near = closest(name, names)
    hint = f"; did you mean {near!r}?" if near else ""
    return Refusal(
        Reason.UNKNOWN_NAME, f"there is no {what} named {name!r}{hint}", path=path, observed=name, required=names
    )


def schema_refusals(error: ValidationError, root: type[Table], within: Loc = ()) -> list[Refusal]:
    """One refusal for each finding; `within` is where `root` stands in the file."""
    return [_refusal(each, root, within) for each in error.errors(include_url=False)]


def faulty_places(error: ValidationError) -> list[Loc]:
    """What to leave out so that the rest can be looked at: the faulty value, or the table that lacks a key."""
    places: list[Loc] = []
    for each in error.errors(include_url=False):
        place = tuple(part for part in each["loc"] if part != _KEY_ITSELF)
        places.append(place[:-1] if each["type"] == "missing" else place)
    return places


def _refusal(found: ErrorDetails, root: type[Table], within: Loc) -> Refusal:
    kind, loc = found["type"], found["loc"]
    place = tuple(part for part in loc if part != _KEY_ITSELF)
    path = dotted((*within, *place))
    context: dict[str, Any] = found.get("ctx", {})
    if kind == "extra_forbidden":
        key = str(place[-1])
        known = sorted(_keys_at(root, place[:-1]))
        near = closest(key, known)
        where = f"`{dotted((*within, *place[:-1]))}`" if len(within) + len(place) > 1 else "a study"
        hint = f"; the closest known one is `{near}`" if near else f"; {where} knows {', '.join(known) or 'no keys'}"
        return Refusal(
            Reason.UNKNOWN_KEY, f"`{path}` is not a known key{hint}", path=path, observed=key, required=near or known
        )
    if kind == "missing":
        return Refusal(Reason.MISSING_KEY, f"`{path}` is needed and not there", path=path)
    if (ours := Reason.by_id(kind)) is not None:
        observed = None if context.get("secret") else _shown(loc[-2] if loc[-1] == _KEY_ITSELF else found["input"])
        required = context.get("required")
        return Refusal(ours, f"`{path}` {context['message']}", path=path, observed=observed, required=required)
    reason = Reason.WRONG_TYPE if kind.endswith("_type") else Reason.INVALID_VALUE
    wanted = _wanted(kind, found)
    message, observed = f"`{path}` must be {wanted}", _shown(found["input"])
    return Refusal(reason, message, path=path, observed=observed, required=wanted)


_TYPES = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "float_type": "a number",
    "int_type": "a whole number",
    "model_type": "a table",
    "string_type": "a string",
    "tuple_type": "a list",
}


def _wanted(kind: str, found: ErrorDetails) -> str:
    if kind in ("enum", "literal_error"):
        return str(found["ctx"]["expected"]).replace("'", '"')
    return _TYPES.get(kind) or found["msg"].removeprefix("Input should be ")


def _shown(value: object) -> str:
    text = _as_written(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _as_written(value: object) -> str:
    """A value as a study file writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dotted((str(key),))} = {_as_written(held)}" for key, held in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_as_written, value)) + "]"
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False)
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _keys_at(root: type[Table], loc: Sequence[str | int]) -> set[str]:
    """The keys that the table at `loc` knows."""
    shape: Any = root
    for part in loc:
        table = table_of(shape)
        if table is not None:
            shape = table.model_fields[str(part)].annotation
        else:
            shape = inner_of(shape)
    table = table_of(shape)
    return set(table.model_fields) if table is not None else set()


def table_of(shape: Any) -> type[Table] | None:
    """The table that a value of this annotation is, through `Annotated` and `| None`; None if it is none."""
    if isinstance(shape, type) and issubclass(shape, Table):
        return shape
    if get_origin(shape) is Annotated:
        return table_of(get_args(shape)[0])
    if get_origin(shape) in (Union, UnionType):
        return next((table for each in get_args(shape) if (table := table_of(each)) is not None), None)
    return None


def inner_of(shape: Any) -> Any:
    """What a list or a table of names holds, through `Annotated` and `| None`; None for anything else."""
    origin, args = get_origin(shape), get_args(shape)
    if origin is Annotated:
        return inner_of(args[0])
    if origin in (Union, UnionType):
        return next((inner for each in args if (inner := inner_of(each)) is not None), None)
    if origin is tuple:
        return args[0]
    return args[1] if origin is dict else None
