"""The reference page is made from the schema, so it cannot leave a key out."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

from study_folder import WHOLE

from proctor.study.reference import study_reference


def keys(table: dict[str, object]) -> Iterator[str]:
    for key, value in table.items():
        yield key
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield from keys(each)


NAMES = {"moon", "bare", "hinted", "calc", "web", "python:3.13-slim", "pilot", "full", "difficulty"}


def test_every_key_of_a_whole_study_is_on_the_page() -> None:
    page = study_reference()
    absent = {key for key in keys(tomllib.loads(WHOLE)) if key not in NAMES} - {
        key for key in keys(tomllib.loads(WHOLE)) if f"`{key}`" in page or f"[{key}" in page or f".{key}" in page
    }
    assert absent == set()


def test_rows_say_form_default_and_what_comes_later() -> None:
    page = study_reference()
    assert "| `solved` | a rule such as" in page and '| `"reward >= 1.0"` |' in page
    assert "| `timeout` | a duration | – |" in page
    assert "*Later: `allowlist`.*" in page
    assert "## `[stages.NAME.budget]`\n\nMoney of a stage." in page
    assert "## `[stopping]`\n\nA preregistered rule for stopping early. *Later.*" in page
    assert "Where there is none, there is one named `main`" in page
    assert all(line.count(" | ") == 3 for line in page.splitlines() if line.startswith("| `"))


def test_the_page_is_the_same_every_time() -> None:
    assert study_reference() == study_reference()
