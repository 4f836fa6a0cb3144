"""The models of a stage as they will be called: where they are, what they cost, which variable holds their key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from urllib.parse import urlsplit

from proctor.budget.table import find_prices, overridden
from proctor.core.prices import Prices
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.wires import CHAT, PRACTICE
from proctor.gateway.wire.formats import WIRES
from proctor.gateway.wire.requests import check_effort
from proctor.study.actors import ModelDesign
from proctor.study.providers import PROVIDERS, Provider
from proctor.study.schema.actors import Arm, Model

# the practice model's own bound: its answers are short
_PRACTICE_OUTPUT = 1_024


def resolve_models(tables: Mapping[str, Model], priced_on: str | None) -> tuple[dict[str, ModelDesign], list[Refusal]]:
    """Every model that can be called as its table says, and everything that stands against the others.

    Args:
        tables: models of the study, by name.
        priced_on: the day whose prices hold, `YYYY-MM-DD`; today's where None.
    """
    day = None if priced_on is None else date.fromisoformat(priced_on)
    designs: dict[str, ModelDesign] = {}
    found: list[Refusal] = []
    for name, table in tables.items():
        try:
            designs[name] = _model(name, table, day)
        except Refusal as refusal:
            found.append(refusal)
    return designs, found


def arm_refusals(models: Mapping[str, ModelDesign], arms: Mapping[str, Arm]) -> list[Refusal]:
    """What these arms change of the models that no wire format has a word for."""
    found: list[Refusal] = []
    for name, arm in arms.items():
        effort = arm.model.effort if arm.model is not None else None
        for model in models.values() if effort is not None else ():
            try:
                check_effort(replace(model, effort=effort), WIRES[model.api].efforts)
            except Refusal as refusal:
                found.append(
                    Refusal(
                        refusal.reason,
                        f"the effort of the arm {name!r} is no word of the provider of `{model.name}`",
                        path=f"arms.{name}.model.effort",
                        observed=refusal.observed,
                        required=refusal.required,
                    )
                )
    return found


def _model(name: str, table: Model, day: date | None) -> ModelDesign:
    within = f"models.{name}"
    provider = PROVIDERS.get(table.provider)
    if provider is None and table.base_url is None:
        raise Refusal(
            Reason.PROVIDER_UNKNOWN,
            f"there is no provider named {table.provider!r}, and no base_url says where it is",
            path=f"{within}.provider",
            observed=table.provider,
            required=sorted(PROVIDERS),
        )
    known = provider or Provider(CHAT, None, None)
    practice = table.provider == PRACTICE
    if practice and table.api is not None:
        raise Refusal(
            Reason.INVALID_VALUE,
            f"`{within}.api` cannot be chosen: the made-up model has a format of its own",
            path=f"{within}.api",
            observed=table.api.value,
            remedy="Leave `api` out. Agents inside of a sandbox ask this model as `chat`.",
        )
    design = ModelDesign(
        name=name,
        provider=table.provider,
        model=table.model,
        api=known.api if table.api is None else table.api.value,
        base_url=_address(table, known, within),
        effort=table.effort,
        max_output_tokens=_bound(table, practice, within),
        request_timeout_sec=table.request_timeout,
        api_key_env=_key_variable(table, known),
        rpm=table.rate.rpm,
        tpm=table.rate.tpm,
        price=_prices(table, known, day, within),
        synthetic=practice,
        context_window=table.context_window,
        mutations=tuple(sorted({each.value for each in table.mutations})),
    )
    # what the wire format has no word for would end the first attempt
    check_effort(design, WIRES[design.api].efforts)
    return design


def _address(table: Model, known: Provider, within: str) -> str | None:
    if table.base_url is None:
        return known.base_url
    wrong = "an address without user names, query or fragment, such as http://127.0.0.1:8000/v1"
    try:
        parts = urlsplit(table.base_url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        # a parser leaves out what it does not like, line feeds first
        sound = sound and table.base_url.isprintable() and " " not in table.base_url
    except ValueError:
        sound = False
    if not sound or parts.username is not None or parts.query or parts.fragment or table.provider == PRACTICE:
        # the value is not repeated: it may hold a password
        raise Refusal(
            Reason.INVALID_VALUE, f"`{within}.base_url` must be {wrong}", path=f"{within}.base_url", required=wrong
        )
    return table.base_url.rstrip("/")


def _bound(table: Model, practice: bool, within: str) -> int:
    if table.max_output_tokens is not None:
        return table.max_output_tokens
    if practice:
        return _PRACTICE_OUTPUT
    raise Refusal(
        Reason.OUTPUT_UNBOUNDED,
        f"`{within}.max_output_tokens` is not given, and without it no worst case can be held for {table.model!r}",
        path=f"{within}.max_output_tokens",
        required="the most tokens of one answer",
    )


def _key_variable(table: Model, known: Provider) -> str | None:
    """Another server is never sent the key of the provider's own."""
    if table.api_key_env is not None or table.base_url is not None:
        return table.api_key_env
    return known.key_env


def _prices(table: Model, known: Provider, day: date | None, within: str) -> Prices:
    price = table.price
    if price is not None:
        return overridden(
            input=price.input,
            output=price.output,
            cache_read=price.cache_read,
            cache_write=price.cache_write,
            per=price.per,
            source=price.source,
        )
    try:
        return find_prices(known.prices or table.provider, table.model, day)
    except Refusal as refusal:
        raise Refusal(
            refusal.reason,
            refusal.message,
            path=f"{within}.model",
            observed=refusal.observed,
            required=refusal.required,
        ) from refusal
