"""Installs the program of an agent: fetched, tried, digested, and put in its place at once."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

from proctor.agents.bundles import (
    FACTS,
    PROGRAM,
    VERSION,
    InstalledBundle,
    agents_folder,
    architecture,
    check_bundle,
    find_bundle,
    inside_of,
    version_in,
)
from proctor.agents.sources import Installable, NpmSource, installable_agents
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.runner.installing.interpreter import fetch_python
from proctor.runner.installing.npm import fetch_npm
from proctor.runner.installing.tools import run_tool
from proctor.tasks.tree import read_tree

_PROBE_SEC = 120.0


def standing(name: str, version: str | None = None, folder: Path | None = None) -> InstalledBundle | None:
    """What `install` would bring, where it lies here already as it was installed; a tag names no version."""
    known = installable_agents()
    if name not in known:
        return None
    try:
        bundle = find_bundle(name, version or known[name].source.version, folder)
        check_bundle(bundle)
    except Refusal:
        return None
    return bundle


def install(name: str, version: str | None = None, folder: Path | None = None) -> InstalledBundle:
    """Bring the program of an agent, in the version that it was tried with or in that one; replaces it where it is.

    Nothing that the packages bring runs but the program itself, once, to say its version.

    Raises:
        Refusal: UNKNOWN_AGENT, INSTALL_FAILED.
    """
    known = installable_agents()
    if name not in known:
        raise Refusal(
            Reason.UNKNOWN_AGENT,
            f"there is no agent {name!r} that could be installed",
            observed=name,
            required=sorted(known),
        )
    if version is not None and not VERSION.fullmatch(version):
        raise Refusal(Reason.INSTALL_FAILED, f"{version!r} is no version of {name!r}", observed=version)
    agent = known[name]
    place = (agents_folder(os.environ) if folder is None else folder) / name
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=place) as made:
            bundle = _make(agent, version or agent.source.version, Path(made))
            return _place(bundle, place)
    except OSError as fault:
        raise Refusal(
            Reason.INSTALL_FAILED,
            f"the program of {name!r} could not be written: {fault.strerror or fault}",
            path=str(place),
        ) from fault


def _make(agent: Installable, version: str, made: Path) -> InstalledBundle:
    ready, work = made / "ready", made / "work"
    program = ready / PROGRAM
    program.mkdir(parents=True)
    work.mkdir()
    if isinstance(agent.source, NpmSource):
        libc = fetch_npm(agent.source, version, program, work)
    else:
        libc = fetch_python(agent.source, version, program, inside_of(agent.name), work)
    _open_to_all(program)
    said = run_tool(["sh", str(program / "start"), *agent.version_words], work, _PROBE_SEC, bare=True)
    reported = version_in(said)
    if reported is None or not VERSION.fullmatch(reported):
        raise Refusal(
            Reason.INSTALL_FAILED, f"the program of {agent.name!r} does not say its version", observed=said[:200]
        )
    bundle = InstalledBundle(agent.name, reported, architecture(), read_tree(program).digest, libc, ready)
    (ready / FACTS).write_text(json.dumps(bundle.as_record(), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return bundle


def _open_to_all(program: Path) -> None:
    """Worlds run it as whatever user a task has."""
    for folder, _, names in os.walk(program):
        Path(folder).chmod(0o755)
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)


def _place(bundle: InstalledBundle, place: Path) -> InstalledBundle:
    """One rename puts it there; a run that uses what stood there goes on with what it has open."""
    where = place / f"{bundle.version}-{bundle.arch}"
    with tempfile.TemporaryDirectory(prefix=".old-", dir=place) as old:
        if where.exists():
            where.rename(Path(old, "was"))
        bundle.folder.rename(where)
        shutil.rmtree(Path(old, "was"), ignore_errors=True)
    return replace(bundle, folder=where)
