"""A frozen design alone: what is said of it is what a run hears of it, and nothing that stands there is a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path

import plants_money
import pytest
from builder import Story
from designs import make_design
from money_stories import bare_story, money_design
from plants import Plant
from primitives import Body, canonical, sha256

from proctor.study.design import MAX_DESIGN_BYTES, MAX_DESIGN_PARTS
from proctor.study.design import MAX_TRIALS as MOST_TRIALS
from proctor_verify import Status, verify, verify_design
from proctor_verify.checks import DESIGN_RULES
from proctor_verify.cli import main
from proctor_verify.design import MAX_BYTES, MAX_PARTS, MAX_TRIALS

ALONE = ["design.plan", *(rule.id for rule in DESIGN_RULES)]
# The faults of a design whose run says nothing else of it.
PLANTS = [plant for plant in plants_money.PLANTS if plant.check in ALONE and plant.story is bare_story]


def _written(folder: Path, data: bytes, name: str = "design.json") -> Path:
    file = folder / name
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.id for plant in PLANTS])
def test_a_fault_is_found_without_a_run_as_with_one(plant: Plant, tmp_path: Path) -> None:
    story: Story = plant.story()
    plant.alter(story)
    story.write(tmp_path)
    assert verify(tmp_path, story.signer.fingerprint).failed() == [plant.check]
    alone = verify_design(tmp_path / "design.json")
    assert (alone.report.failed(), alone.exit_status) == ([plant.check], 1)


def test_every_rule_has_such_a_fault() -> None:
    assert {plant.check for plant in PLANTS} == {*ALONE} - {"synthetic.marked"}


def test_a_mark_that_is_missing(tmp_path: Path) -> None:
    design = money_design()
    del design["models"][1]["synthetic"]
    alone = verify_design(_written(tmp_path, canonical(design)))
    assert (alone.report.failed(), alone.exit_status) == (["synthetic.marked"], 1)


@pytest.mark.parametrize(
    ("design", "ceiling"), [(money_design(), "0.115000000000"), (make_design(), None)], ids=["money", "free"]
)
def test_a_sound_design_says_what_it_is(
    design: Body, ceiling: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = canonical(design)
    file = _written(tmp_path, data, "frozen.txt")
    assert main(["--design", str(file), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    counts = {"trials": 12, "blocks": 6} if ceiling else {"trials": 8, "blocks": 4}
    plan = said["design"].pop("plan")
    assert (plan["arms"], plan["epochs"], plan["seed"]) == (["arm-0", "arm-1"], 2 if not ceiling else plan["epochs"], 8)
    whole = {"name": "story/main", "sha256": sha256(data), "ceiling": ceiling, "selection": None}
    assert said["design"] == {**whole, **counts} and "PART" not in said["marks"]
    assert [check["check"] for check in said["checks"]] == ALONE
    assert {check["status"] for check in said["checks"]} <= {"pass", "not applicable"}
    assert main(["--design", str(file)]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"design {sha256(data)}\nstory/main: ") and "\nHOLDS" in told
    assert ("$0.115" if ceiling else "no budget") in told and ("SYNTHETIC: sham" in told) == bool(ceiling)


@pytest.mark.parametrize(
    "data",
    [
        canonical(make_design()) + b"\n",
        json.dumps(make_design()).encode(),
        canonical({**make_design(), "format": 2}),
        canonical({**make_design(), "tasks": []}),
        canonical({**make_design(), "tasks": make_design()["tasks"][::-1]}),
        canonical({**make_design(), "stage": {"name": "main", "epochs": 10**9, "replacements": 0}}),
        canonical({**money_design(), "budget": None}),
    ],
    ids=range(7),
)
def test_a_design_that_is_not_sound_is_a_finding(data: bytes, tmp_path: Path) -> None:
    alone = verify_design(_written(tmp_path, data))
    assert (alone.report.failed(), alone.exit_status, alone.sha256) == (["design.plan"], 1, sha256(data))
    assert {result.status for result in alone.report.results[1:]} == {Status.CANNOT_TELL}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format":1,"format":1}',
        b"1" * 50_000,
        b'[study]\nname = "x"\n',
        canonical({"format": 1, "study": "story", "stage": "main", "groups": []}),
    ],
    ids=range(10),
)
def test_what_is_no_design_is_told_to_be_none(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--design", str(_written(tmp_path, data))]) == 2
    assert capsys.readouterr().out.startswith("could not read: this is no design.json: ")


def test_a_part_of_a_stage_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = {"id": "more", "endpoint": "pass", "compare": ["arm-1", "arm-0"]}
    design = {**make_design(), "selection": {"limit": 2, "arms": ["arm-0", "arm-1"]}, "hypotheses": [claim]}
    file = str(_written(tmp_path, canonical(design)))
    assert main(["--design", file]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[-1] == "HOLDS, PART: a design alone"
    assert "(limit 2; arms arm-0, arm-1)" in told.replace("\n    ", " ")
    assert '"compare": ["arm-1", "arm-0"]' in " ".join(told.split()) and max(map(len, told.splitlines())) <= 80
    assert main(["--design", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["design"]["selection"] == design["selection"]


def test_what_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    sparse = _written(tmp_path, b"", "sparse")
    os.truncate(sparse, 300 << 20)
    for name in ("nothing", "fifo", ".", "round", "sparse", "n\0ul"):
        assert main(["--design", f"{tmp_path}/{name}"]) == 2
        assert capsys.readouterr().out.startswith("could not read: ")


def test_a_link_leads_to_a_design(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(_written(tmp_path, canonical(make_design())))
    assert verify_design(tmp_path / "link").exit_status == 0


def test_a_design_has_no_key_and_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(_written(tmp_path, canonical(make_design())))
    for wrong, said in (
        (["--design", file, "--key", "sha256:" + "0" * 64], "signed by nobody"),
        (["--design", file, str(tmp_path)], "no more than one"),
        (["--design", file, "--", str(tmp_path)], "no more than one"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(wrong)
        assert ended.value.code == 2 and said in capsys.readouterr().err


def test_how_large_a_design_may_be_is_the_same_before_a_run_and_after(tmp_path: Path) -> None:
    assert (MAX_BYTES, MAX_PARTS, MAX_TRIALS) == (MAX_DESIGN_BYTES, MAX_DESIGN_PARTS, MOST_TRIALS)
    file = tmp_path / "design.json"
    for parts, said in ((MAX_PARTS, "no design.json"), (MAX_PARTS + 1, "1,000,001 parts, more than 1,000,000")):
        file.write_bytes(b'{"x":[' + b",".join([b"0"] * (parts - 1)) + b"]}")
        assert said in repr(verify_design(file))
    with file.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    assert verify_design(file).exit_status == 2
