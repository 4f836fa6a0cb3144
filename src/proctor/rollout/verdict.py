"""The verdict: tests brought in, run, and what they wrote read back as a grade."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.files import verdict_files
from proctor.grading.grade import Assurance, Grade, VerifierOutcome, grade
from proctor.grading.join import per_test_record
from proctor.grading.verdicts import read_verdicts
from proctor.rollout.job import Job
from proctor.rollout.worlds import OPEN, fetch_flat
from proctor.sandbox.base import Ended, Exec, PutItem, Sandbox, Snapshot
from proctor.tasks.scripts import RUN_FILE

VERDICT_PATH = "/logs/verifier"
_DETAIL = 600
_BESIDE = {
    Assurance.SHARED: "after everything in it was ended",
    Assurance.LIVE: "beside what it left running, which could have written the verdict",
}


async def run_tests(world: Sandbox, job: Job, output: Path) -> Ended:
    """Clear the verdict path, bring the tests in, run them, and bring the verdict out below `output`."""
    tests, plan = job.tests, job.separate or job.world
    items = [PutItem(VERDICT_PATH, mode=OPEN, fresh=True)]
    if tests.folder is not None:
        items.append(PutItem(tests.target, source=tests.folder, fresh=True))
    try:
        await world.put(items)
    except Refusal as refusal:
        if refusal.reason is not Reason.PATH_UNSAFE:
            raise
        # the agent left something else than a folder above the verdict path: it goes
        await world.put([PutItem(str(PurePosixPath(VERDICT_PATH).parent), fresh=True), *items])
    ended = await world.exec(
        Exec(
            ("sh", "-c", RUN_FILE, "sh", f"{tests.target}/{tests.script}"),
            stdout=output / "test-stdout.txt",
            cwd=tests.cwd or plan.workdir,
            env={**plan.env, **tests.env},
            user=tests.user,
            deadline_sec=tests.timeout_sec,
        )
    )
    await fetch_flat(world, VERDICT_PATH, output)
    return ended


def read(output: Path, ended: Ended, job: Job) -> tuple[Grade, Any]:
    """The grade, and the content of `tests.json`."""
    verdicts = read_verdicts(verdict_files(output))
    outcome = VerifierOutcome(ended.exit_code, ended.signal, ended.timed_out, ended.start_error)
    graded = grade(verdicts, outcome, rule=job.rule, duplicate_tests=job.duplicate_tests, assurance=job.assurance)
    return graded, per_test_record(verdicts)


def inherited(job: Job, before: Snapshot | None) -> tuple[str, ...]:
    """What the verifier took over from the agent: its processes, its world, or a fork that has what it left."""
    if job.assurance is not Assurance.ISOLATED:
        where = f"the tests ran in the agent's own world, {_BESIDE[job.assurance]}"
        said = [f"{where}; what it changed of the system was not looked at"]
        if job.tests.network is not job.world.network:
            said.append(f"they had the agent's network ({job.world.network}), not their own ({job.tests.network})")
        return tuple(said)
    if before is None:
        return ()
    changed = before.facts.get("changed")
    if changed is None:
        return (f"it is not known what the agent changed of the system: {before.facts.get('changed_why_not')}",)
    if not changed:
        return ()
    counts = ", ".join(f"{folder}: {number}" for folder, number in sorted(changed.items()))
    paths = ", ".join(ascii(path) for path in before.facts.get("changed_paths", ()))
    return (f"the verifier ran on what the agent changed of the system ({counts}), such as {paths}"[:_DETAIL],)


def as_entry(graded: Grade) -> dict[str, Any]:
    """The body of `attempt.graded`."""
    record = graded.as_record()
    return {"grade": record.pop("state"), **record}
