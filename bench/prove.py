"""How fast a trial's final is proven, with the index that is kept and without, beside reading the journal whole.

Run as `PYTHONPATH=src:tests python bench/prove.py [--entries N]`. Each figure is of calls in this process, the least of
some; what the `proctor prove` command takes, with the start of Python in it, stands last.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from proctor.evidence.proving import prove_extends, prove_trial
from proctor.evidence.reader import read_entries
from proof_parts import Written, id_of

ENTRIES_PER_TRIAL = 10
CHECKPOINT_EVERY = 10_000


def build(folder: Path, entries: int) -> Written:
    """A journal of about so many entries, a checkpoint every 10,000."""
    made = Written(folder)
    while made.chain.size < entries:
        made.trial(ENTRIES_PER_TRIAL - 2)
        if made.chain.size % CHECKPOINT_EVERY < ENTRIES_PER_TRIAL:
            made.checkpoint()
            made.lines.clear()
    made.checkpoint()
    return made


def took(call: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of some calls."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Prints the figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entries", type=int, default=1_000_000)
    entries = options.parse_args().entries
    with tempfile.TemporaryDirectory() as temporary:
        made = build(Path(temporary, "run"), entries)
        cache = Path(temporary, "cache")
        trials = len(made.finals)
        notes = sorted((made.path / "checkpoints").glob("*.note"))
        old = notes[len(notes) // 2].read_bytes()

        def prove(number: int) -> object:
            return prove_trial(made.run, id_of(number), cache=cache, identify=lambda: None)

        def read() -> None:
            for _ in read_entries(made.run.journal_path):
                pass

        first = took(lambda: prove(0), 1)
        spread = [took(lambda at=at: prove(at), 3) for at in range(0, trials, max(1, trials // 20))]
        extends = took(lambda: prove_extends(made.run, old, cache=cache), 3)
        without = took(lambda: prove_trial(made.run, id_of(0), cache=None, identify=lambda: None), 1)
        whole = took(read, 1)
        kept = sum(path.stat().st_size for path in cache.iterdir())
        command = [sys.executable, "-m", "proctor", "prove", str(made.path), id_of(trials // 2)]
        # the command keeps its index where the user's caches are
        environment = {**os.environ, "XDG_CACHE_HOME": temporary}
        cold = took(lambda: subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL), 1)
        warm = took(lambda: subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL), 3)
        print(f"{made.chain.size:,} entries, {trials:,} trials, {len(notes):,} checkpoints")
    print(f"prove, with the index    {max(spread) * 1000:>10.2f} ms at most over {len(spread)} trials of all parts")
    print(f"the same, --since        {extends * 1000:>10.2f} ms")
    print(f"prove, making the index  {first * 1000:>10.0f} ms")
    print(f"prove, keeping none      {without * 1000:>10.0f} ms")
    print(f"reading the whole        {whole * 1000:>10.0f} ms ({whole / max(spread):,.0f} times the first)")
    print(f"index                    {kept / made.chain.size:>10.2f} bytes an entry")
    print(f"the command              {warm * 1000:>10.0f} ms with the index, {cold * 1000:,.0f} ms making it")


if __name__ == "__main__":
    main()
