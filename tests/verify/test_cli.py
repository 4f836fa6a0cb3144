"""The command: what it prints, its exit status, and that it is a program of its own."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from money_stories import money_story
from primitives import Signer
from stories import full_story

import proctor_verify
from proctor_verify import documents
from proctor_verify.checks import CHECKS
from proctor_verify.cli import main

PACKAGE = Path(proctor_verify.__file__).parent


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full_story().write(tmp_path_factory.mktemp("cli") / "run")


def test_a_sound_run(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(sound), "--key", Signer().vkey]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-1].startswith("VERIFIED: run ") and "fail" not in out[-1]
    assert sum(line.startswith(("  pass ", "  not applicable ")) for line in out) == len(CHECKS)
    shows, cannot = out.index("what this evidence shows"), out.index("what it cannot show")
    assert any(line.startswith("  - signed: all ") for line in out[shows:cannot])
    assert any(line.startswith("  - when: no anchor shows") for line in out[cannot:])
    assert max(map(len, out)) <= 80


def test_results_of_models_that_are_made_up_say_so_first_and_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    money_story().write(tmp_path)
    assert main([str(tmp_path), "--key", Signer().vkey]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("SYNTHETIC: sham") and out[-1].startswith("VERIFIED, NOT COMPLETE (10 of 12), SYNTHETIC: ")
    assert main([str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["synthetic"] == ["sham"]


def test_without_a_key_it_says_what_it_cannot_tell(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(sound)]) == 0
    out = capsys.readouterr().out
    assert "cannot tell who signed" in out and "  - who signed: any key could have" in out
    assert "  - signed: " not in out


def test_a_key_in_a_file(sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "operator.vkey").write_text(Signer().vkey + "\n")
    assert main([str(sound), "--key", str(tmp_path / "operator.vkey")]) == 0
    assert "VERIFIED" in capsys.readouterr().out


def test_what_fails_is_named_last(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(sound), "--key", Signer(5).fingerprint]) == 1
    out = capsys.readouterr().out.splitlines()
    assert (
        out[-1].startswith("NOT VERIFIED")
        and out[-3] == "does not hold: key.trust"
        and "proctor explain CHECK" in out[-2]
    )
    assert "what this evidence shows" not in out
    failing = [line for line in out if line.startswith("  FAIL")]
    assert len(failing) == 1 and "key.trust" in failing[0]


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().out.startswith("could not read: ")
    assert main([str(tmp_path), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["unreadable"]


def test_json_is_sorted_and_the_same_for_a_run_that_was_moved(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = Path(shutil.copytree(sound, tmp_path / "elsewhere"))
    for folder in (sound, moved):
        for stray in ("b", "a", "c"):
            (folder / f"stray-{stray}").touch()
    assert main([str(sound), "--json"]) == main([str(moved), "--json"]) == 1
    here = capsys.readouterr().out
    first, second = here[: len(here) // 2], here[len(here) // 2 :]
    assert first == second
    report = json.loads(first)
    assert report["shown"] == [] and report["caveats"]
    assert json.dumps(report, sort_keys=True, indent=2) == first.rstrip("\n")
    unlisted = next(check for check in report["checks"] if check["check"] == "files.unlisted")
    assert [finding["path"] for finding in unlisted["findings"]] == ["stray-a", "stray-b", "stray-c"]
    for stray in ("b", "a", "c"):
        (sound / f"stray-{stray}").unlink()


def test_the_table_of_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--checks"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split("`")[1] for row in rows[2:]] == [check.id for check in (*CHECKS, *documents.CHECKS)]
    assert all(row.count("|") == 3 for row in rows)


@pytest.mark.parametrize(
    "arguments", [[], ["RUN", "--checks"], ["RUN", "--what"], ["--checks", "--design", "FILE"], ["RUN", "RUN"]]
)
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    capsys.readouterr()


def test_what_stands_in_a_run_does_not_reach_the_terminal_raw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = full_story()
    story.find("run.paused").kind = "run.\x1b[2Jcleared\u202e"
    story.find("attempt.admitted").body["folder"] = "trials/\x1b]0;owned\x07-x/0"
    main([str(story.write(tmp_path))])
    out = capsys.readouterr().out
    assert "cleared" in out and "owned" in out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)


def test_as_a_module_of_its_own(sound: Path) -> None:
    """In a process that can import nothing of the first program, and to a terminal that knows only ASCII."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "proctor_verify", str(sound)], env=environment, capture_output=True, timeout=60
    )
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.splitlines()[-1].startswith(b"VERIFIED")


def test_a_reader_that_has_read_enough_is_no_fault(sound: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    receive, send = os.pipe()
    os.close(receive)
    with os.fdopen(send, "wb") as nobody:
        done = subprocess.run(
            [sys.executable, "-m", "proctor_verify", str(sound)],
            env=environment,
            stdout=nobody,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert done.returncode == 141 and done.stderr == b""


def test_it_imports_the_standard_library_and_cryptography_only() -> None:
    allowed = sys.stdlib_module_names | {"cryptography", "proctor_verify"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [str(node.module)]
            assert {name.partition(".")[0] for name in names} <= allowed, path
