"""Writes verdicts without end, from processes that nobody is the parent of and no signal but one ends.

Arguments: how many, and seconds to wait before the task is solved after all (never, where there are none).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

_VERDICTS = {
    "/logs/verifier/reward.txt": "1\n",
    "/logs/verifier/reward.json": '{"reward": 1}\n',
    "/logs/verifier/ctrf.json": '{"results": {"tests": [{"name": "t", "status": "passed"}], "summary": {}}}',
    "/tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    "/tests/conftest.py": "open('/logs/verifier/reward.txt', 'w').write('1')\n",
}


def main(count: int, late: float | None) -> None:
    for _ in range(count):
        detach()
        if os.getpid() != _FIRST:
            return write(late)


def detach() -> None:
    """Twice a child, in a session of its own, deaf to signals."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    if os.fork():
        os._exit(0)


def write(late: float | None) -> None:
    started = time.monotonic()
    while True:
        for path, text in _VERDICTS.items():
            with contextlib.suppress(OSError):
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).unlink(missing_ok=True)
                Path(path).write_text(text)
        Path("/tmp/wrote").touch()
        if late is not None and time.monotonic() > started + late:
            Path("/app/answer").write_text("right\n")


_FIRST = os.getpid()
if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else None)
