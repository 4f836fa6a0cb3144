"""A trivial oracle trial with an isolated verifier on the namespace sandbox: median of 20, beside bare processes.

The time is that of one attempt, from its admission on the record to its end on the record, as the journal's monotonic
clock has it; the reference is the same two scripts run by `sh` on the host, with no sandbox and no evidence.

    python bench/trial.py
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
SOLVE = "#!/bin/sh\necho 42 > answer.txt\n"
TEST = """#!/bin/sh
if [ "$(cat answer.txt 2>/dev/null)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


def write_study(folder: Path) -> None:
    """One task, tried TRIALS times, one after another."""
    task = folder / "tasks" / "answer"
    for name, content in {"solution/solve.sh": SOLVE, "tests/test.sh": TEST, "instruction.md": "Write 42.\n"}.items():
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(content)
    (task / "task.toml").write_text('schema_version = "1.4"\n[task]\nname = "bench/answer"\n')
    (folder / "study.toml").write_text(
        '[study]\nname = "bench"\n[tasks]\npath = "tasks"\n[agent]\nname = "oracle"\n'
        f'[sandbox]\nkind = "namespace"\nnetwork = "none"\n[stages.main]\nepochs = {TRIALS}\n'
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


def main() -> None:
    """Print the medians and their ratio."""
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as made:
        folder = Path(made)
        write_study(folder)
        run = folder / "run"
        command = [sys.executable, "-m", "proctor", "run", str(folder / "study.toml"), "--out", str(run), "--quiet"]
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        whole = time.perf_counter() - began
        spans = attempts(run / "journal.jsonl")
        reference = statistics.median(bare(folder) for _ in range(TRIALS))
    median = statistics.median(spans)
    print(f"oracle trial, isolated verifier  {median:7.1f} ms   median of {len(spans)} (slowest {max(spans):.1f})")
    print(f"the same scripts, bare           {reference:7.1f} ms   median of {TRIALS}")
    print(f"ratio                            {median / reference:7.1f}      goal: under 500 ms")
    print(f"the whole command                {whole:7.2f} s    for {len(spans)} trials one after another")


if __name__ == "__main__":
    main()
