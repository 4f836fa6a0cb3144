"""`python -m proctor_verify`."""

from __future__ import annotations

import sys

from proctor_verify.cli import main

sys.exit(main())
