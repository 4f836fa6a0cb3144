"""A public copy that does not fit on its disk: it is said by type, and nothing of it stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_disks import mounted

from disks import UnsyncedDisk
from journal_parts import agent_started, attempt_admitted, attempt_ended, create, ended, write_empty
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.kinds import Kind
from proctor.evidence.public.publish import publish
from proctor.evidence.public.withhold import Withhold

pytestmark = pytest.mark.real


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path, "4m")


async def test_a_copy_that_does_not_fit(small_disk: Path, tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run", disk=UnsyncedDisk())
    body = attempt_admitted()
    await journal.append(Kind.ATTEMPT_ADMITTED, body)
    for _ in range(8):
        text = {"instruction": os.urandom(1 << 20)}
        await journal.append(Kind.AGENT_STARTED, agent_started(body["attempt"]), blobs=text)
    await journal.append(Kind.ATTEMPT_ENDED, attempt_ended(body["attempt"]))
    write_empty(run)
    await journal.close(ended())
    with pytest.raises(Refusal) as refused:
        publish(run, small_disk / "copy", {Withhold.REQUESTS})
    assert refused.value.reason is Reason.DISK_FULL
    assert "export again" in str(refused.value.remedy)
    assert list(small_disk.iterdir()) == []
    # What is withheld takes no room there.
    publish(run, small_disk / "copy", {Withhold.INSTRUCTIONS})
    assert (small_disk / "copy/packs/0001.pack").stat().st_size == 8 << 20
