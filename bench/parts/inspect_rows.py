"""Question rows in inspect-ai with its mock model: run by `bench/rows.py` in a virtual environment that holds it.

python inspect_rows.py ROWS.jsonl LOGS
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate


def main() -> None:
    """Print samples and seconds as JSON on the last line."""
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]

    def outputs():
        while True:
            output = ModelOutput.from_content("mockllm/model", "42")
            output.usage = ModelUsage(input_tokens=20, output_tokens=1, total_tokens=21)
            yield output

    task = Task(
        dataset=[Sample(id=row["id"], input=row["prompt"], target=str(row["target"])) for row in rows],
        solver=generate(),
        scorer=match(numeric=True),
    )
    model = get_model("mockllm/model", custom_outputs=outputs())
    began, cpu = time.perf_counter(), time.process_time()
    (log,) = eval(task, model=model, log_dir=sys.argv[2], display="none", max_connections=64, max_samples=64)
    spent, used = time.perf_counter() - began, time.process_time() - cpu
    assert log.status == "success", log.error
    print(json.dumps({"samples": len(rows), "seconds": spent, "cpu": used}))


if __name__ == "__main__":
    main()
