"""Both programs price alike: any rows, any usage, on both sides of each tier's start."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from primitives import worst_case

from proctor.core.money import Usd
from proctor.core.prices import NoPrice, PriceRow
from proctor.core.prices import Prices as Ours
from proctor.core.usage import Bucket, Usage
from proctor_verify.prices import Prices, pico, usd
from proctor_verify.vocabulary import BUCKETS, INPUTS

STARTS = (0, 1, 2, 1000, 200_000)
AMOUNTS = st.one_of(st.integers(0, 3), st.integers(0, 10**15)).map(lambda picos: str(Usd(picos)))
TOKENS = st.one_of(st.sampled_from([n + d for n in STARTS for d in (-1, 0, 1) if n + d >= 0]), st.integers(0, 10**6))


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of a model: of each bucket that has any, one from 0."""
    rows = []
    for bucket in draw(st.sets(st.sampled_from(sorted(BUCKETS)))):
        for start in {0, *draw(st.sets(st.sampled_from(STARTS)))}:
            rows.append({"bucket": bucket, "above_inputs": start, "usd_per_million": draw(AMOUNTS)})
    return rows


def both(rows: list[dict[str, Any]], per_request: str | None) -> tuple[Ours, Prices]:
    record = {"source": "", "rows": rows, **({} if per_request is None else {"per_request": per_request})}
    return Ours("", tuple(PriceRow(**row) for row in rows), per_request), Prices(record)


def test_both_know_the_same_buckets() -> None:
    assert {bucket.value for bucket in Bucket} == BUCKETS
    assert Usage({Bucket(bucket): 1 for bucket in BUCKETS}).inputs == len(INPUTS)


@given(tables(), st.none() | AMOUNTS, st.dictionaries(st.sampled_from(sorted(BUCKETS)), TOKENS.filter(bool)))
def test_what_tokens_cost(rows: list[dict[str, Any]], per_request: str | None, usage: dict[str, int]) -> None:
    ours, theirs = both(rows, per_request)
    try:
        wanted = ours.cost(Usage({Bucket(bucket): count for bucket, count in usage.items()})).pico
    except NoPrice:
        wanted = None
    assert theirs.cost(usage) == wanted


@given(tables(), st.none() | AMOUNTS, TOKENS, TOKENS)
def test_the_worst_case(rows: list[dict[str, Any]], per_request: str | None, inputs: int, outputs: int) -> None:
    ours, theirs = both(rows, per_request)
    try:
        wanted = ours.worst_case(inputs, outputs).pico
    except NoPrice:
        wanted = None
    found = theirs.worst_case(inputs, outputs)
    assert found == wanted
    text = [row for row in rows if row["bucket"] not in ("audio_in", "tool_input", "audio_out")]
    if found is not None and per_request is None:
        assert usd(found) == worst_case(text, inputs, outputs)


@given(AMOUNTS)
def test_amounts_come_back_as_they_were(amount: str) -> None:
    assert usd(pico(amount)) == amount
