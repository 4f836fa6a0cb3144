"""What a gateway of its own is asked to serve, and how each model that may be asked for is called."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from proctor.admission.models import resolve_models
from proctor.budget.table import find_window, listed_names
from proctor.core.families import Family
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.wires import CHAT, PRACTICE
from proctor.study.actors import ModelDesign
from proctor.study.providers import PROVIDERS
from proctor.study.schema.actors import Model

_OWN_SERVER = "own"
_PRICED = ("input", "output", "cache_read", "cache_write")
# the practice model's answers are short
_PRACTICE_OUTPUT = 1_024
# of a whole answer, or between two pieces of one that is streamed
_TIMEOUT = "10m"
# names come from programs, which may make up any number of them
_MOST_KNOWN = 10_000


@dataclass(frozen=True)
class GatewayRequest:
    """What was asked for. `upstream` is a provider's name or the base URL of a server.

    `models` may be asked for, all of the provider's price table where there are none. `price` is in dollars for a
    million tokens: in and out, and, where there are four, read from a cache and written to one.
    `priced_on` is the day (`YYYY-MM-DD`) whose prices hold.
    """

    upstream: str
    budget: str
    record: Path
    models: tuple[str, ...] = ()
    api: str | None = None
    key_env: str | None = None
    price: tuple[str, ...] | None = None
    max_output_tokens: int | None = None
    mutations: tuple[str, ...] = ()
    port: int = 0
    priced_on: str | None = None

    @property
    def is_url(self) -> bool:
        """Whether the upstream is a server's address."""
        return "://" in self.upstream

    def as_record(self) -> dict[str, Any]:
        """For the record's entry."""
        return {
            "upstream": self.upstream,
            "api": self.api,
            "models": list(self.models),
            "budget": self.budget,
            "price": None if self.price is None else list(self.price),
            "max_output_tokens": self.max_output_tokens,
            "mutations": list(self.mutations),
            "priced_on": self.priced_on,
        }


class Models:
    """The models that may be asked for, as they will be called: each is looked up once."""

    def __init__(self, request: GatewayRequest) -> None:
        self._request = request
        self._known: dict[str, ModelDesign | Refusal] = {}

    @property
    def api(self) -> str:
        """The wire format of all of them."""
        request = self._request
        provider = PROVIDERS.get(request.upstream)
        return request.api or (provider.api if provider is not None else CHAT)

    def names(self) -> list[str]:
        """Those that a list of models has."""
        request = self._request
        provider = PROVIDERS.get(request.upstream)
        if request.models or provider is None:
            return list(request.models)
        if request.upstream == PRACTICE:
            return ["practice-1"]
        return listed_names(provider.prices or request.upstream)

    def resolve(self, name: str) -> ModelDesign:
        """A model by the name that its provider has for it.

        Raises:
            Refusal: `model_not_listed`, `price_unknown`, `output_unbounded`.
        """
        found = self._known.get(name)
        if found is None:
            try:
                found = self.find(name)
            except Refusal as refusal:
                own = refusal.reason.family in (Family.GATEWAY, Family.BUDGET)
                reason = refusal.reason if own else Reason.MODEL_NOT_LISTED
                found = Refusal(reason, refusal.message, observed=name[:200], required=refusal.required)
            if len(self._known) < _MOST_KNOWN:
                self._known[name] = found
        if isinstance(found, Refusal):
            # one instance raised again and again would collect all tracebacks
            raise Refusal(found.reason, found.message, observed=found.observed, required=found.required)
        return found

    def find(self, name: str) -> ModelDesign:
        """The same, looked up anew. Raises Refusal: as `resolve`, and `invalid_value`, `provider_unknown`."""
        request = self._request
        if request.models and name not in request.models:
            message = "the request is for a model that --model does not name"
            raise Refusal(Reason.MODEL_NOT_LISTED, message, observed=name[:200], required=list(request.models))
        try:
            table = Model.model_validate(self._table(name))
        except ValidationError as error:
            message = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise Refusal(
                Reason.INVALID_VALUE, f"the model cannot be called: {message}", observed=name[:200]
            ) from error
        designs, refusals = resolve_models({name: table}, request.priced_on)
        if refusals:
            raise refusals[0]
        provider = PROVIDERS.get(request.upstream)
        window = find_window(provider.prices or request.upstream, name) if provider is not None else None
        most = request.max_output_tokens or window or (_PRACTICE_OUTPUT if request.upstream == PRACTICE else None)
        if most is None:
            raise Refusal(
                Reason.OUTPUT_UNBOUNDED,
                f"the price table does not say how much {name!r} can answer at most",
                path="--max-output-tokens",
                observed=name[:200],
                required="the most tokens of one answer",
                remedy="Give --max-output-tokens.",
            )
        return replace(designs[name], max_output_tokens=most, context_window=window)

    def _table(self, name: str) -> dict[str, Any]:
        request = self._request
        price = request.price
        return {
            "provider": _OWN_SERVER if request.is_url else request.upstream,
            "model": name,
            "api": None if request.api == PRACTICE else request.api,
            "base_url": request.upstream if request.is_url else None,
            "api_key_env": request.key_env,
            # its bound is found elsewhere: windows are larger than any that a study may write
            "max_output_tokens": 1,
            "mutations": request.mutations,
            "request_timeout": _TIMEOUT,
            "price": None if price is None else {**dict(zip(_PRICED, price, strict=False)), "source": "--price"},
        }
