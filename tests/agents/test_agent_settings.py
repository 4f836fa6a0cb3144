"""What agents refuse before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.agents.base import MAX_SETTINGS_BYTES, make_agent
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal


def refused(name: str, settings: dict[str, object], base: Path) -> Refusal:
    with pytest.raises(Refusal) as raised:
        make_agent(name, settings, base)
    return raised.value


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"command": ""},
        {"command": []},
        {"command": [""]},
        {"command": ["sh", 1]},
        {"command": "true", "env": {"A": 1}},
        {"command": "true", "files": 7},
        {"command": "true", "version": 7},
        {"command": "true", "comand": "x"},
    ],
    ids=str,
)
def test_settings_that_the_command_agent_does_not_take(settings: dict[str, object], tmp_path: Path) -> None:
    assert refused("command", settings, tmp_path).reason is Reason.AGENT_OPTIONS_INVALID


def test_settings_that_no_journal_entry_could_hold(tmp_path: Path) -> None:
    make_agent("command", {"command": "x" * (MAX_SETTINGS_BYTES - 100)}, tmp_path)
    refusal = refused("command", {"command": "x" * MAX_SETTINGS_BYTES}, tmp_path)
    assert (refusal.reason, refusal.required) == (Reason.AGENT_OPTIONS_INVALID, MAX_SETTINGS_BYTES)


@pytest.mark.parametrize("name", ["oracle", "nop"])
def test_agents_without_settings(name: str, tmp_path: Path) -> None:
    assert refused(name, {"command": "x"}, tmp_path).reason is Reason.AGENT_OPTIONS_INVALID
    assert make_agent(name, {}, tmp_path).name == name


def test_an_agent_that_is_not_installed_is_named_with_those_that_are(tmp_path: Path) -> None:
    refusal = refused("claud", {}, tmp_path)
    assert refusal.reason is Reason.UNKNOWN_AGENT
    assert {"command", "nop", "oracle"} <= set(refusal.required)


def test_an_agents_folder_that_is_not_there(tmp_path: Path) -> None:
    assert refused("command", {"command": "true", "files": "agent"}, tmp_path).reason is Reason.FILE_MISSING
