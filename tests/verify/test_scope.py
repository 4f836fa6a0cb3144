"""A part of a stage, and a run that did not come to its end, say so beside the verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builder import Story
from designs import make_design
from primitives import Signer
from stories import full_story
from verdicts import cut_short

from proctor_verify import verify
from proctor_verify.cli import main
from proctor_verify.report import render_text
from proctor_verify.scope import Scope
from proctor_verify.tables import MOST_ROWS, Group, table

KEY = Signer()
PART = {"limit": 2, "arms": ["arm-0", "arm-1"]}


def part() -> Story:
    story = full_story()
    story.design["selection"] = PART
    for manifest in story.manifests.values():
        if manifest["verdict"] == "admitted":
            manifest["requested"] = {**PART, "models": []}
    return story


def stopped() -> Story:
    """Three of eight trials, and a drain."""
    story = Story(make_design())
    story.admit()
    story.checkpoint()
    story.block(0)
    for arm in story.arms(0):
        story.run_attempt(0, arm, "pass" if arm == "arm-0" else "fail")
    story.add("block.ended", block=0)
    story.block(1)
    story.run_attempt(1, story.arms(1)[0], "ungraded")
    story.add("run.draining", cause="SIGINT")
    story.stop(130, "interrupted")
    story.checkpoint(named=False)
    return story


def test_a_part_is_no_whole(tmp_path: Path) -> None:
    report = verify(part().write(tmp_path), KEY.fingerprint)
    assert report.exit_status == 0 and report.marks == ("PART",)
    said = render_text(report)
    assert said.splitlines()[-1].startswith("VERIFIED, PART: run ")
    assert "a PART of it, selected before it began (limit 2; arms arm-0, arm-1)" in " ".join(said.split())
    assert report.to_json()["scope"] == {"complete": True, "finals": 8, "planned": 8, "selection": PART}


def test_a_run_that_stopped_is_not_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopped().write(tmp_path)
    assert main([str(tmp_path), "--key", KEY.vkey]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("VERIFIED, NOT COMPLETE (3 of 8): run ")
    assert "5 of 8 planned trials have no final" in " ".join(out.split())
    assert main([str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["scope"] == {"complete": False, "finals": 3, "planned": 8, "selection": None}
    assert report["marks"] == ["NOT COMPLETE (3 of 8)"]
    counted = {group["arm"]: [group[name] for name in ("pass", "fail", "no_final")] for group in report["grades"]}
    ungraded = sum(group["ungraded"] for group in report["grades"])
    assert sum(counted["arm-0"]) + sum(counted["arm-1"]) + ungraded == 8 and ungraded == 1
    assert (counted["arm-0"][0], counted["arm-1"][1]) == (1, 1)


def test_a_whole_run_says_nothing_of_it(tmp_path: Path) -> None:
    report = verify(full_story().write(tmp_path), KEY.vkey)
    assert report.marks == () and not any("planned trials have no final" in each for each in report.caveats)


def test_the_grades_stand_in_the_report_only_where_it_holds(tmp_path: Path) -> None:
    full_story().write(tmp_path)
    assert "  arm-0        4       3       0         1         0" in render_text(verify(tmp_path, KEY.vkey))
    other = verify(tmp_path, Signer(5).vkey)
    assert "grades, as the journal" not in render_text(other) and not other.to_json()["grades"]


def test_an_open_run_says_that_it_is_open_and_what_to_do(tmp_path: Path) -> None:
    report = verify(cut_short().write(tmp_path), KEY.vkey)
    said = " ".join(render_text(report).split())
    assert "run.ended" in report.failed() and "the run is open: its last entry is " in said
    assert said.index("does not hold: ") < said.index("the run is open") < said.index("NOT VERIFIED")
    assert "`proctor resume RUN`" in said
    ended = verify(full_story().write(tmp_path / "ended"), Signer(5).vkey)
    assert "the run is open" not in render_text(ended)


def test_what_cannot_be_told_stands_with_its_reason_above_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = full_story().write(tmp_path / "run")
    kept = tmp_path / "kept.note"
    kept.write_bytes(b"x" * 2_000_000)
    assert main([str(run), "--key", KEY.vkey, "--anchor", str(kept)]) == 1
    last = capsys.readouterr().out.partition("entries; checks: ")[2]
    assert f"cannot be told: anchors.remote: {kept}" in " ".join(last.split()) and "`proctor explain CHECK`" in last
    (run / "design.json").unlink()
    assert main([str(run), "--key", KEY.vkey]) == 1
    last = " ".join(capsys.readouterr().out.partition("entries; checks: ")[2].split())
    assert last.count("there is no design to go by") == 1 and " more: there is no design" in last


def test_where_the_design_is_another_that_is_said_first(tmp_path: Path) -> None:
    run = full_story().write(tmp_path / "run")
    file = run / "design.json"
    file.write_bytes(file.read_bytes().replace(b'"seed":8', b'"seed":9'))
    report = verify(run, KEY.vkey)
    assert {"design.digest", "blocks.drawn"} <= set(report.failed())
    assert "first of all: design.digest; what else" in " ".join(render_text(report).split())


def test_what_is_not_known_is_not_said() -> None:
    assert Scope(None, 8).marks == () and Scope(None, 8).complete is None
    assert list(Scope({}, 8).caveats()) == [
        "anything of the whole stage: this is a PART of it, selected before it began (by nothing that is named)"
    ]


def test_a_table_of_many_groups_and_long_names_stays_a_table() -> None:
    groups = [Group.of("m" * 90, f"arm-{i}-{'a' * 90}", 5, (1, 1, 1)) for i in range(MOST_ROWS + 2)]
    lines = table(groups)
    assert len(lines) == MOST_ROWS + 2 and lines[-1] == "  and 2 more"
    assert max(map(len, lines)) <= 80 and {len(line) for line in lines[:-1]} == {len(lines[0])}
