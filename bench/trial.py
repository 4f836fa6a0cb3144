"""A trivial oracle trial with an isolated verifier, on each kind of sandbox: median of 20, beside bare processes.

The time is that of one attempt, from its admission on the record to its end on the record, as the journal's monotonic
clock has it; the reference is the same two scripts run by `sh` on the host, with no sandbox and no evidence.

    python bench/trial.py

Docker is left out where no engine answers, or where it does not have the image.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRIALS = 20
IMAGE = "debian:bookworm-slim"
GOALS_MS = {"namespace": 500, "docker": 1000}
SOLVE = "#!/bin/sh\necho 42 > answer.txt\n"
TEST = """#!/bin/sh
if [ "$(cat answer.txt 2>/dev/null)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


def write_study(folder: Path, kind: str) -> None:
    """One task, tried TRIALS times, one after another."""
    task = folder / "tasks" / "answer"
    for name, content in {"solution/solve.sh": SOLVE, "tests/test.sh": TEST, "instruction.md": "Write 42.\n"}.items():
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(content)
    image = f'[environment]\ndocker_image = "{IMAGE}"\n' if kind == "docker" else ""
    (task / "task.toml").write_text(f'schema_version = "1.4"\n[task]\nname = "bench/answer"\n{image}')
    (folder / "study.toml").write_text(
        '[study]\nname = "bench"\n[tasks]\npath = "tasks"\n[agent]\nname = "oracle"\n'
        f'[sandbox]\nkind = "{kind}"\nnetwork = "none"\n[stages.main]\nepochs = {TRIALS}\n'
    )


def attempts(journal: Path) -> list[float]:
    """Milliseconds of each attempt."""
    began: dict[str, int] = {}
    spans = []
    for line in journal.read_text().splitlines():
        entry = json.loads(line)
        if entry["kind"] == "attempt.admitted":
            began[entry["body"]["attempt"]] = entry["mono"]
        elif entry["kind"] == "attempt.ended":
            assert entry["body"]["outcome"] == "completed", entry
            spans.append((entry["mono"] - began[entry["body"]["attempt"]]) / 1e6)
    return spans


def bare(folder: Path) -> float:
    """Milliseconds of the two scripts without anything around them."""
    began = time.perf_counter()
    for script in (SOLVE, TEST.replace("/logs/verifier/", "")):
        subprocess.run(["sh", "-c", script], cwd=folder, check=True)
    return (time.perf_counter() - began) * 1000


def measure(kind: str) -> None:
    """Print what a kind of sandbox takes, or why it is left out."""
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as made:
        folder = Path(made)
        write_study(folder, kind)
        run, study = folder / "run", str(folder / "study.toml")
        command = [sys.executable, "-m", "proctor", "run", study, "--out", str(run), "--quiet"]
        checked = subprocess.run([*command[:3], "check", study], capture_output=True, text=True, check=False)
        if checked.returncode != 0 and kind == "docker":
            print(f"\n{kind} is left out: {' '.join(checked.stderr.split())[:200]}")
            return
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        whole = time.perf_counter() - began
        spans = attempts(run / "journal.jsonl")
        reference = statistics.median(bare(folder) for _ in range(TRIALS))
    median = statistics.median(spans)
    print(f"\n{kind}" if kind != "namespace" else kind)
    print(f"oracle trial, isolated verifier  {median:7.1f} ms   median of {len(spans)} (slowest {max(spans):.1f})")
    print(f"the same scripts, bare           {reference:7.1f} ms   median of {TRIALS}")
    print(f"ratio                            {median / reference:7.1f}      goal: under {GOALS_MS[kind]} ms")
    print(f"the whole command                {whole:7.2f} s    for {len(spans)} trials one after another")


def main() -> None:
    """Print the medians and their ratio, kind by kind."""
    for kind in GOALS_MS:
        measure(kind)


if __name__ == "__main__":
    main()
