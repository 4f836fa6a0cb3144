"""Pages that are made from registries are up to date, and a part without its marks is said."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date(generate: ModuleType) -> None:
    stale = [path.name for path, text in generate.wanted().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run docs/generate.py"


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("README.md")]
    broken = []
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_a_part_is_replaced_between_its_marks(generate: ModuleType) -> None:
    page = "before\n<!-- x: generated from the registry -->\nold\n<!-- end x -->\nafter\n"
    filled = generate.fill(page, "x", "new")
    assert filled == page.replace("old", "\nnew\n")
    assert generate.fill(filled, "x", "new") == filled


def test_a_part_without_its_marks_is_said(generate: ModuleType) -> None:
    with pytest.raises(ValueError, match="'x'"):
        generate.fill("before\n<!-- x: generated from the registry -->\nno end\n", "x", "new")


def test_text_cannot_break_a_table(generate: ModuleType) -> None:
    assert generate.table(("a", "b"), [("x | y", "two\nlines")]).splitlines()[-1] == "| x \\| y | two lines |"
