"""What a root folder holds that could stand in for an image: packages, interpreters, users."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.recipe import Install
from proctor.tasks.shellrun import Package

_STATUS_CAP = 64 << 20
_DIST_FOLDERS = ("usr/lib/python3*", "usr/local/lib/python3*")
_PYTHON = re.compile(r"python(3\.\d+)")


@dataclass(frozen=True)
class RootFacts:
    """A root, as seen once.

    `path` is None for the host's own /usr. `dpkg` holds installed packages and versions, `provided` the virtual
    packages of them, `python` distributions by normalised name (version None where its name does not tell), `pythons`
    interpreter versions such as "3.11", `users` is None where the users inside are not known beforehand.
    """

    path: Path | None
    dpkg: Mapping[str, str] = field(default_factory=dict)
    provided: frozenset[str] = frozenset()
    python: Mapping[str, str | None] = field(default_factory=dict)
    pythons: frozenset[str] = frozenset()
    users: frozenset[str] | None = None


@dataclass(frozen=True)
class PackageCheck:
    """Installs against a root: `missing` names packages that are not there, `notes` other versions than asked for."""

    missing: tuple[str, ...]
    notes: tuple[str, ...]


def read_root(path: Path | None) -> RootFacts:
    """Look at a root folder, or at the host for None.

    Raises:
        Refusal: ROOTFS_INVALID where there is no root with a shell, FILE_UNREADABLE where its lists cannot be read.
    """
    root = path or Path("/")
    try:
        return _read(path, root)
    except OSError as error:
        message = f"The root cannot be looked at: {error.strerror}."
        raise Refusal(Reason.FILE_UNREADABLE, message, path=str(error.filename or root)) from error


def _read(path: Path | None, root: Path) -> RootFacts:
    if not any((root / shell).exists() or (root / shell).is_symlink() for shell in ("bin/sh", "usr/bin/sh")):
        raise Refusal(Reason.ROOTFS_INVALID, "There is no root file system with a shell at that path.", path=str(root))
    dpkg, provided = parse_dpkg_status(_text(root / "var/lib/dpkg/status"))
    found = [entry.name for pattern in _DIST_FOLDERS for entry in root.glob(f"{pattern}/*-packages/*.*-info")]
    interpreters = (
        entry.name for folder in ("usr/bin", "usr/local/bin") for entry in (root / folder).glob("python3.*")
    )
    return RootFacts(
        path=path,
        dpkg=dpkg,
        provided=provided,
        python=parse_dists(found),
        pythons=frozenset(match[1] for name in interpreters if (match := _PYTHON.fullmatch(name))),
        users=None if path is None else parse_users(_text(root / "etc/passwd")),
    )


def parse_dpkg_status(text: str) -> tuple[dict[str, str], frozenset[str]]:
    """Installed packages with versions out of dpkg's status file, and the virtual packages that they provide."""
    packages: dict[str, str] = {}
    provided: set[str] = set()
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] not in " \t")
        if fields.get("Status", "").split()[1:] != ["ok", "installed"] or "Package" not in fields:
            continue
        packages[fields["Package"]] = fields.get("Version", "")
        provided.update(name.split("(")[0].strip() for name in fields.get("Provides", "").split(",") if name.strip())
    return packages, frozenset(provided)


def parse_dists(names: Iterable[str]) -> dict[str, str | None]:
    """Python distributions out of the names of `.dist-info` and `.egg-info` entries."""
    dists: dict[str, str | None] = {}
    for name in names:
        stem = name.rpartition(".")[0]
        parts = stem.split("-")
        dists[normalised(parts[0])] = parts[1] if len(parts) > 1 else None
    return dists


def parse_users(text: str) -> frozenset[str]:
    """User names out of a passwd file."""
    return frozenset(line.split(":", 1)[0] for line in text.splitlines() if ":" in line)


def normalised(name: str) -> str:
    """A Python distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def check_packages(root: RootFacts, installs: Iterable[Install]) -> PackageCheck:
    """Which of the packages that a recipe installs the root lacks, and which it has in another version."""
    missing: list[str] = []
    notes: list[str] = []
    for install in installs:
        for package in install.packages:
            there, version = _look(root, install.manager, package)
            shown = f"{package.name} ({install.manager})"
            if not there:
                missing.append(shown)
            elif package.wanted is not None and version != package.wanted:
                notes.append(f"{shown}: {package.wanted} is asked for, the root has {version or 'an unknown version'}")
    return PackageCheck(tuple(missing), tuple(notes))


def _look(root: RootFacts, manager: str, package: Package) -> tuple[bool, str | None]:
    if manager == "pip":
        name = normalised(package.name)
        return name in root.python, root.python.get(name)
    if package.name in root.dpkg:
        return True, root.dpkg[package.name]
    return package.name in root.provided, None


def _text(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        data = file.read(_STATUS_CAP + 1)
    if len(data) > _STATUS_CAP:
        raise Refusal(Reason.FILE_UNREADABLE, "The file is too large for what it is.", path=str(path))
    return data.decode("utf-8", "backslashreplace")
