"""Which means holds which limit: decided here, without touching anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proctor.sandbox.base import LimitInForce, Limits, Tier
from proctor.sandbox.rules import DEFAULT_PIDS


@dataclass(frozen=True)
class LimitPlan:
    """What is given to control groups, to each command as an rlimit, and to the watcher; None is nothing."""

    group_memory: int | None
    group_cpus: float | None
    group_pids: int | None
    rlimit_nproc: int | None
    rlimit_fsize: int | None
    watch_memory: int | None
    watch_storage: int | None
    watch_pids: int | None
    namespace_pids: int | None


def holdable(controllers: frozenset[str]) -> frozenset[str]:
    """Names of the limits that can be held in some way."""
    return frozenset({"memory", "storage", "pids"} | ({"cpus"} if "cpu" in controllers else set()))


def plan(wanted: Limits, tier: Tier, controllers: frozenset[str]) -> LimitPlan:
    """Choose the means for each limit."""
    pids = wanted.pids if wanted.pids is not None else DEFAULT_PIDS
    memory_by_group = "memory" in controllers
    return LimitPlan(
        group_memory=wanted.memory_bytes if memory_by_group else None,
        group_cpus=wanted.cpus if "cpu" in controllers else None,
        group_pids=pids if "pids" in controllers else None,
        rlimit_nproc=pids if tier is Tier.ORDINARY else None,
        rlimit_fsize=wanted.storage_bytes,
        watch_memory=None if memory_by_group else wanted.memory_bytes,
        watch_storage=wanted.storage_bytes,
        # Beside an rlimit too: the kernel exempts the host's root from that.
        watch_pids=None if "pids" in controllers else pids,
        # A bomb outruns a watcher that must wait for its turn on a busy machine.
        namespace_pids=pids if tier is Tier.PRIVILEGED and "pids" not in controllers else None,
    )


def read_back(
    wanted: Limits,
    chosen: LimitPlan,
    group: Mapping[str, float | int | None],
    missing: Mapping[str, str],
    *,
    files_in_memory: bool = False,
) -> tuple[LimitInForce, ...]:
    """One entry for each limit: what the kernel says of groups, what we hold ourselves, and why the rest is not held.

    `group` has the limits read back from control groups, `missing` says why a controller is not there.
    """
    watched = "a watcher that ends the command"
    counted = ", which files that are written count to" if files_in_memory else ""
    room = ", in memory" if files_in_memory else ""
    nproc = ", and a limit on processes of the user inside" if chosen.rlimit_nproc is not None else ""
    entries = []
    for name, asked, in_group, otherwise, how, controller in (
        ("cpus", wanted.cpus, group.get("cpus"), None, "", "cpu"),
        ("memory", wanted.memory_bytes, group.get("memory"), chosen.watch_memory, watched, "memory"),
        ("storage", wanted.storage_bytes, None, chosen.watch_storage, f"{watched}, and a limit on each file{room}", ""),
        ("pids", wanted.pids, group.get("pids"), chosen.watch_pids, f"{watched}{nproc}", "pids"),
    ):
        if in_group is not None:
            also = counted if name == "memory" else ""
            entries.append(LimitInForce(name, asked, in_group, f"control group ({controller}){also}", None))
        elif otherwise is not None:
            entries.append(LimitInForce(name, asked, otherwise, how, None))
        else:
            why = "not asked for" if asked is None else missing.get(controller, "no means for it")
            entries.append(LimitInForce(name, asked, None, None, why))
    return tuple(entries)
