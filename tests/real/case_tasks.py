"""The real task folders: what `tasks check` says of each, and the right verdicts that hold in every sandbox."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from real_runs import ENOUGH_SEC, Proctor

CREDENTIALS = "tetrabench-credential-boundary"
BOTH = {"oracle": "pass", "nop": "fail"}


@dataclass(frozen=True)
class Right:
    """The right verdict on a folder: in a word, with these reasons and grades."""

    word: str
    reasons: tuple[str, ...] = ()
    grades: Mapping[str, str] | None = None


LATER = Right("refused", ("task_format_later",))
# they show what a document says, and bring neither tests nor a solution
ONLY_SHOWN = Right("refused", ("task_not_gradable", "task_no_solution"))
ANYWHERE = {
    "README.md": Right("passed over"),
    "benchflow-acp-smoke": Right("ok", grades=BOTH),
    "data-only/task-md/clean-body-roles-scenes": ONLY_SHOWN,
    "data-only/task-md/multi-scene": ONLY_SHOWN,
    "data-only/task-md/nudgebench-team": ONLY_SHOWN,
    "data-only/terminal-bench-yaml/hello-world": LATER,
    "data-only/terminal-bench-yaml/hf-model-inference": LATER,
    "data-only/terminal-bench-yaml/parallelize-compute-squares": LATER,
    "data-only/terminal-bench-yaml/pytorch-model-recovery": LATER,
    # its test writes 1 whatever was done
    "digest-alpha": Right("refused", ("task_no_solution", "task_nop_passes"), {"nop": "pass"}),
    "digest-beta": Right("refused", ("task_not_gradable", "task_no_solution")),
    CREDENTIALS: Right("ok", grades=BOTH),
}


@pytest.fixture
def folders(cases: Path) -> Path:
    return cases / "tasks"


def checked(
    proctor: Proctor, paths: Sequence[Path], *words: object, out: str = "checks"
) -> tuple[int, list[dict[str, Any]]]:
    """What `tasks check` says of the paths."""
    out_path = proctor.home / out
    process = proctor.start("tasks", "check", *paths, "--json", "--out", out_path, *words, stderr=subprocess.PIPE)
    with process:
        said, aside = process.communicate(timeout=ENOUGH_SEC)
    assert said, aside
    return process.returncode, json.loads(said)


def judged(record: Mapping[str, Any]) -> Right:
    reasons = tuple(refusal["reason"] for refusal in record["refusals"])
    return Right(record["verdict"], reasons, record["grades"] or None)


def everything(
    proctor: Proctor, folders: Path, *words: object, without: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """The records of all folders but some, by their paths below where they lie."""
    paths = [path for path in sorted(folders.iterdir()) if path.name not in without]
    status, records = checked(proctor, paths, *words)
    assert status == 3
    return {str(Path(record["path"]).relative_to(folders)): record for record in records}
