"""Keys of the schema whose feature is not in this version: another value than the default refuses."""

from __future__ import annotations

from collections.abc import Iterator

from proctor import __version__
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study.problems import Loc, dotted
from proctor.study.schema.values import Later, Table


def later_refusals(table: Table, within: Loc = ()) -> list[Refusal]:
    """One `not_in_this_version` for each key that asks for more than this version has."""
    return [
        Refusal(
            Reason.NOT_IN_THIS_VERSION,
            f"`{dotted(place)}` is part of the schema, and version {__version__} cannot do {asked} yet",
            path=dotted(place),
            observed=value,
            required=default,
        )
        for place, asked, value, default in _asked(table, within)
    ]


def _asked(table: Table, within: Loc) -> Iterator[tuple[Loc, str, str | None, str | None]]:
    for name, field in type(table).model_fields.items():
        value, place = getattr(table, name), (*within, name)
        mark = next((each for each in field.metadata if isinstance(each, Later)), None)
        default = None if field.is_required() else field.get_default()
        if mark is None:
            yield from _inside(value, place)
        elif mark.values and value in mark.values:
            yield place, f"`{value}`", str(value), None if default is None else str(default)
        elif not mark.values and value != default:
            yield place, "it", None, None


def _inside(value: object, place: Loc) -> Iterator[tuple[Loc, str, str | None, str | None]]:
    if isinstance(value, Table):
        yield from _asked(value, place)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _inside(each, (*place, key))
    elif isinstance(value, tuple):
        for number, each in enumerate(value):
            yield from _inside(each, (*place, number))
