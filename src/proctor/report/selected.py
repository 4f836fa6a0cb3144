"""What a run left out of its stage because the command line said so: told with every result of it."""

from __future__ import annotations

from proctor.report.text import count, plain
from proctor.study import Design


def selection_text(design: Design) -> str | None:
    """The sentence that stands with a part's results; None where all of the stage is planned."""
    chosen = design.selection
    if chosen is None:
        return None
    parts = [] if chosen.limit is None else [f"--limit {chosen.limit} ({count(len(design.tasks), 'task')})"]
    parts += [f"--{key} {plain(names)}" for key, names in (("arm", chosen.arms), ("model", chosen.models)) if names]
    return f"PART of the stage: {'; '.join(parts)}. Nothing here is a result about all of it."
