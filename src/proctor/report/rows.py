"""A run's trials as rows for other programs: CSV, JSON lines and Parquet, one row a planned trial.

CSV is that of RFC 4180. A text that a spreadsheet would take for a formula (it starts with =, +, -, @, a tab or a
carriage return) has an apostrophe put before it: names come from whoever wrote the tasks. JSON lines and Parquet hold
every text as it is. Money is decimal text with 12 places, in Parquet decimal128(38, 12). What is absent is an empty
cell or null. `synthetic` says in each row whether its model is made up; a Parquet file says it in its metadata too.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain, islice
from typing import Any, BinaryIO, TextIO

from proctor.core.extras import require_extra
from proctor.report.reading import Reading

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_BATCH = 8192
_TEXTS = frozenset(
    {"run_id", "design_sha256", "trial", "task", "cluster", "model", "arm", "grade", "reason", "assurance"}
    | {"attempt", "exception", "folder"}
)
_FLAGS = frozenset({"synthetic", "final"})
_DOUBLES = frozenset({"reward", "duration_sec"})


def records(reading: Reading) -> Iterator[dict[str, Any]]:
    """One flat record a planned trial, in the order of the plan, all with the same names."""
    run = {"run_id": (reading.state.admitted or {}).get("run_id"), "design_sha256": reading.design.sha256}
    return ({**run, **row.as_record()} for row in reading.rows)


def write_csv(reading: Reading, out: TextIO) -> None:
    """With a header, lines ended by CR LF."""
    rows = records(reading)
    first = next(rows)
    writer = csv.DictWriter(out, list(first), lineterminator="\r\n")
    writer.writeheader()
    for record in chain([first], rows):
        writer.writerow({name: _cell(value) for name, value in record.items()})


def _cell(value: Any) -> Any:
    """As in JSON, but that what is absent is empty, and that nothing is a formula."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def write_jsonl(reading: Reading, out: TextIO) -> None:
    """One JSON object a line."""
    for record in records(reading):
        out.write(json.dumps(record, ensure_ascii=False) + "\n")


def write_parquet(reading: Reading, out: BinaryIO) -> None:
    """Row groups of 8,192 rows.

    Raises:
        Refusal: `extra_missing` where pyarrow is not installed.
    """
    said = {"does": "Parquet is written by", "path": "--parquet", "instead": "; or take --csv or --jsonl"}
    arrow, parquet = (require_extra(name, "pyarrow", "parquet", **said) for name in ("pyarrow", "pyarrow.parquet"))
    rows = records(reading)
    first = next(rows)
    made_up = json.dumps(list(reading.design.synthetic))
    schema = arrow.schema([(name, _type(arrow, name)) for name in first], metadata={"proctor.synthetic": made_up})
    with parquet.ParquetWriter(out, schema) as writer:
        whole = ({**record, "cost": _decimal(record["cost"])} for record in chain([first], rows))
        while batch := list(islice(whole, _BATCH)):
            writer.write_batch(arrow.RecordBatch.from_pylist(batch, schema=schema))


def _type(arrow: Any, name: str) -> Any:
    if name == "cost":
        return arrow.decimal128(38, 12)
    if name in _TEXTS:
        return arrow.string()
    if name in _FLAGS:
        return arrow.bool_()
    return arrow.float64() if name in _DOUBLES else arrow.int64()


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
