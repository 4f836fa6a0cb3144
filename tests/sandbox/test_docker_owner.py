"""Whose a container is, by its labels: what is dead is left, and what may live, or is nobody's, never."""

from __future__ import annotations

import json
import os
import string
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from proctor.core.tokens import seal_admitted
from proctor.sandbox.docker import owner

WHERE = Path("/somewhere/run/scratch")
ELSEWHERE = Path("/elsewhere")


@pytest.fixture
def ours(tmp_path: Path) -> dict[str, str]:
    admitted = seal_admitted(run_id="r", run_dir=tmp_path, design_sha256="0" * 64, label="proctor-r")
    return owner.labels(WHERE / "a-0/a", admitted)


def changed(labels: dict[str, str], **fields: Any) -> dict[str, str]:
    said = {**json.loads(labels[owner.OWNER]), **fields}
    return {**labels, owner.OWNER: json.dumps(said)}


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait(60)
    return process.pid


@pytest.mark.parametrize("root", [WHERE, ELSEWHERE])
def test_what_a_living_process_has_is_never_left(ours: dict[str, str], root: Path) -> None:
    assert not owner.is_left(ours, root)


@pytest.mark.parametrize("root", [WHERE, ELSEWHERE])
def test_what_a_dead_process_had_is_left_whichever_run_it_was_of(ours: dict[str, str], root: Path) -> None:
    assert owner.is_left(changed(ours, pid=dead_pid()), root)
    # a number that another process has by now
    assert owner.is_left(changed(ours, started=1), root)
    assert owner.is_left(changed(ours, pid=1, started=0), root)
    assert owner.is_left(changed(ours, boot="another boot"), root)


def test_one_that_nobody_has_waited_for_yet_is_dead(ours: dict[str, str]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        mine = changed(ours, pid=process.pid, started=int(stat.read_bytes().rpartition(b")")[2].split()[19]))
        assert not owner.is_left(mine, ELSEWHERE)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert owner.is_left(mine, ELSEWHERE)


def test_numbers_of_another_namespace_tell_nothing_of_other_runs(ours: dict[str, str]) -> None:
    """Two proctors in containers that have one name and one engine do not see one another's processes."""
    for numbers in ("pid:[1]", None):
        theirs = changed(ours, pid=dead_pid(), numbers=numbers)
        assert not owner.is_left(theirs, ELSEWHERE)
        # the run's own folder is locked by whoever prunes it
        assert owner.is_left(theirs, WHERE)


@pytest.mark.parametrize("root", [WHERE, ELSEWHERE])
def test_what_another_host_may_use_is_not_left(ours: dict[str, str], root: Path) -> None:
    assert not owner.is_left(changed(ours, host="another", pid=dead_pid()), root)


@pytest.mark.parametrize(
    "said",
    ["", "null", "[]", "{", "{}", '{"pid": 1}', "[" * 100_000, '{"host": "h", "boot": null, "pid": 1, "started": 1}'],
    ids=lambda said: said[:20],
)
def test_a_label_of_another_form_names_no_owner(ours: dict[str, str], said: str) -> None:
    assert not owner.is_left({**ours, owner.OWNER: said}, WHERE)


@pytest.mark.parametrize(
    "fields",
    [
        {"pid": "1"},
        {"pid": True},
        {"pid": None},
        {"host": None},
        {"boot": 1},
        {"started": 1.5},
        {"numbers": 1},
        {"x": 1},
    ],
    ids=str,
)
def test_a_field_of_another_type_names_no_owner(ours: dict[str, str], fields: dict[str, Any]) -> None:
    assert not owner.is_left(changed(ours, **{"started": 1, **fields}), WHERE)


@pytest.mark.parametrize("pid", [2**70, 0, -1])
def test_a_number_that_no_process_has(ours: dict[str, str], pid: int) -> None:
    assert owner.is_left(changed(ours, pid=pid), WHERE)


def test_labels_that_others_wrote_are_nobody_s(ours: dict[str, str]) -> None:
    for name in (owner.OWNER, owner.SCRATCH):
        assert not owner.is_left({key: text for key, text in ours.items() if key != name}, WHERE)
    assert not owner.is_left({"proctor": "run", "com.example.run": str(WHERE)}, WHERE)


@pytest.mark.parametrize("name", ["plain", 'it\'s $HOME `a` \\ "b" # é%20'])
def test_what_a_build_makes_carries_its_owner_in_one_plain_word(tmp_path: Path, name: str) -> None:
    admitted = seal_admitted(run_id="r", run_dir=tmp_path / name, design_sha256="0" * 64, label="proctor-r")
    mark = owner.mark(admitted)
    assert set(mark) <= set("%-._~" + string.ascii_letters + string.digits)
    assert not owner.is_left_of_build({owner.BUILDING: mark}, ELSEWHERE)
    dead = quote(json.dumps(changed(owner.labels(tmp_path / name / "scratch", admitted), pid=dead_pid())))
    assert owner.is_left_of_build({owner.BUILDING: dead}, ELSEWHERE)
    far = quote(json.dumps(changed(owner.labels(WHERE, admitted), pid=dead_pid(), numbers="pid:[1]")))
    assert not owner.is_left_of_build({owner.BUILDING: far}, ELSEWHERE)
    assert owner.is_left_of_build({owner.BUILDING: far}, WHERE)


@pytest.mark.parametrize("said", ["", "1", "{}", "[]", "%7B", "%FF", "[" * 100_000, '{"proctor.owner": 1}'])
def test_a_mark_of_another_form_is_nobody_s(said: str) -> None:
    assert not owner.is_left_of_build({owner.BUILDING: said}, WHERE)
    assert not owner.is_left_of_build({}, WHERE)
