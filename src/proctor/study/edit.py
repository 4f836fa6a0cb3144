"""Filling amounts into a study's own text: comments, order and everything else stay as they are. Pure."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import tomlkit
from tomlkit.container import OutOfOrderTableProxy
from tomlkit.items import AbstractTable, InlineTable, Table

from proctor.core.money import Usd
from proctor.core.refusal import Refusal


def with_amounts(text: str, stage: str, tables: Mapping[str, Mapping[str, str]]) -> str:
    """The study file with these amounts in the tables of a stage.

    Args:
        text: a study file that loads.
        stage: the stage's name; it gets a table where it has none yet.
        tables: by the table's name in the stage, amounts of money by key. One that is there with an equal value stays
            as it is written.
    """
    document = tomlkit.parse(text)
    place = _table(_table(document, "stages"), stage)
    fresh = [name for name in tables if name not in place]
    for name, amounts in tables.items():
        table = _table(place, name)
        for key, amount in amounts.items():
            if not _same(table.get(key), amount):
                table[key] = amount
    # a blank line between what is new and what comes after it
    if fresh and isinstance(last := place[fresh[-1]], Table):
        last.add(tomlkit.nl())
    edited = tomlkit.dumps(document).replace("\r\n", "\n")
    if fresh:
        edited = edited.rstrip("\n") + "\n"
    # what is new gets the line ending of the file
    return edited.replace("\n", "\r\n") if "\r\n" in text else edited


def _table(holder: MutableMapping[str, Any], name: str) -> MutableMapping[str, Any]:
    if name not in holder:
        holder[name] = tomlkit.inline_table() if isinstance(holder, InlineTable) else tomlkit.table()
    found = holder[name]
    assert isinstance(found, AbstractTable | OutOfOrderTableProxy)
    return found


def _same(written: object, amount: str) -> bool:
    try:
        return written is not None and Usd.parse(str(written)) == Usd.parse(amount)
    except Refusal:
        return False
