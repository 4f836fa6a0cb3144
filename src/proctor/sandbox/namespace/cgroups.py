"""Control groups, version 1 and 2, below the group that this process is in."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CONTROLLERS = ("memory", "cpu", "pids", "freezer")
_PERIOD_US = 100_000
_MIN_QUOTA_US = 1_000


@dataclass(frozen=True)
class Place:
    """Where groups with a controller can be made: the folder that a new group's folder goes into."""

    version: int
    parent: Path


def locate(own_groups: str, mount_table: str) -> dict[str, tuple[Place, Path]]:
    """Each controller's own group and the top of its hierarchy, from /proc/self/cgroup and /proc/self/mountinfo.

    The key of a version 2 hierarchy is `""`: which controllers it has is read from its files.
    """
    own: dict[str, str] = {}
    for line in own_groups.splitlines():
        _, names, path = line.split(":", 2)
        own.update(dict.fromkeys(names.split(","), path))
    found: dict[str, tuple[Place, Path]] = {}
    for line in mount_table.splitlines():
        left, _, right = line.partition(" - ")
        fields, source = left.split(), right.split()
        if len(fields) < 5 or not source or source[0] not in ("cgroup", "cgroup2"):
            continue
        top, root = Path(_unescaped(fields[4])), fields[3]
        for name in [""] if source[0] == "cgroup2" else source[-1].split(","):
            if name in own and (name == "" or name in CONTROLLERS):
                found[name] = (Place(2 if name == "" else 1, top / _below(own[name], root)), top)
    return found


def _below(path: str, root: str) -> str:
    """The part of a group's path that lies below a mount of `root`; the mount itself where it lies elsewhere."""
    if ".." in path.split("/"):
        return "."
    if root != "/":
        path = path[len(root) :] if path == root or path.startswith(root + "/") else "/"
    return path.strip("/") or "."


def _unescaped(path: str) -> str:
    return path.encode().decode("unicode_escape").encode("latin-1").decode() if "\\" in path else path


def usable(name: str) -> tuple[dict[str, Place], dict[str, str]]:
    """Controllers for which a group `name` can really be made now, and for the others why not. Leaves no group."""
    try:
        located = locate(_read("/proc/self/cgroup"), _read("/proc/self/mountinfo"))
    except OSError as fault:
        return {}, dict.fromkeys(CONTROLLERS, str(fault))
    return choose(located, name)


def choose(located: Mapping[str, tuple[Place, Path]], name: str) -> tuple[dict[str, Place], dict[str, str]]:
    """`usable` for groups found by `locate`."""
    places: dict[str, Place] = {}
    missing = dict.fromkeys(CONTROLLERS, "no control group hierarchy has it")
    for controller in CONTROLLERS:
        if controller in located:
            fault = _try_group(located[controller][0].parent / name)
            if fault is None:
                places[controller] = located[controller][0]
            else:
                missing[controller] = fault
    rest = [controller for controller in CONTROLLERS if controller not in located]
    if rest and "" in located:
        place, granted, why = _best_unified(*located[""], rest, name)
        places.update(dict.fromkeys(granted, place))
        missing.update(dict.fromkeys(rest, why))
    return places, {controller: why for controller, why in missing.items() if controller not in places}


def own_memory_limit() -> int | None:
    """The least memory that the groups we are in may use, in bytes; None without a limit that can be seen."""
    try:
        located = locate(_read("/proc/self/cgroup"), _read("/proc/self/mountinfo"))
    except OSError:
        return None
    limits = []
    for controller in ("memory", ""):
        if controller in located:
            place, top = located[controller]
            for folder in (place.parent, *place.parent.parents):
                if folder.is_relative_to(top):
                    said = _try_read(folder / {1: "memory.limit_in_bytes", 2: "memory.max"}[place.version]).strip()
                    limits.append(_number(said) if said else None)
    return min((limit for limit in limits if limit is not None), default=None)


def _best_unified(own: Place, top: Path, rest: list[str], name: str) -> tuple[Place, list[str], str]:
    """Version 2: one folder for all, since a process is in one group only, with what its children can have there.

    That is our own group, or one above it: a group that holds processes gives no controllers to its children, which
    is the rule for a login session.
    """
    best, most, why = own, list[str](), "the control groups here give it to no child"
    for folder in (own.parent, *own.parent.parents):
        if not folder.is_relative_to(top):
            break
        if folder == own.parent:
            for controller in set(rest) & set(_try_read(folder / "cgroup.controllers").split()):
                _try_enable(folder, controller)
        enabled = _try_read(folder / "cgroup.subtree_control").split()
        granted = [controller for controller in rest if controller in enabled or controller == "freezer"]
        if len(granted) <= len(most):
            continue
        fault = _try_group(folder / name)
        if fault is None:
            best, most = Place(2, folder), granted
        else:
            why = fault
    return best, most, why


