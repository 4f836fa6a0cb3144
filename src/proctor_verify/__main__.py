"""`python -m proctor_verify`."""

from __future__ import annotations

import os
import signal
import sys

from proctor_verify.cli import main

try:
    status = main()
    sys.stdout.flush()
except BrokenPipeError:
    # Whoever read the report has read enough; Python would complain once more while it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    status = 128 + signal.SIGPIPE
except KeyboardInterrupt:
    status = 128 + signal.SIGINT
sys.exit(status)
