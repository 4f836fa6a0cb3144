"""Rows for other programs: RFC 4180, no formulas, exact money, and files that are whole or not there."""

from __future__ import annotations

import csv
import io
import json
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from proctor.core.usage import Bucket
from run_parts import Ask, Story, Try, design, make_run

ASK = Ask({"messages": []}, None, {"input": 1200, "output": 90})
FORMS = ("csv", "jsonl")


@pytest.fixture
async def priced(tmp_path: Path) -> Path:
    """Two tasks in one arm with a made-up model; one trial had an attempt before that was interrupted."""
    cut = Try(outcome="interrupted", exception="interrupted", asks=(ASK,))
    story = Story(default=(Try(asks=(ASK,)),), tries={("=1+1", "only"): (cut, Try(asks=(ASK, ASK)))})
    await make_run(tmp_path / "run", design(("=1+1", 'a "b",\nc'), ("only",), models=("sun",)), story)
    return tmp_path / "run"


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_row_has_what_an_analysis_needs(proctor, priced: Path) -> None:
    rows = [json.loads(line) for line in proctor("results", priced, "--jsonl").out.splitlines()]
    (own,) = [row for row in rows if row["task"] == "=1+1"]
    told = proctor("results", priced, "--json").json()
    assert (own["run_id"], own["design_sha256"]) == (told["run_id"], told["design_sha256"])
    assert own["attempt"] == f"{own['trial']}/1" and own["attempts"] == 2 and own["superseded"] == 1
    # three exchanges, that of the interrupted attempt too: 1,200 in at $2 and 90 out at $10 for a million
    assert own["cost"] == "0.009900000000" and own["exchanges"] == 3
    assert (own["tokens_input"], own["tokens_output"], own["tokens_cache_read"]) == (3600, 270, 0)
    assert {f"tokens_{bucket.value}" for bucket in Bucket} <= own.keys()
    assert own["synthetic"] is True and own["assurance"] == "isolated" and own["cluster"] is None
    assert all(list(row) == list(rows[0]) for row in rows)


async def test_without_a_model_there_is_no_money_rather_than_none_spent(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run")
    rows = [json.loads(line) for line in proctor("results", tmp_path / "run", "--jsonl").out.splitlines()]
    assert {(row["cost"], row["exchanges"], row["tokens_input"], row["synthetic"]) for row in rows} == {
        (None, None, None, False)
    }


def test_csv_is_as_rfc_4180_says(proctor, priced: Path) -> None:
    text = proctor("results", priced, "--csv").out
    head, *_ = text.split("\r\n")
    assert text.endswith("\r\n") and head.startswith("run_id,")
    assert '"a ""b"",\nc"' in text
    rows = read(text)
    assert [row["synthetic"] for row in rows] == ["true", "true"]
    assert {row["task"] for row in rows} == {"'=1+1", 'a "b",\nc'}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
async def test_no_cell_of_a_csv_is_a_formula(proctor, tmp_path: Path, start: str) -> None:
    name = f"{start}cmd|' /C calc'!A0"
    await make_run(tmp_path / "run", design((name,), ("only", name)), Story((Try(reward="-0.5"),)))
    rows = read(proctor("results", tmp_path / "run", "--csv").out)
    assert {(row["task"], row["reward"]) for row in rows} == {(f"'{name}", "-0.5")}, "numbers stay numbers"
    assert {row["arm"] for row in rows} == {"only", f"'{name}"}
    told = [json.loads(line)["task"] for line in proctor("results", tmp_path / "run", "--jsonl").out.splitlines()]
    assert told == [name, name]


def test_parquet_has_types_and_exact_money(proctor, priced: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    said = proctor("results", priced, "--parquet", "-o", file)
    assert (said.status, said.out) == (0, "")
    read = parquet.read_table(file)
    assert json.loads(read.schema.metadata[b"proctor.synthetic"]) == ["sun"]
    rows = [json.loads(line) for line in proctor("results", priced, "--jsonl").out.splitlines()]
    assert read.column_names == list(rows[0])
    assert str(read.schema.field("cost").type) == "decimal128(38, 12)"
    for row, told in zip(rows, read.to_pylist(), strict=True):
        assert told == row | {"cost": Decimal(row["cost"])}


async def test_parquet_of_a_run_without_models_has_the_same_columns(proctor, priced: Path, tmp_path: Path) -> None:
    await make_run(tmp_path / "other", story=Story(stop_after=1), end=None)
    for run in (priced, tmp_path / "other"):
        assert proctor("results", run, "--parquet", "-o", run.with_suffix(".parquet")).status == 0
    one, other = (parquet.read_schema(run.with_suffix(".parquet")) for run in (priced, tmp_path / "other"))
    assert one.equals(other)


def test_parquet_without_its_extra_says_how_to_get_it(
    proctor, priced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = proctor("results", priced, "--parquet", "-o", tmp_path / "rows.parquet")
    assert said.status == 3 and "extra_missing" in said.err and "-m pip install 'pyarrow>=17'`" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"], "nothing is left of it"


@pytest.mark.parametrize("form", FORMS)
def test_a_file_holds_what_standard_output_would(proctor, priced: Path, tmp_path: Path, form: str) -> None:
    file = tmp_path / "rows"
    file.write_text("what stood there")
    assert proctor("results", priced, f"--{form}", "-o", file).status == 0
    assert file.read_bytes().decode() == proctor("results", priced, f"--{form}").out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows", "run"]


def test_no_file_is_written_into_a_run(proctor, run: Path) -> None:
    before = sorted(run.rglob("*"))
    for place in ("rows.csv", "trials/rows.csv", "trials/../../run/rows.csv"):
        said = proctor("results", run, "--csv", "-o", run / place)
        assert said.status == 3 and "output_unwritable" in said.err and "inside the run" in said.err
    assert proctor("report", run, "-o", run / "report.html").status == 3
    assert sorted(run.rglob("*")) == before and proctor("verify", run).status == 0


def test_what_cannot_be_written_is_said(proctor, priced: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for place in (tmp_path, tmp_path / "nowhere/rows.csv", tmp_path / "loop"):
        said = proctor("results", priced, "--csv", "-o", place)
        assert said.status == 3 and "output_unwritable" in said.err


@pytest.mark.parametrize(
    "words", [("--parquet",), ("-o", "rows"), ("--csv", "--jsonl"), ("--json", "--parquet", "-o", "rows")]
)
def test_words_that_do_not_go_together(proctor, priced: Path, words: tuple[str, ...]) -> None:
    assert proctor("results", priced, *words).status == 2
