"""Installing an agent's program: from what npm brings, whole or not at all, and nothing of it runs on the way."""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from proctor.agents.base import installed_agents
from proctor.agents.bundles import architecture, check_bundle, find_bundle, list_bundles
from proctor.agents.sources import installable_agents
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.runner.installing import npm
from proctor.runner.installing.install import install, standing
from proctor.runner.installing.tools import run_tool

PROGRAM = b'#!/bin/sh\necho "codex-cli ${0##*/} 1.2.3"\n'
BINARY = f"package/vendor/{architecture()}-unknown-linux-musl/bin/codex"


def archive(files: Mapping[str, bytes | tarfile.TarInfo], mode: int = 0o755) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), mode
            tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


Npm = Callable[..., Path]


@pytest.fixture
def fake_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Npm:
    """An npm that answers `view` with a text, and `pack` with an archive; it writes down what it was asked."""

    def make(packed: bytes, version: str = '"1.2.3"', status: int = 0) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "packed.tgz").write_bytes(packed)
        (folder / "version").write_text(version)
        (folder / "npm").write_text(
            f"""#!/bin/sh
echo "$@" >> {folder}/asked
if [ "$1" = view ]; then cat {folder}/version; exit 0; fi
echo "npm went wrong" >&2
cp {folder}/packed.tgz "$5/packed.tgz"
exit {status}
"""
        )
        (folder / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return folder / "asked"

    return make


def refused(folder: Path, name: str = "codex", version: str | None = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        install(name, version, folder)
    left = list((folder / name).iterdir()) if (folder / name).is_dir() else []
    assert left == [], "nothing partial is left"
    return caught.value


def test_what_npm_brings_is_unpacked_tried_and_found(tmp_path: Path, fake_npm: Npm) -> None:
    asked = fake_npm(archive({BINARY: PROGRAM, "package/README.md": b"read"}))
    made = install("codex", "1", tmp_path / "data")
    assert asked.read_text().splitlines()[0] == "view @openai/codex@1 version --json"
    assert "pack --ignore-scripts" in asked.read_text() and "@openai/codex@1.2.3-linux-" in asked.read_text()
    assert made == find_bundle("codex", folder=tmp_path / "data")
    assert (made.version, made.libc, made.arch) == ("1.2.3", ("static",), architecture())
    check_bundle(made)
    for path in made.folder.rglob("*"):
        wanted = 0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644
        assert stat.S_IMODE(path.stat().st_mode) == wanted or path.name == "bundle.json"
    assert [each.name for each in (tmp_path / "data/codex").iterdir()] == [made.folder.name]


def test_another_install_of_a_version_takes_its_place(tmp_path: Path, fake_npm: Npm) -> None:
    fake_npm(archive({BINARY: PROGRAM}))
    first = install("codex", None, tmp_path)
    (first.folder / "program/start").write_text("damaged")
    second = install("codex", None, tmp_path)
    assert first == second
    check_bundle(second)
    assert list_bundles("codex", tmp_path) == [second]


def test_a_version_stands_only_as_it_was_installed(tmp_path: Path, fake_npm: Npm) -> None:
    fake_npm(archive({BINARY: PROGRAM}))
    assert standing("codex", "1.2.3", tmp_path) is None
    made = install("codex", "1.2.3", tmp_path)
    assert standing("codex", "1.2.3", tmp_path) == made
    assert standing("codex", "1", tmp_path) is None, "a range may mean a newer one by now"
    assert standing("codex", None, tmp_path) is None, "it was tried with another"
    assert standing("no-such-agent", "1.2.3", tmp_path) is None
    (made.folder / "program/start").write_text("damaged")
    assert standing("codex", "1.2.3", tmp_path) is None


def test_only_plain_files_below_the_package_are_taken(tmp_path: Path, fake_npm: Npm) -> None:
    link = tarfile.TarInfo("package/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    fifo = tarfile.TarInfo("package/fifo")
    fifo.type = tarfile.FIFOTYPE
    hostile: dict[str, bytes | tarfile.TarInfo] = {
        BINARY: PROGRAM,
        "package/../../escaped": b"no",
        "/package/absolute": b"no",
        "outside": b"no",
        "package/link": link,
        "package/fifo": fifo,
    }
    fake_npm(archive(hostile))
    made = install("codex", None, tmp_path)
    found = {str(path.relative_to(made.folder / "program")) for path in made.folder.glob("program/*")}
    assert found == {"start", "vendor"}
    assert not list(tmp_path.rglob("escaped"))


def test_a_program_of_root_alone_is_opened_to_all(tmp_path: Path, fake_npm: Npm) -> None:
    fake_npm(archive({BINARY: PROGRAM}, mode=0o700))
    made = install("codex", None, tmp_path)
    program = made.folder / "program" / BINARY.removeprefix("package/")
    assert stat.S_IMODE(program.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    "packed",
    [b"", b"no archive", archive({BINARY: PROGRAM})[:-40], archive({BINARY: b"\0" * 100})],
    ids=["empty", "no archive", "cut", "no program"],
)
def test_what_is_no_program_is_refused(tmp_path: Path, fake_npm: Npm, packed: bytes) -> None:
    fake_npm(packed)
    assert refused(tmp_path).reason is Reason.INSTALL_FAILED


def test_more_than_a_program_holds_is_refused(tmp_path: Path, fake_npm: Npm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm, "MOST_BYTES", 1_000)
    fake_npm(archive({BINARY: PROGRAM, "package/large": b"\0" * 1_000}))
    assert "more than a program does" in refused(tmp_path).message


@pytest.mark.parametrize("script", ["echo no version here", "exit 3", "echo 1.2.3; exit 1"])
def test_a_program_that_does_not_say_its_version_is_refused(tmp_path: Path, fake_npm: Npm, script: str) -> None:
    fake_npm(archive({BINARY: f"#!/bin/sh\n{script}\n".encode()}))
    assert refused(tmp_path).reason is Reason.INSTALL_FAILED


def test_the_program_is_tried_without_the_variables_of_its_installer(
    tmp_path: Path, fake_npm: Npm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "x")
    fake_npm(archive({BINARY: b'#!/bin/sh\n[ -z "$A_SECRET" ] && echo 1.2.3\n'}))
    assert install("codex", None, tmp_path).version == "1.2.3"


@pytest.mark.parametrize("said", ["", "null", "[]", "{}", "3", "not json"])
def test_a_version_that_the_registry_does_not_know_is_refused(tmp_path: Path, fake_npm: Npm, said: str) -> None:
    fake_npm(archive({BINARY: PROGRAM}), version=said)
    assert "@openai/codex@9.9.9" in refused(tmp_path, version="9.9.9").message


@pytest.mark.parametrize("version", ["", "git+https://example.org/x", "1 2", "../1", "^1", "-1", "1" * 65])
def test_what_is_no_version_is_not_asked_for(tmp_path: Path, fake_npm: Npm, version: str) -> None:
    asked = fake_npm(archive({BINARY: PROGRAM}))
    assert "is no version" in refused(tmp_path, version=version).message
    assert not asked.exists()


def test_of_a_range_the_newest_is_brought(tmp_path: Path, fake_npm: Npm) -> None:
    asked = fake_npm(archive({BINARY: PROGRAM}), version=json.dumps(["1.2.2", "1.2.3"]))
    install("codex", "1", tmp_path)
    assert "@openai/codex@1.2.3-linux-" in asked.read_text()


def test_what_npm_says_when_it_fails_is_told(tmp_path: Path, fake_npm: Npm) -> None:
    fake_npm(b"", status=1)
    refusal = refused(tmp_path)
    assert refusal.reason is Reason.INSTALL_FAILED and "npm went wrong" in refusal.message


def test_without_npm_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no npm here" in refused(tmp_path / "data").message


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, fake_npm: Npm) -> None:
    fake_npm(archive({BINARY: PROGRAM}))
    (tmp_path / "data").write_text("a file")
    with pytest.raises(Refusal) as caught:
        install("codex", None, tmp_path / "data")
    assert caught.value.reason is Reason.INSTALL_FAILED


@pytest.mark.parametrize("name", ["toolloop", "no-such-agent"])
def test_an_agent_without_a_program_cannot_be_installed(tmp_path: Path, name: str) -> None:
    assert refused(tmp_path, name).reason is Reason.UNKNOWN_AGENT


def test_a_tool_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        run_tool(["sh", "-c", "sleep 3600 & wait"], tmp_path, 0.05)
    assert "not done in time" in caught.value.message


def test_every_installable_agent_is_an_agent() -> None:
    assert set(installable_agents()) == {"claude-code", "codex", "mini-swe-agent"} <= set(installed_agents())
