"""Telling what changed, on plain folders in the place of a world's uppers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proctor.sandbox import changes as shared
from proctor.sandbox.changes import Survey, told
from proctor.sandbox.namespace import changes


class Uppers:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "u"
        for top in ("root/etc", "usr"):
            (self.path / top).mkdir(parents=True)
        (folder / "base/root/etc").mkdir(parents=True)
        self.lowers = changes.Lowers((), folder / "base", None)

    def look(self, *apart: str) -> Survey:
        return changes.survey(self.path, self.lowers, apart)


@pytest.fixture
def uppers(tmp_path: Path) -> Uppers:
    return Uppers(tmp_path)


def test_files_count_below_the_system_folder_that_they_are_in(uppers: Uppers) -> None:
    before = uppers.look()
    for name in ("usr/bash", "root/etc/passwd", "root/data", "root/tmp", "root/usrlocal"):
        (uppers.path / name).write_text("x")
    said = told(before, uppers.look)
    assert said == {
        "changed": {"/": 2, "/etc": 1, "/usr": 1},
        "changed_at_least": False,
        "changed_paths": ["/usr/bash", "/etc/passwd", "/data", "/usrlocal"],
    }


def test_a_folder_counts_where_nothing_in_it_does(uppers: Uppers) -> None:
    (uppers.path / "usr/old/deep").mkdir(parents=True)
    (uppers.path / "usr/old/deep/file").write_text("x")
    before = uppers.look()
    (uppers.path / "usr/new/deep").mkdir(parents=True)
    (uppers.path / "usr/with").mkdir()
    (uppers.path / "usr/with/file").write_text("x")
    (uppers.path / "usr/old/deep/file").unlink()
    (uppers.path / "usr/old").chmod(0o700)
    said = told(before, uppers.look)
    assert said["changed_paths"] == ["/usr/new/deep", "/usr/old/deep/file", "/usr/with/file"]
    assert said["changed"] == {"/usr": 3}


@pytest.mark.parametrize(
    ("apart", "left"),
    [((), {"/": 2, "/usr": 1}), (("/app/",), {"/": 1, "/usr": 1}), (("/",), {"/usr": 1}), (("/usr",), {"/": 2})],
)
def test_what_is_apart_does_not_count(uppers: Uppers, apart: tuple[str, ...], left: dict[str, int]) -> None:
    before = uppers.look(*apart)
    (uppers.path / "root/app").mkdir()
    for name in ("root/app/x", "root/y", "usr/z"):
        (uppers.path / name).write_text("x")
    assert told(before, lambda: uppers.look(*apart))["changed"] == left


def test_much_is_told_as_a_lower_bound(uppers: Uppers, monkeypatch: pytest.MonkeyPatch) -> None:
    before = uppers.look()
    for number in range(20):
        (uppers.path / f"usr/{number}").write_text("x")
    monkeypatch.setattr(shared, "_MOST_COUNTED", 15)
    said = told(before, uppers.look)
    assert (said["changed"], said["changed_at_least"], len(said["changed_paths"])) == ({"/usr": 15}, True, 5)
    monkeypatch.setattr(shared, "MOST_KNOWN", 10)
    said = told(before, uppers.look)
    assert said["changed_at_least"] and 0 < said["changed"]["/usr"] <= 10
    many = uppers.look()
    assert told(many, uppers.look)["changed"] is None


def test_names_are_fit_for_a_record(uppers: Uppers) -> None:
    before = uppers.look()
    deep = uppers.path / "usr" / ("d" * 200) / ("d" * 200)
    deep.mkdir(parents=True)
    (deep / "f").write_text("x")
    Path(os.fsdecode(bytes(uppers.path / "usr") + b"/\xff\n")).write_text("x")
    said = told(before, uppers.look)
    assert "/usr/\\udcff\n" in said["changed_paths"]
    assert all(len(path.encode()) <= 300 for path in said["changed_paths"])
