"""What this machine can do: read-only looks, each with what would add what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.admission.doctor_worlds import Look, look_at_worlds
from proctor.agents.bundles import list_bundles
from proctor.agents.sources import NpmSource, installable_agents
from proctor.core.refusal import Refusal
from proctor.evidence.keys import KEY_FILE, config_dir, load_or_create

# less than this, and a run of a few hundred trials may not fit
LITTLE_SPACE_BYTES = 2 * 2**30


def look(runs: Path, environ: Mapping[str, str], deadline_sec: float) -> tuple[Look, ...]:
    """Look at everything. `runs` is where runs would go; a sandbox can be had iff the look `sandbox` is ok."""
    return (
        Look("python", True, f"{platform.python_version()} ({sys.executable})"),
        Look("proctor", True, f"{__version__} ({Path(__file__).resolve().parents[1]})"),
        *look_at_worlds(deadline_sec),
        *_agents(),
        _space(runs),
        _key(environ),
        _git(),
    )


def _agents() -> list[Look]:
    """Agents that run inside by a program of their own, and what brings those that are missing."""
    programs = installable_agents()
    from_npm = [name for name, program in programs.items() if isinstance(program.source, NpmSource)]
    return [*map(_program, programs), _npm(", ".join(from_npm))]


def _program(agent: str) -> Look:
    found = [bundle.version for bundle in list_bundles(agent)]
    if found:
        return Look(f"agent {agent}", True, f"installed: {', '.join(found)}", None, {"installed": found})
    command = f"`proctor agents install {agent}` adds it."
    return Look(f"agent {agent}", None, "its program is not installed", command, {"installed": []})


def _npm(agents: str) -> Look:
    found = {name: shutil.which(name) for name in ("npm", "node")}
    facts = {**found, "for": agents}
    if all(found.values()):
        return Look("npm", True, f"{found['npm']}, for the programs of {agents}", None, facts)
    missing = " and ".join(name for name, path in found.items() if path is None)
    fix = "Install npm (it comes with node), for example with `apt-get install npm`."
    return Look("npm", None, f"no {missing}: the programs of {agents} cannot be installed", fix, facts)


def _space(runs: Path) -> Look:
    there = next(folder for folder in (runs, *runs.parents) if folder.is_dir())
    usage = shutil.disk_usage(there)
    writable = os.access(there, os.W_OK | os.X_OK)
    facts: dict[str, Any] = {"runs": str(runs), "free_bytes": usage.free, "writable": writable}
    seen = f"{usage.free / 2**30:.1f} GiB free for runs in {runs}" + ("" if writable else ", which may not be written")
    if usage.free >= LITTLE_SPACE_BYTES and writable:
        return Look("space", True, seen, None, facts)
    return Look("space", False, seen, "Set PROCTOR_RUNS to a folder with more space that you may write.", facts)


def _key(environ: Mapping[str, str]) -> Look:
    folder = config_dir(environ)
    path = folder / KEY_FILE
    facts = {"config_dir": str(folder)}
    if not path.exists():
        return Look("key", None, f"none yet; the first run makes {path}", "`proctor keys` makes it now.", facts)
    try:
        key, _ = load_or_create(folder)
    except Refusal as refusal:
        return Look("key", False, str(refusal), refusal.remedy, facts)
    return Look("key", True, f"{key.fingerprint} ({path})", None, {**facts, "fingerprint": key.fingerprint})


def _git() -> Look:
    found = shutil.which("git")
    if found is not None:
        return Look("git", True, found)
    return Look(
        "git",
        None,
        "not installed: runs cannot say which commit of a study they are of",
        "Install git, for example with `apt-get install git`.",
    )
