"""task.toml: every key by its type, older keys migrated, unknown keys listed, bad values named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.reading import read_task
from proctor.tasks.toml_reader import read_toml

WHOLE = """
schema_version = "1.4"
source = "harbor/tests"
artifacts = ["/app/out.txt", {source = "/app/logs", destination = "logs", exclude = ["*.tmp"]}]
[task]
name = "org/whole"
version = "2"
description = "All of it."
authors = [{name = "A", email = "a@example.org"}, "B"]
keywords = ["k"]
[metadata]
difficulty = "easy"
made = 2026-11-05
limit = inf
[agent]
timeout_sec = 30
user = "agent"
network_mode = "allowlist"
allowed_hosts = ["api.example.org", "*.example.com", "10.0.0.0/8", "2001:db8::1"]
[verifier]
timeout_sec = 5.5
user = 1000
environment_mode = "separate"
env = {JUDGE = "${JUDGE:-none}"}
collect = [{command = "make report", timeout_sec = 3}]
[verifier.environment]
docker_image = "debian:12"
cpus = 0.5
[environment]
build_timeout_sec = 60
os = "linux"
cpus = 1.5
memory_mb = 512
storage_mb = 1024
gpus = 0
workdir = "/w"
skills_dir = "/skills"
env = {A = "1"}
network_mode = "no-network"
mcp_servers = [{name = "m", transport = "stdio", command = "srv", args = ["-x"]}]
healthcheck = {command = "true", interval_sec = 1, retries = 2}
[solution]
env = {MODE = "oracle"}
"""


def test_every_key_is_read(folder: Callable[..., Path]) -> None:
    task = read_task(folder({"task.toml": WHOLE}))
    assert task.name == "org/whole"
    assert (task.agent.timeout_sec, task.agent.user, task.agent.mode) == (30, "agent", "allowlist")
    assert task.agent.allowed_hosts == ["api.example.org", "*.example.com", "10.0.0.0/8", "2001:db8::1"]
    assert (task.verifier.timeout_sec, task.verifier.user) == (5.5, 1000)
    assert task.verifier.collect[0].command == "make report"
    assert task.environment.table.memory_bytes == 512 * 2**20
    assert task.environment.table.storage_bytes == 2**30
    assert task.environment.table.cpus == 1.5
    assert task.environment.table.healthcheck is not None
    assert [(item.source, item.destination, item.exclude, item.service) for item in task.artifacts] == [
        ("/app/out.txt", None, [], "main"),
        ("/app/logs", "logs", ["*.tmp"], "main"),
    ]
    assert task.metadata == {"difficulty": "easy", "made": "2026-11-05", "limit": "inf"}
    assert task.verifier_environment is not None
    assert (task.verifier_environment.image, task.verifier_environment.table.cpus) == ("debian:12", 0.5)
    assert task.verifier_environment.table.memory_mb == 512
    assert (task.unknown_keys, task.migrated) == ((), ())


def test_defaults(folder: Callable[..., Path]) -> None:
    task = read_task(folder(name="the-folder"))
    assert task.name == "the-folder"
    assert (task.agent.timeout_sec, task.agent.mode, task.verifier.timeout_sec) == (None, None, 600)
    assert (task.environment.table.build_timeout_sec, task.environment.table.cpus) == (600, None)
    assert task.verifier_environment is None


@pytest.mark.parametrize(
    ("old", "megabytes"),
    [("2G", 2048), ("4 GiB", 4096), ("512M", 512), ("1536 MB", 1536), ("1.5g", 1536), ("1T", 2**20), ("2048k", 2)],
)
def test_older_sizes_are_migrated(old: str, megabytes: int) -> None:
    read = read_toml(f'version = "1.0"\n[environment]\nmemory = "{old}"\nstorage = "{old}"\n'.encode(), "t")
    assert (read.toml.environment.memory_mb, read.toml.environment.storage_mb) == (megabytes, megabytes)
    assert read.migrated == (
        "version -> schema_version",
        f"environment.memory -> memory_mb = {megabytes}",
        f"environment.storage -> storage_mb = {megabytes}",
    )


@pytest.mark.parametrize(
    ("lines", "mode"),
    [
        ("allow_internet = true", "public"),
        ("allow_internet = false", "no-network"),
        ('allow_internet = true\nnetwork_mode = "no-network"', "no-network"),
        ('allow_internet = true\nallowed_hosts = ["a.example"]', "allowlist"),
    ],
)
def test_allow_internet_is_migrated(lines: str, mode: str) -> None:
    assert read_toml(f"[environment]\n{lines}\n".encode(), "t").toml.environment.mode == mode


def test_unknown_keys_are_listed_with_the_closest_known_one() -> None:
    text = """
    artefacts = []
    [agent]
    timeout_secs = 3
    [environment]
    zebra = {a = 1}
    mcp_servers = [{name = "x", url = "http://u", comand = "c"}]
    [metadata]
    anything = 1
    """
    unknown = {key.name: key.closest for key in read_toml(text.encode(), "t").unknown_keys}
    assert unknown == {
        "artefacts": "artifacts",
        "agent.timeout_secs": "agent.timeout_sec",
        "environment.zebra": None,
        "environment.mcp_servers.0.comand": "environment.mcp_servers.0.command",
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[agent]\ntimeout_sec = '30'", "agent.timeout_sec"),
        ("[agent]\ntimeout_sec = 0", "agent.timeout_sec"),
        ("[agent]\ntimeout_sec = inf", "agent.timeout_sec"),
        ("[agent]\ntimeout_sec = true", "agent.timeout_sec"),
        ("[agent]\nuser = ''", "agent.user"),
        ("[agent]\nuser = -1", "agent.user"),
        ("[agent]\nnetwork_mode = 'open'", "agent.network_mode"),
        ("[agent]\nnetwork_mode = 'public'\nallowed_hosts = ['a']", "allowlist"),
        ("[environment]\nallowed_hosts = ['https://a.example/']", "environment.allowed_hosts.0"),
        ("[environment]\nallowed_hosts = ['a.example:443']", "environment.allowed_hosts.0"),
        ("[environment]\ncpus = nan", "environment.cpus"),
        ("[environment]\nmemory_mb = 1.5", "environment.memory_mb"),
        ("[environment]\nmemory_mb = -1", "environment.memory_mb"),
        ("[environment]\nmemory = 'much'", "environment.memory"),
        ("[environment]\nmemory = 2", "environment.memory"),
        ("[environment]\nmemory = '1K'", "environment.memory"),
        ("[environment]\nmemory = '1G'\nmemory_mb = 2", "environment.memory"),
        ("[environment]\nallow_internet = 'no'", "environment.allow_internet"),
        ("[environment]\nallow_internet = false\nnetwork_mode = 'public'", "environment.allow_internet"),
        ("[environment]\nworkdir = 'app'", "environment.workdir"),
        ("[environment]\nworkdir = '/a/../b'", "environment.workdir"),
        ("[environment]\nenv = {A = 1}", "environment.env.A"),
        ("[environment]\nenv = {'A=B' = '1'}", "environment.env"),
        ("[environment]\nmcp_servers = [{name = 'x', transport = 'sse'}]", "environment.mcp_servers.0"),
        ("[verifier]\nenvironment_mode = 'alone'", "verifier.environment_mode"),
        ("[verifier]\nenvironment_mode = 'shared'\n[verifier.environment]\ncpus = 1", "verifier"),
        ("artifacts = '/a'", "artifacts"),
        ("artifacts = [1]", "artifacts.0"),
        ("artifacts = ['/a/../../b']", "artifacts.0"),
        ("artifacts = ['']", "artifacts.0"),
        ("version = '1.0'\nschema_version = '1.1'", "version"),
        ("version = true", "version"),
        ("agent = 3", "agent"),
        ("[task]\nname = ''", "task.name"),
        ('[task]\nname = "a\\nb"', "task.name"),
        ("a = [", "TOML"),
        ("a = 1\na = 2", "TOML"),
        ("a = " + "1" * 5000, "TOML"),
        ("a = " + "[" * 3000 + "]" * 3000, "TOML"),
        (".".join(["a"] * 50_000) + " = 1", "64 parts"),
        ("[" + ".".join(['"a"'] * 50_000) + "]", "64 parts"),
    ],
)
def test_bad_values_are_named(text: str, named: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_toml(text.encode(), "t/task.toml")
    assert refused.value.reason is Reason.TASK_UNREADABLE
    assert named in refused.value.message
    assert refused.value.path == "t/task.toml"


def test_bytes_that_are_not_utf8_are_named() -> None:
    with pytest.raises(Refusal, match="UTF-8 at byte 5"):
        read_toml(b"a = '\xff'", "t")


@given(st.binary(max_size=200) | st.text(alphabet="[]{}=\"'.,\n abc1#", max_size=80).map(str.encode))
def test_any_bytes_read_or_refuse(data: bytes) -> None:
    try:
        read_toml(data, "t")
    except Refusal as refusal:
        assert refusal.reason is Reason.TASK_UNREADABLE


@pytest.mark.parametrize(
    ("text", "instruction"),
    [
        ("<!-- harbor-canary GUID 1 -->\n# CANARY again\n\n \nDo it.\n\nNow.", "Do it.\n\nNow."),
        ("\n\nDo it.", "\n\nDo it."),
        ("Do it.\n# canary\n", "Do it.\n# canary\n"),
        ("# A heading\nDo it.", "# A heading\nDo it."),
        ("<!-- canary -->\r\n\r\nDo it.\r\n", "Do it.\r\n"),
    ],
)
def test_leading_canary_lines_are_kept_from_the_agent(folder: Callable[..., Path], text: str, instruction: str) -> None:
    task = read_task(folder({"instruction.md": text}))
    assert task.instruction == instruction
    assert any("canary" in note for note in task.notes) is (instruction != text)
