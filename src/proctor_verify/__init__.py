"""The second program: re-checks a run from its evidence alone, and shares no code with what made it."""

from __future__ import annotations

from proctor_verify.designs_alone import DesignReport, verify_design
from proctor_verify.documents import verify_file
from proctor_verify.report import Finding, Report, Result, Status
from proctor_verify.standalone import FileReport
from proctor_verify.verification import verify

__all__ = [
    "DesignReport",
    "FileReport",
    "Finding",
    "Report",
    "Result",
    "Status",
    "verify",
    "verify_design",
    "verify_file",
]
