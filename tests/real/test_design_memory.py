"""A hostile design at its bounds takes no more memory than one that holds: a fault is said of the first item alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from run_parts import design

pytestmark = pytest.mark.real

MIB = 2**20
# twice what the worst of these takes; with each fault remembered it was nearly four times that
MOST_MIB = 1_000
READ = """
import sys
from pathlib import Path
from proctor.core.refusal import Refusal
from proctor.study.design import read_design
try:
    read_design(Path(sys.argv[1]))
    print("read")
except Refusal as refusal:
    print(refusal.reason.id)
# of this program alone: `ru_maxrss` counts what the one took that started it
(peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(int(peak.split()[1]) // 1024)
"""


def _settings(value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda said: said["agent"].update(settings={"a": value})


SHAPES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "tasks that are none": (lambda said: said.update(tasks=[{}] * 499_900), "evidence_damaged"),
    "tasks that are texts": (lambda said: said.update(tasks=["x"] * 999_900), "evidence_damaged"),
    "arms that are none": (lambda said: said.update(arms=[{"x": 1}] * 499_900), "evidence_damaged"),
    "a table of what is no text": (
        lambda said: said["sandbox"].update(substitute={str(number): number for number in range(999_900)}),
        "evidence_damaged",
    ),
    "folders of what is nothing": (
        lambda said: said["agent"].update(files={"path": "x", "sha256": "0" * 64, "files": [{"x": []}] * 300_000}),
        "evidence_damaged",
    ),
    "small tables": (_settings([{str(number): 1} for number in range(499_900)]), "read"),
    "one text, four bytes a character": (
        lambda said: said["study"].update(question="\U0001f600" + "x" * (62 * MIB)),
        "read",
    ),
}


@pytest.mark.parametrize(("alter", "outcome"), SHAPES.values(), ids=SHAPES)
def test_reading_a_design_is_bounded(alter: Callable[[dict[str, Any]], None], outcome: str, tmp_path: Path) -> None:
    said = design().to_json()
    alter(said)
    file = tmp_path / "design.json"
    file.write_text(json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
    ended = subprocess.run([sys.executable, "-c", READ, str(file)], capture_output=True, text=True, check=True)
    found, peak = ended.stdout.split()
    assert found == outcome
    assert int(peak) < MOST_MIB