def _try_enable(folder: Path, controller: str) -> None:
    try:
        (folder / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")
    except OSError:
        pass  # the group has processes; one above it may do


def _try_group(folder: Path) -> str | None:
    """Make a group and remove it again: why that fails, or None."""
    try:
        folder.mkdir()
        folder.rmdir()
    except OSError as fault:
        return f"control groups cannot be made here: {fault.strerror}"
    return None


class Group:
    """The groups of one sandbox: a folder of one name in each hierarchy that is used."""

    def __init__(self, places: Mapping[str, Place], name: str) -> None:
        self._version = {controller: place.version for controller, place in places.items()}
        self._folder = {controller: place.parent / name for controller, place in places.items()}

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every folder of it, each once."""
        return tuple(dict.fromkeys(self._folder.values()))

    @property
    def entrances(self) -> tuple[Path, ...]:
        """Files that take a single-threaded process in when 0, for itself, is written to them.

        In version 1 that is `tasks`: for it the kernel needs no lock over all processes, which costs 10 ms.
        """
        return tuple(
            dict.fromkeys(
                folder / ("tasks" if self._version[controller] == 1 else "cgroup.procs")
                for controller, folder in self._folder.items()
            )
        )

    @property
    def can_freeze(self) -> bool:
        """Whether it can stop its processes."""
        return "freezer" in self._folder

    def make(self, memory: int | None, cpus: float | None, pids: int | None) -> None:
        """Make the folders and write the limits. Raises OSError."""
        for folder in self.folders:
            folder.mkdir()
        if memory is not None and "memory" in self._folder:
            self._write("memory", {1: "memory.limit_in_bytes", 2: "memory.max"}, str(memory))
            for name, value in (("memory.memsw.limit_in_bytes", str(memory)), ("memory.swap.max", "0")):
                if (self._folder["memory"] / name).exists():
                    (self._folder["memory"] / name).write_text(value, encoding="ascii")
        if cpus is not None and "cpu" in self._folder:
            quota = max(_MIN_QUOTA_US, int(cpus * _PERIOD_US))
            if self._version["cpu"] == 1:
                (self._folder["cpu"] / "cpu.cfs_period_us").write_text(str(_PERIOD_US), encoding="ascii")
            self._write(
                "cpu",
                {1: "cpu.cfs_quota_us", 2: "cpu.max"},
                str(quota) if self._version["cpu"] == 1 else f"{quota} {_PERIOD_US}",
            )
        if pids is not None and "pids" in self._folder:
            self._write("pids", {1: "pids.max", 2: "pids.max"}, str(pids))

    def in_force(self) -> dict[str, float | int | None]:
        """Limits as the kernel says them now: `memory` bytes, `cpus`, `pids`; None is none. Raises OSError."""
        found: dict[str, float | int | None] = {}
        if "memory" in self._folder:
            found["memory"] = _number(self._read("memory", {1: "memory.limit_in_bytes", 2: "memory.max"}))
        if "pids" in self._folder:
            found["pids"] = _number(self._read("pids", {1: "pids.max", 2: "pids.max"}))
        if "cpu" in self._folder:
            words = self._read("cpu", {1: "cpu.cfs_quota_us", 2: "cpu.max"}).split()
            if self._version["cpu"] == 1:
                words.append((self._folder["cpu"] / "cpu.cfs_period_us").read_text(encoding="ascii").strip())
            found["cpus"] = None if words[0] in ("max", "-1") else int(words[0]) / int(words[1])
        return found

    def hits(self) -> dict[str, int]:
        """How often a limit ended or refused something: `memory` by kills, `pids` by refused forks."""
        return {
            "memory": self._event("memory", {1: "memory.oom_control", 2: "memory.events"}, "oom_kill"),
            "pids": self._event("pids", {1: "pids.events", 2: "pids.events"}, "max"),
        }

    def ask_freeze(self, frozen: bool) -> None:
        """Ask the kernel to stop the processes, or to let them go on. Raises OSError."""
        old = "FROZEN" if frozen else "THAWED"
        new = "1" if frozen else "0"
        self._write("freezer", {1: "freezer.state", 2: "cgroup.freeze"}, old if self._version["freezer"] == 1 else new)

    def is_frozen(self) -> bool:
        """Whether every process is stopped now. Raises OSError."""
        if self._version["freezer"] == 1:
            return (self._folder["freezer"] / "freezer.state").read_text(encoding="ascii").strip() == "FROZEN"
        return "frozen 1" in (self._folder["freezer"] / "cgroup.events").read_text(encoding="ascii")

    def _event(self, controller: str, names: dict[int, str], key: str) -> int:
        if controller not in self._folder:
            return 0
        for line in _try_read(self._folder[controller] / names[self._version[controller]]).splitlines():
            word, _, count = line.partition(" ")
            if word == key:
                return int(count)
        return 0

    def _write(self, controller: str, names: dict[int, str], value: str) -> None:
        (self._folder[controller] / names[self._version[controller]]).write_text(value, encoding="ascii")

    def _read(self, controller: str, names: dict[int, str]) -> str:
        return (self._folder[controller] / names[self._version[controller]]).read_text(encoding="ascii").strip()


def remove(folders: tuple[Path, ...]) -> bool:
    """Remove empty groups; False while one of them still has processes. Raises OSError for other faults."""
    done = True
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError as fault:
            if fault.errno != errno.EBUSY:
                raise
            done = False
    return done


def _number(text: str) -> int | None:
    """A limit as written by the kernel; version 1 writes "no limit" as a number of bytes near 2^63."""
    return None if text == "max" or int(text) > 2**62 else int(text)


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="surrogateescape")


def _try_read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
