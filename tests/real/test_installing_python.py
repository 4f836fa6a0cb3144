"""Programs in Python are installed with an interpreter of their own, which runs where there is none."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

import pytest
from each_kind import SMALL_IMAGE, AnyBench, any_bench

from proctor.agents.sources import PythonSource
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.runner.installing.interpreter import fetch_python
from proctor.sandbox.base import Bundle

__all__ = ["any_bench"]
pytestmark = pytest.mark.real

INSIDE = "/opt/proctor/greet"
# of the standard library: what needs libraries of the host's
PROGRAM = """\
import os, sqlite3, ssl, subprocess, zlib
import greet
print(greet.WORD, sqlite3.connect(":memory:").execute("select 40 + 2").fetchone()[0], len(ssl.OPENSSL_VERSION) > 0)
print(greet.hello.__code__.co_filename, greet.__cached__ is not None and os.path.exists(greet.__cached__))
print(sorted(set(os.environ) & {"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "PYTHONPATH"}))
print(subprocess.run(["sh", "-c", "echo from the world"], capture_output=True, text=True).stdout.strip())
"""


def write_wheel(folder: Path) -> None:
    files = {
        "greet/__init__.py": b'WORD = "hello"\n\n\ndef hello():\n    return WORD\n',
        "greet-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n",
        "greet-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    record += "greet-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(folder / "greet-1.0-py3-none-any.whl", "w") as wheel:
        for name, data in {**files, "greet-1.0.dist-info/RECORD": record.encode()}.items():
            wheel.writestr(name, data)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages, which is all that pip and uv know of."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    write_wheel(folder)
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(folder))
    return folder


def fetched(folder: Path, version: str) -> Path:
    program, work = folder / "program", folder / "work"
    program.mkdir()
    work.mkdir()
    assert fetch_python(PythonSource("greet", "1.0"), version, program, INSIDE, work) == ("own",)
    return program


@pytest.mark.usefixtures("wheels")
async def test_it_runs_in_a_world_that_has_a_shell_and_hardly_anything_else(
    any_bench: AnyBench, tmp_path: Path
) -> None:
    program = fetched(tmp_path, "1.0")
    world = await any_bench.start(image=SMALL_IMAGE, network=Network.NONE, bundles=(Bundle(program, INSIDE),))
    env = {"LD_LIBRARY_PATH": "/nowhere", "PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere"}
    ended, said = await any_bench.run(world, "sh", f"{INSIDE}/start", "-c", PROGRAM)
    assert ended.exit_code == 0, said
    place = f"{INSIDE}/lib/{next((program / 'lib').glob('python3*')).name}/site-packages/greet/__init__.py"
    assert said.splitlines() == ["hello 42 True", f"{place} True", "[]", "from the world"]
    # whatever a task sets for programs of its own
    ended, said = await any_bench.run(world, "sh", f"{INSIDE}/start", "-c", "import greet; print(greet.WORD)", env=env)
    assert (ended.exit_code, said) == (0, "hello\n")


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize("version", ["2.0", "latest"])
def test_a_version_that_there_is_not_is_refused_and_the_latest_is_what_there_is(tmp_path: Path, version: str) -> None:
    if version == "latest":
        assert (fetched(tmp_path, version) / "start").exists()
        return
    with pytest.raises(Refusal) as caught:
        fetched(tmp_path, version)
    assert caught.value.reason is Reason.INSTALL_FAILED
