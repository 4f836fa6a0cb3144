"""What is wrong with numbers of entries is said once, however many entries come after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from steps import Step
from stories import full_story


@pytest.mark.parametrize("all_after", [False, True])
def test_a_number_that_is_left_out_is_one_finding(all_after: bool, tmp_path: Path) -> None:
    # imported here and not before: the mutation run has many programs
    from proctor_verify import verify

    story = full_story()
    first = story.find("block.admitted", block=3)
    for step in story.steps[story.at(first) : -1] if all_after else [first]:
        assert isinstance(step, Step)
        step.after = lambda entry: entry.update(seq=entry["seq"] + 1)
    story.write(tmp_path)
    report = verify(tmp_path, story.signer.fingerprint)
    assert report.failed() == ["journal.sequence"]
    assert {result.check: result.seen for result in report.results}["journal.sequence"] == "1 finding"
