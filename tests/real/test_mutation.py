"""No dead check and no dead guard: of small changes of both registries, drawn anew each time, every one is noticed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

RUN = Path(__file__).resolve().parents[1] / "mutation/run.py"
# all of them: `python tests/mutation/run.py`
MUTANTS = int(os.environ.get("PROCTOR_MUTANTS", "120"))


def test_every_mutant_of_a_sample_is_killed() -> None:
    seed = random.randrange(2**32)
    words = ["--sample", str(MUTANTS), "--seed", str(seed), "--jobs", "1"]
    done = subprocess.run([sys.executable, str(RUN), *words], capture_output=True, text=True, timeout=1500, check=False)
    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-3000:]}"
