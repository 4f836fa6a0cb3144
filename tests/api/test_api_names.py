"""What is public is in one list, typed by a stub, and imported when it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import proctor
from proctor import api

SRC = Path(__file__).resolve().parents[2] / "src"


def test_the_stub_has_the_names_of_the_list() -> None:
    stub = ast.parse((SRC / "proctor/__init__.pyi").read_text(encoding="utf-8"))
    named = [alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(filter(None, named)) == sorted(api.__all__)


@pytest.mark.parametrize("name", api.__all__)
def test_each_name_is_there_and_says_what_it_is(name: str) -> None:
    assert getattr(proctor, name) is getattr(api, name)
    assert name in dir(proctor)
    if isinstance(getattr(api, name), type):
        assert getattr(api, name).__doc__


def test_another_name_is_none() -> None:
    name = "study_of_birds"
    with pytest.raises(AttributeError, match="'proctor' has no attribute 'study_of_birds'"):
        getattr(proctor, name)


def test_nothing_is_imported_before_a_name_is_used() -> None:
    script = (
        "import sys, proctor, proctor.cli.main\n"
        "early = [name for name in sys.modules if name.startswith('proctor.api') or name == 'asyncio']\n"
        "from proctor import Study\n"
        "print(early, 'proctor.api' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(SRC)}, capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("[] True\n", "")
