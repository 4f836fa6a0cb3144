"""Programs of agents as they are installed here: read-only folders, one for each version, that worlds are shown.

`<data>/proctor/agents/<name>/<version>-<arch>/` holds `program/`, which a world sees at `/opt/proctor/<name>`, and
`bundle.json`, which says what it is. In the program `start` is a script for `sh` that starts it wherever it lies, with
the words that it is given.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from proctor.core import strictjson
from proctor.core.files import read_regular
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Bundle
from proctor.tasks.tree import read_tree

FACTS, PROGRAM = "bundle.json", "program"
# What stands in the name of a folder and in records.
VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}", re.ASCII)
_MAX_FACTS_BYTES = 65_536


@dataclass(frozen=True)
class InstalledBundle:
    """One installed version: `sha256` is the digest of its program's tree, `libc` which C libraries it runs with.

    `libc` words: static (needs none), glibc and musl (the world's own), own (brings one).
    """

    name: str
    version: str
    arch: str
    sha256: str
    libc: tuple[str, ...]
    folder: Path

    @property
    def entry(self) -> tuple[str, ...]:
        """The words that start it inside of a world."""
        return ("sh", f"{inside_of(self.name)}/start")

    def as_bundle(self) -> Bundle:
        """How a world is shown it."""
        return Bundle(self.folder / PROGRAM, inside_of(self.name))

    def as_record(self) -> dict[str, Any]:
        """What identifies it, wherever it is installed."""
        record = asdict(self)
        del record["folder"]
        return {**record, "libc": list(self.libc)}


def inside_of(name: str) -> str:
    """Where worlds see the program of that agent."""
    return f"/opt/proctor/{name}"


def agents_folder(environment: Mapping[str, str]) -> Path:
    """Where programs of agents lie: below `XDG_DATA_HOME`, or `~/.local/share`."""
    said = environment.get("XDG_DATA_HOME", "")
    base = Path(said) if said.startswith("/") else Path.home() / ".local" / "share"
    return base / "proctor" / "agents"


def architecture() -> str:
    """This machine's, as bundles name it."""
    return platform.machine()


def list_bundles(name: str, folder: Path | None = None) -> list[InstalledBundle]:
    """What is installed of an agent for this machine, oldest version first; folders that are no bundle are left out."""
    place = (agents_folder(os.environ) if folder is None else folder) / name
    found = [_read(each) for each in sorted(place.glob(f"*-{architecture()}")) if not each.name.startswith(".")]
    mine = [bundle for bundle in found if bundle is not None and bundle.name == name]
    return sorted(mine, key=lambda bundle: _order(bundle.version))


def find_bundle(name: str, version: str | None = None, folder: Path | None = None) -> InstalledBundle:
    """The installed program of that agent: of that version, or the newest.

    Raises:
        Refusal: BUNDLE_MISSING.
    """
    known = list_bundles(name, folder)
    wanted = [bundle for bundle in known if version is None or bundle.version == version]
    if not wanted:
        what = f"the program of the agent {name!r} is not installed"
        raise Refusal(
            Reason.BUNDLE_MISSING,
            what if version is None else f"{what} in version {version}",
            path="agent.name" if version is None else "agent.version",
            observed=[bundle.version for bundle in known],
            required=version,
            remedy=f"Run `proctor agents install {name}{'' if version is None else '@' + version}`.",
        )
    return wanted[-1]


def check_bundle(bundle: InstalledBundle) -> None:
    """See that the program is what was installed: all of it is read.

    Raises:
        Refusal: BUNDLE_CHANGED.
    """
    try:
        seen = read_tree(bundle.folder / PROGRAM).digest
    except Refusal as refusal:
        raise _changed(bundle, str(refusal)) from refusal
    if seen != bundle.sha256:
        raise _changed(bundle, seen)


def version_in(said: str) -> str | None:
    """The version in what a program says of itself: the first word that starts with a number."""
    match = re.search(r"(?<![\w.])[0-9]+\.[0-9][0-9A-Za-z.+_-]*", said, re.ASCII)
    return match[0].rstrip(".") if match is not None else None


def _changed(bundle: InstalledBundle, observed: str) -> Refusal:
    return Refusal(
        Reason.BUNDLE_CHANGED,
        f"the program of the agent {bundle.name!r} is no longer as it was installed",
        path="agent.name",
        observed=observed,
        required=bundle.sha256,
        remedy=f"Run `proctor agents install {bundle.name}@{bundle.version}`.",
    )


def _read(folder: Path) -> InstalledBundle | None:
    try:
        data = read_regular(folder / FACTS, _MAX_FACTS_BYTES)
        if data is None:
            return None
        said = strictjson.loads(data, path=FACTS)
    except (OSError, Refusal):
        return None
    if not isinstance(said, dict) or set(said) != {field.name for field in fields(InstalledBundle)} - {"folder"}:
        return None
    libc = said.pop("libc")
    texts = [*said.values(), *(libc if isinstance(libc, list) else [None])]
    if not all(isinstance(text, str) for text in texts) or not VERSION.fullmatch(said["version"]):
        return None
    return InstalledBundle(**said, libc=tuple(libc), folder=folder)


def _order(version: str) -> tuple[tuple[int, str], ...]:
    """Numbers by their value; a word comes before the end, so that `2.0rc1` is older than `2.0`."""
    parts = re.findall(r"[0-9]+|[A-Za-z]+", version)
    return (*((int(part), "") if part.isdigit() else (-2, part) for part in parts), (-1, ""))
