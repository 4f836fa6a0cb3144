"""What several checks say at once, and what they cannot tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from verdicts import Case, all_cases


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.what)
def test_what_is_said_and_what_cannot_be_told(case: Case, tmp_path: Path) -> None:
    signer = case.write(tmp_path)
    assert case.holds(tmp_path, signer), case.said(tmp_path, signer)
