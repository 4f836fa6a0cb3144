"""Layers: joined they show what they showed apart, and everything an agent may build can be removed."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Tier
from proctor.sandbox.linux import tree
from proctor.sandbox.namespace import layers, skeleton

Tree = dict[str, object]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of folders on a busy disk take seconds."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


names = st.sampled_from("abc")
trees: st.SearchStrategy[Tree] = st.recursive(
    st.dictionaries(names, st.sampled_from(["file 1", "file 2", "whiteout"]), max_size=3),
    lambda inner: st.dictionaries(names | st.just("opaque"), inner | st.sampled_from(["file", "whiteout"]), max_size=3),
    max_leaves=6,
)


def lay(layer: Tree, folder: Path) -> None:
    folder.mkdir()
    for name, node in layer.items():
        if isinstance(node, dict):
            lay(node, folder / name)
            if name == "opaque":
                os.setxattr(folder / name, "user.overlay.opaque", b"y")
        elif node == "whiteout":
            os.mknod(folder / name, stat.S_IFCHR, os.makedev(0, 0))
        else:
            (folder / name).write_text(str(node))


def shown(below: Tree, upper: Tree) -> Tree:
    """What an overlay shows, by its definition."""
    found = {name: node for name, node in below.items() if name not in upper}
    for name, node in upper.items():
        if isinstance(node, dict):
            under = below.get(name)
            found[name] = shown(under if isinstance(under, dict) and name != "opaque" else {}, node)
        elif node != "whiteout":
            found[name] = node
    return found


def read(folder: Path) -> Tree:
    found: Tree = {}
    for path in folder.iterdir():
        if path.is_dir():
            found[path.name] = read(path)
        elif path.is_file():
            found[path.name] = path.read_text()
        else:
            found[path.name] = "whiteout"
    return found


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=60
)
@given(below=trees, stack=st.lists(trees, min_size=1, max_size=4))
def test_joined_layers_show_what_they_showed_apart(folder: Path, below: Tree, stack: list[Tree]) -> None:
    folder = folder / "example"
    folder.mkdir()
    try:
        _supported(folder)
        wanted = below = shown({}, below)
        for number, written in enumerate(stack):
            (folder / str(number)).mkdir()
            lay(written, folder / str(number) / "root")
            wanted = shown(wanted, written)
        layers.flatten([folder / str(number) for number in range(len(stack))], folder / "joined")
        assert shown_with_marks(below, folder / "joined/root") == wanted
        lay(below, folder / "plain")
        (folder / "target").mkdir()
        (folder / "plain").rename(folder / "target/root")
        layers.apply(folder / "joined", folder / "target")
        assert read(folder / "target/root") == wanted
    finally:
        tree.remove(folder)


def shown_with_marks(below: Tree, layer: Path) -> Tree:
    """What is shown over `below` by a layer on disk, with the marks that it really carries."""
    upper: Tree = {}
    under = dict(below)
    for path in layer.iterdir():
        if path.is_dir():
            node = under.get(path.name)
            merged = node if isinstance(node, dict) and not _is_opaque(path) else {}
            upper[path.name] = shown_with_marks(merged, path)
        elif path.is_file():
            upper[path.name] = path.read_text()
        under.pop(path.name, None)
    return under | upper


def _is_opaque(path: Path) -> bool:
    return "user.overlay.opaque" in os.listxattr(path)


def _supported(folder: Path) -> None:
    try:
        skeleton.try_layer(folder)
    except OSError as fault:
        pytest.skip(f"no whiteouts or attributes here: {fault}")


def test_joining_keeps_modes_and_links(tmp_path: Path) -> None:
    for number, mode in ((0, 0o755), (1, 0o1777)):
        (tmp_path / f"{number}/root/d").mkdir(parents=True)
        (tmp_path / f"{number}/root/d").chmod(mode)
        (tmp_path / f"{number}/root/d/f{number}").write_text(str(number))
    (tmp_path / "1/root/link").symlink_to("/nowhere")
    layers.flatten([tmp_path / "0", tmp_path / "1"], tmp_path / "joined")
    assert stat.S_IMODE((tmp_path / "joined/root/d").stat().st_mode) == 0o1777
    assert (tmp_path / "joined/root/link").readlink() == Path("/nowhere")
    assert sorted(path.name for path in (tmp_path / "joined/root/d").iterdir()) == ["f0", "f1"]


def test_everything_that_an_agent_may_build_is_removed(folder: Path) -> None:
    top = folder / "top"
    top.mkdir()
    (top / "shut").mkdir()
    (top / "shut/in").mkdir()
    (top / "shut/in/f").write_text("x")
    (top / "shut/in").chmod(0)
    (top / "shut").chmod(0)
    os.mkfifo(top / "pipe")
    (top / "link").symlink_to(folder)
    (folder / "other").write_text("stays")
    Path(os.fsdecode(os.fsencode(top) + b"/\xff\n-rf *")).mkdir()
    fd = os.open(top, os.O_RDONLY)
    for _ in range(sys.getrecursionlimit() + 500):  # beyond the stack, beyond the longest path
        os.mkdir("deep" * 10, dir_fd=fd)
        deeper = os.open("deep" * 10, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    os.close(fd)
    tree.remove(top)
    assert [path.name for path in folder.iterdir()] == ["other"]
    tree.remove(top)  # what is gone is no fault


def test_the_base_hides_what_is_to_be_hidden(tmp_path: Path) -> None:
    given_root = tmp_path / "given"
    (given_root / "a/b/c").mkdir(parents=True)
    (given_root / "a/b/file").write_text("x")
    (given_root / "a").chmod(0o750)
    (tmp_path / "alias").symlink_to(given_root / "a/b/file")
    hidden = [given_root / "a/b/c", given_root / "a/b/c/inner", tmp_path / "alias", given_root / "none", tmp_path]
    _supported(tmp_path)
    skeleton.build_on_root(tmp_path / "base", given_root, Tier.PRIVILEGED, hidden)
    found = {
        str(path.relative_to(tmp_path / "base/root")): path.lstat() for path in (tmp_path / "base/root").rglob("*")
    }
    assert {name for name, info in found.items() if stat.S_ISCHR(info.st_mode)} == {"a/b/c", "a/b/file"}
    assert set(found) == {"a", "a/b", "a/b/c", "a/b/file"} and stat.S_IMODE(found["a"].st_mode) == 0o750


def test_a_shown_folder_itself_cannot_be_hidden(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        skeleton.build_on_host(tmp_path / "base", Tier.ORDINARY, [Path("/usr")])
    assert refused.value.reason is Reason.PATH_UNSAFE
