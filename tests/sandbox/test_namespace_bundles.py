"""Where bundles are mounted: folders in a world's uppers that lead nowhere else."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from proctor.sandbox.namespace import bundles

TOPS = ("root", "usr")


@pytest.fixture
def uppers(tmp_path: Path) -> Path:
    for top in TOPS:
        (tmp_path / "u" / top).mkdir(parents=True)
    return tmp_path / "u"


def make(layer: Path, *names: str, mode: int = 0o755) -> Path:
    for name in names:
        (layer / name).mkdir(parents=True, exist_ok=True)
        (layer / name).chmod(mode)
    return layer


def modes(uppers: Path, names: Sequence[str]) -> list[int]:
    return [stat.S_IMODE(os.lstat(uppers / name).st_mode) for name in names]


def test_each_name_becomes_a_folder_as_the_one_that_it_covers(uppers: Path, tmp_path: Path) -> None:
    high = make(tmp_path / "high", "root/a", mode=0o711)
    low = make(tmp_path / "low", "root/a/b", "root/a", mode=0o750)
    bundles.make_point("/a/b/c", uppers, TOPS, (high, low))
    assert modes(uppers, ["root/a", "root/a/b", "root/a/b/c"]) == [0o711, 0o750, 0o755]
    bundles.make_point("/usr/lib/x", uppers, TOPS, (high, low))
    assert (uppers / "usr/lib/x").is_dir() and not (uppers / "root/usr").exists()


def test_what_a_layer_hides_is_not_looked_up_below_it(uppers: Path, tmp_path: Path) -> None:
    trap = make(tmp_path / "trap", "b", mode=0o700)
    high = make(tmp_path / "high", "root")
    (high / "root/a").symlink_to(trap)
    low = make(tmp_path / "low", "root/a/b", "root/a", mode=0o700)
    bundles.make_point("/a/b", uppers, TOPS, (high, low))
    assert modes(uppers, ["root/a", "root/a/b"]) == [0o755, 0o755]
    assert list(trap.iterdir()) == [trap / "b"]


def test_an_opaque_folder_ends_the_looking(uppers: Path, tmp_path: Path) -> None:
    high = make(tmp_path / "high", "root/a", mode=0o711)
    os.setxattr(high / "root/a", "user.overlay.opaque", b"y")
    low = make(tmp_path / "low", "root/a/b", "root/a", mode=0o700)
    bundles.make_point("/a/b", uppers, TOPS, (high, low))
    assert modes(uppers, ["root/a", "root/a/b"]) == [0o711, 0o755]


def test_where_all_files_lie_in_the_uppers_links_and_files_on_the_way_are_removed(uppers: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    (uppers / "root/a").symlink_to(trap)
    bundles.make_point("/a/b", uppers, TOPS, ())
    assert (uppers / "root/a/b").is_dir() and not (uppers / "root/a").is_symlink()
    make(uppers, "root/c", mode=0o711)
    (uppers / "root/c/d").write_text("a file")
    bundles.make_point("/c/d", uppers, TOPS, ())
    assert modes(uppers, ["root/c", "root/c/d"]) == [0o711, 0o755]
    assert list(trap.iterdir()) == []
