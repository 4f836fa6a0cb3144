"""Admission of a gateway that serves any program: its guards, and the token with which it may act.

What a run has of a design, such a gateway has of its command line; what a run's journal is to it, its record is. The
record's first entry, which says what was asked for, is durable before the first request is taken.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.admission.standalone_models import GatewayRequest, Models
from proctor.core.clock import SystemClock
from proctor.core.guards import Registry
from proctor.core.money import ZERO, Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted, seal_admitted
from proctor.evidence.calls import CallRecord, bodies_folder
from proctor.evidence.callstate import CallState, read_calls
from proctor.evidence.lock import opening
from proctor.study.providers import PROVIDERS

_NO_DESIGN = "0" * 64
_ANY = "any"


@dataclass(frozen=True)
class GatewayFacts:
    """What the guards look at. `budget` is None where it cannot be read; `record` where there is none that can be."""

    request: GatewayRequest
    budget: Usd | None
    unread: tuple[Refusal, ...] = ()
    unresolved: tuple[Refusal, ...] = ()
    key: tuple[str, bool] | None = None
    record: CallState | None = None
    record_fault: Refusal | None = None


@dataclass(frozen=True)
class AdmittedGateway:
    """What it may act with. `keys` are values by variable; `resolve` says how a model is called, by its name."""

    token: Admitted
    record: CallRecord
    budget: Usd
    models: Models
    keys: Mapping[str, str]


GATEWAY: Registry[GatewayFacts] = Registry()


@GATEWAY.guard("words-sound", "Names, prices and addresses can be read.", Reason.INVALID_VALUE, Reason.MONEY_INVALID)
def words_sound(facts: GatewayFacts) -> Iterable[Refusal]:
    """What reading them found."""
    return facts.unread


@GATEWAY.guard("budget-positive", "The budget is an amount above zero.", Reason.MONEY_INVALID)
def budget_positive(facts: GatewayFacts) -> Iterable[Refusal]:
    """Without one nothing would stop it."""
    if facts.budget is not None and facts.budget <= ZERO:
        yield Refusal(
            Reason.MONEY_INVALID,
            "the budget is not above zero",
            path="--budget",
            observed=facts.request.budget,
            required='a string such as "5.00"',
        )


@GATEWAY.guard("upstream-known", "The upstream is a known provider, or a server's address.", Reason.PROVIDER_UNKNOWN)
def upstream_known(facts: GatewayFacts) -> Iterable[Refusal]:
    """Its name says where it is, and what it speaks."""
    request = facts.request
    if not request.is_url and request.upstream not in PROVIDERS:
        yield Refusal(
            Reason.PROVIDER_UNKNOWN,
            f"there is no provider named {request.upstream!r}",
            path="--upstream",
            observed=request.upstream,
            required=[*sorted(PROVIDERS), "or the address of a server"],
        )


@GATEWAY.guard(
    "models-priced",
    "Every model that is named has exact prices, and a bound on what it may answer.",
    *(Reason.PRICE_UNKNOWN, Reason.OUTPUT_UNBOUNDED, Reason.INVALID_VALUE, Reason.PROVIDER_UNKNOWN),
)
def models_priced(facts: GatewayFacts) -> Iterable[Refusal]:
    """A price that nobody knows is never zero, and never another model's."""
    yield from facts.unresolved
    request = facts.request
    if request.is_url and request.price is None:
        yield Refusal(
            Reason.PRICE_UNKNOWN,
            "a server of one's own is in no price table",
            path="--price",
            observed=None,
            required="dollars for a million tokens, in and out: --price 0.25,2",
        )


@GATEWAY.guard("key-there", "The upstream's key is in its variable.", Reason.KEY_MISSING)
def key_there(facts: GatewayFacts) -> Iterable[Refusal]:
    """The variable's name is told, and never what it holds."""
    if facts.key is not None and not facts.key[1]:
        variable = facts.key[0]
        message = f"the variable {variable}, which should hold the key of {facts.request.upstream}, is not set"
        yield Refusal(Reason.KEY_MISSING, message, path="--key-env", observed=None, required=variable)


