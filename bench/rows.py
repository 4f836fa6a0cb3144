"""Question-set trials against the practice model at full durability, beside inspect-ai with its mock model.

Both answer the same rows, 64 at once, one after the other in one run. Ours counts from the first entry of the journal
to the last, as its monotonic clock has it; theirs from the call of `eval` to its return.

    python bench/rows.py PYTHON_WITH_INSPECT_AI
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 4_000
THEIRS = 1_000
MANY = 100_000


def write_study(folder: Path, rows: int) -> None:
    """A question set of so many sums, and a study of one arm and one practice model."""
    folder.mkdir(parents=True)
    with (folder / "units.jsonl").open("w") as file:
        for number in range(rows):
            row = {"id": f"sum-{number:06d}", "prompt": f"What is {number} + 17?", "target": number + 17}
            file.write(json.dumps(row) + "\n")
    (folder / "study.toml").write_text(
        '[study]\nname = "bench"\n[tasks]\nquestions = "units.jsonl"\n[grading]\nscorer = "number"\n'
        '[agent]\nname = "toolloop"\n[models.practice]\nprovider = "practice"\nmodel = "practice-1"\n'
        "[stages.main]\nlanes = 64\n"
        '[stages.main.budget]\nallocation = "1000.00"\ncap = "1000.00"\nmargin = "10.00"\nreserve_factor = 3\n'
        '[stages.main.expected_costs]\npractice = "100.00"\n[stages.main.caps]\npractice = "1000.00"\n'
        f'[stages.main.reserves]\npractice = "{300 / rows:.3f}"\n'
    )


def ours(folder: Path) -> tuple[float, float, int]:
    """Seconds from the first entry to the last, seconds of CPU, and peak memory in KiB of the whole command."""
    command = [str(Path(sys.executable).parent / "proctor"), "run", str(folder), "--out", str(folder / "run"), "--yes"]
    environment = {**os.environ, "PROCTOR_CONFIG_DIR": str(folder / "config")}
    process = subprocess.Popen(
        [*command, "--waive", "git_dirty"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    with (folder / "run" / "journal.jsonl").open("rb") as journal:
        first = json.loads(journal.readline())
        journal.seek(-4096, os.SEEK_END)
        last = json.loads(journal.read().splitlines()[-1])
    return (last["mono"] - first["mono"]) / 1e9, used.ru_utime + used.ru_stime, used.ru_maxrss


def theirs(python: str, rows: Path, folder: Path) -> tuple[float, float]:
    """Samples a second and milliseconds of CPU a sample of inspect-ai."""
    script = str(Path(__file__).parent / "parts" / "inspect_rows.py")
    said = subprocess.run([python, script, str(rows), str(folder)], check=True, capture_output=True, text=True).stdout
    result = json.loads(said.splitlines()[-1])
    return result["samples"] / result["seconds"], 1000 * result["cpu"] / result["samples"]


def main() -> None:
    """Print both rates, their ratio, and what 100,000 trials take."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        write_study(base / "few", THEIRS)
        write_study(base / "ours", ROWS)
        rate_theirs, cpu_theirs = theirs(sys.argv[1], base / "few" / "units.jsonl", base / "logs")
        seconds, cpu, _ = ours(base / "ours")
        rate = ROWS / seconds
        print(f"proctor     {rate:7.0f} rows/s   {1000 * cpu / ROWS:6.2f} ms CPU each   {ROWS} rows, 64 at once")
        print(f"inspect-ai  {rate_theirs:7.0f} rows/s   {cpu_theirs:6.2f} ms CPU each   {THEIRS} rows, 64 at once")
        print(f"ratio       {rate / rate_theirs:7.1f}          goal: at least 8")
        write_study(base / "many", MANY)
        began = time.perf_counter()
        seconds, cpu, memory = ours(base / "many")
        whole = time.perf_counter() - began
        print(f"{MANY:,} trials: {MANY / seconds:,.0f} rows/s, {memory * 1024 / 1e6:.0f} MB at the peak (goal: 250)")
        print(f"the whole command {whole:.0f} s, {1000 * cpu / MANY:.2f} ms CPU a trial")


if __name__ == "__main__":
    main()
