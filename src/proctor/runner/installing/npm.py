"""Programs from a registry of npm: fetched by npm itself, and unpacked here, so that nothing of them runs."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from proctor.agents.bundles import architecture
from proctor.agents.sources import NpmPart, NpmSource
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.runner.installing.libraries import copy_libraries
from proctor.runner.installing.tools import FETCH_SEC, SHOWN_CHARS, run_tool, write_start

# The largest of them has 400 MB in ten files.
MOST_BYTES = 4 << 30
MOST_FILES = 100_000
_LOOK_SEC = 60.0
_NODE_ARCHES = {"x86_64": "x64", "aarch64": "arm64"}


def fetch_npm(source: NpmSource, version: str, program: Path, work: Path) -> tuple[str, ...]:
    """Bring all parts of a program into `program`; returns the C libraries that it runs with.

    Raises:
        Refusal: INSTALL_FAILED.
    """
    if shutil.which("npm") is None:
        raise Refusal(
            Reason.INSTALL_FAILED,
            f"{source.package} comes from a registry of npm, and there is no npm here",
            remedy="Install npm (it comes with node), and try again.",
        )
    machine = architecture()
    if machine not in _NODE_ARCHES:
        raise Refusal(
            Reason.INSTALL_FAILED,
            f"{source.package} is not published for this machine",
            observed=machine,
            required=sorted(_NODE_ARCHES),
        )
    asked = run_tool(["npm", "view", f"{source.package}@{version}", "version", "--json"], work, _LOOK_SEC)
    exact = _exact(asked, f"{source.package}@{version}")
    for part in source.parts:
        _fetch_part(part, _NODE_ARCHES[machine], exact, program / part.folder, work)
    loaded = [program / part.folder / part.loaded for part in source.parts if part.loaded is not None]
    loader = copy_libraries(loaded, program / "lib") if loaded else "none"
    write_start(program, source.start.format(machine=machine, loader=loader))
    return source.libc


def _exact(said: str, spec: str) -> str:
    """The version that a tag or a number stands for; of a range the newest, which npm lists last."""
    try:
        found = json.loads(said)
    except ValueError:
        found = None
    if isinstance(found, list) and found:
        found = found[-1]
    if not isinstance(found, str):
        raise Refusal(Reason.INSTALL_FAILED, f"the registry knows no {spec}", observed=said[:SHOWN_CHARS])
    return found


def _fetch_part(part: NpmPart, arch: str, version: str, folder: Path, work: Path) -> None:
    spec = f"{part.package}@{part.version}".format(arch=arch, version=version)
    words = ["npm", "pack", "--ignore-scripts", "--json", "--pack-destination", str(work), spec]
    run_tool(words, work, FETCH_SEC)
    archives = list(work.glob("*.tgz"))
    if len(archives) != 1:
        raise Refusal(Reason.INSTALL_FAILED, f"npm brought no archive of {spec}", observed=len(archives), required=1)
    try:
        with tarfile.open(archives[0], "r|gz") as archive:
            _unpack(archive, folder)
    except (tarfile.TarError, EOFError, OSError) as fault:
        raise Refusal(Reason.INSTALL_FAILED, f"the archive of {spec} cannot be unpacked: {fault}") from fault
    archives[0].unlink()


def _unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Regular files below `package/` alone, as all such archives are."""
    left, files = MOST_BYTES, 0
    for member in archive:
        path = PurePosixPath(member.name)
        if not member.isfile() or path.parts[:1] != ("package",) or ".." in path.parts or path.is_absolute():
            continue
        left, files = left - member.size, files + 1
        if left < 0 or files > MOST_FILES:
            raise tarfile.TarError("it holds more than a program does")
        content = archive.extractfile(member)
        target = folder.joinpath(*path.parts[1:])
        target.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            _write(content, target)
            target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _write(content: IO[bytes], target: Path) -> None:
    with target.open("xb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
