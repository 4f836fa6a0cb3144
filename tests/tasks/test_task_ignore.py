"""`.dockerignore`: which paths of a build's context its rules leave out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.context import Ignore
from proctor.tasks.reading import read_task

# path, rules, whether it is left out; from the documentation of .dockerignore and the behaviour of its client
RULES = [
    ("a", "a", True),
    ("a/b", "a", True),
    ("a/b", "/a", True),
    ("b/a", "a", False),
    ("b/a", "**/a", True),
    ("a", "**/a", True),
    ("b/c/a/d", "**/a", True),
    ("a.log", "*.log", True),
    ("b/a.log", "*.log", False),
    ("b/a.log", "*/*.log", True),
    ("c/b/a.log", "*/*.log", False),
    ("c/b/a.log", "**/*.log", True),
    ("temp1", "temp?", True),
    ("temp", "temp?", False),
    ("temp/1", "temp?", False),
    ("a", "./a/", True),
    ("a", "b/../a", True),
    ("a", "# a", False),
    ("#a", "\\#a", True),
    ("a b", "a b", True),
    ("keep.md", "*.md\n!keep.md", False),
    ("keep.md", "!keep.md\n*.md", True),
    ("docs/keep", "docs\n!docs/keep", False),
    ("docs/other", "docs\n!docs/keep", True),
    ("x/y/z", "**", True),
    ("x/y/z", "**\n!x/y", False),
    ("ab", "a[bc]", True),
    ("ad", "a[bc]", False),
    ("a.b", "a.b", True),
    ("axb", "a.b", False),
    ("a+b", "a+b", True),
    ("x/node_modules/y", "**/node_modules/", True),
    ("a/x/b", "a/**/b", True),
    ("a/b", "a/**/b", True),
    ("\ufeffa", "\ufeffa", False),
    ("a", "\n\n  a  \n", True),
    ("a", "!", False),
    ("a", "/", False),
]


@pytest.mark.parametrize(("path", "rules", "out"), RULES)
def test_rules_leave_out(path: str, rules: str, out: bool) -> None:
    assert (path in Ignore(rules)) is out


@pytest.mark.parametrize("rules", [b"\xff\xfe", b"a[z-a]"])
def test_rules_that_are_none_are_refused(folder: Callable[..., Path], rules: bytes) -> None:
    root = folder({"environment/Dockerfile": "FROM debian:12\n"})
    (root / "environment/.dockerignore").write_bytes(rules)
    with pytest.raises(Refusal) as refused:
        read_task(root)
    assert refused.value.reason is Reason.TASK_UNREADABLE


def test_a_dockerfile_may_have_rules_of_its_own(folder: Callable[..., Path]) -> None:
    own = {"environment/.dockerignore": "a\n", "environment/Dockerfile.dockerignore": "b\n"}
    ignore = read_task(folder({"environment/Dockerfile": "FROM debian:12\n", **own})).environment.ignore
    assert "a" not in ignore and "b" in ignore
