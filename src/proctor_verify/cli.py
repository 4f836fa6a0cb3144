"""`python -m proctor_verify RUN`: parses, verifies, prints."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from proctor_verify.checks import CHECKS
from proctor_verify.report import render_checks, render_json, render_text
from proctor_verify.verification import verify


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 all hold, 1 something fails or cannot be told, 2 could not read."""
    parser = argparse.ArgumentParser(
        prog="proctor_verify",
        description="Re-check a run from its evidence alone.",
        epilog="exit status: 0 all hold; 1 something fails or cannot be told; 2 could not read. "
        "Without --key nobody can tell who signed: that alone is a warning.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("run", nargs="?", metavar="RUN", help="the run folder")
    what.add_argument("--checks", action="store_true", help="print the table of checks and stop")
    parser.add_argument("--key", metavar="KEY", help="who is trusted: a vkey, a file that holds one, or sha256:HEX")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(arguments)
    if options.checks:
        print(render_checks([(check.id, check.doc) for check in CHECKS]))
        return 0
    report = verify(options.run, options.key)
    text = render_json(report) if options.json else render_text(report)
    # A terminal that cannot show a character is no reason to stop.
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))
    return report.exit_status
