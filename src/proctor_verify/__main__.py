"""`python -m proctor_verify`."""

from __future__ import annotations

import os
import signal
import sys

from proctor_verify.cli import main

for number in range(3):
    # started without a standard stream: the first file that is opened must not become it
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)
sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)

try:
    status = main()
    sys.stdout.flush()
except BrokenPipeError:
    # Whoever read the report has read enough; Python would complain once more while it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    status = 128 + signal.SIGPIPE
except OSError as fault:
    # the report is not told: that is no verdict on the run
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(f"proctor_verify: the report could not be written: {fault.strerror}", file=sys.stderr)
    status = 2
except KeyboardInterrupt:
    status = 128 + signal.SIGINT
sys.exit(status)
