"""Programs in Python: an interpreter of their own, which is a copy of the one that runs proctor, and their packages.

It is started through its own loader with its own libraries, so that it runs in worlds without Python, or with another
C library. No variable tells it where they are: what the agent's commands run is the world's own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from proctor.agents.sources import PythonSource
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.runner.installing.libraries import copy_libraries
from proctor.runner.installing.tools import FETCH_SEC, run_tool, write_start

# Of the standard library: what no agent runs, and packages that are not its own.
_LEFT_OUT = (
    "__pycache__",
    "_tkinter*",
    "config-*",
    "dist-packages",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "site-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
)
_COMPILE_SEC = 600.0


def fetch_python(source: PythonSource, version: str, program: Path, inside: str, work: Path) -> tuple[str, ...]:
    """Bring the interpreter and the packages into `program`; returns the C libraries that it runs with: its own.

    `inside` is where worlds see the program: byte code names that place, and none of this machine.

    Raises:
        Refusal: INSTALL_FAILED.
    """
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(sys.base_prefix, "bin", name)
    library = program / "lib" / name
    binary = program / "bin" / "python3"
    binary.parent.mkdir()
    shutil.copyfile(base.resolve(), binary)
    binary.chmod(0o755)
    shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    packages = library / "site-packages"
    wanted = source.package if version == "latest" else f"{source.package}=={version}"
    words = _installer(base, work)
    run_tool([*words, "--only-binary", ":all:", "--target", str(packages), wanted], work, FETCH_SEC)
    # Debian's interpreter looks for packages under this name
    (library / "dist-packages").symlink_to("site-packages")
    shutil.rmtree(packages / "bin", ignore_errors=True)
    modules = [path for path in library.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    loader = copy_libraries([base, *modules], program / "lib")
    start = f'exec "$here/lib/{loader}" --library-path "$here/lib" "$here/bin/python3" -I "$@"'
    write_start(program, start)
    _compile(program, library, inside, work)
    return ("own",)


def _installer(base: Path, work: Path) -> list[str]:
    """pip of the interpreter that is copied; uv where it has none."""
    asked = subprocess.run(
        [str(base), "-m", "pip", "--version"], cwd=work, capture_output=True, check=False, timeout=60
    )
    if asked.returncode == 0:
        return [str(base), "-m", "pip", "install", "--quiet", "--no-input", "--no-compile", "--ignore-installed"]
    if shutil.which("uv") is not None:
        return ["uv", "pip", "install", "--quiet", "--python", str(base)]
    raise Refusal(
        Reason.INSTALL_FAILED,
        "there is neither pip nor uv here",
        remedy=f"Install uv, or pip for {base}, and try again.",
    )


def _compile(program: Path, library: Path, inside: str, work: Path) -> None:
    """Byte code, for worlds in which nothing can be written; by content and not by time, so that copies keep it."""
    words = ["sh", str(program / "start"), "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    words += ["-s", str(program), "-p", inside, str(library)]
    done = subprocess.run(words, cwd=work, capture_output=True, check=False, timeout=_COMPILE_SEC)
    # templates of some packages are no Python, and stay as they are
    if done.returncode not in (0, 1):
        raise Refusal(Reason.INSTALL_FAILED, "the program's byte code could not be written", observed=done.returncode)
