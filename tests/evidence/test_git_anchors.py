"""Git repositories as anchors, each a real one: what stands there after a push, and what a push says that fails."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import threading
from pathlib import Path

import pytest

from anchor_parts import (
    AT,
    FINGERPRINT,
    REF,
    checkpoint,
    commits,
    contents,
    daemon,
    git,
    git_anchor,
    hook,
    repository,
)
from proctor.core.reasons import Reason
from proctor.core.tokens import seal_probe
from proctor.evidence.anchors.base import AnchorFailed
from proctor.evidence.anchors.git import look
from proctor.evidence.anchors.places import git_place


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def failed(run: Path, address: object, *, size: int = 9, last: str | None = None) -> AnchorFailed:
    with git_anchor(run, address, last=last) as anchor, pytest.raises(AnchorFailed) as raised:
        anchor.push(checkpoint(run, size), AT)
    return raised.value


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_each_checkpoint_is_a_commit_on_the_one_before(run: Path, tmp_path: Path, kind: str, form: str) -> None:
    remote = repository(tmp_path / "a.git", kind)
    with git_anchor(run, form.format(remote)) as anchor:
        pushed = [anchor.push(checkpoint(run, size), AT) for size in (1, 20, 300)]
        assert (run / "scratch/anchors").is_dir()
    assert not (run / "scratch").exists()
    there = commits(remote)
    assert [each.snapshot["commit"] for each in pushed] == there and [each.return_code for each in pushed] == [0] * 3
    assert contents(remote) == [checkpoint(run, size).data for size in (1, 20, 300)]
    who = git(remote, "log", "--format=%an <%ae> %at %cn <%ce> %ct", REF).decode().splitlines()
    assert who == [f"proctor <{FINGERPRINT}> 1796032800 proctor <{FINGERPRINT}> 1796032800"] * 3
    assert git(remote, "for-each-ref", "--format=%(refname)").decode().split() == [REF], "and nothing else was touched"


def test_a_snapshot_holds_objects_that_hash_to_their_ids(run: Path, tmp_path: Path) -> None:
    remote = repository(tmp_path / "a.git")
    with git_anchor(run, remote) as anchor:
        snapshot = anchor.push(checkpoint(run, 7), AT).snapshot
    assert snapshot["ref"] == REF
    commit, tree = (base64.b64decode(snapshot["objects"][name]) for name in ("commit", "tree"))
    assert hashlib.sha1(b"commit %d\0" % len(commit) + commit).hexdigest() == snapshot["commit"]
    assert commit.startswith(b"tree " + hashlib.sha1(b"tree %d\0" % len(tree) + tree).hexdigest().encode() + b"\n")
    data = checkpoint(run, 7).data
    assert tree == b"100644 checkpoint\0" + hashlib.sha1(b"blob %d\0" % len(data) + data).digest()


def test_over_git_s_own_protocol(run: Path, tmp_path: Path) -> None:
    remote = repository(tmp_path / "served/a.git")
    with daemon(tmp_path / "served") as address, git_anchor(run, f"{address}/a.git") as anchor:
        assert look(anchor.place, seal_probe(30), {}) is None
        anchor.push(checkpoint(run, 1), AT)
        anchor.push(checkpoint(run, 2), AT)
    assert len(commits(remote)) == 2
    gone = failed(run, f"{address}/a.git")
    assert (gone.reason, gone.return_code) == (Reason.ANCHOR_UNREACHABLE, None)
    assert look(git_place(f"{address}/a.git", run), seal_probe(30), {}) is not None


def test_another_process_goes_on_from_what_stands_there(run: Path, tmp_path: Path) -> None:
    remote = repository(tmp_path / "a.git")
    with git_anchor(run, remote) as anchor:
        first = anchor.push(checkpoint(run, 1), AT).snapshot["commit"]
        anchor.push(checkpoint(run, 2), AT)
    # the second push has no receipt: its process died
    with git_anchor(run, remote, last=first) as anchor:
        anchor.push(checkpoint(run, 2), AT)
    with git_anchor(run, remote) as anchor:
        anchor.push(checkpoint(run, 3), AT)
    assert [int(each.split()[-1]) for each in contents(remote)] == [1, 2, 2, 3]


def test_who_rejects_is_told_from_who_is_not_there(run: Path, tmp_path: Path) -> None:
    remote = repository(tmp_path / "a.git")
    no = hook(remote, "pre-receive", "echo not today >&2", "exit 1")
    rejected = failed(run, remote)
    assert (rejected.reason, rejected.return_code, rejected.is_final) == (Reason.ANCHOR_REJECTED, 1, False)
    assert "not today" in rejected.message and commits(remote) == []
    no.unlink()
    with git_anchor(run, remote) as anchor:
        anchor.push(checkpoint(run, 9), AT)
    absent = failed(run, tmp_path / "nothing.git")
    assert (absent.reason, absent.return_code) == (Reason.ANCHOR_UNREACHABLE, None)


def test_a_machine_that_has_no_room_of_its_own_says_that(run: Path, tmp_path: Path) -> None:
    remote = repository(tmp_path / "a.git")
    made = checkpoint(run, 9)
    (run / "scratch").write_text("in the way")
    with git_anchor(run, remote) as anchor, pytest.raises(AnchorFailed) as raised:
        anchor.push(made, AT)
    assert (raised.value.reason, raised.value.return_code) == (Reason.WRITE_FAILED, None)


def test_where_there_is_no_git(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = git_place(str(repository(tmp_path / "a.git")), run)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "cannot be started" in str(look(place, seal_probe(30), {"PATH": str(tmp_path)}))
    assert failed(run, place.address).reason is Reason.ANCHOR_UNREACHABLE


@pytest.mark.parametrize("tamper", ["update-ref -d", "update-ref"])
def test_a_repository_that_moves_the_ref_after_a_push_is_found_out(run: Path, tmp_path: Path, tamper: str) -> None:
    remote = repository(tmp_path / "a.git")
    with git_anchor(run, remote) as anchor:
        first = anchor.push(checkpoint(run, 1), AT).snapshot["commit"]
    hook(remote, "post-receive", f"git {tamper} {REF}" + (f" {first}" if tamper == "update-ref" else ""))
    with git_anchor(run, remote, last=first) as anchor, pytest.raises(AnchorFailed) as raised:
        anchor.push(checkpoint(run, 2), AT)
    assert raised.value.reason is Reason.ANCHOR_DIFFERS
    assert raised.value.return_code == 0, "the push itself was taken"


def test_what_was_pushed_before_must_still_be_there(run: Path, tmp_path: Path) -> None:
    remote = repository(tmp_path / "a.git")
    with git_anchor(run, remote) as anchor:
        first, second = (anchor.push(checkpoint(run, size), AT).snapshot["commit"] for size in (1, 2))
    git(remote, "update-ref", REF, first)
    assert failed(run, remote, last=second).reason is Reason.ANCHOR_DIFFERS
    git(remote, "update-ref", "-d", REF)
    assert failed(run, remote, last=second).reason is Reason.ANCHOR_DIFFERS
    assert commits(remote) == []


def test_whether_it_stands_there_is_looked_at_and_nothing_is_changed(run: Path, tmp_path: Path) -> None:
    remote = repository(tmp_path / "a.git")
    with git_anchor(run, remote) as anchor:
        assert not anchor.stands(checkpoint(run, 1)) and commits(remote) == []
        first, second = (anchor.push(checkpoint(run, size), AT).snapshot["commit"] for size in (1, 2))
        assert anchor.stands(checkpoint(run, 2))
    # by another process, with a receipt of the first one alone
    with git_anchor(run, remote, last=first) as anchor:
        assert anchor.stands(checkpoint(run, 2))
    assert commits(remote) == [first, second]
    git(remote, "update-ref", REF, first)
    with git_anchor(run, remote, last=second) as anchor, pytest.raises(AnchorFailed) as raised:
        anchor.stands(checkpoint(run, 2))
    assert raised.value.reason is Reason.ANCHOR_DIFFERS
    git(remote, "update-ref", "-d", REF)
    with git_anchor(run, remote, last=second) as anchor, pytest.raises(AnchorFailed) as raised:
        anchor.stands(checkpoint(run, 2))
    assert raised.value.reason is Reason.ANCHOR_DIFFERS
    shutil.rmtree(remote)
    with git_anchor(run, remote, last=second) as anchor, pytest.raises(AnchorFailed) as raised:
        anchor.stands(checkpoint(run, 2))
    assert raised.value.reason is Reason.ANCHOR_UNREACHABLE


@pytest.mark.parametrize("case", ["another file", "another name", "a program", "two files", "nothing"])
def test_what_is_not_the_run_s_own_is_not_built_upon(run: Path, tmp_path: Path, case: str) -> None:
    remote, data = repository(tmp_path / "a.git"), checkpoint(run, 1).data
    blob = git(remote, "hash-object", "-w", "--stdin", given=b"mine" if case == "another file" else data).decode()[:40]
    mode, name = ("100755" if case == "a program" else "100644"), ("note" if case == "another name" else "checkpoint")
    lines = {"nothing": "", "two files": f"100644 blob {blob}\tcheckpoint\n100644 blob {blob}\tmore\n"}
    listed = lines.get(case, f"{mode} blob {blob}\t{name}\n")
    tree = git(remote, "mktree", given=listed.encode()).decode().strip()
    commit = git(remote, "commit-tree", "-m", "x", tree).decode().strip()
    git(remote, "update-ref", REF, commit)
    found = failed(run, remote)
    assert (found.reason, found.is_final) == (Reason.ANCHOR_DIFFERS, True)
    assert commits(remote) == [commit]


def test_what_is_fetched_has_a_bound_however_many_objects_it_is(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few objects would be files of their own, each within what one file may hold."""
    remote = repository(tmp_path / "a.git")
    blobs = [git(remote, "hash-object", "-w", "--stdin", given=os.urandom(600_000)).decode().strip() for _ in range(5)]
    listed = "".join(f"100644 blob {blob}\tf{at}\n" for at, blob in enumerate(blobs))
    tree = git(remote, "mktree", given=listed.encode()).decode().strip()
    git(remote, "update-ref", REF, git(remote, "commit-tree", "-m", "x", tree).decode().strip())
    assert failed(run, remote).reason is Reason.ANCHOR_DIFFERS
    limited = ("sh", "-c", 'ulimit -f 2048 && exec "$@"', "sh")
    monkeypatch.setattr("proctor.evidence.anchors.program._LIMITED", limited)
    assert failed(run, remote).reason is Reason.ANCHOR_UNREACHABLE


