"""Where a study says that checkpoints are pushed: what it may write, what that means, and what is frozen of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_folder import make, problems, with_lines

from proctor.core.reasons import Reason
from proctor.evidence.anchors.places import BadAddress, check_drop, check_git, drop_place, git_place, places
from proctor.study import FrozenTask, Parts, freeze
from proctor.study.design import AnchorDesign, Design
from proctor.study.load import load_study

BASE = Path("/studies/one")
GOOD = [
    "https://example.org/anchors.git",
    "ssh://git@example.org/anchors.git",
    "git@example.org:anchors.git",
    "example.org:anchors.git",
    "git://example.org/a.git",
    "file:///srv/anchors.git",
    "/srv/anchors.git",
    "../anchors.git",
    "./odd:name.git",
]
BAD = [
    "",
    " /srv/a.git",
    "--upload-pack=touch",
    "ext::sh -c touch% x",
    "::x",
    "HTTPS://example.org/a.git",
    "ftp://example.org/a.git",
    "a\nb",
    "x" * 1025,
    "https://[::1",
]
SECRET = [
    "https://me:hunter2@example.org/a.git",
    "https://hunter2@example.org/a.git",
    "ssh://git:hunter2@example.org/a.git",
    "https://example.org/a.git?token=hunter2",
    "https://example.org/a.git#hunter2",
]


def frozen(folder: Path, *lines: str) -> Design:
    parts = Parts([FrozenTask("t", "0" * 64, "harbor", "tasks/t")])
    design, refusals = freeze(load_study(make(folder, with_lines("anchor", *lines))), "main", parts)
    assert design is not None, refusals
    return design


@pytest.mark.parametrize("text", GOOD)
def test_addresses_of_repositories(text: str, tmp_path: Path) -> None:
    assert check_git(text) == text
    assert frozen(tmp_path, f"git = {json.dumps(text)}").anchor == AnchorDesign(600, False, git=text)


@pytest.mark.parametrize("text", [*BAD, *SECRET])
def test_what_is_no_address_or_not_one_for_the_record(text: str, tmp_path: Path) -> None:
    loaded = load_study(make(tmp_path, with_lines("anchor", f"git = {json.dumps(text)}")))
    assert problems(loaded) == [(Reason.INVALID_VALUE, "anchor.git")]
    assert "hunter2" not in json.dumps([refusal.as_record() for refusal in loaded.refusals])


def test_one_place_is_needed_and_unknown_keys_refuse(tmp_path: Path) -> None:
    assert problems(load_study(make(tmp_path, with_lines("anchor", "required = true")))) == [
        (Reason.MISSING_KEY, "anchor")
    ]
    text = with_lines("anchor", 'drop = ""', 'witness = "w"')
    assert problems(load_study(make(tmp_path, text))) == [
        (Reason.INVALID_VALUE, "anchor.drop"),
        (Reason.UNKNOWN_KEY, "anchor.witness"),
    ]


def test_the_design_has_what_the_study_says_and_nothing_where_it_says_nothing(tmp_path: Path) -> None:
    design = frozen(tmp_path, 'drop = "../out"', 'git = "../a.git"', 'every = "90s"', "required = true")
    assert design.to_json()["anchor"] == {"git": "../a.git", "drop": "../out", "every_sec": 90, "required": True}
    only = frozen(tmp_path, 'drop = "../out"')
    assert only.to_json()["anchor"] == {"drop": "../out", "every_sec": 600, "required": False}
    parts = Parts([FrozenTask("t", "0" * 64, "harbor", "tasks/t")])
    without, _ = freeze(load_study(make(tmp_path)), "main", parts)
    assert without is not None and "anchor" not in without.to_json()


def test_paths_start_at_the_study_and_addresses_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert git_place("a.git", BASE).address == "/studies/one/a.git"
    assert git_place("./odd:name.git", BASE).address == "/studies/one/odd:name.git"
    assert git_place("/srv/a.git", BASE).address == "/srv/a.git"
    for url in ("git@example.org:a.git", "https://example.org/a.git", "file:///srv/a.git"):
        assert git_place(url, BASE).address == url
    assert drop_place("out:1", BASE).address == "/studies/one/out:1"
    found = places("a.git", "out", BASE)
    assert [(place.kind.value, place.location) for place in found] == [("git", "a.git"), ("drop", "out")]
    assert places(None, None, BASE) == ()


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_is_refused_by_type(text: str) -> None:
    for check in (check_git, check_drop):
        try:
            assert check(text) == text
        except BadAddress as error:
            assert str(error)
