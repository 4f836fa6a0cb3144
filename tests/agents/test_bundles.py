"""Programs of agents on this machine: found by name and version, and known by the digest of all that they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bundle_parts import make_bundle
from proctor.agents.bundles import agents_folder, architecture, check_bundle, find_bundle, list_bundles, version_in
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal


def test_the_newest_is_found_and_any_by_its_version(tmp_path: Path) -> None:
    for version in ("2.9.0", "2.10.0", "2.10.0rc1"):
        make_bundle(tmp_path, "codex", version)
    assert [bundle.version for bundle in list_bundles("codex", tmp_path)] == ["2.9.0", "2.10.0rc1", "2.10.0"]
    assert find_bundle("codex", folder=tmp_path).version == "2.10.0"
    found = find_bundle("codex", "2.9.0", tmp_path)
    assert found.entry == ("sh", "/opt/proctor/codex/start")
    assert (found.as_bundle().source, found.as_bundle().target) == (found.folder / "program", "/opt/proctor/codex")
    assert set(found.as_record()) == {"name", "version", "arch", "sha256", "libc"}


@pytest.mark.parametrize(
    ("version", "remedy"), [(None, "proctor agents install codex`"), ("9.9.9", "proctor agents install codex@9.9.9`")]
)
def test_what_is_not_installed_is_refused_with_what_brings_it(tmp_path: Path, version: str | None, remedy: str) -> None:
    make_bundle(tmp_path, "claude-code", "1.0.0")
    with pytest.raises(Refusal) as caught:
        find_bundle("codex", version, tmp_path)
    assert caught.value.reason is Reason.BUNDLE_MISSING
    assert remedy in caught.value.remedy


def test_one_that_is_as_it_was_installed_passes(tmp_path: Path) -> None:
    check_bundle(make_bundle(tmp_path, "codex", "1.0.0"))


@pytest.mark.parametrize("change", ["content", "mode", "more", "less", "link"])
def test_whatever_changed_in_a_program_is_seen(tmp_path: Path, change: str) -> None:
    bundle = make_bundle(tmp_path, "codex", "1.0.0")
    start = bundle.folder / "program/start"
    if change == "content":
        start.write_text(start.read_text() + "\n")
    elif change == "mode":
        start.chmod(0o644)
    elif change == "more":
        (bundle.folder / "program/more").touch()
    elif change == "less":
        start.unlink()
    else:
        start.rename(bundle.folder / "program/other")
        start.symlink_to("other")
    with pytest.raises(Refusal) as caught:
        check_bundle(bundle)
    assert caught.value.reason is Reason.BUNDLE_CHANGED


def test_a_program_that_is_gone_is_one_that_changed(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path, "codex", "1.0.0")
    (bundle.folder / "program").rename(bundle.folder / "elsewhere")
    with pytest.raises(Refusal) as caught:
        check_bundle(bundle)
    assert caught.value.reason is Reason.BUNDLE_CHANGED


@pytest.mark.parametrize(
    "facts",
    [
        b"",
        b"[]",
        b"{}",
        b'{"name": "codex", "name": "codex"}',
        {"version": "../../etc"},
        {"version": 1},
        {"libc": "static"},
        {"libc": [1]},
        {"more": "keys"},
        {"name": "claude-code"},
        b" " * 70_000,
    ],
    ids=repr,
)
def test_a_folder_whose_facts_are_none_is_no_bundle(tmp_path: Path, facts: bytes | dict[str, Any]) -> None:
    bundle = make_bundle(tmp_path, "codex", "1.0.0")
    path = bundle.folder / "bundle.json"
    path.write_bytes(
        facts if isinstance(facts, bytes) else json.dumps({**json.loads(path.read_bytes()), **facts}).encode()
    )
    assert list_bundles("codex", tmp_path) == []


def test_programs_of_other_machines_and_unfinished_ones_are_passed_over(tmp_path: Path) -> None:
    made = make_bundle(tmp_path, "codex", "1.0.0")
    made.folder.rename(made.folder.with_name("1.0.0-other"))
    make_bundle(tmp_path, "codex", "2.0.0").folder.rename(tmp_path / f"codex/.new-2.0.0-{architecture()}")
    (tmp_path / f"codex/3.0.0-{architecture()}").mkdir()
    assert list_bundles("codex", tmp_path) == []


@pytest.mark.parametrize("said", ["", "relative/data"])
def test_programs_lie_in_the_home_unless_data_has_a_place(said: str) -> None:
    assert agents_folder({"XDG_DATA_HOME": "/data"}) == Path("/data/proctor/agents")
    assert agents_folder({"XDG_DATA_HOME": said}) == Path.home() / ".local/share/proctor/agents"


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("codex-cli 0.171.0\n", "0.171.0"),
        ("2.1.332 (Claude Code)\n", "2.1.332"),
        ("2.4.6", "2.4.6"),
        ("v1.2.3-rc.1+build.5", None),
        ("program 1.2.3-rc.1+build.5.", "1.2.3-rc.1+build.5"),
        ("program v2", None),
        ("", None),
        ("٣.٤.٥", None),
    ],
)
def test_the_version_in_what_a_program_says(said: str, version: str | None) -> None:
    assert version_in(said) == version
