"""The anchors of a study as a run finds them: whether each is there, and where a path of the study starts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anchor_parts import repository
from journal_parts import KEY
from proctor.admission.admit import Admission, Verdict, admit
from proctor.admission.anchors import anchor_notices, design_places, look_at
from proctor.admission.facts import AnchorFacts, Request
from proctor.admission.finish import Stop
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe
from proctor.evidence.anchors.places import AnchorKind, Place, drop_place, git_place
from proctor.evidence.runfolder import RunFolder
from proctor.study.design import read_design

STUDY = """
[study]
name = "s"
[tasks]
questions = "rows.jsonl"
[models.luna]
provider = "practice"
model = "practice-1"
max_output_tokens = 100
price = {input = "0", output = "0", per = "1M", source = "a page"}
[agent]
name = "toolloop"
[grading]
scorer = "number"
[stages.main]
type = "standard"
"""


def study(folder: Path, anchor: str = 'drop = "../drop"') -> Path:
    """A study of one row, in a folder of its own, with such an anchor."""
    folder.mkdir()
    (folder / "rows.jsonl").write_text('{"id": "a", "prompt": "What is 1 + 1?", "target": 2}\n')
    file = folder / "study.toml"
    file.write_text(STUDY + (f"[anchor]\n{anchor}\n" if anchor else ""))
    return file


async def asked(out: Path, **request: Any) -> Admission | Verdict:
    return await admit(Request("run", out, **request), KEY, Stop(), control="nowhere")


async def admitted(out: Path, named: Path) -> RunFolder:
    """What a process that died after the admission leaves."""
    made = await asked(out, study=named)
    assert isinstance(made, Admission), [str(refusal) for refusal in made.refusals]
    await made.journal.close(None)
    return RunFolder(out)


def found(run: RunFolder) -> list[str]:
    return [place.address for place in design_places(run, read_design(run.design_path))]


@pytest.mark.parametrize("whole", [True, False], ids=["by its folder", "by its file"])
async def test_a_path_starts_at_the_studys_folder(tmp_path: Path, whole: bool) -> None:
    file = study(tmp_path / "study")
    run = await admitted(tmp_path / "run", file.parent if whole else file)
    assert found(run) == [str(file.parent.resolve() / "../drop")]


async def test_the_study_is_that_of_the_manifest_to_which_the_run_is_bound(tmp_path: Path) -> None:
    """An invocation that was refused has left a manifest, too."""
    other, own = study(tmp_path / "other"), study(tmp_path / "study")
    refused = await asked(tmp_path / "run", study=other, waive=("run_exists",))
    assert isinstance(refused, Verdict)
    assert found(await admitted(tmp_path / "run", own)) == [str(own.parent.resolve() / "../drop")]


async def test_a_study_without_an_anchor_has_none(tmp_path: Path) -> None:
    assert found(await admitted(tmp_path / "run", study(tmp_path / "study", ""))) == []


async def test_what_is_absolute_is_found_without_the_study(tmp_path: Path) -> None:
    file = study(tmp_path / "study", f'git = "{tmp_path}/a.git"')
    run = await admitted(tmp_path / "run", file)
    shutil.rmtree(file.parent)
    assert found(run) == [f"{tmp_path}/a.git"]


def gone(run: RunFolder, file: Path) -> None:
    shutil.rmtree(file.parent)


def moved(run: RunFolder, file: Path) -> None:
    file.rename(file.with_name("other.toml"))


def no_manifest(run: RunFolder, file: Path) -> None:
    (run.manifests_dir / "0001.json").write_text("somebody's notes\n")


def requested(value: object) -> Callable[[RunFolder, Path], None]:
    def change(run: RunFolder, file: Path) -> None:
        manifest = run.manifests_dir / "0001.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "requested": value}))

    return change


@pytest.mark.parametrize(
    "lose",
    [gone, moved, no_manifest, requested("a study"), requested({})],
    ids=["the folder", "the file", "the manifest", "what was asked", "which study was asked for"],
)
async def test_where_the_study_is_not_known_a_path_means_nothing(
    tmp_path: Path, lose: Callable[[RunFolder, Path], None]
) -> None:
    file = study(tmp_path / "study")
    run = await admitted(tmp_path / "run", file)
    lose(run, file)
    with pytest.raises(Refusal) as refused:
        found(run)
    assert (refused.value.reason, refused.value.path) == (Reason.STUDY_NOT_FOUND, "anchor.drop")


async def test_of_a_run_without_a_first_entry_nothing_is_known(tmp_path: Path) -> None:
    run = await admitted(tmp_path / "run", study(tmp_path / "study"))
    run.journal_path.write_bytes(b"")
    with pytest.raises(Refusal) as refused:
        found(run)
    assert refused.value.reason is Reason.EVIDENCE_UNREADABLE


@pytest.mark.parametrize("required", [True, False])
def test_each_kind_is_asked_in_its_own_way(tmp_path: Path, required: bool) -> None:
    repository(tmp_path / "a.git")
    (tmp_path / "drop").mkdir()
    made: list[Callable[[str, Path], Place]] = [git_place, drop_place]
    wanted: dict[tuple[AnchorKind, str], str | None] = {
        (AnchorKind.GIT, "a.git"): None,
        (AnchorKind.GIT, "drop"): "the repository does not answer",
        (AnchorKind.DROP, "a.git"): "is a git repository",
        (AnchorKind.DROP, "drop"): None,
    }
    places = [make(name, tmp_path) for make in made for name in ("a.git", "drop")]
    for (where, why), each in zip(wanted.items(), look_at(places, required, seal_probe(30)), strict=True):
        assert (each.anchor, each.location, each.required) == (*where, required)
        assert each.why is None if why is None else why in str(each.why)


def test_an_anchor_that_is_not_there_and_need_not_be_is_said() -> None:
    facts = [
        AnchorFacts("git", "here", False, None),
        AnchorFacts("git", "needed", True, "it is gone"),
        AnchorFacts("drop", "spare", False, "it is full"),
    ]
    assert anchor_notices(facts) == ["the anchor drop spare cannot be used: it is full; the run goes on without it"]
