"""A folder's digest differs when anything that counts differs; odd things are refused or recorded, never opened."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.tree import Entry, Kind, read_tree

Edit = Callable[[Path], object]

NAMES = [b"new\nline", b"-rf", b"\xff\xfe", "naïve".encode(), b" space ", b"a\\b"]

EDITS: dict[str, Edit] = {
    "content": lambda root: (root / "a/file").write_bytes(b"other"),
    "same size content": lambda root: (root / "a/file").write_bytes(b"onf"),
    "new file": lambda root: (root / "a/new").write_bytes(b""),
    "file gone": lambda root: (root / "a/file").unlink(),
    "renamed": lambda root: (root / "a/file").rename(root / "a/file2"),
    "moved up": lambda root: (root / "a/file").rename(root / "file"),
    "exec bit": lambda root: (root / "a/file").chmod(0o755),
    "empty folder": lambda root: (root / "empty2").mkdir(),
    "empty folder gone": lambda root: (root / "empty").rmdir(),
    "link target": lambda root: ((root / "link").unlink(), (root / "link").symlink_to("a/")),
    "link for file": lambda root: ((root / "a/file").unlink(), (root / "a/file").symlink_to("../b")),
    "file for folder": lambda root: ((root / "empty").rmdir(), (root / "empty").write_bytes(b"")),
    "swapped contents": lambda root: ((root / "a/file").write_bytes(b"two"), (root / "b").write_bytes(b"one")),
}


UMASKS: dict[str, Edit] = {
    "group write": lambda root: (root / "a/file").chmod(0o664),
    "owner only": lambda root: (root / "a/file").chmod(0o600),
    "folder mode": lambda root: (root / "a").chmod(0o700),
}


def sample(root: Path) -> Path:
    (root / "a").mkdir(parents=True)
    (root / "a").chmod(0o755)
    (root / "a/file").write_bytes(b"one")
    (root / "b").write_bytes(b"two")
    (root / "a/file").chmod(0o644)
    (root / "b").chmod(0o644)
    (root / "empty").mkdir()
    (root / "link").symlink_to("a")
    return root


@pytest.mark.parametrize("edit", UMASKS.values(), ids=UMASKS.keys())
def test_a_copy_made_under_another_umask_is_the_same_task(tmp_path: Path, edit: Edit) -> None:
    tree = read_tree(sample(tmp_path / "t"))
    edit(tmp_path / "t")
    assert read_tree(tmp_path / "t").digest == tree.digest


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_any_edit_changes_the_digest_and_is_named(tmp_path: Path, edit: Edit) -> None:
    tree = read_tree(sample(tmp_path / "t"))
    edit(tmp_path / "t")
    assert read_tree(tmp_path / "t").digest != tree.digest
    with pytest.raises(Refusal) as refused:
        tree.verify_unchanged()
    assert refused.value.reason is Reason.TASK_CHANGED
    assert refused.value.required == tree.digest


def test_a_copy_has_the_same_digest_whatever_its_times_and_order(tmp_path: Path) -> None:
    first = read_tree(sample(tmp_path / "one"))
    second = sample(tmp_path / "elsewhere" / "two")
    os.utime(second / "b", (1, 1))
    assert read_tree(second).digest == first.digest
    first.verify_unchanged()


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_are_kept_apart_and_shown(tmp_path: Path, name: bytes) -> None:
    plain = sample(tmp_path / "one")
    odd = sample(tmp_path / "two")
    (plain / "x").write_bytes(b"")
    (odd / os.fsdecode(name)).write_bytes(b"")
    assert read_tree(plain).digest != read_tree(odd).digest
    tree = read_tree(odd)
    assert name in tree.entries
    assert [row["path"].encode() for row in tree.listing()]  # every shown path encodes as UTF-8


def test_a_listing_says_what_each_entry_is(tmp_path: Path) -> None:
    rows = {row["path"]: row for row in read_tree(sample(tmp_path / "t")).listing()}
    assert rows["a"] == {"path": "a", "kind": "folder", "mode": "755"}
    assert rows["link"] == {"path": "link", "kind": "link", "mode": "0", "target": "a"}
    assert rows["b"]["size"] == 3
    assert rows["b"]["sha256"] == "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "a/../../outside", "self", "a/up/../x"])
def test_links_that_lead_out_or_in_circles_are_unsafe(tmp_path: Path, target: str) -> None:
    root = sample(tmp_path / "t")
    (tmp_path / "outside").write_bytes(b"secret")
    (root / "a/up").symlink_to("..")
    (root / "self").symlink_to(target)
    with pytest.raises(Refusal) as refused:
        read_tree(root)
    assert refused.value.reason is Reason.TASK_UNSAFE


def test_links_inside_are_followed_by_find_and_read(tmp_path: Path) -> None:
    root = sample(tmp_path / "t")
    (root / "a/up").symlink_to("..")
    (root / "dangling").symlink_to("nothing/here")
    tree = read_tree(root)
    assert tree.read("link/up/link/file", 10) == b"one"
    assert tree.has_folder("link") and not tree.has_file("dangling") and tree.find("link/nothing") is None


@pytest.mark.parametrize("special", ["fifo", "socket"])
def test_special_files_are_refused_without_being_opened(tmp_path: Path, special: str) -> None:
    root = sample(tmp_path / "t")
    if special == "fifo":
        os.mkfifo(root / "pipe")  # opening it would wait for a writer for ever
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(root / "sock"))
    with pytest.raises(Refusal) as refused:
        read_tree(root)
    assert refused.value.reason is Reason.TASK_UNSAFE


def test_what_changes_between_hash_and_use_is_noticed(tmp_path: Path) -> None:
    tree = read_tree(sample(tmp_path / "t"))
    (tmp_path / "t/b").write_bytes(b"TWO")
    with pytest.raises(Refusal) as refused:
        tree.read("b", 10)
    assert refused.value.reason is Reason.TASK_CHANGED


@pytest.mark.parametrize(
    ("path", "cap", "reason"), [("b", 2, Reason.TASK_UNREADABLE), ("none", 9, Reason.TASK_NOT_FOUND)]
)
def test_reads_are_bounded_and_typed(tmp_path: Path, path: str, cap: int, reason: Reason) -> None:
    with pytest.raises(Refusal) as refused:
        read_tree(sample(tmp_path / "t")).read(path, cap)
    assert refused.value.reason is reason


def test_the_number_of_entries_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = sample(tmp_path / "t")
    monkeypatch.setattr("proctor.tasks.tree.MAX_ENTRIES", 5)
    assert len(read_tree(root).entries) == 5
    (root / "a/one-more").write_bytes(b"")
    with pytest.raises(Refusal) as refused:
        read_tree(root)
    assert (refused.value.reason, refused.value.required) == (Reason.TASK_UNREADABLE, 5)


def test_no_folder_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        read_tree(tmp_path / "none")
    assert refused.value.reason is Reason.TASK_NOT_FOUND


def test_deep_folders_do_not_exhaust_the_stack(tmp_path: Path) -> None:
    made = [tmp_path / "t"]
    made += [Path(f"{made[0]}{'/d' * depth}") for depth in range(1, 1050)]
    for folder in made:
        folder.mkdir()
    try:
        assert len(read_tree(made[0]).entries) == 1049
    finally:
        for folder in reversed(made):  # pytest's own clean-up would recurse
            folder.rmdir()


ENTRIES = st.builds(
    Entry,
    path=st.binary(min_size=1, max_size=6),
    kind=st.sampled_from(Kind),
    mode=st.integers(0, 0o7777),
    size=st.integers(0, 2**40),
    sha256=st.binary(min_size=32, max_size=32),
    target=st.binary(max_size=6),
)


def meaning(entry: Entry) -> tuple[object, ...]:
    rest = {Kind.FILE: (entry.size, entry.sha256), Kind.LINK: (entry.target,), Kind.FOLDER: ()}[entry.kind]
    return (entry.kind, entry.mode, entry.path, *rest)


@given(st.lists(ENTRIES, max_size=4), st.lists(ENTRIES, max_size=4))
def test_the_encoding_is_unambiguous(first: list[Entry], second: list[Entry]) -> None:
    encoded = [b"".join(entry.encoded() for entry in entries) for entries in (first, second)]
    same = [meaning(entry) for entry in first] == [meaning(entry) for entry in second]
    assert (encoded[0] == encoded[1]) is same
