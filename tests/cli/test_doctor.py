"""proctor doctor: what each kind of sandbox can do, and what is missing comes with what would add it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Probe
from proctor.sandbox.base import Availability, Capabilities, Tier


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PROCTOR_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("PROCTOR_RUNS", str(tmp_path / "runs"))
    return tmp_path


def looks_of(said: Any) -> dict[str, dict[str, Any]]:
    return {look["name"]: look for look in said.json()}


def test_every_look_that_misses_something_says_what_would_add_it(proctor, home: Path) -> None:
    said = proctor("doctor", "--json")
    looks = looks_of(said)
    assert looks.keys() >= {"python", "proctor", "sandbox", "namespace", "docker", "space", "key", "git", "npm"}
    assert looks.keys() >= {"agent codex", "agent claude-code", "agent mini-swe-agent"}
    assert said.status == (0 if looks["sandbox"]["ok"] else 1)
    assert all(look["remedy"] for look in looks.values() if not look["ok"] and look["name"] != "as an ordinary user")
    for kind in ("namespace", "docker"):
        if looks[kind]["ok"]:
            assert looks.keys() >= {f"{kind} limits", f"{kind} networks", f"{kind} users", f"{kind} images"}
    assert looks["key"]["ok"] is None and "`proctor keys`" in looks["key"]["remedy"]
    assert not (home / "config").exists(), "doctor only looks"
    text = proctor("doctor")
    assert text.status == said.status and all(name in text.out for name in looks)


@dataclass(frozen=True)
class Machine:
    """A sandbox kind on a machine that gives this."""

    found: Availability

    def probe(self, probe: Probe) -> Availability:
        return self.found


Machines = Callable[..., None]


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Machines:
    """Takes what each kind is on a machine: one that is not said refuses."""

    def put(**kinds: Any) -> None:
        def kind(name: str) -> Any:
            return kinds.get(name) or nothing(name, Refusal(Reason.DOCKER_UNAVAILABLE, "nobody answers"))

        monkeypatch.setattr("proctor.admission.doctor_worlds.sandbox_kind", kind)

    return put


def nothing(kind: str, refusal: Refusal) -> Machine:
    able = Capabilities(frozenset(), False, False, False, False, frozenset())
    return Machine(Availability(kind, False, Tier.ORDINARY, able, (refusal,)))


def ordinary(**facts: object) -> Machine:
    """A namespace sandbox of an ordinary user, without control groups."""
    able = Capabilities(frozenset({Network.NONE}), False, True, True, False, frozenset({"pids", "storage"}))
    return Machine(Availability("namespace", True, Tier.ORDINARY, able, (), (), facts))


def engine(networks: frozenset[Network], limits: frozenset[str], lacks: Mapping[str, str] | None = None) -> Machine:
    lacks = lacks or {}
    able = Capabilities(networks, True, True, True, True, limits, "gateway" not in lacks)
    notes = tuple(f"no {name}: {why}" for name, why in lacks.items())
    facts = {
        "endpoint": "unix:///d.sock",
        "named_by": "DOCKER_HOST",
        "engine_version": "27.1",
        "api": "1.46",
        "storage_driver": "overlay2",
        "cgroup_version": "2",
        "platform": "linux/arm64",
        "lacks": lacks,
    }
    return Machine(Availability("docker", True, Tier.PRIVILEGED, able, (), notes, facts))


def test_a_machine_without_sandbox_says_what_would_give_one(proctor, machines: Machines) -> None:
    refusal = Refusal(Reason.USER_NAMESPACES_FORBIDDEN, "not permitted", remedy="sysctl -w a=1")
    machines(namespace=nothing("namespace", refusal))
    said = proctor("doctor")
    assert said.status == 1 and "missing  sandbox" in said.out
    assert "-> sysctl -w a=1 Or: Install Docker" in said.out
    assert "namespace limits" not in said.out


def test_docker_alone_is_a_sandbox(proctor, machines: Machines) -> None:
    refusal = Refusal(Reason.USER_NAMESPACES_FORBIDDEN, "not permitted", remedy="sysctl -w a=1")
    able = frozenset({Network.NONE, Network.PUBLIC, Network.GATEWAY_ONLY})
    machines(
        namespace=nothing("namespace", refusal),
        docker=engine(networks=able, limits=frozenset({"cpus", "memory", "pids", "storage"})),
    )
    said = proctor("doctor", "--json")
    looks = looks_of(said)
    assert said.status == 0 and looks["sandbox"]["seen"] == "docker (privileged tier)"
    assert looks["namespace"]["ok"] is None and looks["namespace"]["remedy"] == "sysctl -w a=1"
    assert "engine 27.1, API 1.46" in looks["docker"]["seen"] and "DOCKER_HOST" in looks["docker"]["seen"]
    assert looks["docker networks"]["ok"] and looks["docker limits"]["ok"]


def test_what_an_engine_cannot_do_is_said_once_with_its_reason(proctor, machines: Machines) -> None:
    lacks = {"gateway": "we are not root, so networks of containers cannot be entered", "storage": "it has no quotas"}
    able = frozenset(Network) - {Network.ALLOWLIST}
    machines(docker=engine(able, frozenset({"cpus", "memory", "pids"}), lacks))
    said = proctor("doctor", "--json")
    looks = looks_of(said)
    assert "no quotas" in looks["docker storage"]["seen"] and "pquota" in looks["docker storage"]["remedy"]
    assert (
        "no gateway in them: we are not root" in looks["docker networks"]["seen"] and looks["docker networks"]["remedy"]
    )
    text = proctor("doctor").out
    assert text.count("no quotas") == 1 and text.count("we are not root") == 1


def test_an_engine_that_this_user_may_not_use_says_how_to_be_let_in(
    proctor, machines: Machines, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(home / "d.sock"))
        tried = {f"unix://{home}/d.sock": "Permission denied"}
        refusal = Refusal(Reason.DOCKER_UNAVAILABLE, "no Docker engine answers", observed=tried)
        machines(namespace=ordinary(files="overlay"), docker=nothing("docker", refusal))
        # root may always
        monkeypatch.setattr("os.access", lambda path, mode: False)
        looks = looks_of(proctor("doctor", "--json"))
    assert "Permission denied" in looks["docker"]["seen"] and "usermod -aG docker" in looks["docker"]["remedy"]


def test_a_probe_that_refuses_is_shown_with_its_remedy(proctor, machines: Machines) -> None:
    class Refusing:
        def probe(self, probe: Probe) -> Availability:
            raise Refusal(Reason.SANDBOX_START_FAILED, "the launcher ended at once")

    machines(namespace=Refusing())
    said = proctor("doctor")
    assert said.status == 1 and not said.err
    assert "namespace  " in said.out and "sandbox_start_failed: the launcher ended at once" in said.out
    assert "-> Mend what is named here" in said.out and "proctor doctor" not in said.out.replace("sudo proctor", "")


def test_a_control_group_that_is_missing_is_said_once(proctor, machines: Machines) -> None:
    why = "the machine forbids it"
    found = ordinary(groups={}, groups_missing={"cpu": why}, files="overlay").found
    machines(namespace=Machine(replace(found, notes=(f"no cpu control group: {why}", "slow", "slow"))))
    said = proctor("doctor")
    assert said.out.count(why) == 1 and said.out.count("slow") == 1


def test_a_limit_that_cannot_be_held_says_why(proctor, machines: Machines) -> None:
    machines(namespace=ordinary(groups={}, groups_missing={"cpu": "control groups need root"}, files="copied"))
    said = proctor("doctor", "--json")
    looks = looks_of(said)
    assert said.status == 0
    assert looks["namespace cpus"]["seen"] == "no limit can be held: control groups need root"
    assert looks["namespace cpus"]["remedy"]
    assert "pids" in looks["namespace limits"]["seen"] and "cpus" not in looks["namespace limits"]["seen"]
    assert looks["namespace files"]["remedy"] and looks["namespace users"]["remedy"]


@pytest.mark.parametrize(("uid", "other"), [(0, "as an ordinary user"), (1000, "as root")])
def test_the_other_tier_is_told(
    proctor, machines: Machines, monkeypatch: pytest.MonkeyPatch, uid: int, other: str
) -> None:
    machines(namespace=ordinary(files="overlay"))
    monkeypatch.setattr("os.geteuid", lambda: uid)
    looks = looks_of(proctor("doctor", "--json"))
    assert looks[other]["seen"] and ("as root" in looks) == (uid != 0)
    assert uid == 0 or "sudo proctor doctor" in looks[other]["remedy"]


@pytest.mark.parametrize(("may", "ok"), [(True, True), (False, None), (None, None)])
def test_what_an_ordinary_user_may_is_tried_and_told(
    proctor, machines: Machines, monkeypatch: pytest.MonkeyPatch, may: bool | None, ok: bool | None
) -> None:
    machines(namespace=ordinary(files="overlay"))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("proctor.admission.doctor_worlds._may_make_namespaces", lambda: may)
    look = looks_of(proctor("doctor", "--json"))["as an ordinary user"]
    assert look["ok"] is ok and (look["remedy"] is not None) == (may is False)
    assert ("one user inside" in look["seen"]) == bool(may)


def test_a_program_that_is_not_installed_says_the_command(
    proctor, machines: Machines, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("PATH", str(home))
    machines(namespace=ordinary(files="overlay"))
    looks = looks_of(proctor("doctor", "--json"))
    assert looks["agent codex"]["ok"] is None and "`proctor agents install codex`" in looks["agent codex"]["remedy"]
    assert looks["npm"]["ok"] is None and "codex" in looks["npm"]["seen"] and looks["npm"]["remedy"]


def test_the_key_is_named_where_there_is_one(proctor) -> None:
    fingerprint = proctor("keys", "--json").json()["fingerprint"]
    assert fingerprint in proctor("doctor").out
