"""A shell for the operator in an attempt's world: the one that runs now, or a fork of the one that was kept.

What is done in it is outside of the record: a live world is the measured one, so this is for looking.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from pathlib import Path

from proctor.admission.admit import token_for
from proctor.admission.worlds import kind_of
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.runfolder import RunFolder
from proctor.rollout.scratch import kept, scratch_of
from proctor.sandbox.base import SandboxKind, SandboxSpec
from proctor.study.design import read_design


def open_shell(run: RunFolder, trial: str, attempts: int) -> int:
    """Open a shell in the latest attempt's world; returns the shell's exit status.

    Raises:
        Refusal: WORLD_GONE where no world of that trial runs or was kept, or what forking refuses.
    """
    kind = kind_of(read_design(run.design_path))
    for number in reversed(range(attempts)):
        scratch = scratch_of(run, trial, number)
        live = kind.enter(scratch)
        if live is not None:
            return subprocess.call(live)
        if kept(scratch) is not None:
            return asyncio.run(_in_fork(kind, run, scratch))
    raise Refusal(Reason.WORLD_GONE, "no world of that trial runs or was kept", path=str(run.path), observed=trial)


async def _in_fork(kind: SandboxKind, run: RunFolder, scratch: Path) -> int:
    found = kept(scratch)
    assert found is not None
    snapshot, env = found
    here = Path(tempfile.mkdtemp(prefix="shell-", dir=scratch))
    try:
        spec = SandboxSpec(name="shell", scratch=here, root=snapshot.root, env=env)
        world = await kind.fork(snapshot, spec, token_for(run))
        try:
            command = kind.enter(here)
            if command is None:
                raise Refusal(Reason.SANDBOX_LOST, "the forked world ended at once")
            return await asyncio.to_thread(subprocess.call, command)
        finally:
            await world.stop()
    finally:
        shutil.rmtree(here, ignore_errors=True)
