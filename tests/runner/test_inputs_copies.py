"""What every attempt gets is a copy of what was hashed, whatever becomes of the folders that it came from."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fake_worlds import FakeKind, FakeWorld, write_study
from launching import Place, ready_of
from proctor.admission.ready import Ready
from proctor.agents.command import Command
from proctor.core.exits import Exit
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted, seal_admitted
from proctor.runner.inputs import Inputs, discard, stage
from proctor.sandbox.base import PutItem
from proctor.tasks.tree import read_tree


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@pytest.fixture
def study(place: Place) -> Path:
    """Two tasks of the same content, an agent with files and a skill, both named by links."""
    path = write_study(place.folder / "study", tasks=1)
    base = path.parent
    script = base / "tasks/t0/tests/check.sh"
    script.write_text("true\n")
    script.chmod(0o751)
    (base / "tasks/t0/tests/link").symlink_to("check.sh")
    (base / "tasks/t0/environment/empty").mkdir()
    shutil.copytree(base / "tasks/t0", base / "tasks/t1", symlinks=True)
    (base / "kept/agent").mkdir(parents=True)
    (base / "kept/agent/act.sh").write_text("true\n")
    (base / "program").symlink_to("kept/agent")
    (base / "kept/house").mkdir()
    (base / "kept/house/SKILL.md").write_text("Do well.\n")
    (base / "skills").mkdir()
    (base / "skills/house").symlink_to("../kept/house")
    text = path.read_text().replace("[sandbox]", 'files = "program"\n[sandbox]')
    path.write_text(text.replace("[arms.arm0]", '[arms.arm0]\nskills = "skills"'))
    return path


@pytest.fixture
def token(place: Place) -> Admitted:
    run = place.folder / "run"
    run.mkdir()
    return seal_admitted(run_id="a" * 26, run_dir=run, design_sha256="0" * 64, label="proctor-test")


@pytest.fixture
def ready(study: Path, token: Admitted) -> Ready:
    return ready_of(study, token.run_dir)


def test_each_folder_is_copied_once_by_its_content(ready: Ready, token: Admitted) -> None:
    inputs = Inputs(stage(ready, token), ready, {})
    tasks = [inputs.at(ready.tasks[name].path) for name in ("t0", "t1")]
    assert tasks[0] == tasks[1] and tasks[0].is_relative_to(token.run_dir)
    copies = sorted(path.name for path in (token.run_dir / "scratch/inputs").iterdir())
    agent, (arm,) = ready.design.agent_of("arm0").files, ready.design.arms
    assert agent is not None
    digests = [ready.tasks["t0"].digest, agent.sha256, arm.skills[0].sha256]
    assert copies == sorted(digest[:32] for digest in digests)
    named = [inputs.at(ready.base / path) for path in ("tasks/t0", "program", "skills/house")]
    assert [read_tree(copy).digest for copy in named] == digests


def test_a_run_named_by_a_relative_path_has_the_files_of_its_agent(place: Place, study: Path) -> None:
    run = Path("beside")
    run.mkdir()
    token = seal_admitted(run_id="a" * 26, run_dir=run, design_sha256="0" * 64, label="proctor-test")
    ready = ready_of(study.relative_to(place.folder), run)
    inputs = Inputs(stage(ready, token), ready, {})
    assert isinstance(inputs.agents["arm0"], Command)
    assert (inputs.at(ready.base / "program") / "act.sh").read_text() == "true\n"


def test_a_path_in_a_copied_folder_is_in_its_copy_and_others_stay(ready: Ready, token: Admitted) -> None:
    inputs = Inputs(stage(ready, token), ready, {})
    task = ready.tasks["t0"].path
    assert inputs.at(task / "tests/check.sh") == inputs.at(task) / "tests/check.sh"
    assert inputs.at(ready.base / "elsewhere") == ready.base / "elsewhere"


def test_links_stay_links_and_modes_are_the_plain_ones(ready: Ready, token: Admitted) -> None:
    task = Inputs(stage(ready, token), ready, {}).at(ready.tasks["t0"].path)
    assert (task / "tests/link").readlink() == Path("check.sh")
    names = ("tests/check.sh", "tests/test.sh", "environment/empty")
    assert [(task / name).stat().st_mode & 0o7777 for name in names] == [0o755, 0o644, 0o755]
    assert list((task / "environment/empty").iterdir()) == []


def test_what_a_dead_process_left_of_its_copies_goes(ready: Ready, token: Admitted) -> None:
    left = token.run_dir / "scratch/inputs" / ready.tasks["t0"].digest[:32]
    left.mkdir(parents=True)
    (left / "half").write_text("")
    assert not (Inputs(stage(ready, token), ready, {}).at(ready.tasks["t0"].path) / "half").exists()


def test_nothing_is_left_after_they_are_discarded(ready: Ready, token: Admitted) -> None:
    (token.run_dir / "scratch/other").mkdir(parents=True)
    stage(ready, token)
    discard(token)
    assert [path.name for path in (token.run_dir / "scratch").iterdir()] == ["other"]
    discard(token)


def pipe_instead(folder: Path) -> None:
    (folder / "tests/test.sh").unlink()
    os.mkfifo(folder / "tests/test.sh")


def lead_out(folder: Path) -> None:
    (folder / "tests/link").unlink()
    (folder / "tests/link").symlink_to("/etc/hostname")


def file_instead(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file edited": lambda folder: (folder / "tests/test.sh").write_text("echo 1\n"),
    "a file added": lambda folder: (folder / "tests/new").write_text(""),
    "a file removed": lambda folder: (folder / "instruction.md").unlink(),
    "a file made executable": lambda folder: (folder / "instruction.md").chmod(0o755),
    "a folder added": lambda folder: (folder / "new").mkdir(),
    "the folder removed": shutil.rmtree,
    "a file in its place": file_instead,
    "a link that leads out": lead_out,
    "a pipe in a file's place": pipe_instead,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_task_changed_after_it_was_admitted_is_refused(
    ready: Ready, token: Admitted, change: Callable[[Path], object]
) -> None:
    change(ready.tasks["t0"].path)
    with pytest.raises(Refusal) as refused:
        stage(ready, token)
    assert (refused.value.reason, refused.value.path) == (Reason.TASK_CHANGED, str(ready.tasks["t0"].path))


@pytest.mark.parametrize("file", ["kept/agent/act.sh", "kept/house/SKILL.md"])
def test_an_agent_or_a_skill_changed_after_it_was_admitted_is_refused(ready: Ready, token: Admitted, file: str) -> None:
    (ready.base / file).write_text("something else\n")
    with pytest.raises(Refusal) as refused:
        stage(ready, token)
    assert refused.value.reason is Reason.DESIGN_CHANGED


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.ENOSPC, Reason.DISK_FULL), (errno.EDQUOT, Reason.DISK_FULL), (errno.EIO, Reason.WRITE_FAILED)],
)
def test_a_disk_that_takes_no_more_is_known_by_its_type(
    ready: Ready, token: Admitted, monkeypatch: pytest.MonkeyPatch, number: int, reason: Reason
) -> None:
    def fails(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("proctor.runner.inputs.shutil.copyfile", fails)
    with pytest.raises(Refusal) as refused:
        stage(ready, token)
    assert refused.value.reason is reason


def test_an_agent_edited_while_the_run_goes_on_acts_as_it_was_admitted(
    place: Place, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought: list[str] = []
    put = FakeWorld.put

    async def watched(world: FakeWorld, items: Sequence[PutItem]) -> None:
        brought.extend(
            (item.source / "act.sh").read_text() for item in items if item.source and item.target == "/agent"
        )
        await put(world, items)

    def edit() -> None:
        (study.parent / "kept/agent/act.sh").write_text("false\n")

    def edits(kind: FakeKind) -> None:
        kind.on_exec = lambda command: edit()

    monkeypatch.setattr(FakeWorld, "put", watched)
    place.prepare = edits
    assert place.launch(study=study, out=place.folder / "out")[0].exit is Exit.DONE
    assert brought == ["true\n"] * 2
