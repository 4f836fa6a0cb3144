"""A process of the mutation run has one module changed, whichever way it is imported, and the others as they are."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
SOURCES = {
    "__init__.py": "from seldom.leaning import SAID\n",
    "leaning.py": "from seldom.rule import SAID\n",
    "rule.py": "SAID = 'as ever'\n",
    "beside.py": "SAID = 'beside'\n",
    "apart/__init__.py": "",
    "apart/rule.py": "SAID = 'as ever'\n",
    "apart/wide.py": "import seldom.apart.rule\n\nSAID = seldom.apart.rule.SAID\n",
}
WAYS = (
    "import {0} as found",
    "import {0}; found = {0}",
    "from {1} import {2} as found",
    "import importlib; found = importlib.import_module('{0}')",
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Of a package that was imported as a whole."""
    for name, source in SOURCES.items():
        path = tmp_path / "seldom" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(HERE / "mutation")
    made = importlib.import_module("loading").Tree.of(tmp_path, ["seldom"])
    for name in made.sources:
        importlib.import_module(name)
    yield made
    for name in [name for name in sys.modules if name.partition(".")[0] in ("seldom", "loading")]:
        del sys.modules[name]


def found(way: str, module: str) -> str:
    """What a module says that is imported in that way."""
    names: dict[str, Any] = {}
    exec(way.format(module, *module.rpartition(".")[::2]), names)
    return str(names["found"].SAID)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("changed", "leaning"),
    [("seldom.rule", "seldom.leaning"), ("seldom.apart.rule", "seldom.apart.wide")],
    ids=["in a package that leans on it", "in a package that stands"],
)
def test_a_changed_module_is_found_changed_and_another_as_it_is(
    tree: Any, way: str, changed: str, leaning: str
) -> None:
    tree.substitute(changed, ast.parse("SAID = 'changed'\n"))
    assert found(way, "seldom.beside") == "beside"
    assert found(way, leaning) == "changed"
    assert found(way, changed) == "changed"


@pytest.mark.parametrize("way", WAYS)
def test_a_changed_module_is_found_changed_where_it_is_the_first_to_be_imported(tree: Any, way: str) -> None:
    tree.substitute("seldom.apart.rule", ast.parse("SAID = 'changed'\n"))
    assert found(way, "seldom.apart.rule") == "changed"


def test_who_binds_a_package_leans_on_it(tree: Any) -> None:
    assert "seldom.apart.wide" in tree.dependents("seldom")
    assert "seldom.beside" not in tree.dependents("seldom")
