"""proctor doctor: what is missing comes with what would add it, and Docker is found wherever it listens."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from proctor.admission.docker import docker_facts
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Probe, seal_probe
from proctor.sandbox.base import Availability, Capabilities, Tier

PROBE = seal_probe(2.0)


@contextmanager
def engine(path: Path, answer: bytes = b"HTTP/1.0 200 OK\r\n\r\nOK") -> Iterator[list[bytes]]:
    """Something that answers once on a socket; yields what it was asked."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                asked.append(connection.recv(4096))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield asked
        thread.join(timeout=30)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PROCTOR_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("PROCTOR_RUNS", str(tmp_path / "runs"))
    return tmp_path


def test_every_look_that_misses_something_says_what_would_add_it(proctor, home: Path) -> None:
    said = proctor("doctor", "--json")
    looks = {look["name"]: look for look in said.json()}
    assert looks.keys() >= {"python", "proctor", "sandbox", "docker", "space", "key", "git"}
    assert said.status == (0 if looks["sandbox"]["ok"] else 1)
    assert all(look["remedy"] for look in looks.values() if not look["ok"] and look["name"] != "docker")
    if looks["sandbox"]["ok"]:
        assert looks.keys() >= {"limit cpus", "limit memory", "limit storage", "limit pids", "networks", "users"}
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


def machine(*refusals: Refusal, **facts: object) -> Machine:
    """An ordinary user's, without control groups."""
    networks = frozenset() if refusals else frozenset({Network.NONE})
    able = Capabilities(networks, False, True, True, False, frozenset({"pids", "storage"}))
    return Machine(Availability("namespace", not refusals, Tier.ORDINARY, able, refusals, (), facts))


def test_a_machine_without_sandbox_says_what_would_give_one(proctor, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Refusal(Reason.USER_NAMESPACES_FORBIDDEN, "not permitted", remedy="sysctl -w a=1")
    monkeypatch.setattr("proctor.admission.doctor.sandbox_kind", lambda name: machine(refusal))
    said = proctor("doctor")
    assert said.status == 1 and "missing  sandbox" in said.out and "-> sysctl -w a=1" in said.out
    assert "limit cpus" not in said.out


def test_a_probe_that_refuses_is_shown_with_its_remedy(proctor, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def probe(self, probe: Probe) -> Availability:
            raise Refusal(Reason.SANDBOX_START_FAILED, "the launcher ended at once")

    monkeypatch.setattr("proctor.admission.doctor.sandbox_kind", lambda name: Refusing())
    said = proctor("doctor")
    assert said.status == 1 and not said.err
    assert "missing  sandbox  sandbox_start_failed: the launcher ended at once" in said.out
    assert "-> Mend what is named here" in said.out and "proctor doctor" not in said.out


def test_a_control_group_that_is_missing_is_said_once(proctor, monkeypatch: pytest.MonkeyPatch) -> None:
    why = "the machine forbids it"
    found = machine(groups={}, groups_missing={"cpu": why}).found
    noted = Machine(replace(found, notes=(f"no cpu control group: {why}", "slow", "slow")))
    monkeypatch.setattr("proctor.admission.doctor.sandbox_kind", lambda name: noted)
    said = proctor("doctor")
    assert said.out.count(why) == 1 and said.out.count("slow") == 1


def test_a_limit_that_cannot_be_held_says_why(proctor, monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = machine(groups={}, groups_missing={"cpu": "control groups need root"}, overlay=False)
    monkeypatch.setattr("proctor.admission.doctor.sandbox_kind", lambda name: ordinary)
    said = proctor("doctor", "--json")
    looks = {look["name"]: look for look in said.json()}
    assert said.status == 0
    assert looks["limit cpus"]["seen"] == "cannot be held: control groups need root" and looks["limit cpus"]["remedy"]
    assert looks["limit pids"]["ok"] and looks["overlay"]["remedy"] and looks["users"]["remedy"]


def test_the_key_is_named_where_there_is_one(proctor) -> None:
    fingerprint = proctor("keys", "--json").json()["fingerprint"]
    assert fingerprint in proctor("doctor").out


def test_docker_where_the_environment_says(home: Path) -> None:
    with engine(home / "d.sock") as asked:
        found = docker_facts({"DOCKER_HOST": f"unix://{home}/d.sock"}, PROBE)
    assert (found.endpoint, found.named_by) == (f"unix://{home}/d.sock", "DOCKER_HOST")
    assert asked[0].startswith(b"GET /_ping ")


def test_docker_of_the_current_context(home: Path) -> None:
    meta = home / ".docker/contexts/meta/abc/meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Name": "lab", "Endpoints": {"docker": {"Host": f"unix://{home}/lab.sock"}}}))
    (home / ".docker/config.json").write_text('{"currentContext": "lab"}')
    with engine(home / "lab.sock"):
        found = docker_facts({}, PROBE)
    assert (found.endpoint, found.named_by) == (f"unix://{home}/lab.sock", "the context lab")


def test_docker_without_root(home: Path) -> None:
    with engine(home / "docker.sock"):
        found = docker_facts({"XDG_RUNTIME_DIR": str(home), "DOCKER_CONTEXT": "none"}, PROBE)
    assert found.endpoint is not None and found.endpoint != f"unix://{home}/.docker/run/docker.sock"


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.0 500 no\r\n\r\n", b"SSH-2.0-x\r\n", b""], ids=["an error", "another program", "nothing"]
)
def test_what_answers_otherwise_is_no_docker(home: Path, answer: bytes) -> None:
    with engine(home / "d.sock", answer):
        found = docker_facts({"DOCKER_HOST": f"unix://{home}/d.sock"}, PROBE)
    assert found.endpoint is None and "not as Docker does" in found.tried[f"unix://{home}/d.sock"]


@pytest.mark.parametrize("host", ["unix:///nowhere.sock", "ssh://host", "tcp://127.0.0.1:1", "tcp://[", "fd://"])
def test_an_endpoint_that_cannot_be_asked_is_told(host: str) -> None:
    found = docker_facts({"DOCKER_HOST": host}, PROBE)
    assert found.endpoint is None and found.tried[host]


@pytest.mark.parametrize("content", ["{", "[]", '{"currentContext": 3}', "[" * 5000])
def test_a_broken_configuration_says_nothing(home: Path, content: str) -> None:
    (home / ".docker").mkdir()
    (home / ".docker/config.json").write_text(content)
    found = docker_facts({}, PROBE)
    assert found.named_by == "the usual place" or "unix:///var/run/docker.sock" in found.tried
