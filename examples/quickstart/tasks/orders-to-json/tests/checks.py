"""Runs a task's checks one by one and writes the verdict: reward.txt and ctrf.json in /logs/verifier.

The same file stands in each task of the quickstart. What the agent made is only ever started as a program of its
own, with an environment of ours and a time limit; it is never imported.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

WORKDIR = Path("/app")
LOGS = Path("/logs/verifier")
LIMIT_SEC = 10
PATH = "/usr/local/bin:/usr/bin:/bin"
# What can go wrong in a check over what an agent left; anything else is a fault of the tests, and no verdict.
FAULTS = (AssertionError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)


def run(*argv, stdin="", cwd=WORKDIR):
    """Runs a program to its end and returns (status, stdout, stderr); nothing of its session is left after it."""
    child = subprocess.Popen(
        [str(word) for word in argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={"PATH": PATH, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        stdout, stderr = child.communicate(stdin, timeout=LIMIT_SEC)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"{argv[0]} did not end within {LIMIT_SEC} s") from error
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    return child.returncode, stdout, stderr


def equal(seen, wanted, what):
    """Fails with both values where they differ."""
    assert seen == wanted, f"{what}: {seen!r}, wanted {wanted!r}"


def main(*checks):
    """Runs every check; the reward is 1 if all pass, else 0."""
    start = time.time()
    rows = []
    for check in checks:
        began = time.time()
        row = {"name": check.__name__, "status": "passed"}
        try:
            check()
        except FAULTS as error:
            row["status"] = "failed"
            row["message"] = f"{type(error).__name__}: {error}"[:2000]
        row["duration"] = round((time.time() - began) * 1000)
        rows.append(row)
        print(row["status"], row["name"], row.get("message", ""))
    passed = sum(row["status"] == "passed" for row in rows)
    summary = {"tests": len(rows), "passed": passed, "failed": len(rows) - passed, "pending": 0, "skipped": 0}
    summary.update(other=0, start=round(start * 1000), stop=round(time.time() * 1000))
    report = {"results": {"tool": {"name": "checks.py"}, "summary": summary, "tests": rows}}
    write(LOGS / "ctrf.json", json.dumps({"reportFormat": "CTRF", "specVersion": "1.0.0", **report}, indent=1))
    write(LOGS / "reward.txt", "1\n" if passed == len(rows) else "0\n")


def write(path, text):
    """Replaces a file as a whole, whatever stood there (a link is not followed)."""
    LOGS.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    fresh.write_text(text)
    fresh.replace(path)
