"""The price table: rows of our own, made from the snapshot of prices that the installed package brings.

A name has a price only if it is a model's id or an alias that is listed letter by letter; the package's patterns
(prefixes, parts, expressions) are never followed, nor one provider's prices for another. What our rows cannot say is
refused: prices by the hour, answers in pictures, charges for citations or for time, models that search by themselves.

Reasoning tokens are billed as output by every provider unless a price of their own is listed, so a model without one
gets rows for reasoning that repeat its output's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from proctor.core.canonical import encode
from proctor.core.money import Usd
from proctor.core.prices import MILLION, PriceRow, Prices
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket
from proctor.core.wires import PRACTICE

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices

PACKAGE = "genai-prices"

_BUCKETS = {
    "input_mtok": Bucket.INPUT,
    "cache_read_mtok": Bucket.CACHE_READ,
    "cache_write_mtok": Bucket.CACHE_WRITE,
    "cache_write_1h_mtok": Bucket.CACHE_WRITE_1H,
    "input_audio_mtok": Bucket.AUDIO_IN,
    "output_mtok": Bucket.OUTPUT,
    "output_reasoning_mtok": Bucket.REASONING,
    "output_audio_mtok": Bucket.AUDIO_OUT,
}
_PER_REQUEST = "requests_kcount"
# Charged only where a request carries or asks for such a thing, and a request with a price of that kind is not sent.
_ONLY_IF_ASKED = frozenset(
    {
        "web_searches_kcount",
        "storage_searches_kcount",
        "input_image_mtok",
        "input_video_mtok",
        "cache_audio_read_mtok",
        "cache_image_read_mtok",
    }
)
# The table's own comments say that these prices are stand-ins for what is billed.
_STAND_INS = {
    "zhipuai": "it bills in another currency, and by length of the answer",
    "databricks": "it bills in units whose price depends on the region",
}
# Models that search without being asked to, each time at a price, go by such names; a price of the request covers it.
_SEARCHES = re.compile(r"(?:^|[-/])(?:search|sonar|online|deep-research)(?:[-/:]|$)", re.ASCII)
# What a reader of a price must know of it.
_NOTES = {"openrouter": "; of its cheapest endpoint"}
_PER = {"1M": MILLION, "1k": 1_000, "1": 1}
_REASONING_AS_OUTPUT = "; reasoning billed as output"


@dataclass(frozen=True, slots=True)
class _Era:
    """Prices of a model from a day on (always, where `since` is None), or why our rows cannot say them."""

    since: date | None
    rows: tuple[PriceRow, ...]
    per_request: str | None
    refused: str | None


def find_prices(provider: str, model: str, on: date | None = None) -> Prices:
    """The prices of a model of the table, as they are on a day (UTC; today where none is given).

    Raises:
        Refusal: PRICE_UNKNOWN: the table has no such provider, name or price, or none that our rows can say.
    """
    if provider == PRACTICE:
        rows = (_row(Bucket.INPUT, 0, Decimal("0.25")), _row(Bucket.OUTPUT, 0, Decimal(2)))
        return Prices(f"made up{_REASONING_AS_OUTPUT}", _with_reasoning(rows))
    known = {each.id: each for each in _providers()}
    if provider not in known:
        raise _unknown(f"the price table has no provider {provider!r}", provider, provider, list(known))
    found = known[provider]
    named = [info for info in found.models if model in _names(info)]
    if not named:
        names = sorted({name for info in found.models for name in _names(info)})
        raise _unknown(f"the price table has no model of exactly that name from {provider}", model, model, names)
    if len(named) > 1:
        raise _refuse(f"{len(named)} models of {provider} go by that name", model)
    era = _era(_eras(found, named[0]), on if on is not None else datetime.now(UTC).date())
    if era.refused is not None:
        raise _refuse(f"{provider}'s price of it cannot be used: {era.refused}", model)
    since = f" since {era.since}" if era.since else ""
    added = "" if _listed_reasoning(era.rows) else _REASONING_AS_OUTPUT
    source = f"{PACKAGE} {version(PACKAGE)}: {provider}/{named[0].id}{since}{_NOTES.get(provider, '')}{added}"
    return Prices(source, _with_reasoning(era.rows), era.per_request)


def find_window(provider: str, model: str) -> int | None:
    """The context window of a model of the table, in tokens; None where the table does not say."""
    found = next((each for each in _providers() if each.id == provider), None)
    windows = {info.context_window for info in found.models if model in _names(info)} if found is not None else set()
    return windows.pop() if len(windows) == 1 else None


def listed_names(provider: str) -> list[str]:
    """Every exact name of the provider's models in the table."""
    models = [info for each in _providers() if each.id == provider for info in each.models]
    return sorted({name for info in models for name in _names(info)})


def overridden(
    *,
    input: Usd,
    output: Usd,
    cache_read: Usd | None = None,
    cache_write: Usd | None = None,
    per: str = "1M",
    source: str,
) -> Prices:
    """Prices that a study gives itself, each for `per` tokens: 1M, 1k or 1.

    Raises:
        Refusal: MONEY_INVALID, an amount is negative or out of range.
    """
    given = {
        Bucket.INPUT: input,
        Bucket.CACHE_READ: cache_read,
        Bucket.CACHE_WRITE: cache_write,
        Bucket.OUTPUT: output,
    }
    rows = [PriceRow(bucket.value, 0, _scaled(usd, per, bucket)) for bucket, usd in given.items() if usd is not None]
    return Prices(f"{source}{_REASONING_AS_OUTPUT}", _with_reasoning(tuple(rows)))


