"""What the engine is asked to make, and what of its answer is not that."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from proctor.core.network import Network
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Bundle, ImageFacts, Limits, SandboxSpec
from proctor.sandbox.docker.config import CAPABILITIES, Wanted, limits_in_force
from proctor.sandbox.rules import refuse_unenforced

IMAGE = "sha256:" + "a" * 64


def wanted(**changes: Any) -> Wanted:
    user = changes.pop("user", None)
    volumes = changes.pop("volumes", ())
    spec = SandboxSpec(name="w", scratch=Path("/tmp"), image=IMAGE, **changes)
    return Wanted(IMAGE, spec, ImageFacts(IMAGE, "/", user, {}, ("/data",), "linux/amd64"), {"a": "b"}, volumes)


def seen(asked: Wanted) -> dict[str, Any]:
    """A container as an engine describes it that made just what was asked for."""
    body = copy.deepcopy(asked.request())
    host = {
        "Privileged": False,
        "PidMode": "",
        "UsernsMode": "",
        "Devices": [],
        "Binds": None,
        **body.pop("HostConfig"),
    }
    host["CapAdd"] = [f"CAP_{name}" for name in host["CapAdd"]]
    mounts = [{"Type": "volume", "Destination": path, "RW": True} for path in asked.all_volumes]
    mounts += [{"Type": "bind", "Destination": each.target, "RW": False} for each in asked.spec.bundles]
    return {"Image": IMAGE, "Config": body, "HostConfig": host, "Mounts": mounts}


@pytest.mark.parametrize("network", [Network.NONE, Network.GATEWAY_ONLY, Network.PUBLIC])
def test_what_was_asked_for_differs_in_nothing(network: Network) -> None:
    bundle = Bundle(Path("/usr"), "/opt/agent")
    asked = wanted(network=network, bundles=(bundle,), limits=Limits(1.0, 1 << 30, None, 5), volumes=("/saved",))
    assert asked.differences(seen(asked)) == []
    assert asked.request()["HostConfig"]["NetworkMode"] == ("bridge" if network is Network.PUBLIC else "none")


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        ("Image", "sha256:" + "b" * 64, "image"),
        ("Config.User", "1000", "user"),
        ("HostConfig.NetworkMode", "host", "network"),
        ("HostConfig.Privileged", True, "privileged"),
        ("HostConfig.CapAdd", [*CAPABILITIES, "SYS_ADMIN"], "capabilities added"),
        ("HostConfig.CapAdd", None, "capabilities added"),
        ("HostConfig.CapDrop", None, "capabilities dropped"),
        ("HostConfig.PidMode", "host", "process namespace"),
        ("HostConfig.UsernsMode", "host", "users namespace"),
        ("HostConfig.Devices", [{"PathOnHost": "/dev/kvm"}], "devices"),
        ("HostConfig.Binds", ["/:/host"], "host folders"),
        ("Mounts", [], "mounts"),
        ("Mounts", [{"Type": "bind", "Destination": "/data", "RW": True}], "mounts"),
    ],
)
def test_what_differs_is_named(path: str, value: Any, word: str) -> None:
    asked = wanted()
    made = seen(asked)
    *above, last = path.split(".")
    (made[above[0]] if above else made)[last] = value
    assert [difference.partition(":")[0] for difference in asked.differences(made)] == [word]


def test_a_quieter_security_option_is_a_difference() -> None:
    asked = wanted()
    made = seen(asked)
    made["HostConfig"]["SecurityOpt"] = ["seccomp=unconfined"]
    assert any(difference.startswith("security") for difference in asked.differences(made))


def test_the_image_user_never_keeps_the_world() -> None:
    assert wanted(user="app").request()["User"] == "0" and wanted().request()["User"] == ""


def test_memory_has_no_swap_beside_it_and_processes_a_limit_unasked() -> None:
    host = wanted(limits=Limits(memory_bytes=1 << 30)).request()["HostConfig"]
    assert host["Memory"] == host["MemorySwap"] == 1 << 30 and host["PidsLimit"] == 4096
    assert "Memory" not in wanted().request()["HostConfig"]


def test_limits_are_what_the_engine_says_it_holds() -> None:
    asked = Limits(cpus=1.5, memory_bytes=1 << 30, storage_bytes=1 << 20, pids=7)
    held = {"NanoCpus": 1_500_000_000, "Memory": 1 << 30, "PidsLimit": 7}
    found = {entry.name: entry for entry in limits_in_force(asked, held, "no quotas here")}
    assert [found[name].enforced for name in ("cpus", "memory", "storage", "pids")] == [1.5, 1 << 30, None, 7]
    assert found["storage"].why_not == "no quotas here"
    entries = limits_in_force(asked, {"NanoCpus": 0, "Memory": 2 << 30, "PidsLimit": None}, None)
    for name in ("cpus", "memory", "storage", "pids"):
        with pytest.raises(Refusal):
            refuse_unenforced(entries, frozenset({name}))
    refuse_unenforced(entries, frozenset())
    nothing = limits_in_force(Limits(), {"PidsLimit": 4096}, None)
    assert {entry.why_not for entry in nothing if entry.enforced is None} == {"not asked for"}
    refuse_unenforced(nothing, frozenset({"memory", "pids"}))


def test_the_hosts_name_servers_are_named_to_public_worlds_only() -> None:
    assert wanted().request()["HostConfig"]["Dns"] == ["127.0.0.1"]
    assert "Dns" not in wanted(network=Network.PUBLIC).request()["HostConfig"]
