"""proctor explain: every reason in its family, and completion of what the code knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from proctor.agents.base import installed_agents
from proctor.cli.completing import agents, waivable
from proctor.cli.run import run
from proctor.core.families import Family
from proctor.core.reasons import Reason

SRC = Path(__file__).resolve().parents[2] / "src"


def test_reasons_stand_in_their_families_sorted(proctor) -> None:
    blocks = proctor("explain").out.split("\n\n")
    assert len(blocks) == len(Family)
    for family, block in zip(Family, blocks, strict=True):
        heading, *lines = block.splitlines()
        assert heading.lower() == family.value.lower()
        listed = [line.split()[0] for line in lines]
        assert listed == sorted(reason.id for reason in Reason if reason.family is family)


@pytest.mark.parametrize(
    "reason", [Reason.AGENT_ERROR, Reason.AGENT_KILLED, Reason.VERIFIER_KILLED], ids=lambda r: r.id
)
def test_what_is_to_be_read_is_named_by_its_command(proctor, reason: Reason) -> None:
    assert "proctor logs RUN TRIAL" in proctor("explain", reason.id).out


def test_a_check_of_verify_is_explained(proctor) -> None:
    said = proctor("explain", "anchors.remote")
    assert said.status == 0 and said.out.startswith("anchors.remote\n  about      anchors\n  holds when what stands at")
    told = proctor("explain", "receipt.signed", "--json").json()
    assert (told["check"], told["about"]) == ("receipt.signed", "receipts, proofs and attestations")
    wrong = proctor("explain", "anchors.remotes")
    assert wrong.status == 2 and "Closest: anchors.remote" in wrong.err


def completed(cwd: Path, *words: str) -> list[str]:
    """What bash would be offered for the last word, as `type,value`."""
    typed = ["proctor", *words]
    asked = {"_PROCTOR_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(words))}
    env = {**os.environ, **asked, "PYTHONPATH": str(SRC)}
    command = [sys.executable, "-m", "proctor"]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=60).stdout.splitlines()


def test_reasons_are_completed(tmp_path: Path) -> None:
    assert completed(tmp_path, "explain", "agent_k") == ["plain,agent_killed"]


def test_runs_are_folders(tmp_path: Path) -> None:
    assert completed(tmp_path, "show", "ru") == ["dir,ru"]


def test_agents_and_waivable_reasons_are_known_to_completion() -> None:
    context = click.Context(run)
    found = [item.value for item in agents(context, run.params[0], "")]
    assert found == list(installed_agents()) and {"oracle", "nop", "command"} <= set(found)
    waived = {item.value for item in waivable(context, run.params[0], "git")}
    assert waived == {reason.id for reason in Reason if reason.waivable and reason.id.startswith("git")}
