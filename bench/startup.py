"""`proctor --help` beside `inspect --help`, interleaved in one run; the goal is at most a fifth.

    python bench/startup.py PATH_TO_INSPECT

PATH_TO_INSPECT is the `inspect` command of a virtual environment that holds inspect-ai and nothing else.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15


def once(command: list[str]) -> float:
    """Seconds of one run."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    """Print both medians and their ratio."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ours = [str(Path(sys.executable).parent / "proctor"), "--help"]
    theirs = [sys.argv[1], "--help"]
    once(ours), once(theirs)  # compile what is not compiled yet
    pairs = [(once(ours), once(theirs)) for _ in range(RUNS)]
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"proctor --help  {mine * 1000:7.0f} ms   median of {RUNS}")
    print(f"inspect --help  {other * 1000:7.0f} ms   median of {RUNS}")
    print(f"ratio           {mine / other:7.3f}      goal: at most 0.200")


if __name__ == "__main__":
    main()
