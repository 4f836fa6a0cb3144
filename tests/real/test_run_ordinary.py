"""Runs of bad agents once more, as a user without any power. Needs root, to become that user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import pytest
from test_namespace_ordinary import NOBODY, python

import proctor

__all__ = ["python"]
pytestmark = pytest.mark.real

HERE = Path(__file__).resolve().parent
# what differs without root: which limits hold, how many users there are, who may read what
CHOSEN = "stay or flood or forks or filled or eaten or forged or links or no_text or signals"


def test_bad_agents_as_an_ordinary_user(python: str) -> None:
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        os.chown(folder, NOBODY, NOBODY)
        sources = (Path(proctor.__file__).parent.parent, sysconfig.get_path("purelib"))
        file = str(HERE / "test_run_bad_agents.py")
        done = subprocess.run(
            [python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-k", CHOSEN, file],
            cwd=HERE.parent.parent,
            env={
                "HOME": folder,
                "TMPDIR": folder,
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "PYTHONPATH": os.pathsep.join(map(str, sources)),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-6000:] + done.stderr[-2000:]
        shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir()
