"""Prices by exact names: what the installed table lists, what our rows can say of it, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import Any

import pytest
from genai_prices import data
from genai_prices.types import (
    ClauseAnd,
    ClauseEquals,
    ClauseOr,
    ClauseStartsWith,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    PriceVariant,
    Provider,
    StartDateConstraint,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)

from proctor.budget.table import find_prices, overridden, table_record
from proctor.core.money import Usd
from proctor.core.prices import PriceRow, Prices
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket, Usage

PLAIN = ModelPrice(input_mtok=Decimal("1.25"), output_mtok=Decimal(10))
ON = date(2026, 11, 30)


def info(name: str, prices: ModelPrice | list[ConditionalPrice], match: Any = None, **more: Any) -> ModelInfo:
    return ModelInfo(id=name, match=match or ClauseEquals(equals=name), prices=prices, **more)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ModelInfo]]:
    """A table of one provider, `acme`, whose models a test puts in."""
    models: list[ModelInfo] = []
    monkeypatch.setattr(data, "providers", [Provider(id="acme", name="Acme", api_pattern="acme", models=models)])
    yield models


def refused(provider: str, model: str, on: date = ON) -> Refusal:
    with pytest.raises(Refusal) as caught:
        find_prices(provider, model, on)
    assert caught.value.reason is Reason.PRICE_UNKNOWN
    return caught.value


def rows(prices: Prices) -> dict[tuple[str, int], str]:
    return {(row.bucket, row.above_inputs): row.usd_per_million for row in prices.rows}


def test_what_no_price_names_exactly_is_refused_with_names_that_are_close() -> None:
    refusal = refused("openai", "gpt-5-nano-hack")
    assert "gpt-5-nano" in str(refusal.required)
    assert refusal.observed == "gpt-5-nano-hack"


@pytest.mark.parametrize("name", ["GPT-5", " gpt-5", "gpt-5 ", "openai/gpt-5", ""])
def test_a_name_is_exact_to_the_letter(name: str) -> None:
    refused("openai", name)


def test_an_unknown_provider_is_refused_with_ones_that_are_close() -> None:
    assert "anthropic" in str(refused("antropic", "claude-opus-5").required)


def test_ids_and_listed_aliases_have_the_price_patterns_do_not(table: list[ModelInfo]) -> None:
    match = ClauseOr(
        or_=[
            ClauseEquals(equals="alias"),
            ClauseOr(or_=[ClauseEquals(equals="nested")]),
            ClauseAnd(and_=[ClauseEquals(equals="conjunct")]),
            ClauseStartsWith(starts_with="start"),
        ]
    )
    table.append(info("id", PLAIN, match))
    for name in ("id", "alias", "nested"):
        assert rows(find_prices("acme", name, ON))[("input", 0)] == "1.250000000000"
    for name in ("conjunct", "start", "start-2", "alia"):
        refused("acme", name)


def test_a_name_of_two_models_is_refused(table: list[ModelInfo]) -> None:
    table += [info("one", PLAIN, ClauseEquals(equals="same")), info("two", PLAIN, ClauseEquals(equals="same"))]
    assert "2 models" in refused("acme", "same").message


def test_no_provider_stands_in_for_another(table: list[ModelInfo], monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(info("model", PLAIN))
    other = Provider(id="other", name="", api_pattern="", fallback_model_providers=["acme"])
    monkeypatch.setattr(data, "providers", [*data.providers, other])
    refused("other", "model")


def test_every_bucket_has_its_own_rows(table: list[ModelInfo]) -> None:
    table.append(
        info(
            "m",
            ModelPrice(
                input_mtok=TieredPrices(Decimal(3), [Tier(400, Decimal(9)), Tier(200, Decimal(6))]),
                cache_read_mtok=Decimal("0.3"),
                cache_write_mtok=Decimal("3.75"),
                cache_write_1h_mtok=Decimal(6),
                output_mtok=TieredPrices(Decimal(15), [Tier(200, Decimal("22.5"))]),
                input_audio_mtok=Decimal(7),
                output_audio_mtok=Decimal(8),
                requests_kcount=Decimal(12),
                web_searches_kcount=Decimal(10),
                input_image_mtok=None,
            ),
        )
    )
    found = find_prices("acme", "m", ON)
    assert rows(found) == {
        ("input", 0): "3.000000000000",
        ("input", 200): "6.000000000000",
        ("input", 400): "9.000000000000",
        ("cache_read", 0): "0.300000000000",
        ("cache_write", 0): "3.750000000000",
        ("cache_write_1h", 0): "6.000000000000",
        ("output", 0): "15.000000000000",
        ("output", 200): "22.500000000000",
        ("reasoning", 0): "15.000000000000",
        ("reasoning", 200): "22.500000000000",
        ("audio_in", 0): "7.000000000000",
        ("audio_out", 0): "8.000000000000",
    }
    assert found.per_request == "0.012000000000"
    assert found.source == f"genai-prices {version('genai-prices')}: acme/m; reasoning billed as output"


def test_a_listed_price_of_reasoning_holds(table: list[ModelInfo]) -> None:
    table.append(info("m", ModelPrice(input_mtok=Decimal(1), output_mtok=Decimal(8), output_reasoning_mtok=Decimal(3))))
    found = find_prices("acme", "m", ON)
    assert rows(found)[("reasoning", 0)] == "3.000000000000"
    assert "reasoning billed" not in found.source


def test_dust_is_rounded_up(table: list[ModelInfo]) -> None:
    table.append(info("m", ModelPrice(input_mtok=Decimal("0.18000000000000002"), output_mtok=Decimal("1e-13"))))
    assert rows(find_prices("acme", "m", ON)) == {
        ("input", 0): "0.180000000001",
        ("output", 0): "0.000000000001",
        ("reasoning", 0): "0.000000000001",
    }


def dated(*starts: tuple[Any, int]) -> list[ConditionalPrice]:
    return [
        ConditionalPrice(constraint=constraint, prices=ModelPrice(input_mtok=Decimal(usd), output_mtok=Decimal(usd)))
        for constraint, usd in starts
    ]


@pytest.mark.parametrize(("on", "usd"), [(date(2026, 6, 30), 1), (date(2026, 7, 1), 2), (date(2026, 9, 1), 3)])
def test_the_price_is_that_of_the_day(table: list[ModelInfo], on: date, usd: int) -> None:
    starts = [StartDateConstraint(date(2026, 7, 1)), StartDateConstraint(date(2026, 9, 1))]
    table.append(info("m", dated((None, 1), (starts[0], 2), (starts[1], 3))))
    found = find_prices("acme", "m", on)
    assert rows(found)[("input", 0)] == f"{usd}.000000000000"
    assert ("since" in found.source) == (usd > 1)


def test_before_the_first_day_there_is_none(table: list[ModelInfo]) -> None:
    table.append(info("m", dated((StartDateConstraint(date(2027, 1, 1)), 1))))
    assert "none on 2026-11-30" in refused("acme", "m").message


HOURS = TimeOfDateConstraint(datetime(2026, 1, 1, 1, tzinfo=UTC).timetz(), datetime(2026, 1, 1, 4, tzinfo=UTC).timetz())


def test_a_price_by_the_hour_is_refused(table: list[ModelInfo]) -> None:
    table.append(info("m", dated((None, 1), (HOURS, 2))))
    assert "hour" in refused("acme", "m").message


def test_a_price_by_the_hour_that_is_over_stands_in_no_way(table: list[ModelInfo]) -> None:
    table.append(info("m", dated((None, 1), (HOURS, 2), (StartDateConstraint(date(2026, 7, 1)), 3))))
    assert rows(find_prices("acme", "m", ON))[("input", 0)] == "3.000000000000"
    assert "hour" in refused("acme", "m", date(2026, 6, 30)).message


def test_variants_such_as_batches_are_never_taken(table: list[ModelInfo]) -> None:
    batch = PriceVariant(when={"processing": "batch"}, prices=ModelPrice(input_mtok=Decimal("0.1")))
    table.append(info("m", PLAIN, price_variants=[batch]))
    assert rows(find_prices("acme", "m", ON))[("input", 0)] == "1.250000000000"


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        (ModelPrice(), "input and output"),
        (ModelPrice(input_mtok=Decimal(1)), "none for output"),
        (ModelPrice(input_mtok=None, output_mtok=Decimal(1)), "none for input"),
        (ModelPrice(**vars(PLAIN), audio_hours=Decimal(1)), "audio_hours"),
        (ModelPrice(**vars(PLAIN), output_image_mtok=Decimal(1)), "output_image_mtok"),
        (ModelPrice(**vars(PLAIN), output_citation_mtok=Decimal(1)), "output_citation_mtok"),
        (ModelPrice(**vars(PLAIN), a_new_unit_kcount=Decimal(1)), "a_new_unit_kcount"),
        (ModelPrice(**vars(PLAIN), requests_kcount=TieredPrices(Decimal(1), [])), "requests_kcount"),
        (
            ModelPrice(input_mtok=TieredPrices(Decimal(1), [Tier(0, Decimal(2))]), output_mtok=Decimal(1)),
            "two prices for one tier",
        ),
    ],
)
def test_what_no_row_can_say_is_refused(table: list[ModelInfo], prices: ModelPrice, says: str) -> None:
    table.append(info("m", prices))
    assert says in refused("acme", "m").message


def test_a_model_that_searches_by_itself_is_refused_unless_its_requests_have_a_price(table: list[ModelInfo]) -> None:
    table += [info("x-search-preview", PLAIN), info("sonar", ModelPrice(**vars(PLAIN), requests_kcount=Decimal(12)))]
    assert "searches" in refused("acme", "x-search-preview").message
    assert find_prices("acme", "sonar", ON).per_request == "0.012000000000"


@pytest.mark.parametrize("provider", ["zhipuai", "databricks"])
def test_prices_that_stand_in_for_what_is_billed_are_refused(provider: str) -> None:
    for each in data.providers:
        if each.id == provider:
            refused(provider, each.models[0].id)


def test_every_price_that_is_found_has_both_sides_and_reasoning_and_is_no_debt() -> None:
    found = 0
    for provider in data.providers:
        # each look-up reads all names of the provider
        for model in provider.models[:120]:
            try:
                prices = find_prices(provider.id, model.id, ON)
            except Refusal:
                continue
            found += 1
            assert {"input", "output", "reasoning"} <= {row.bucket for row in prices.rows}
            assert prices.worst_case(0, 0) >= Usd(0)
            assert all(Usd.parse(row.usd_per_million) >= Usd(0) for row in prices.rows)
    assert found > 800


def test_costs_are_those_of_the_library_where_it_is_asked_about_the_same() -> None:
    moment = datetime(2026, 11, 30, 12, tzinfo=UTC)
    from genai_prices import Usage as TheirUsage
    from genai_prices import calc_price

    for provider, model in [("openai", "gpt-5"), ("anthropic", "claude-haiku-5-5"), ("google", "gemini-2.5-flash")]:
        ours = find_prices(provider, model, moment.date())
        for fresh, cached, out in [(3, 0, 550), (90_000, 10_000, 1), (90_000, 10_001, 1), (250_000, 7, 9_999)]:
            theirs = calc_price(
                TheirUsage(input_tokens=fresh + cached, cache_read_tokens=cached, output_tokens=out),
                model,
                provider_id=provider,
                genai_request_timestamp=moment,
            )
            usage = Usage({Bucket.INPUT: fresh, Bucket.CACHE_READ: cached, Bucket.OUTPUT: out})
            assert str(ours.cost(usage)) == f"{theirs.total_price:.12f}"


@pytest.mark.parametrize("model", ["practice-1", "any other"])
def test_the_practice_provider_has_prices_above_zero_whatever_its_model(model: str) -> None:
    assert rows(find_prices("practice", model)) == {
        ("input", 0): "0.250000000000",
        ("output", 0): "2.000000000000",
        ("reasoning", 0): "2.000000000000",
    }


@pytest.mark.parametrize(("per", "usd"), [("1M", "1.25"), ("1k", "0.00125"), ("1", "0.00000125")])
def test_prices_of_a_study_are_for_as_many_tokens_as_it_says(per: str, usd: str) -> None:
    given = overridden(input=Usd.parse(usd), output=Usd.parse(usd), per=per, source="a page, 2026-11-01")
    assert given == Prices(
        "a page, 2026-11-01; reasoning billed as output",
        tuple(PriceRow(bucket, 0, "1.250000000000") for bucket in ("input", "output", "reasoning")),
    )


def test_a_study_prices_the_cache_only_where_it_says_so() -> None:
    given = overridden(input=Usd(4), output=Usd(3), cache_read=Usd(2), cache_write=Usd(0), per="1M", source="a page")
    assert rows(given) == {
        ("input", 0): "0.000000000004",
        ("cache_read", 0): "0.000000000002",
        ("cache_write", 0): "0.000000000000",
        ("output", 0): "0.000000000003",
        ("reasoning", 0): "0.000000000003",
    }


@pytest.mark.parametrize("usd", [Usd(-1), Usd.parse("1000000000000")])
def test_a_price_of_a_study_that_is_no_price_is_refused(usd: Usd) -> None:
    with pytest.raises(Refusal) as caught:
        overridden(input=usd, output=Usd(0), per="1", source="a page")
    assert caught.value.reason is Reason.MONEY_INVALID


def test_the_record_names_the_table_whatever_the_day(table: list[ModelInfo]) -> None:
    table.append(info("m", PLAIN))
    first = table_record()
    assert first == {"package": "genai-prices", "version": version("genai-prices"), "models": 1, **sha(first)}
    assert table_record() == first
    table[0] = info("m", ModelPrice(input_mtok=Decimal("1.250000000001"), output_mtok=Decimal(10)))
    assert table_record()["sha256"] != first["sha256"]
    table[0] = info("m", PLAIN, ClauseOr(or_=[ClauseEquals(equals="m"), ClauseEquals(equals="n")]))
    assert table_record()["sha256"] != first["sha256"]


def sha(record: dict[str, Any]) -> dict[str, str]:
    assert len(record["sha256"]) == 64
    return {"sha256": record["sha256"]}


def test_the_table_is_loaded_when_a_price_is_looked_up_and_not_before() -> None:
    script = (
        "import sys; import proctor.budget.table as t; assert not [m for m in sys.modules if 'genai' in m]; "
        "t.find_prices('practice', 'x'); assert not [m for m in sys.modules if 'genai' in m]; "
        "t.find_prices('openai', 'gpt-5'); assert 'genai_prices.data' in sys.modules"
    )
    path = [str(each) for each in sys.path if each.endswith("src")]
    subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {path}; {script}"], check=True, timeout=60)
