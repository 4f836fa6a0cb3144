"""Public copies: what is asked for is left out, nothing else is, and what is left verifies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from anchored import anchored_story
from hypothesis import given, settings
from hypothesis import strategies as st
from money_stories import money_story
from stories import full_story

from disks import UnsyncedDisk
from journal_parts import agent_started, attempt_admitted, attempt_ended, create, ended, reopen, write_empty
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock
from proctor.evidence.public.copying import Copier
from proctor.evidence.public.publish import Published, publish
from proctor.evidence.public.withhold import DEFAULT, Withhold
from proctor.evidence.reader import read_blob, read_entries, shown_blob
from proctor.evidence.runfolder import RunFolder
from proctor_verify import verify
from run_parts import Story, Try, make_run

TESTS = Path(__file__).resolve().parents[1]
KEY = full_story().signer.fingerprint
_FIELDS = {
    Withhold.INSTRUCTIONS: [("agent.started", "instruction")],
    Withhold.REQUESTS: [("exchange.admitted", "request"), ("exchange.refused", "request")],
    Withhold.RESPONSES: [("exchange.ended", "response"), ("exchange.ended", "chunks")],
    Withhold.ANSWERS: [("answer.scored", "answer")],
}
_STORIES = {"files": full_story, "exchanges": money_story}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs that have met everything between them."""
    return {name: story().write(tmp_path_factory.mktemp(name)) for name, story in _STORIES.items()}


@pytest.fixture
def run(made: dict[str, Path], tmp_path: Path) -> Path:
    """The one with files, large blobs and quarantined bytes."""
    shutil.copytree(made["files"], tmp_path / "run")
    return tmp_path / "run"