def table_record() -> dict[str, Any]:
    """For a manifest: which package in which version, and the SHA-256 of canonical JSON of all our rows made from it.

    Takes about 0.2 s, most of it to load the package.
    """
    flat = [
        {
            "provider": provider.id,
            "model": info.id,
            "names": sorted(_names(info)),
            "prices": [_as_record(era) for era in _eras(provider, info)],
        }
        for provider in _providers()
        for info in provider.models
    ]
    return {
        "package": PACKAGE,
        "version": version(PACKAGE),
        "models": len(flat),
        "sha256": hashlib.sha256(encode(flat)).hexdigest(),
    }


def _providers() -> list[Provider]:
    # a module of 1.6 MB that takes 0.1 s to load; and its own snapshot only, never one that was fetched
    from genai_prices.data import providers

    return providers


def _names(info: ModelInfo) -> set[str]:
    return {info.id, *_listed(info.match)}


def _listed(match: object) -> Iterator[str]:
    """Names that are given letter by letter; those within a conjunction are no names of their own."""
    from genai_prices.types import ClauseEquals, ClauseOr

    if isinstance(match, ClauseEquals):
        yield match.equals
    elif isinstance(match, ClauseOr):
        for clause in match.or_:
            yield from _listed(clause)


def _eras(provider: Provider, info: ModelInfo) -> list[_Era]:
    """In the table's order: of those that hold, the last counts. Variants (batches, tiers of service) are left out."""
    from genai_prices.types import ModelPrice, StartDateConstraint

    if provider.id in _STAND_INS:
        return [_Era(None, (), None, _STAND_INS[provider.id])]
    if isinstance(info.prices, ModelPrice):
        return [_flat(info.id, None, info.prices)]
    eras = []
    for conditional in info.prices:
        constraint = conditional.constraint
        if constraint is None:
            eras.append(_flat(info.id, None, conditional.prices))
        elif isinstance(constraint, StartDateConstraint):
            eras.append(_flat(info.id, constraint.start_date, conditional.prices))
        else:
            eras.append(_Era(None, (), None, "it depends on the hour of the day"))
    return eras


def _era(eras: list[_Era], on: date) -> _Era:
    for era in reversed(eras):
        if era.since is None or era.since <= on:
            return era
    return _Era(None, (), None, f"there is none on {on}")


def _flat(model: str, since: date | None, prices: ModelPrice) -> _Era:
    rows: list[PriceRow] = []
    per_request: str | None = None
    for key, price in vars(prices).items():
        if price is None or key in _ONLY_IF_ASKED:
            continue
        if key == _PER_REQUEST and isinstance(price, Decimal):
            per_request = _money(Fraction(price) / 1000)
        elif key in _BUCKETS:
            rows += _tiers(_BUCKETS[key], price)
        else:
            return _Era(since, (), None, f"it charges by {key}, which no row of ours says")
    priced = {row.bucket for row in rows}
    lacks = [bucket.value for bucket in (Bucket.INPUT, Bucket.OUTPUT) if bucket.value not in priced]
    if lacks:
        return _Era(since, (), None, f"it gives none for {' and '.join(lacks)}")
    if len({(row.bucket, row.above_inputs) for row in rows}) < len(rows):
        return _Era(since, (), None, "it has two prices for one tier")
    if per_request is None and _SEARCHES.search(model):
        return _Era(since, (), None, "it searches by itself, and no row of ours says what that costs")
    return _Era(since, tuple(rows), per_request, None)


def _tiers(bucket: Bucket, price: Decimal | TieredPrices) -> Iterator[PriceRow]:
    if isinstance(price, Decimal):
        yield _row(bucket, 0, price)
        return
    yield _row(bucket, 0, price.base)
    for tier in price.tiers:
        yield _row(bucket, tier.start, tier.price)


def _row(bucket: Bucket, above: int, usd_per_million: Decimal) -> PriceRow:
    return PriceRow(bucket.value, above, _money(Fraction(usd_per_million)))


def _with_reasoning(rows: tuple[PriceRow, ...]) -> tuple[PriceRow, ...]:
    if _listed_reasoning(rows):
        return rows
    repeated = [
        PriceRow(Bucket.REASONING.value, row.above_inputs, row.usd_per_million)
        for row in rows
        if row.bucket == Bucket.OUTPUT.value
    ]
    return (*rows, *repeated)


def _listed_reasoning(rows: tuple[PriceRow, ...]) -> bool:
    return any(row.bucket == Bucket.REASONING.value for row in rows)


def _as_record(era: _Era) -> dict[str, Any]:
    return {
        "since": era.since.isoformat() if era.since else None,
        "rows": [[row.bucket, row.above_inputs, row.usd_per_million] for row in era.rows],
        "per_request": era.per_request,
        "refused": era.refused,
    }


def _scaled(usd: Usd, per: str, bucket: Bucket) -> str:
    factor = MILLION // _PER[per]
    if usd.pico < 0:
        raise Refusal(Reason.MONEY_INVALID, f"a price of {bucket.value} is negative", observed=str(usd))
    return str(Usd.parse(str(Usd(usd.pico * factor))))


def _money(usd: Fraction) -> str:
    return str(Usd.ceil(usd))


def _unknown(message: str, model: str, name: str, known: list[str]) -> Refusal:
    close = get_close_matches(name, known, n=5, cutoff=0.6)
    return _refuse(message, model, f"one of its exact names, such as {', '.join(close)}" if close else None)


def _refuse(message: str, model: str, required: str | None = None) -> Refusal:
    return Refusal(
        Reason.PRICE_UNKNOWN,
        message,
        observed=model,
        required=required or "a price in the study: `price = { input = …, output = …, source = … }`",
    )
