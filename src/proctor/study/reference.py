"""The reference page of study.toml, made from the schema: no second list of keys, forms or defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from proctor.core.money import Usd
from proctor.study.problems import inner_of, table_of
from proctor.study.schema import StudyFile
from proctor.study.schema.values import Form, Later, Table

_HEAD = """# study.toml

Every key, with what it looks like and what holds where it is not written (– is nothing). Paths are relative to the
file. A key that is not listed refuses `unknown_key` and names the closest known one. *Later* marks what is part of the
schema already: with another value than its default it refuses `not_in_this_version`.

{forms}
"""


@dataclass(frozen=True)
class _Place:
    """A table of the file: its heading, the key that it is the value of, and whether all of it is for later."""

    title: str
    table: type[Table]
    field: FieldInfo
    later: bool


def study_reference() -> str:
    """The page as Markdown; the same schema always gives the same text."""
    places = list(_places(StudyFile, "", False))
    forms = {form for place in places for _, field in _rows(place.table) if (form := _form_of(field)) and form.brief}
    legend = "\n".join(f"- *{form.brief}*: {form.words}" for form in sorted(forms, key=lambda form: str(form.brief)))
    return (_HEAD.format(forms=legend) + "".join(map(_section, places))).rstrip("\n")


def _places(table: type[Table], path: str, later: bool) -> Iterator[_Place]:
    """Every table, in the order of the schema, each followed by what is in it."""
    for name, field in table.model_fields.items():
        place = f"{path}.{name}" if path else name
        marked = later or any(isinstance(each, Later) and not each.values for each in field.metadata)
        below, held = table_of(field.annotation), table_of(inner_of(field.annotation))
        if below is not None:
            title = f"[{place}]"
        elif held is not None and get_origin(_bare(field.annotation)) is tuple:
            below, title = held, f"[[{place}]]"
        elif held is not None:
            below, place = held, f"{place}.NAME"
            title = f"[{place}]"
        else:
            continue
        yield _Place(title, below, field, marked)
        yield from _places(below, place, marked)


def _section(place: _Place) -> str:
    lines = ["", f"## `{place.title}`", "", str(place.table.__doc__).strip() + (" *Later.*" if place.later else "")]
    default = None if place.field.is_required() else place.field.get_default()
    if isinstance(default, dict) and default:
        lines[-1] += f" Where there is none, there is one named `{next(iter(default))}`, with every default."
    if rows := _rows(place.table):
        lines += ["", "| key | form | default | meaning |", "|---|---|---|---|"]
        lines += [_row(name, field) for name, field in rows]
    return "\n".join(lines) + "\n"


def _rows(table: type[Table]) -> list[tuple[str, FieldInfo]]:
    """The keys of a table that are not tables with a section of their own."""
    return [
        (name, field)
        for name, field in table.model_fields.items()
        if _form_of(field) is not None or (table_of(field.annotation) or table_of(inner_of(field.annotation))) is None
    ]


def _row(name: str, field: FieldInfo) -> str:
    meaning = field.description or ""
    mark = next((each for each in field.metadata if isinstance(each, Later)), None)
    if mark is not None:
        meaning += (
            f" *Later: {', '.join(f'`{value}`' for value in sorted(mark.values))}.*" if mark.values else " *Later.*"
        )
    cells = (f"`{name}`", _words(field), _default(field), meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _words(field: FieldInfo) -> str:
    form = _form_of(field)
    return _brief(form) if form is not None else _shape_words(field.annotation)


def _brief(form: Form) -> str:
    return form.brief or form.words


def _form_of(field: FieldInfo) -> Form | None:
    own = next((each for each in field.metadata if isinstance(each, Form)), None)
    return own or _form_in(field.annotation)


def _form_in(shape: Any) -> Form | None:
    if get_origin(shape) is Annotated:
        base, *metadata = get_args(shape)
        return next((each for each in metadata if isinstance(each, Form)), None) or _form_in(base)
    if get_origin(shape) in (Union, UnionType):
        return next((form for each in get_args(shape) if (form := _form_in(each)) is not None), None)
    return None


def _shape_words(shape: Any) -> str:
    shape = _bare(shape)
    if get_origin(shape) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(shape))
    if isinstance(shape, type) and issubclass(shape, Enum):
        return ", ".join(f"`{member.value}`" for member in shape)
    if shape is bool:
        return "`true` or `false`"
    inner = inner_of(shape)
    if inner is not None:
        form = _form_in(inner)
        kind = "list" if get_origin(shape) is tuple else "table"
        return f"a {kind}, each {_brief(form) if form is not None else _shape_words(inner)}"
    return "a table"


def _bare(shape: Any) -> Any:
    """The annotation without `Annotated` and `| None`."""
    if get_origin(shape) is Annotated:
        return _bare(get_args(shape)[0])
    if get_origin(shape) in (Union, UnionType):
        return next((_bare(each) for each in get_args(shape) if each is not type(None)), shape)
    return shape


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    form, value = _form_of(field), field.get_default()
    if value is None:
        return "–"
    if form is not None and form.unit:
        return f'`"{value}{form.unit}"`'
    return f"`{_toml(value)}`"


def _toml(value: object) -> str:
    if isinstance(value, Enum):
        return _toml(value.value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Usd):
        whole, decimals = str(value).split(".")
        return json.dumps(f"{whole}.{decimals.rstrip('0')}".rstrip("."))
    return json.dumps(value, ensure_ascii=False)
