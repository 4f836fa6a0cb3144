"""Words of a command line that name something: an empty one names nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class Word(click.types.StringParamType):
    """Text that is not empty."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text: str = super().convert(value, param, ctx)
        if not text:
            self.fail("it is empty.", param, ctx)
        return text


class Recorded(Word):
    """Words that go on the record: what is no UTF-8 could not."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = super().convert(value, param, ctx)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail("it is not UTF-8.", param, ctx)
        return text


class Place(click.Path):
    """A path that is not empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty: name a path, . for the current folder.", param, ctx)
        return super().convert(value, param, ctx)


WORD = Word()
TEXT = Recorded()
PATH = Place()
