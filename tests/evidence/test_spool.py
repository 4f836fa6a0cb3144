"""Large contents on their way into blobs: by way of a draft, which is a blob, or nothing, at the end."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from journal_parts import attempt_admitted, create, reopen
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import MAX_FRAME_CONTENT, Content, Spooled
from proctor.evidence.reader import read_blob, read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.spool import Spool

PIECE = b"0123456789abcdef" * 4_096
PIECES = MAX_FRAME_CONTENT // len(PIECE) + 2
WHOLE = PIECE * PIECES


def spooled(run: RunFolder, pieces: int = PIECES) -> Content:
    spool = Spool(run)
    for _ in range(pieces):
        spool.write(PIECE)
    return spool.finish()


def drafts(run: RunFolder) -> list[Path]:
    return list(run.blobs.rglob(".*"))


async def say(journal: Journal, content: Content, **more: Any) -> int:
    body = {"attempt": attempt_admitted()["attempt"], "scorer": "exact", "detail": "", **more}
    return await journal.append(Kind.ANSWER_SCORED, body, blobs={"answer": content})


def answers(run: RunFolder) -> list[dict[str, Any]]:
    return [entry.body["answer"] for entry in read_entries(run.journal_path) if entry.kind is Kind.ANSWER_SCORED]


async def test_what_is_large_becomes_a_file_and_what_is_not_a_frame(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    large, small, nothing = spooled(run), spooled(run, 2), Spool(run).finish()
    assert isinstance(large, Spooled) and (large.size, large.sha256) == (len(WHOLE), hashlib.sha256(WHOLE).hexdigest())
    assert (small, nothing) == (PIECE * 2, b"")
    for content in (large, small):
        await say(journal, content)
    await journal.close(None)
    first, second = answers(run)
    assert first == {"blob": large.sha256, "size": large.size, "path": f"blobs/{large.sha256[:2]}/{large.sha256}"}
    assert "pack" in second
    assert [read_blob(run, ref) for ref in (first, second)] == [WHOLE, PIECE * 2]
    assert drafts(run) == []


async def test_the_same_content_again_leaves_no_draft(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    await say(journal, spooled(run))
    await say(journal, spooled(run))
    await journal.close(None)
    first, second = answers(run)
    assert first == second and drafts(run) == []


async def test_an_entry_that_is_not_written_leaves_no_draft(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    with pytest.raises(Refusal) as caught:
        await say(journal, spooled(run), detail="x" * 70_000)
    assert caught.value.reason is Reason.ENTRY_TOO_LARGE
    await say(journal, b"small")
    await journal.close(None)
    assert len(answers(run)) == 1 and drafts(run) == []


async def test_what_nobody_names_is_gone(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    spool = Spool(run)
    spool.write(PIECE)
    spool.discard()
    spool.discard()
    assert drafts(run) == []
    Spool(run).discard()
    await journal.close(None)


async def test_a_draft_of_a_dead_process_is_removed_when_the_run_is_taken_up(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    await journal.close(None)
    spooled(run)
    Spool(run).write(PIECE)
    assert len(drafts(run)) == 2
    run, journal = await reopen(tmp_path / "run")
    assert drafts(run) == []
    await journal.close(None)
