"""What no record could hold is no option: said before there is a folder that speaks of a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from proctor.cli.main import cli
from proctor_verify.cli import main as second_program


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


def test_a_command_agent_without_its_program_is_told_of_the_option(proctor, tmp_path: Path) -> None:
    said = proctor("run", "--task", tmp_path, "--out", tmp_path / "run", "--agent", "command")
    assert said.status == 2 and "name it with --command" in said.err
    assert not (tmp_path / "run").exists()


def test_a_study_that_is_not_there_leaves_no_folder_behind(
    proctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROCTOR_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    said = proctor("run", "nostudy")
    assert said.status == 3 and "refused: study_not_found" in said.err and list(tmp_path.iterdir()) == []
    # where a folder is named, the record is in it
    assert proctor("run", "nostudy", "--out", "run").status == 3
    assert [path.name for path in (tmp_path / "run/manifests").iterdir()] == ["0001.json"]


def words_taken() -> list[tuple[tuple[str, ...], str | None]]:
    """Every command with each option of it that takes free words, and None for its arguments."""

    def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str | None]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                yield from walk(below, (*path, name))
        for param in command.params:
            if not isinstance(param.type, click.types.StringParamType | click.Path):
                continue
            if isinstance(param, click.Argument):
                yield path, None
            else:
                yield path, param.opts[0]

    # of several arguments the first is asked for first, and is as empty
    return list(dict.fromkeys(walk(cli, ())))


@pytest.mark.parametrize(("command", "option"), words_taken(), ids=lambda each: str(each))
def test_what_is_empty_names_nothing(
    proctor, command: tuple[str, ...], option: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = proctor(*command, *([option, ""] if option else [""]))
    assert (said.status, said.out) == (2, "")
    assert "it is empty" in said.err and (f"'{option}'" in said.err or option is None or option == "-o")
    assert not list(tmp_path.iterdir())


def test_that_every_path_is_among_them() -> None:
    taken = set(words_taken())
    for command, option in {("run", "--out"), ("tasks", "--out"), ("verify", "--anchor"), ("show", None)}:
        assert any(command in path and option == each for path, each in taken)


@pytest.mark.parametrize(
    "words",
    [("",), ("--", ""), ("x", ""), *((f"--{name}", "") for name in ("design", "key", "anchor", "since", "witness"))],
)
def test_so_it_is_for_the_second_program(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        second_program(words)
    assert ended.value.code == 2 and " is empty" in capsys.readouterr().err