def refs(path: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """Kind of entry, field and blob reference of each that a run has."""
    return [
        (str(getattr(entry.kind, "id", entry.kind)), name, ref)
        for entry in read_entries(path / "journal.jsonl")
        for name, ref in entry.body.items()
        if isinstance(ref, dict) and "blob" in ref
    ]


def listed(copy: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((copy / "withheld.json").read_bytes())
    return value


def files(path: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    walked = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return {each.relative_to(path).as_posix(): each.read_bytes() for each in walked}


def copied(run: Path, out: Path, *asked: Withhold) -> Published:
    return publish(RunFolder(run), out, asked or DEFAULT)


def test_what_was_said_is_left_out_and_the_copy_verifies(made: dict[str, Path], tmp_path: Path) -> None:
    run, out = made["exchanges"], tmp_path / "copy"
    said = copied(run, out)
    report = verify(out, KEY)
    assert report.exit_status == 0
    wanted = {field for kind in DEFAULT for field in _FIELDS[kind]}
    withheld = {ref["blob"]: ref["size"] for kind, name, ref in refs(run) if (kind, name) in wanted}
    assert {each["blob"]: each["size"] for each in listed(out)["blobs"]} == withheld
    assert (set(said.withheld), listed(out)["files"]) == ({kind.word for kind in DEFAULT}, [])
    assert said.scored == sum(entry.kind is Kind.ANSWER_SCORED for entry in read_entries(run / "journal.jsonl")) > 0
    assert sum(bodies for bodies, _ in said.withheld.values()) == len(withheld)
    size = sum(withheld.values())
    assert f"not shown: {len(withheld)} bodies ({size:,} bytes) are withheld in this copy" in report.caveats
    before, after = files(run), files(out)
    assert after.pop("withheld.json") and after.keys() == before.keys()
    assert [path for path in after if after[path] != before[path]] == ["packs/0001.pack"]
    texts = (b"What of", b"So of", b"[[0,0]]", b"Answer of", b"Do row-0")
    assert all(text in before["packs/0001.pack"] for text in texts)
    assert not any(text in content for text in texts for name, content in after.items() if name != "journal.jsonl")


@settings(max_examples=12, deadline=None)
@given(asked=st.sets(st.sampled_from(list(Withhold))), name=st.sampled_from(list(_STORIES)))
def test_each_choice_leaves_out_what_it_asks_for_and_nothing_else(
    asked: set[Withhold], name: str, made: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, out = made[name], tmp_path_factory.mktemp("copies") / "copy"
    publish(RunFolder(run), out, asked)
    report = verify(out, KEY)
    assert (report.exit_status, report.failed()) == (0, [])
    wanted = {field for kind in asked for field in _FIELDS.get(kind, [])}
    withheld = {ref["blob"] for kind, field, ref in refs(run) if (kind, field) in wanted}
    for _, _, ref in refs(out):
        content = shown_blob(RunFolder(out), ref)
        assert content == (None if ref["blob"] in withheld else read_blob(RunFolder(run), ref))
    folders = {Withhold.AGENT_FILES: "agent", Withhold.VERIFIER_FILES: "verifier", Withhold.ARTIFACTS: "artifacts"}
    of_attempts = [path for path in files(run) if path.startswith("trials/")]
    left_out = {path for path in of_attempts for kind in asked if path.split("/")[3] == folders.get(kind)}
    left_out = {path for path in left_out if not path.endswith("/verifier/reward.txt")}
    assert {each["path"] for each in listed(out)["files"]} == left_out
    blobs = {path for path in files(run) if path.startswith("blobs/") and path[-64:] in withheld}
    assert files(run).keys() - files(out).keys() == left_out | blobs


async def _with_one_text_twice(path: Path) -> None:
    run, journal = await create(path)
    body = attempt_admitted()
    await journal.append(Kind.ATTEMPT_ADMITTED, body)
    text = b"the same text " * 20
    started = agent_started(body["attempt"])
    await journal.append(Kind.AGENT_STARTED, started, blobs={"instruction": text})
    await journal.append(Kind.AGENT_STARTED, started, blobs={"instruction": b"another text " * 20})
    scored = {"attempt": body["attempt"], "scorer": "exact", "detail": "x"}
    await journal.append(Kind.ANSWER_SCORED, scored, blobs={"answer": text})
    await journal.append(Kind.ATTEMPT_ENDED, attempt_ended(body["attempt"]))
    write_empty(run)
    await journal.close(ended())


async def test_a_body_of_two_kinds_is_left_out_if_one_is_asked_for(tmp_path: Path) -> None:
    await _with_one_text_twice(tmp_path / "run")
    said = copied(tmp_path / "run", tmp_path / "copy", Withhold.ANSWERS)
    assert said.withheld == {"answers": (1, 280)}
    copy = RunFolder(tmp_path / "copy")
    shown = [
        shown_blob(copy, e.body["instruction"]) for e in read_entries(copy.journal_path) if "instruction" in e.body
    ]
    assert shown == [None, b"another text " * 20]


async def _large(path: Path, *, frames: int, size: int) -> None:
    run, journal = await create(
        path,
    )
    body = attempt_admitted()
    await journal.append(Kind.ATTEMPT_ADMITTED, body)
    for content in [*(os.urandom(size) for _ in range(frames)), os.urandom(8 << 20)]:
        await journal.append(Kind.AGENT_STARTED, agent_started(body["attempt"]), blobs={"instruction": content})
    await journal.append(Kind.ATTEMPT_ENDED, attempt_ended(body["attempt"]))
    write_empty(run)
    await journal.close(ended())


async def test_a_large_pack_of_what_is_withheld_takes_no_room(tmp_path: Path) -> None:
    await _large(tmp_path / "run", frames=16, size=1 << 20)
    tracemalloc.start()
    copied(tmp_path / "run", tmp_path / "copy", Withhold.INSTRUCTIONS)
    copied(tmp_path / "run", tmp_path / "whole", Withhold.ANSWERS)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 << 20
    pack = (tmp_path / "copy/packs/0001.pack").stat()
    assert pack.st_size == (tmp_path / "run/packs/0001.pack").stat().st_size == 16 << 20
    assert pack.st_blocks * 512 < 1 << 20
    assert not (tmp_path / "copy/blobs").exists()
    assert files(tmp_path / "whole/packs") == files(tmp_path / "run/packs")
    assert files(tmp_path / "whole/blobs") == files(tmp_path / "run/blobs")


# What is no evidence.


def test_what_no_entry_names_is_never_copied(run: Path, tmp_path: Path) -> None:
    with (run / "packs/0001.pack").open("ab") as pack:
        pack.write(b"SECRET frame that no entry names")
    with (run / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"body":{"SECRET')
    attempt = next(run.glob("trials/*/0"))
    for path in ("notes.txt", "packs/0007.pack", f"blobs/00/{'0' * 64}", "scratch/x", ".reserve", "manifests/x.json"):
        (run / path).parent.mkdir(parents=True, exist_ok=True)
        (run / path).write_bytes(b"SECRET")
    for name in ("agent/more.txt", ".hidden"):
        (attempt / name).write_bytes(b"SECRET")
    said = copied(run, tmp_path / "copy", Withhold.ARTIFACTS)
    assert not any(b"SECRET" in data for data in files(tmp_path / "copy").values())
    assert verify(tmp_path / "copy", KEY).exit_status == 0
    assert not (tmp_path / "copy/lock").exists()
    assert {path for path, _ in said.left_out.first} == {
        "journal.jsonl",
        "packs/0001.pack",
        "packs/0007.pack",
        "notes.txt",
        "manifests/x.json",
        f"blobs/00/{'0' * 64}",
        f"{attempt.relative_to(run).as_posix()}/agent/more.txt",
    }
    assert said.left_out.count == 7
    assert said.left_out.size == sum(size for _, size in said.left_out.first) == 32 + 16 + 5 * 6


def test_modes_are_plain(run: Path, tmp_path: Path) -> None:
    for path in run.rglob("*"):
        path.chmod(0o4700)
    before = os.umask(0o022)
    try:
        copied(run, tmp_path / "copy")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o7777 for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert modes == {0o644}
    assert {path.stat().st_mode & 0o7777 for path in (tmp_path / "copy").rglob("*") if path.is_dir()} == {0o755}


async def test_a_run_without_an_end_is_copied_as_it_is(tmp_path: Path) -> None:
    await make_run(tmp_path / "run", story=Story(default=(Try(left_open=True),)), end=None)
    said = copied(tmp_path / "run", tmp_path / "copy")
    assert not said.ended
    found = verify(tmp_path / "run", KEY).failed()
    assert "run.ended" in found and verify(tmp_path / "copy", KEY).failed() == found


async def test_quarantined_bodies_are_left_out_with_any_kind_of_body(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    body = attempt_admitted()
    await journal.append(Kind.ATTEMPT_ADMITTED, body)
    await journal.append(Kind.AGENT_STARTED, agent_started(body["attempt"]), blobs={"instruction": b"x" * 100})
    await journal.close(None)
    write_empty(run)
    with (run.packs / "0001.pack").open("ab") as pack:
        pack.write(b"a frame of a response that no entry came to name")
    with run.journal_path.open("ab") as tail:
        tail.write(b'{"body":')
    _, journal = await reopen(run.path)
    await journal.close(ended())
    set_aside = {path for path in files(run.path) if path.startswith("quarantine/")}
    assert len(set_aside) == 2
    said = copied(run.path, tmp_path / "copy")
    assert {each["path"] for each in listed(tmp_path / "copy")["files"]} == {
        path for path in set_aside if path.endswith("0001.pack")
    }
    assert said.withheld["quarantined"][0] == 1
    assert copied(run.path, tmp_path / "shown", Withhold.ARTIFACTS).withheld == {}
    for copy in ("copy", "shown"):
        assert verify(tmp_path / copy).failed() == verify(run.path).failed()


_NAMES = [
    "agent/.dot/x",
    "agent/a b\nc",
    'agent/"quoted"\\',
    "agent/\uffff",
    "agent/\U00010000",
    "agent/\u00fc",
    "artifacts/\u2028",
    "verifier/reward.txt/below",
    "verifier/x",
    "other.txt",
]


async def test_files_of_any_name(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run", disk=UnsyncedDisk())
    body = attempt_admitted()
    await journal.append(Kind.ATTEMPT_ADMITTED, body)
    named = [run.write_atomic(f"{body['folder']}/{name}", name.encode()) for name in _NAMES]
    below = [{**file.as_record(), "path": name, "role": "source"} for file, name in zip(named, _NAMES, strict=True)]
    await journal.append(Kind.ATTEMPT_FILES, {"attempt": body["attempt"], "files": below})
    await journal.append(Kind.ATTEMPT_ENDED, attempt_ended(body["attempt"]))
    write_empty(run)
    await journal.close(ended())
    kinds = (Withhold.AGENT_FILES, Withhold.VERIFIER_FILES, Withhold.ARTIFACTS)
    said = copied(run.path, tmp_path / "copy", *kinds)
    assert said.left_out.count == 0
    assert [each["path"] for each in listed(tmp_path / "copy")["files"]] == sorted(
        f"{body['folder']}/{name}" for name in _NAMES if name != "other.txt"
    )
    assert [path for path in files(tmp_path / "copy") if path.startswith("trials/")] == [f"{body['folder']}/other.txt"]
    for asked in (kinds, (Withhold.ANSWERS,)):
        shutil.rmtree(tmp_path / "copy")
        copied(run.path, tmp_path / "copy", *asked)
        failed = verify(tmp_path / "copy").failed()
        assert "withheld.named" not in failed and failed == verify(run.path).failed()


# What refuses.


def _refused(run: Path, out: Path) -> Refusal:
    with pytest.raises(Refusal) as refused:
        copied(run, out)
    assert not list(out.parent.glob(".*.partial"))
    return refused.value


def _link(run: Path) -> None:
    next(run.glob("trials/*/0/agent")).joinpath("link").symlink_to("/etc/passwd")


def _linked_folder(run: Path) -> None:
    folder = next(run.glob("trials/*/0/agent"))
    folder.rename(run.parent / "elsewhere")
    folder.symlink_to(run.parent / "elsewhere")


def _fifo(run: Path) -> None:
    os.mkfifo(run / "packs/0003.pack")


def _altered(run: Path, pattern: str) -> None:
    path = next(run.glob(pattern))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _cut(run: Path) -> None:
    """Its last entry is gone, and the checkpoint that covers it stands."""
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (run / "journal.jsonl").write_bytes(b"".join(lines[:-1]))


_DAMAGE: dict[str, Callable[[Path], object]] = {
    "a link": _link,
    "a link in the place of a folder": _linked_folder,
    "a FIFO": _fifo,
    "a link in the place of the journal": lambda run: _moved(run / "journal.jsonl"),
    "a frame that is another": lambda run: _altered(run, "packs/0001.pack"),
    "a large blob that is another": lambda run: _altered(run, "blobs/*/*"),
    "a large blob that is gone": lambda run: next(run.glob("blobs/*/*")).unlink(),
    "a file that is another": lambda run: _altered(run, "trials/*/0/attempt.json"),
    "a file that is gone": lambda run: next(run.glob("trials/*/0/agent/stdout.log")).unlink(),
    "a pack that is cut": lambda run: os.truncate(run / "packs/0001.pack", 5),
    "a pack that is cut where all is withheld": lambda run: os.truncate(run / "packs/0002.pack", 5),
    "a journal that was cut": _cut,
    "a line that is another": lambda run: _altered(run, "journal.jsonl"),
    "no design": lambda run: (run / "design.json").unlink(),
    "a design that is another": lambda run: _altered(run, "design.json"),
    "a design that has no end": lambda run: os.truncate(run / "design.json", 1 << 40),
    "a manifest that is another": lambda run: _altered(run, "manifests/0002.json"),
    "a manifest that is gone": lambda run: (run / "manifests/0003.json").unlink(),
    "a checkpoint that is another": lambda run: _altered(run, "checkpoints/000000000001.note"),
    "a checkpoint that is gone": lambda run: min((run / "checkpoints").glob("*.note")).unlink(),
    "a file that has no end": lambda run: os.truncate(next(run.glob("trials/*/0/attempt.json")), 1 << 40),
    "a reward file that is another": lambda run: next(run.glob("trials/*/0/verifier/reward.txt")).write_bytes(b"0"),
}


def _moved(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


@pytest.mark.parametrize("what", _DAMAGE)
def test_a_run_that_is_damaged_refuses(what: str, run: Path, tmp_path: Path) -> None:
    _DAMAGE[what](run)
    with pytest.raises(Refusal) as refused:
        copied(run, tmp_path / "copy", Withhold.INSTRUCTIONS if "withheld" in what else Withhold.ARTIFACTS)
    assert refused.value.reason is Reason.EVIDENCE_DAMAGED and refused.value.path
    assert sorted(path.name for path in tmp_path.glob("*copy*")) == []


@pytest.mark.parametrize("how", ["another", "gone"])
def test_a_receipt_that_is_not_as_named_refuses(how: str, tmp_path: Path) -> None:
    run = anchored_story().write(tmp_path / "run")
    receipt = min((run / "checkpoints").glob("*.json"))
    copied(run, tmp_path / "copy")
    assert (tmp_path / "copy/checkpoints" / receipt.name).read_bytes() == receipt.read_bytes()
    receipt.unlink()
    if how == "another":
        receipt.write_bytes(b"{}")
    refusal = _refused(run, tmp_path / "again")
    assert (refusal.reason, refusal.path) == (Reason.EVIDENCE_DAMAGED, f"checkpoints/{receipt.name}")


def test_a_run_that_somebody_writes_refuses(run: Path, tmp_path: Path) -> None:
    lock = Lock.acquire(RunFolder(run), extra={})
    try:
        assert _refused(run, tmp_path / "copy").reason is Reason.RUN_LOCKED
    finally:
        lock.release()


def test_a_run_that_is_taken_up_meanwhile_refuses(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish = Copier.finish

    def meanwhile(copier: Copier, unnamed: Collection[str]) -> None:
        with (run / "journal.jsonl").open("ab") as journal:
            journal.write(b"{}\n")
        finish(copier, unnamed)

    monkeypatch.setattr(Copier, "finish", meanwhile)
    assert _refused(run, tmp_path / "copy").reason is Reason.RUN_LOCKED
    assert not (tmp_path / "copy").exists()


def test_places_that_a_copy_cannot_go_to(run: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").touch()
    (tmp_path / "file").touch()
    assert _refused(run, tmp_path / "full").reason is Reason.WOULD_OVERWRITE
    assert _refused(run, tmp_path / "file").reason is Reason.WOULD_OVERWRITE
    assert _refused(run, run).reason is Reason.WOULD_OVERWRITE
    assert _refused(run, run / "copy").reason is Reason.OUTPUT_UNWRITABLE
    assert _refused(run, tmp_path / "file/copy").reason is Reason.OUTPUT_UNWRITABLE
    assert _refused(run, tmp_path / ("x" * 300)).reason is Reason.OUTPUT_UNWRITABLE
    (tmp_path / "loop").symlink_to("loop")
    assert _refused(run, tmp_path / "loop").reason in (Reason.OUTPUT_UNWRITABLE, Reason.WOULD_OVERWRITE)
    (tmp_path / "empty").mkdir()
    copied(run, tmp_path / "empty")
    assert verify(tmp_path / "empty", KEY).exit_status == 0


def test_a_copy_has_no_copy(run: Path, tmp_path: Path) -> None:
    copied(run, tmp_path / "copy")
    assert _refused(tmp_path / "copy", tmp_path / "again").reason is Reason.EVIDENCE_WITHHELD


_DYING = """
import os, sys
from pathlib import Path
from proctor.evidence.public import publish as made
from proctor.evidence.runfolder import RunFolder
where = sys.argv[3]
def die(*words, **more):
    os.kill(os.getpid(), 9)
if where == "rename":
    Path.rename = die
else:
    setattr(made.Copier, where, die)
made.publish(RunFolder(Path(sys.argv[1])), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("where", ["take", "finish", "_whole", "rename"])
def test_a_process_that_dies_leaves_nothing_that_looks_whole(where: str, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent / "src")}
    words = [sys.executable, "-c", _DYING, str(run), str(out), where]
    assert subprocess.run(words, env=environment, timeout=60).returncode == -9
    assert not out.exists()
    copied(run, out)
    assert verify(out, KEY).exit_status == 0


def test_a_copy_that_is_altered_fails_as_a_run_does(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    copied(run, out, Withhold.INSTRUCTIONS)
    (out / "packs/0001.pack").write_bytes((run / "packs/0001.pack").read_bytes())
    assert verify(out, KEY).failed() == ["withheld.named"]
    shutil.rmtree(out)
    copied(run, out)
    next(out.glob("trials/*/0/verifier/reward.txt")).write_bytes(b"0")
    assert verify(out, KEY).failed() == ["files.digests", "grades.recomputed"]


def test_an_operator_who_leaves_out_a_reward_file_is_found(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    copied(run, out)
    reward = next(out.glob("trials/*/0/verifier/reward.txt"))
    attempt = reward.parent.parent.relative_to(out).as_posix()
    named = next(
        file
        for entry in read_entries(out / "journal.jsonl")
        for file in entry.body.get("files", [])
        if file["path"] == "verifier/reward.txt"
    )
    reward.unlink()
    item = {"path": f"{attempt}/verifier/reward.txt", "sha256": named["sha256"], "size": named["size"]}
    written = {**listed(out), "files": [item]}
    (out / "withheld.json").write_text(json.dumps(written, separators=(",", ":"), sort_keys=True))
    report = verify(out, KEY)
    assert report.failed() == ["withheld.named"] and report.exit_status == 1


def test_whoever_is_shown_a_body_holds_it_against_its_digest(made: dict[str, Path], tmp_path: Path) -> None:
    run, out = made["exchanges"], tmp_path / "copy"
    copied(run, out)
    copy = RunFolder(out)
    request = next(ref for _, name, ref in refs(out) if name == "request")
    with pytest.raises(Refusal) as refused:
        read_blob(copy, request)
    assert refused.value.reason is Reason.EVIDENCE_WITHHELD
    (tmp_path / "body").write_bytes(read_blob(RunFolder(run), request))
    said = subprocess.run(["sha256sum", tmp_path / "body"], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout.split()[0] == request["blob"]
