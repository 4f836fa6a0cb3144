"""What no record could hold is no option: said before there is a folder that speaks of a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "words",
    [
        ("--limit", 10**20),
        ("--limit", 0),
        ("--stage", "\udcff"),
        ("--model", "\udcff"),
        ("--arm", "\udcff"),
        ("--waive", "\udcff"),
    ],
    ids=["limit-large", "limit-none", "stage", "model", "arm", "waive"],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_what_cannot_be_recorded_is_said_at_once(
    proctor, command: str, words: tuple[str, object], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    said = proctor(command, tmp_path / "study.toml", "--out", out, *words)
    assert (said.status, said.out) == (2, "") and f"Invalid value for '{words[0]}'" in said.err
    assert not out.exists()


@pytest.mark.parametrize("option", ["--agent", "--command", "--substitute"])
def test_so_it_is_for_one_task(proctor, option: str, tmp_path: Path) -> None:
    said = proctor("run", "--task", tmp_path, "--out", tmp_path / "run", option, "\udcff")
    assert said.status == 2 and f"Invalid value for '{option}'" in said.err
    assert not (tmp_path / "run").exists()
