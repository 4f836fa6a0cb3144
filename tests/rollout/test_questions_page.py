"""The examples of docs/questions.md are rows that are read, and that the oracle passes."""

from __future__ import annotations

import re
from pathlib import Path

from proctor.core.outcomes import GradeState
from proctor.core.questions import Scorer
from proctor.core.tokens import seal_admitted
from proctor.grading.scorers.score import check_row, target_text
from proctor.rollout.scoring import score_row
from proctor.rollout.workers import Workers
from proctor.tasks.questions import read_questions

PAGE = Path(__file__).resolve().parents[2] / "docs/questions.md"


async def test_the_oracle_passes_the_examples(tmp_path: Path) -> None:
    blocks = dict(re.findall(r"^```(jsonl|python)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))
    (tmp_path / "units.jsonl").write_text(blocks["jsonl"])
    (tmp_path / "forms.py").write_text(blocks["python"])
    questions, refusals = read_questions(
        tmp_path / "units.jsonl", scorer="number", scorer_function=None, check=check_row
    )
    assert refusals == [] and questions is not None
    token = seal_admitted(run_id="a" * 26, run_dir=tmp_path, design_sha256="0" * 64, label="proctor-test")
    async with Workers(token, tmp_path) as workers:
        rows = [questions.row(name) for name in questions.ids]
        assert {row.scorer for row in rows} == set(Scorer) - {Scorer.EXACT}
        for row in rows:
            found = await score_row(
                row, target_text(row), workers=workers, functions=questions.functions, deadline_sec=600
            )
            assert found.state is GradeState.PASS, (row.id, found.detail)
