"""proctor agents: what there is, what is installed, and how to get the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.agents.bundles import InstalledBundle, architecture
from proctor.runner.installing import install as installing
from proctor.tasks.tree import read_tree


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def test_agents_are_listed_with_what_is_missing(proctor) -> None:
    said = proctor("agents")
    assert said.status == 0
    rows = {line.split()[0]: line for line in said.out.splitlines() if line}
    assert "from inside" in rows["codex"] and "responses" in rows["codex"] and "not installed" in rows["codex"]
    assert "from outside" in rows["toolloop"] and "not installed" not in rows["toolloop"]
    assert "agents install claude-code" in said.out


def test_the_list_for_programs_says_what_each_can_do(proctor) -> None:
    rows = {row["name"]: row for row in proctor("agents", "--json").json()}
    assert rows["command"] == {
        "name": "command",
        "needs_model": False,
        "takes_model": True,
        "inside": True,
        "apis": [],
        "answers_rows": False,
        "tried_with": None,
        "installed": [],
    }
    assert rows["mini-swe-agent"]["apis"] == ["chat"] and rows["mini-swe-agent"]["tried_with"]


@pytest.mark.parametrize(("words", "version"), [("codex", None), ("codex@1.2.3", "1.2.3"), ("codex@latest", "latest")])
def test_one_is_installed_by_its_name_and_version(
    proctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, version: str | None
) -> None:
    asked = []

    def bring(name: str, version: str | None) -> InstalledBundle:
        asked.append((name, version))
        return InstalledBundle(name, "1.2.3", "x86_64", "0" * 64, ("static",), tmp_path / "there")

    monkeypatch.setattr(installing, "install", bring)
    said = proctor("agents", "install", words)
    assert said.status == 0 and asked == [("codex", version)]
    assert "codex 1.2.3 is installed" in said.out
    told = proctor("agents", "install", words, "--json").json()
    assert (told["version"], told["sha256"], told["folder"]) == ("1.2.3", "0" * 64, str(tmp_path / "there"))


def test_what_is_here_and_whole_is_not_brought_again(proctor, data: Path) -> None:
    folder = data / "proctor/agents/codex" / f"1.2.3-{architecture()}"
    (folder / "program").mkdir(parents=True)
    digest = read_tree(folder / "program").digest
    bundle = InstalledBundle("codex", "1.2.3", architecture(), digest, ("static",), folder)
    (folder / "bundle.json").write_text(json.dumps(bundle.as_record()))
    said = proctor("agents", "install", "codex@1.2.3")
    assert said.status == 0 and said.err == ""
    assert said.out.startswith("codex 1.2.3 is installed already, and whole: ")
    assert proctor("agents", "install", "codex@1.2.3", "--json").json()["sha256"] == digest


def test_one_that_there_is_not_is_refused(proctor) -> None:
    said = proctor("agents", "install", "no-such-agent")
    assert said.status == 3
    assert "unknown_agent" in said.err and "mini-swe-agent" in said.err
