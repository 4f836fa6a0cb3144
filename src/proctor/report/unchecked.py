"""What is told of a run without having been checked says so, and where the check can be had."""

from __future__ import annotations

from pathlib import Path

from proctor.report.text import command, field, safe, short_path

NOT_FOLLOWING = "an entry does not follow the one before it"


def unchecked_line(run: Path) -> str:
    """That what stands above is the journal's word."""
    return f"unchecked  this is what the journal says; {_verify(run)} checks it"


def broken_lines(run: Path, broken: str) -> list[str]:
    """That nothing is to be believed; `broken` says where, and what was seen."""
    return field("BROKEN", safe(f"{broken}. Believe nothing that is told of this run: {_verify(run)}"))


def _verify(run: Path) -> str:
    return safe(command("proctor", "verify", short_path(run)))
