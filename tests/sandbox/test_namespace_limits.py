"""Which means holds which limit, and control groups of both versions as their files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import LimitInForce, Limits, Tier
from proctor.sandbox.namespace import cgroups, limits, probe
from proctor.sandbox.rules import DEFAULT_PIDS, refuse_unenforced

ALL = Limits(cpus=2.0, memory_bytes=1 << 30, storage_bytes=1 << 31, pids=100)
NOTHING = dict.fromkeys(cgroups.CONTROLLERS, "control groups need root")

V1 = """9:name=systemd:/
8:pids:/
4:memory:/outer/inner
2:cpu,cpuacct:/
6:freezer:/
0::/
"""
V1_MOUNTS = """30 20 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /odd\\040place/pids rw,nosuid shared:1 - cgroup cgroup rw,pids
34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""


def test_version_one_groups_are_found_where_they_are_mounted() -> None:
    found = {name: place for name, (place, _) in cgroups.locate(V1, V1_MOUNTS).items()}
    assert found == {
        "memory": cgroups.Place(1, Path("/sys/fs/cgroup/memory/outer/inner")),
        "cpu": cgroups.Place(1, Path("/sys/fs/cgroup/cpu,cpuacct")),
        "pids": cgroups.Place(1, Path("/odd place/pids")),
        "": cgroups.Place(2, Path("/sys/fs/cgroup/unified")),
    }


@pytest.mark.parametrize(
    ("path", "root", "wanted"),
    [
        ("/user.slice/a", "/", "/cg/user.slice/a"),
        ("/docker/abc/x", "/docker/abc", "/cg/x"),
        ("/docker/abc", "/docker/abc", "/cg"),
        ("/elsewhere", "/docker/abc", "/cg"),
        ("/../other", "/", "/cg"),
        ("/", "/", "/cg"),
    ],
)
def test_a_part_of_a_hierarchy_may_be_mounted(path: str, root: str, wanted: str) -> None:
    found = cgroups.locate(f"0::{path}\n", f"1 1 0:1 {root} /cg rw - cgroup2 cgroup rw\n")
    assert found[""][0] == cgroups.Place(2, Path(wanted))