@GATEWAY.guard(
    "record-free",
    "What stands in the record's place is a record of calls that nobody else writes, or nothing.",
    *(Reason.WOULD_OVERWRITE, Reason.EVIDENCE_DAMAGED, Reason.EVIDENCE_UNREADABLE, Reason.FORMAT_UNKNOWN),
    Reason.OUT_UNUSABLE,
)
def record_free(facts: GatewayFacts) -> Iterable[Refusal]:
    """Nothing is overwritten, and nothing is appended to what is damaged."""
    if facts.record_fault is not None:
        yield facts.record_fault


@GATEWAY.guard("budget-left", "The record has not used the budget up.", Reason.CEILING_REACHED)
def budget_left(facts: GatewayFacts) -> Iterable[Refusal]:
    """What was in flight when an earlier gateway died counts in full."""
    if facts.record is None or facts.budget is None or facts.budget <= ZERO:
        return
    if facts.record.owed >= facts.budget:
        yield Refusal(
            Reason.CEILING_REACHED,
            "what the record has charged already reaches the budget",
            path="--budget",
            observed=str(facts.record.owed),
            required=f"a budget above {facts.record.owed}, or another record",
            remedy="Give a larger --budget, which goes on from what was charged, or another --record.",
        )


def look(request: GatewayRequest, environ: Mapping[str, str]) -> tuple[GatewayFacts, Models]:
    """Gather what the guards look at; reads only."""
    unread: list[Refusal] = []
    budget = None
    try:
        budget = Usd.parse(request.budget, path="--budget")
    except Refusal as refusal:
        unread.append(refusal)
    models = Models(request)
    unresolved: list[Refusal] = []
    priced = not request.is_url or request.price is not None
    # a name of ours, where none is given, has the address, the format and the price read all the same
    named = request.models or ((_ANY,) if request.price is not None else ())
    for name in named if priced and (request.is_url or request.upstream in PROVIDERS) else ():
        try:
            models.find(name)
        except Refusal as refusal:
            unresolved.append(refusal)
    state, fault = _record(request.record)
    key = _key_variable(request)
    there = None if key is None else (key, bool(environ.get(key, "").strip()))
    return GatewayFacts(request, budget, tuple(unread), tuple(unresolved), there, state, fault), models


async def admit_gateway(request: GatewayRequest, environ: Mapping[str, str]) -> AdmittedGateway | tuple[Refusal, ...]:
    """Admit a gateway, with its record open and its first entry durable; or every refusal, and nothing written.

    Raises:
        Refusal: `run_locked`, `out_unusable`, `disk_full`, `write_failed`: the record could not be opened.
    """
    request = replace(request, priced_on=request.priced_on or SystemClock().utc()[:10])
    facts, models = await asyncio.to_thread(look, request, environ)
    refusals = GATEWAY.run(facts)
    if refusals:
        return tuple(refusals)
    assert facts.budget is not None, "one that cannot be read was refused"
    record = await CallRecord.open(request.record, {**request.as_record(), "process": opening()}, SystemClock())
    token = seal_admitted(
        run_id=record.run_id,
        run_dir=bodies_folder(request.record),
        design_sha256=_NO_DESIGN,
        label=f"proctor-{record.run_id}",
    )
    variable = facts.key[0] if facts.key is not None else None
    keys = {} if variable is None else {variable: environ[variable]}
    return AdmittedGateway(token, record, facts.budget, models, keys)


def _record(path: Path) -> tuple[CallState | None, Refusal | None]:
    """What stands in the record's place; neither where nothing does."""
    try:
        if not os.path.lexists(path):
            return None, _unwritable(path.absolute().parent)
        return read_calls(path), None
    except OSError as error:
        return None, Refusal(Reason.OUT_UNUSABLE, f"the record cannot be used: {error.strerror}", path="--record")
    except Refusal as refusal:
        return None, refusal


def _unwritable(folder: Path) -> Refusal | None:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return None
    return Refusal(Reason.OUT_UNUSABLE, "no record can be made in that folder", path="--record", observed=str(folder))


def _key_variable(request: GatewayRequest) -> str | None:
    """Another server is never sent the key of a provider's own."""
    provider = PROVIDERS.get(request.upstream)
    return request.key_env or (provider.key_env if provider is not None else None)
