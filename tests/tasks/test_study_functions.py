"""Python functions are found where Python would find them, without running anything."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.functions import find_function, locate

PLANTED = "raise AssertionError('a user\\'s module was run')\ndef f(): ...\n"


def test_a_module_beside_the_study_is_found_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "calc").mkdir()
    (tmp_path / "calc/__init__.py").write_text(PLANTED)
    (tmp_path / "calc/engine.py").write_text(PLANTED)
    found = find_function("calc.engine:f", tmp_path, "tools.calc.python")
    assert found.path == (tmp_path / "calc/engine.py").resolve()
    assert found.sha256 == hashlib.sha256(PLANTED.encode()).hexdigest()
    assert (found.module, found.function) == ("calc.engine", "f")
    assert find_function("calc:f", tmp_path, "x").path == (tmp_path / "calc/__init__.py").resolve()
    assert "calc" not in sys.modules


@pytest.mark.parametrize("name", ["json.decoder", "json", "proctor.core.money", "hypothesis.strategies", "array"])
def test_installed_modules_are_found_where_python_finds_them(tmp_path: Path, name: str) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    found = locate(name, tmp_path)
    assert found == Path(spec.origin).resolve() or spec.origin == "built-in"


def test_what_comes_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for where in ("study", "other"):
        (tmp_path / where / "both").mkdir(parents=True)
        (tmp_path / where / "both" / f"{where}.py").write_text("f = 1")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "other")])
    # a folder without __init__ is spread over all roots
    assert locate("both.other", tmp_path / "study") == (tmp_path / "other/both/other.py").resolve()
    # a regular package is one folder, and goes before a module of its name
    (tmp_path / "other/both/__init__.py").write_text("")
    (tmp_path / "other/both.py").write_text("f = 2")
    assert locate("both.study", tmp_path / "study") is None
    assert locate("both", tmp_path / "study") == (tmp_path / "other/both/__init__.py").resolve()


@pytest.mark.parametrize(
    "source",
    [
        "def f(): ...",
        "async def f(): ...",
        "class f: ...",
        "from os import getpid as f",
        "import f",
        "f = lambda x: x",
        "f: int = 3",
        "(e, f) = 1, 2",
        "if True:\n    def f(): ...",
        "try:\n    from fast import f\nexcept ImportError:\n    def f(): ...",
        "from os import *",
    ],
)
def test_ways_to_define_a_name(tmp_path: Path, source: str) -> None:
    (tmp_path / "m.py").write_text(source)
    assert find_function("m:f", tmp_path, "x").function == "f"


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("m:add", "def added(): ...", "'added'"),
        ("m:f", "def f(:", "no Python"),
        ("m:f", "\0", "no Python"),
        ("m:f", "class C:\n    def f(self): ...", "defines no 'f'"),
        ("absent_module:f", "", "no module"),
        ("m.n:f", "", "no module"),
        ("no_such_installed_scorer", "", "no installed scorer"),
        ("m:", "", "module:function"),
        (":f", "", "module:function"),
        ("m:f:g", "", "module:function"),
        ("../m:f", "", "module:function"),
        ("m..n:f", "", "module:function"),
        ("m:f()", "", "module:function"),
    ],
)
def test_what_cannot_be_found_is_refused(tmp_path: Path, name: str, source: str, said: str) -> None:
    (tmp_path / "m.py").write_text(source)
    with pytest.raises(Refusal) as found:
        find_function(name, tmp_path, "grading.scorer_function")
    assert found.value.reason is Reason.TOOL_INVALID and said in found.value.message
    assert found.value.path == "grading.scorer_function"


def test_an_installed_scorer_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "site/scorers-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scorers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[proctor.scorers]\nrouge = scorers_of_mine:rouge\n")
    (tmp_path / "site/scorers_of_mine.py").write_text("def rouge(answer, row): return 1")
    monkeypatch.syspath_prepend(tmp_path / "site")
    found = find_function("rouge", tmp_path, "x")
    assert (found.module, found.function) == ("scorers_of_mine", "rouge")
    with pytest.raises(Refusal) as refused:
        find_function("rogue", tmp_path, "x")
    assert "'rouge'" in refused.value.message
