"""`python -m proctor_verify RUN`: parses, verifies, prints."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from proctor_verify import documents, standalone
from proctor_verify.checks import CHECKS
from proctor_verify.designs_alone import render_design_text, verify_design
from proctor_verify.report import checks_json, render_checks, render_json, render_text
from proctor_verify.verification import verify


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 all hold, 1 something fails or cannot be told, 2 could not read."""
    parser = argparse.ArgumentParser(
        prog="proctor_verify",
        description="Re-check a run from its evidence alone.",
        epilog="exit status: 0 all hold; 1 something fails or cannot be told; 2 could not read. "
        "Without --key nobody can tell who signed; that alone leaves the status as it is.",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="RUN",
        help="the run folder, or a receipt, a proof or an attestation; after an attestation, the run that it speaks of",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--design", metavar="FILE", help="check a frozen design (a design.json) alone")
    what.add_argument("--checks", action="store_true", help="print the table of checks, what each asks, and stop")
    parser.add_argument(
        "--key",
        metavar="KEY",
        action=_Once,
        help="who is trusted: a fingerprint (sha256:HEX), a public key (vkey), or a file that holds one",
    )
    parser.add_argument(
        "--anchor",
        metavar="WHERE",
        action="append",
        default=[],
        help="where checkpoints of the run stand too: a git repository (its address or folder), a folder, or a note; "
        "again for more",
    )
    parser.add_argument(
        "--since", metavar="NOTE", action=_Once, help="a checkpoint that was kept: what is new extends it"
    )
    parser.add_argument(
        "--witness",
        metavar="VKEY",
        action="append",
        default=[],
        help="who else must have signed a checkpoint: a public key (vkey), or a file that holds one; again for more",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = _parsed(parser, list(sys.argv[1:] if arguments is None else arguments))
    _refuse_empty(parser, options)
    if (options.checks or options.design is not None) == bool(options.paths):
        parser.error("one of RUN, --design and --checks is needed, and no more than one")
    if options.checks:
        checks = [(check.id, check.doc) for check in CHECKS]
        checks += [(check.id, check.doc) for check in documents.CHECKS]
        print(checks_json(checks) if options.json else render_checks(checks))
        return 0
    if options.design is not None:
        if options.key is not None or options.since is not None or options.anchor or options.witness:
            parser.error("a design alone is signed by nobody, and stands nowhere else")
        found = verify_design(options.design)
        _say(render_json(found) if options.json else render_design_text(found))
        return found.exit_status
    path, *more = options.paths
    if len(more) == 1 and not documents.is_file(path) and documents.is_file(more[0]):
        parser.error("the attestation comes first, then the run that it speaks of")
    if len(more) == 1 and not os.path.lexists(path):
        parser.error(f"{path}: nothing stands there")
    if len(more) > 1 or (more and not documents.is_file(path)):
        parser.error("one run at a time; a second one goes with an attestation")
    if documents.is_file(path):
        told = documents.verify_file(
            path,
            options.key,
            since=options.since,
            run=more[0] if more else None,
            anchors=options.anchor,
            witnesses=options.witness,
        )
        _say(render_json(told) if options.json else standalone.render_text(told))
        return told.exit_status
    report = verify(path, options.key, anchors=options.anchor, since=options.since, witnesses=options.witness)
    _say(render_json(report) if options.json else render_text(report))
    return report.exit_status


class _Once(argparse.Action):
    """An option that is given once: of two answers to one question the last would win, and the first be forgotten."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option} is given twice")
        setattr(namespace, self.dest, values)


def _parsed(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """Paths may stand on both sides of an option; behind `--` there are paths alone, which the library forgets."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_intermixed_args(arguments[:end])
    options.paths += arguments[end + 1 :]
    return options


def _refuse_empty(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """An empty path would be taken for the current folder; behind an option, `--` is a list of nothing."""
    one = {"--design": options.design, "--key": options.key, "--since": options.since}
    several = {"RUN": options.paths, "--anchor": options.anchor, "--witness": options.witness}
    for name, words in [*((name, [word]) for name, word in one.items()), *several.items()]:
        if "" in words:
            parser.error(f"{name} is empty")
        if [] in words:
            parser.error(f"{name} names nothing")


def _say(text: str) -> None:
    # A terminal that cannot show a character is no reason to stop.
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))
