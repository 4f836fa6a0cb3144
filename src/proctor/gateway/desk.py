"""What is done with a request for a model, once it is known which: bounded, passed on, and refused in its words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.gateway.bounds import Bounded, bound
from proctor.gateway.exchange import route_text
from proctor.gateway.failures import Failure
from proctor.gateway.inbound import Bodies, encoding_of, read_body, sent_headers, target_of
from proctor.gateway.passage import Passage, Way
from proctor.gateway.upstream import Outgoing
from proctor.gateway.wire.features import dear_headers
from proctor.gateway.wire.refusing import refused
from proctor.gateway.wire.routes import Route

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, Response, StreamResponse

# Failures whose request may come again are remembered by the digest of its body.
_MOST_FAILED = 64
# What the study's own words keep from a model, whoever asks.
_BY_STUDY = frozenset({Reason.MODEL_NOT_LISTED, Reason.FEATURE_UNPRICED, Reason.OUTPUT_ABOVE_BOUND})


class Desk:
    """Of one model. `failed` is what went wrong with the last exchange that was to answer; None where nothing did.

    `turned_away` is the first refusal by which the study keeps a request from a model that was `asked` for nothing yet.
    """

    def __init__(self, way: Way) -> None:
        self.failed: Failure | None = None
        self.turned_away: Refusal | None = None
        self.asked = False
        self._way = way
        self._failures: dict[bytes, str] = {}
        self._bodies = Bodies()

    async def serve(self, request: BaseRequest, route: Route, body: bytes | None = None) -> StreamResponse:
        """Pass a request on, and its reply back.

        Args:
            body: where it was read already.

        Raises Refusal: nothing was sent, and that is on the record; or the journal's, or that of the disk.
        """
        with self._bodies.room() as take:
            bounded = await self._bounded(request, route, body, take)
            return await self._pass_on(request, route, bounded)

    async def _pass_on(self, request: BaseRequest, route: Route, bounded: Bounded) -> StreamResponse:
        encoded = not bounded.request.mutations
        out = Outgoing(
            target_of(request, route.path), sent_headers(request, encoded=encoded), bounded.sent, bounded.asked.stream
        )
        self.asked |= not bounded.request.free
        passage = Passage(self._way, route, bounded, request)
        exchange, failure = await passage.pass_on(out, self._before(bounded))
        if failure is not None:
            self._remember(exchange, bounded)
        if not bounded.request.free:
            # some providers have no counts of tokens, and agents live without
            self.failed = failure
        if passage.client.response is None:
            return self._broken(route, exchange, failure)
        return passage.client.response

    async def _bounded(
        self, request: BaseRequest, route: Route, body: bytes | None, take: Callable[[int], None]
    ) -> Bounded:
        model, redactor = self._way.model, self._way.means.redactor
        try:
            self._way.flights.check_free()
            if body is None:
                body = await read_body(request, take)
            self._way.touch()
            _check_headers(request)
            return bound(model, redactor, route, body, encoding_of(request.headers.items()))
        except Refusal as refusal:
            if refusal.reason in _BY_STUDY and not self.asked:
                self.turned_away = self.turned_away or refusal
            kept = None if body is None else redactor.bytes(body)
            await self._way.flights.refuse(refusal, route=route_text(redactor, model, route.path), body=kept)
            raise

    def _before(self, bounded: Bounded) -> str | None:
        """The exchange that this one sends again: the last one of the same bytes, where it had no answer."""
        return self._failures.pop(_key(bounded), None) if self._failures else None

    def _remember(self, exchange: str, bounded: Bounded) -> None:
        self._failures[_key(bounded)] = exchange
        while len(self._failures) > _MOST_FAILED:
            del self._failures[next(iter(self._failures))]

    def _broken(self, route: Route, exchange: str, failure: Failure | None) -> StreamResponse:
        """What an agent hears where no reply began."""
        reason = failure.reason if failure is not None else Reason.PROVIDER_FAILED
        refusal = Refusal(reason, f"the provider of `{self._way.model.name}` gave no reply", path=exchange)
        return refusing(route.api, refusal)


def refusing(api: str, refusal: Refusal, status: int | None = None) -> Response:
    """The reply that says a refusal as the providers of that format say theirs."""
    from aiohttp.web import Response

    said = refused(api, refusal)
    return Response(status=status or said.status, headers=said.headers, body=said.body)


def _check_headers(request: BaseRequest) -> None:
    dear = dear_headers(request.headers)
    if dear:
        message = f"the request has the header {dear[0]}, which changes its price in a way that is not known"
        raise Refusal(Reason.FEATURE_UNPRICED, message, observed=dear)


def _key(bounded: Bounded) -> bytes:
    return hashlib.sha256(bounded.request.recorded).digest()
