"""The tests of the namespace sandbox once more, as a user without any power. Needs root, to become that user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

import proctor

pytestmark = pytest.mark.real

HERE = Path(__file__).resolve().parent
FILES = ("worlds", "files", "hiding", "snapshots", "death")
NOBODY = 64321


def interpreter() -> str | None:
    """A Python of our version that any user can run."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    candidates = [str(Path(sys.executable).resolve()), shutil.which(version, path="/usr/local/bin:/usr/bin")]
    for candidate in filter(None, candidates):
        try:
            subprocess.run([candidate, "-c", ""], user=NOBODY, group=NOBODY, extra_groups=[], check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate
    return None


@pytest.fixture(scope="module")
def python() -> str:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; the other files ran as an ordinary one already")
    found = interpreter()
    if found is None:
        pytest.skip("no Python of this version that another user can run")
    return found


@pytest.mark.parametrize("name", FILES)
def test_as_an_ordinary_user(python: str, name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="u", dir="/tmp") as folder:
        os.chown(folder, NOBODY, NOBODY)
        sources = (Path(proctor.__file__).parent.parent, sysconfig.get_path("purelib"))
        done = subprocess.run(
            [python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(HERE / f"test_namespace_{name}.py")],
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
            timeout=600,
            check=False,
        )
        assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-6000:] + done.stderr[-2000:]
        shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir()
