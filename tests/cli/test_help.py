"""Help is quick and complete: every command has its words, and nothing heavy is imported to print them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from proctor.cli.main import COMMANDS, cli

SRC = Path(__file__).resolve().parents[2] / "src"
HEAVY = {"pydantic", "cryptography", "rich", "orjson", "asyncio", "aiohttp", "docker", "numpy", "yaml", "proctor.study"}


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_explains_itself(proctor, name: str) -> None:
    said = proctor(name, "--help")
    assert said.status == 0 and said.out.startswith(f"Usage: proctor {name} ")
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.help
    for parameter in command.params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter.name


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], *([name, "--help"] for name in ("results", "show", "logs", "status", "new"))]
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    program = "import sys\nfrom proctor.cli.main import main\ntry:\n    main()\nfinally:\n    print(*sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        check=True,
        timeout=60,
        text=True,
    )
    assert HEAVY & set(told.stdout.splitlines()[-1].split()) == set()


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)])
def test_a_process_without_standard_streams_ends_as_it_would(closed: tuple[int, ...]) -> None:
    shut = " ".join(f"{number}>&-" for number in closed)
    for module in ("proctor", "proctor_verify"):
        done = subprocess.run(
            ["sh", "-c", f'exec "$0" -m {module} --help {shut}', sys.executable],
            env={"PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")},
            timeout=60,
        )
        assert done.returncode == 0


def test_a_command_looks_for_garbage_seldom_and_who_imports_us_is_left_alone() -> None:
    program = (
        "import gc\nimport proctor.cli.main as cli\nbefore = gc.get_threshold()\n"
        "try:\n    cli.main()\nfinally:\n    print(before[0], gc.get_threshold()[0])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, "--version"],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        check=True,
        timeout=60,
        text=True,
    )
    before, after = map(int, told.stdout.splitlines()[-1].split())
    assert before < 2_001 and after == 5_000
