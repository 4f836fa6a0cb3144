"""Small task folders, and an offer to hold them against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor.tasks.offer import Offer
from proctor.tasks.roots import RootFacts

HOST = RootFacts(
    path=None,
    dpkg={"python3": "3.11.2-1", "curl": "7.88"},
    python={"pytest": "7.2.1"},
    pythons=frozenset({"3.11"}),
)

MINIMAL = {
    "task.toml": 'schema_version = "1.4"\n',
    "instruction.md": "Do it.\n",
    "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    "solution/solve.sh": "true\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes files below a folder of the given name; `minimal` puts a whole small task there first."""

    def make(
        files: Mapping[str, str | bytes | None] | None = None, *, name: str = "small", minimal: bool = True
    ) -> Path:
        root = tmp_path / name
        root.mkdir(parents=True, exist_ok=True)
        for path, content in ({**MINIMAL, **(files or {})} if minimal else (files or {})).items():
            if content is None:
                continue
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return root

    return make


@pytest.fixture
def offer() -> Callable[..., Offer]:
    """What the namespace sandbox offers an ordinary user, with what is given in place."""

    def make(**given: Any) -> Offer:
        facts: dict[str, Any] = {
            "sandbox": "namespace",
            "builds_images": False,
            "many_users": False,
            "networks": frozenset({"none", "gateway-only", "public"}),
            "network": "gateway-only",
            "default_root": HOST,
            "needs_solution": True,
            "takes_prompt": False,
        }
        return Offer(**{**facts, **given})

    return make