@pytest.mark.parametrize("version", [1, 2])
def test_limits_are_written_and_read_back(tmp_path: Path, version: int) -> None:
    place = cgroups.Place(version, tmp_path)
    group = cgroups.Group({"memory": place, "cpu": place, "pids": place, "freezer": place}, "s1")
    group.make(1 << 30, 1.5, 64)
    assert group.in_force() == {"memory": 1 << 30, "cpus": 1.5, "pids": 64}
    assert group.folders == (tmp_path / "s1",)
    assert {path.name for path in group.entrances} == ({"tasks"} if version == 1 else {"cgroup.procs"})
    (tmp_path / "s1/memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    (tmp_path / "s1/memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    (tmp_path / "s1/pids.events").write_text("max 7\n")
    assert group.hits() == {"memory": 2, "pids": 7}


@pytest.mark.parametrize(("version", "unlimited"), [(1, str(2**63 - 4096)), (2, "max")])
def test_no_limit_reads_as_none(tmp_path: Path, version: int, unlimited: str) -> None:
    place = cgroups.Place(version, tmp_path)
    group = cgroups.Group({"memory": place, "pids": place}, "s1")
    group.make(None, None, None)
    (tmp_path / "s1" / ("memory.limit_in_bytes" if version == 1 else "memory.max")).write_text(unlimited)
    (tmp_path / "s1/pids.max").write_text("max")
    assert group.in_force() == {"memory": None, "pids": None}


def test_groups_are_removed_once_they_are_empty(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert cgroups.remove((tmp_path / "a", tmp_path / "never-made"))
    assert not (tmp_path / "a").exists()


def test_an_ordinary_user_has_watchers_and_rlimits() -> None:
    chosen = limits.plan(ALL, Tier.ORDINARY, frozenset())
    entries = {entry.name: entry for entry in limits.read_back(ALL, chosen, {}, NOTHING)}
    assert entries["cpus"] == LimitInForce("cpus", 2.0, None, None, "control groups need root")
    assert {name: entry.enforced for name, entry in entries.items()} == {
        "cpus": None,
        "memory": 1 << 30,
        "storage": 1 << 31,
        "pids": 100,
    }
    refuse_unenforced(tuple(entries.values()), frozenset({"memory", "storage", "pids"}))
    with pytest.raises(Refusal) as refused:
        refuse_unenforced(tuple(entries.values()), frozenset({"cpus"}))
    assert refused.value.reason is Reason.LIMIT_UNENFORCEABLE


def test_root_is_not_held_by_rlimits_so_pids_are_watched_where_there_is_no_group() -> None:
    chosen = limits.plan(ALL, Tier.PRIVILEGED, frozenset({"memory"}))
    assert chosen.rlimit_nproc is None and chosen.watch_memory is None and chosen.watch_pids == 100
    entries = limits.read_back(ALL, chosen, {"memory": 1 << 30}, {"pids": "not mounted", "cpu": "not mounted"})
    by_name = {entry.name: entry for entry in entries}
    assert by_name["pids"] == LimitInForce("pids", 100, 100, "a watcher that ends the command", None)
    assert by_name["cpus"].enforced is None and by_name["cpus"].why_not == "not mounted"
    assert by_name["memory"].how == "control group (memory)"


def test_files_in_memory_are_said_where_they_count() -> None:
    chosen = limits.plan(ALL, Tier.PRIVILEGED, frozenset({"memory"}))
    entries = limits.read_back(ALL, chosen, {"memory": 1 << 30}, {}, files_in_memory=True)
    said = {entry.name: entry.how for entry in entries}
    assert said["memory"] == "control group (memory), which files that are written count to"
    assert (said["storage"] or "").endswith("in memory")


def test_what_the_kernel_says_counts_and_not_what_was_written() -> None:
    chosen = limits.plan(ALL, Tier.PRIVILEGED, frozenset(cgroups.CONTROLLERS))
    entries = limits.read_back(ALL, chosen, {"memory": 1 << 40, "cpus": 2.0, "pids": 100}, {})
    with pytest.raises(Refusal):
        refuse_unenforced(entries, frozenset({"memory"}))
    refuse_unenforced(entries, frozenset({"cpus", "pids", "storage"}))


def test_processes_are_always_limited_and_a_limit_nobody_asked_for_refuses_nothing() -> None:
    chosen = limits.plan(Limits(), Tier.ORDINARY, frozenset())
    entries = limits.read_back(Limits(), chosen, {}, NOTHING)
    by_name = {entry.name: entry for entry in entries}
    assert (by_name["pids"].wanted, by_name["pids"].enforced) == (None, DEFAULT_PIDS)
    assert by_name["memory"].why_not == "not asked for"
    refuse_unenforced(entries, frozenset({"cpus", "memory", "storage", "pids"}))


def unified(top: Path, *folders: tuple[str, str, str]) -> dict[str, tuple[cgroups.Place, Path]]:
    """A version 2 tree of (path, controllers, given to children); our own group is the last."""
    for path, controllers, given in folders:
        (top / path).mkdir(parents=True, exist_ok=True)
        (top / path / "cgroup.controllers").write_text(controllers)
        (top / path / "cgroup.subtree_control").write_text(given)
    return {"": (cgroups.Place(2, top / folders[-1][0]), top)}


def test_one_group_of_version_two_is_chosen_for_all_controllers(tmp_path: Path) -> None:
    located = unified(
        tmp_path,
        (".", "cpu memory pids", "cpu memory pids"),
        ("user", "cpu memory pids", "memory pids"),
        ("user/session", "", ""),
    )
    places, missing = cgroups.choose(located, "s1")
    assert places == dict.fromkeys(cgroups.CONTROLLERS, cgroups.Place(2, tmp_path)) and missing == {}
    assert not list(tmp_path.rglob("s1"))


def test_what_version_two_does_not_give_is_missing_with_a_reason(tmp_path: Path) -> None:
    located = unified(tmp_path, (".", "memory", "memory"), ("session", "", ""))
    places, missing = cgroups.choose(located, "s1")
    assert set(places) == {"memory", "freezer"} and set(missing) == {"cpu", "pids"} and all(missing.values())


def test_without_any_hierarchy_every_controller_is_missing() -> None:
    places, missing = cgroups.choose({}, "s1")
    assert places == {} and set(missing) == set(cgroups.CONTROLLERS)


def test_groups_that_cannot_be_made_are_missing(tmp_path: Path) -> None:
    located = {"memory": (cgroups.Place(1, tmp_path / "not-there"), tmp_path)}
    places, missing = cgroups.choose(located, "s1")
    assert places == {} and "cannot be made" in missing["memory"]


@pytest.mark.parametrize(
    ("says", "version"),
    [("bubblewrap 0.11.0", (0, 11, 0)), ("bubblewrap 0.8", (0, 8, 0)), ("", None), ("no number", None)],
)
def test_the_version_of_bwrap_is_read(tmp_path: Path, says: str, version: tuple[int, ...] | None) -> None:
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    assert probe.version_of(program) == version
    assert probe.version_of(tmp_path / "none") is None
