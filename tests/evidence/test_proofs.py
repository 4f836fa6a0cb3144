"""Proofs of trials and of growth: right at every size, from any index, however old, spoiled or made by whom."""

from __future__ import annotations

import base64
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journal_parts import KEY
from proctor.core import strictjson
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import merkle, notes
from proctor.evidence.kinds import Kind
from proctor.evidence.proof_index import TILE, cache_dir
from proctor.evidence.proofs import TrialReceipt
from proctor.evidence.proving import prove_extends, prove_trial
from proctor_verify.merkle import consistent, included
from proof_parts import Written, id_of, named, written


def proven(made: Written, number: int, cache: Path | None = None) -> TrialReceipt:
    return prove_trial(made.run, id_of(number), cache=cache)


def head(note: bytes) -> notes.Checkpoint:
    return notes.Checkpoint.parse(notes.parse(note).text)


def refused(call: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        call()
    return caught.value


def kept(cache: Path) -> Path:
    (file,) = cache.glob("*.sqlite")
    return file


@pytest.fixture
def made(tmp_path: Path) -> Written:
    """Three tiles and a bit."""
    return written(tmp_path / "run", 80, 8)


@pytest.mark.parametrize("entries", [3, TILE - 1, TILE, TILE + 1, 2 * TILE - 1, 2 * TILE, 2 * TILE + 1, 1300])
def test_each_final_is_proven_at_sizes_around_tiles(entries: int, tmp_path: Path) -> None:
    made = Written(tmp_path / "run")
    while made.chain.size < entries - 1:
        made.trial(min(40, entries - made.chain.size - 2 - 1))
    assert made.chain.size in (entries, entries - 1)
    made.checkpoint()
    for number, line in enumerate(made.finals):
        for cache in (None, tmp_path / "cache"):
            receipt = proven(made, number, cache)
            checkpoint = head(receipt.note)
            leaf = merkle.leaf_hash(receipt.line.encode())
            assert (receipt.index, receipt.trial, checkpoint.size) == (line, named(number), made.chain.size)
            assert receipt.line.encode() == made.lines[line]
            assert included(leaf, line, checkpoint.size, receipt.hashes, checkpoint.root)


@settings(max_examples=15, deadline=None)
@given(data=st.data(), fillers=st.lists(st.integers(0, 90), min_size=1, max_size=12))
def test_a_journal_that_grew_between_proofs(
    data: st.DataObject, fillers: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("grown")
    made, cache, old = Written(folder / "run"), folder / "cache", []
    for filler in fillers:
        made.trial(filler)
        old.append(made.checkpoint())
        number = data.draw(st.integers(0, len(made.finals) - 1))
        assert proven(made, number, cache) == proven(made, number)
        earlier = data.draw(st.sampled_from(old))
        proof = prove_extends(made.run, earlier, cache=cache)
        before, after = head(earlier), head(proof.note)
        assert after.size == made.chain.size
        assert consistent(before.size, before.root, after.size, after.root, proof.hashes)
    assert len(list(cache.iterdir())) == 1


def test_the_file_is_the_published_form(made: Written) -> None:
    receipt = proven(made, 3)
    first, extra, index, *hashes = receipt.encode().partition(b"\n\n")[0].decode().split("\n")
    assert (first, index) == ("c2sp.org/tlog-proof@v1", f"index {made.finals[3]}")
    said = strictjson.loads_canonical(base64.b64decode(extra.removeprefix("extra ")))
    assert said == {"line": receipt.line, "trial": named(3), "anchored": [], "vkey": KEY.vkey}
    assert [base64.b64decode(each) for each in hashes] == list(receipt.hashes)
    assert receipt.encode().endswith(b"\n\n" + receipt.note)


def test_the_newest_anchored_checkpoint_is_taken_before_a_newer_one(tmp_path: Path) -> None:
    made = written(tmp_path / "run", 3)
    first = made.chain.size
    made.trial()
    made.checkpoint()
    second = made.chain.size
    made.trial()
    made.checkpoint()
    assert head(proven(made, 0).note).size == made.chain.size
    made.receipt(first)
    made.receipt(second)
    made.receipt(second, "drop")
    receipt = proven(made, 0)
    assert head(receipt.note).size == second
    assert receipt.anchored == (
        {"anchor": "drop", "location": "at drop", "commit": None},
        {"anchor": "git", "location": "at git", "commit": "c" * 40},
    )
    assert head(proven(made, 4).note).size == made.chain.size, "an anchor that does not cover it is none"
    (made.path / f"checkpoints/{second:012d}.git.json").write_bytes(b"[]")
    assert refused(lambda: proven(made, 0)).reason is Reason.EVIDENCE_DAMAGED


def _shift(database: sqlite3.Connection) -> None:
    database.execute("UPDATE trials SET final = final + 1")


SPOILED: dict[str, Callable[[sqlite3.Connection], object]] = {
    "finals one line on": _shift,
    "finals far beyond": lambda db: db.execute("UPDATE trials SET final = 1000000000"),
    "finals that are text": lambda db: db.execute("UPDATE trials SET final = 'x'"),
    "no trials": lambda db: db.execute("DELETE FROM trials"),
    "other admissions": lambda db: db.execute("UPDATE trials SET admitted = 11"),
    "other subtrees": lambda db: db.execute("UPDATE nodes SET hash = zeroblob(32)"),
    "subtrees that are counts": lambda db: db.execute("UPDATE nodes SET hash = 5"),
    "no subtrees": lambda db: db.execute("DELETE FROM nodes"),
    "tiles elsewhere": lambda db: db.execute("UPDATE tiles SET offset = offset + 7"),
    "tiles before the start": lambda db: db.execute("UPDATE tiles SET offset = -5"),
    "no tiles": lambda db: db.execute("DELETE FROM tiles"),
    "an end elsewhere": lambda db: db.execute("UPDATE ends SET offset = 100"),
    "no end": lambda db: db.execute("DELETE FROM ends"),
    "no tables": lambda db: [db.execute(f"DROP TABLE {name}") for name in ("tiles", "nodes", "trials", "ends")],
    "another format": lambda db: db.execute("PRAGMA user_version = 9"),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_an_index_that_lies_is_made_anew(
    spoil: Callable[[sqlite3.Connection], object], made: Written, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    right = [proven(made, number, cache) for number in (0, 40, 79)]
    database = sqlite3.connect(kept(cache))
    spoil(database)
    database.commit()
    database.close()
    assert [proven(made, number, cache) for number in (0, 40, 79)] == right


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_an_index_that_is_none_is_made_anew(content: bytes, made: Written, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    right = proven(made, 5, cache)
    kept(cache).write_bytes(content)
    assert proven(made, 5, cache) == right
    assert kept(cache).stat().st_size > len(content)


def test_where_no_index_can_be_kept_proofs_are_made_all_the_same(made: Written, tmp_path: Path) -> None:
    right = proven(made, 5)
    (tmp_path / "file").write_bytes(b"")
    assert proven(made, 5, tmp_path / "file" / "cache") == right
    cache = tmp_path / "cache"
    proven(made, 5, cache)
    file = kept(cache)
    file.unlink()
    file.mkdir()
    assert proven(made, 5, cache) == right


def test_an_index_that_another_process_writes_is_left_to_it(made: Written, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    right = proven(made, 5, cache)
    other = sqlite3.connect(kept(cache), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    before = kept(cache).stat().st_ino
    assert proven(made, 5, cache) == right
    assert kept(cache).stat().st_ino == before
    other.close()


def test_two_runs_of_one_id_have_an_index_each(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    one, other = Written(tmp_path / "one"), Written(tmp_path / "two", planned=2)
    for each in (one, other):
        each.trial()
        each.checkpoint()
        proven(each, 0, cache)
    assert len(list(cache.iterdir())) == 2


def flip(made: Written, line: int, at: int = 5) -> None:
    journal = made.path / "journal.jsonl"
    data = bytearray(journal.read_bytes())
    data[sum(len(each) + 1 for each in made.lines[:line]) + at] ^= 1
    journal.write_bytes(data)


@pytest.mark.parametrize("line", [1, 9, TILE + 3, 3 * TILE + 5])
@pytest.mark.parametrize("known", [True, False])
def test_a_changed_line_anywhere_is_never_proven_over(line: int, known: bool, made: Written, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    if known:
        right = proven(made, 5, cache)
    flip(made, line)
    if known:
        # where its own part is as it was, what the index has of the rest still leads to the signed root
        try:
            assert proven(made, 5, cache) == right
        except Refusal as refusal:
            assert refusal.reason is Reason.EVIDENCE_DAMAGED
    assert refused(lambda: proven(made, 5)).reason is Reason.EVIDENCE_DAMAGED


def test_what_cannot_be_proven_is_refused(tmp_path: Path) -> None:
    made = written(tmp_path / "run", 2)
    cache = tmp_path / "cache"
    assert refused(lambda: proven(made, 7, cache)).reason is Reason.TRIAL_UNFINISHED
    made.trial()
    made.flush()
    late = refused(lambda: proven(made, 2, cache))
    assert late.reason is Reason.TRIAL_UNFINISHED and "no checkpoint" in late.message
    made.checkpoint()
    assert proven(made, 2, cache).index == made.finals[2]
    os.truncate(made.path / "journal.jsonl", (made.path / "journal.jsonl").stat().st_size - 200)
    assert refused(lambda: proven(made, 0)).reason is Reason.EVIDENCE_DAMAGED
    (made.path / "journal.jsonl").unlink()
    assert refused(lambda: proven(made, 0)).reason is Reason.RUN_NOT_FOUND


@pytest.mark.parametrize("start", [b"", b"no newline", b"[]\n", b"\xff\n", b"{}\n" * 300])
def test_a_journal_that_is_none(start: bytes, tmp_path: Path) -> None:
    made = written(tmp_path / "run", 1)
    (made.path / "journal.jsonl").write_bytes(start)
    assert refused(lambda: proven(made, 0, tmp_path / "cache")).reason is Reason.EVIDENCE_DAMAGED


def test_a_line_that_is_too_long(tmp_path: Path) -> None:
    made = written(tmp_path / "run", 1)
    with (made.path / "journal.jsonl").open("ab") as journal:
        journal.write(b"x" * 70_000 + b"\n")
    assert refused(lambda: proven(made, 0, tmp_path / "cache")).reason is Reason.EVIDENCE_DAMAGED


def test_a_checkpoint_of_another_key_or_run_proves_nothing(made: Written) -> None:
    path = made.path / f"checkpoints/{made.chain.size:012d}.note"
    note = path.read_bytes()
    path.write_bytes(note.replace(b"proctor/run/", b"proctor/ran/"))
    assert refused(lambda: proven(made, 0)).reason is Reason.EVIDENCE_DAMAGED
    path.write_bytes(note[:-20] + b"A" * 17 + note[-3:])
    assert refused(lambda: proven(made, 0)).reason is Reason.EVIDENCE_DAMAGED
    path.unlink()
    os.mkfifo(path)
    assert refused(lambda: proven(made, 0)).reason is Reason.EVIDENCE_UNREADABLE


def test_a_journal_that_does_not_extend_what_was_kept(tmp_path: Path) -> None:
    was, now = written(tmp_path / "was", 3), Written(tmp_path / "now")
    now.trial(2)
    now.trial(5)
    now.trial()
    now.checkpoint()
    note = (was.path / f"checkpoints/{was.chain.size:012d}.note").read_bytes()
    refusal = refused(lambda: prove_extends(now.run, note, cache=tmp_path / "cache"))
    assert refusal.reason is Reason.EVIDENCE_DAMAGED
    later = written(tmp_path / "later", 9)
    beyond = (later.path / f"checkpoints/{later.chain.size:012d}.note").read_bytes()
    assert refused(lambda: prove_extends(was.run, beyond, cache=None)).reason is Reason.EVIDENCE_DAMAGED
    assert refused(lambda: prove_extends(was.run, b"nothing", cache=None)).reason is Reason.EVIDENCE_DAMAGED


def test_where_indexes_are_kept(tmp_path: Path) -> None:
    assert cache_dir({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "proctor" / "proofs"
    assert cache_dir({"XDG_CACHE_HOME": "relative"}) == cache_dir({}) == Path.home() / ".cache/proctor/proofs"


ODD = st.sampled_from([None, True, 7, -1.5, "", "x\x1b[2J", "../..", [], [1], {}, {"a": None}])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_signed_nonsense_is_proven_or_refused(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = Written(tmp_path_factory.mktemp("odd") / "run")
    made.trial(1)
    entries = [strictjson.loads(line) for line in made.pending]
    entry = data.draw(st.sampled_from(entries))
    name = data.draw(st.sampled_from([*entry["body"], *(f"key.{part}" for part in ("vkey", "fingerprint"))]))
    value = data.draw(ODD)
    if name.startswith("key."):
        entries[0]["body"]["key"][name[4:]] = value
    else:
        entry["body"][name] = value
    made.pending.clear()
    made.chain = type(made.chain)()
    for each in entries:
        kind = Kind.by_id(each["kind"])
        assert kind is not None
        made.add(kind, each["body"])
    made.checkpoint()
    try:
        assert proven(made, 0).trial == named(0)
    except Refusal as refusal:
        assert refusal.reason in (Reason.EVIDENCE_DAMAGED, Reason.TRIAL_UNFINISHED, Reason.JSON_INVALID)