def test_nothing_of_the_user_s_settings_but_what_lets_git_in(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, other = repository(tmp_path / "a.git"), repository(tmp_path / "b.git")
    home, asked = tmp_path / "home", tmp_path / "asked"
    (home / "hooks").mkdir(parents=True)
    for name in ("pre-push", "reference-transaction"):
        (home / "hooks" / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
        (home / "hooks" / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"""[core]
\thooksPath = {home}/hooks
\tsshCommand = touch {asked}; exit 1 #
[url "{other}"]
\tinsteadOf = {remote}
[commit]
\tgpgSign = true
[user]
\tname = somebody
[safe]
\tdirectory = *
"""
    )
    for name, value in {"HOME": str(home), "GIT_DIR": str(other), "GIT_AUTHOR_NAME": "x", "GIT_TRACE": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "nonsense")
    with git_anchor(run, remote) as anchor:
        anchor.push(checkpoint(run, 1), AT)
    for name in ("GIT_DIR", "GIT_AUTHOR_NAME", "GIT_TRACE", "GIT_CONFIG_COUNT"):
        monkeypatch.delenv(name)
    assert (len(commits(remote)), len(commits(other))) == (1, 0)
    assert not (tmp_path / "hooked").exists()
    assert failed(run, "git@example.invalid:a.git").reason is Reason.ANCHOR_UNREACHABLE
    assert asked.exists(), "the user's own way in by ssh is taken"


def test_a_push_that_hangs_ends_when_it_is_cancelled(run: Path, tmp_path: Path) -> None:
    remote = repository(tmp_path / "a.git")
    hook(remote, "pre-receive", f"echo > {tmp_path}/begun", f"exec 3<>{tmp_path}/never", "read x <&3")
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "never")
    faults: list[AnchorFailed] = []
    with git_anchor(run, remote) as anchor:

        def push() -> None:
            with pytest.raises(AnchorFailed) as raised:
                anchor.push(checkpoint(run, 1), AT)
            faults.append(raised.value)

        pushing = threading.Thread(target=push)
        pushing.start()
        (tmp_path / "begun").read_text()
        anchor.cancel()
        pushing.join(60)
        assert not pushing.is_alive()
        with pytest.raises(AnchorFailed):
            anchor.push(checkpoint(run, 2), AT)
    assert [each.reason for each in faults] == [Reason.ANCHOR_UNREACHABLE]
