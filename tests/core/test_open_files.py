"""How many files may be open: as many as the system lets a process, and a part of them for each agent."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# soft and hard before; soft after, and how many then may be open
SAID = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
from proctor.core.open_files import allow_many, may_be_open
allow_many()
print(json.dumps([resource.getrlimit(resource.RLIMIT_NOFILE), may_be_open()]))
"""


@pytest.mark.parametrize(("soft", "hard"), [(256, 1_024), (1_024, 1_024), (64, 64)])
def test_the_bound_is_raised_as_far_as_it_can_be(soft: int, hard: int) -> None:
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{SAID}", str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert json.loads(done.stdout) == [[hard, hard], hard]
