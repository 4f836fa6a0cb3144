"""Which means holds which limit, and control groups of both versions as their files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import LimitInForce, Limits, Tier
from proctor.sandbox.namespace import cgroups, limits

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
    limits.refuse_unenforced(tuple(entries.values()), frozenset({"memory", "storage", "pids"}))
    with pytest.raises(Refusal) as refused:
        limits.refuse_unenforced(tuple(entries.values()), frozenset({"cpus"}))
    assert refused.value.reason is Reason.LIMIT_UNENFORCEABLE


def test_root_is_not_held_by_rlimits_so_pids_need_a_group() -> None:
    chosen = limits.plan(ALL, Tier.PRIVILEGED, frozenset({"memory"}))
    assert chosen.rlimit_nproc is None and chosen.watch_memory is None
    entries = limits.read_back(ALL, chosen, {"memory": 1 << 30}, {"pids": "not mounted", "cpu": "not mounted"})
    by_name = {entry.name: entry for entry in entries}
    assert by_name["pids"].enforced is None and by_name["pids"].why_not == "not mounted"
    assert by_name["memory"].how == "control group (memory)"


def test_what_the_kernel_says_counts_and_not_what_was_written() -> None:
    chosen = limits.plan(ALL, Tier.PRIVILEGED, frozenset(cgroups.CONTROLLERS))
    entries = limits.read_back(ALL, chosen, {"memory": 1 << 40, "cpus": 2.0, "pids": 100}, {})
    with pytest.raises(Refusal):
        limits.refuse_unenforced(entries, frozenset({"memory"}))
    limits.refuse_unenforced(entries, frozenset({"cpus", "pids", "storage"}))


def test_processes_are_always_limited_and_a_limit_nobody_asked_for_refuses_nothing() -> None:
    chosen = limits.plan(Limits(), Tier.ORDINARY, frozenset())
    entries = limits.read_back(Limits(), chosen, {}, NOTHING)
    by_name = {entry.name: entry for entry in entries}
    assert (by_name["pids"].wanted, by_name["pids"].enforced) == (None, limits.DEFAULT_PIDS)
    assert by_name["memory"].why_not == "not asked for"
    limits.refuse_unenforced(entries, frozenset({"cpus", "memory", "storage", "pids"}))
