"""Whatever is wrong with a row, `proctor check` refuses it by its reason: each is one that its guard declares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.admission.admit import check
from proctor.admission.facts import Request
from proctor.core.reasons import Reason

STUDY = '[study]\nname = "s"\n[tasks]\nquestions = "rows.jsonl"\n[agent]\nname = "oracle"\n'
ROW = {"id": "a", "prompt": "What is 1 + 1?", "target": "2"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scorer": "python", "scorer_function": "nowhere:near"}, Reason.TOOL_INVALID),
        ({"scorer": "judge"}, Reason.NOT_IN_THIS_VERSION),
        ({"target": None}, Reason.QUESTION_INVALID),
        ({"files": ["nowhere.txt"]}, Reason.QUESTION_INVALID),
        ({"tools": ["abacus"]}, Reason.UNKNOWN_NAME),
    ],
)
def test_a_row_that_is_wrong_is_refused(tmp_path: Path, change: dict[str, object], reason: Reason) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW | change) + "\n")
    (tmp_path / "study.toml").write_text(STUDY)
    verdict = check(Request("check", tmp_path / "run", study=tmp_path / "study.toml"))
    assert [refusal.reason for refusal in verdict.refusals] == [reason]
