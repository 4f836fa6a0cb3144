"""Exchanges of generated runs: held and charged as the design's prices say, or a picodollar beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from primitives import Body
from run_designs import TIERS

from proctor.core.money import ZERO, Usd
from proctor.core.prices import NoPrice
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket, Usage
from proctor.evidence.exchanges import unanswered
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Content

if TYPE_CHECKING:
    from runs import Going, Maker

TOKENS = st.sampled_from((1, 2, TIERS[0] - 1, TIERS[0], TIERS[0] + 1, TIERS[1], TIERS[1] + 1))
REQUEST = b"?"


class Writer:
    """What the authority writes an attempt's entries with."""

    def __init__(self, maker: Maker, attempt: str) -> None:
        self._maker, self._attempt = maker, attempt

    def post(self, kind: Kind, blobs: Mapping[str, Content] | None = None, /, **body: Any) -> None:
        """Adds the attempt, and puts blobs in their place."""
        maker = self._maker
        whole = {**body, "attempt": self._attempt}
        maker.state.apply(kind, whole)
        if kind is Kind.EXCHANGE_ENDED and not maker.over and maker.off("overrun"):
            whole["overrun"] = not whole["overrun"]
        refs = {name: maker.story.blob(bytes(content)) for name, content in (blobs or {}).items()}
        maker.story.add(kind.id, **whole, **refs)

    async def settle(self) -> None:
        """All is durable."""


def ask(maker: Maker, going: Going) -> None:
    """Takes an exchange's worst case, or is refused."""
    draw, trial = maker.draw, going.trial
    assert going.lease is not None and trial.model is not None
    model = maker.design.model(trial.model, trial.arm)
    inputs, outputs = draw(TOKENS), draw(st.sampled_from((1, 20, model.max_output_tokens)))
    if maker.off("output_bound"):
        outputs = model.max_output_tokens + 1
    held = Usd(max(0, model.price.worst_case(inputs, outputs).pico + maker.off("held")))
    if count := draw(st.integers(0, 7)) == 0:
        outputs, held = 0, Usd(abs(maker.off("counted")))
    exchange = f"{going.id}/{going.asked}"
    body: Body = {
        "route": f"POST /v1/messages{'/count_tokens' * count}",
        "request_digest": "0" * 64,
        "input_bound": inputs,
        "output_bound": outputs,
        "retries": None,
        "mutations": [],
    }
    writer, blobs = Writer(maker, going.id), {"request": REQUEST}
    if maker.off("refused"):
        going.lease.refuse(writer, Refusal(Reason.CEILING_REACHED, "it would fit"), held)
        return
    try:
        going.lease.take(writer, exchange, held, blobs=blobs, **body)
    except Refusal as refusal:
        if maker.off("hold"):
            maker.over = True
            writer.post(Kind.EXCHANGE_ADMITTED, blobs, **body, exchange=exchange, model=trial.model, held=str(held))
            _beyond(maker, going, exchange, held)
            return
        going.lease.refuse(writer, refusal, held)
        if draw(st.booleans()):
            going.stop = refusal.reason.id
        return
    going.flying[exchange] = held
    going.asked += 1
    if count:
        going.counts.add(exchange)


def _beyond(maker: Maker, going: Going, exchange: str, held: Usd) -> None:
    """The authority knows nothing of an exchange that it refused."""
    body = {**unanswered(None, estimated=True), "http_status": 200, "error": "reply_unreadable", "flags": ["no_usage"]}
    ended = {"outcome": "settled", "charged": str(held), "overrun": False, "timing": {"sent": 1}}
    Writer(maker, going.id).post(Kind.EXCHANGE_ENDED, **{**body, **ended, "exchange": exchange})


def answer(maker: Maker, going: Going, exchange: str) -> None:
    """Settles an exchange: by its usage, by an estimate, or for nothing."""
    assert going.lease is not None and going.trial.model is not None
    held = going.flying.pop(exchange)
    writer, blobs = Writer(maker, going.id), {"response": b"!"}
    whole: Body = {"http_status": 200, "error": None, "resolved_model": "m", "finish": "stop", "chunks": None}
    whole |= {"timing": {"sent": 1}, "flags": []}
    if exchange in going.counts:
        none = {"finish": None, "usage": None, "estimated": False}
        going.lease.settle(writer, exchange, ZERO, outcome="released", blobs=blobs, **{**whole, **none})
        return
    # after a deviation nothing is charged above what was held: that would have more to be said of it
    how = 8 if maker.over else maker.draw(st.integers(0, 8))
    if how == 7:
        none = {"finish": None, "usage": None, "estimated": False, "http_status": 429, "error": "rate_limited"}
        charged = Usd(held > ZERO and abs(maker.off("released")))
        if charged > ZERO:
            del going.lease._held[exchange]
            maker.over = True
            ended = {"exchange": exchange, "outcome": "released", "charged": str(charged), "overrun": False}
            writer.post(Kind.EXCHANGE_ENDED, blobs, **{**whole, **none, **ended})
            return
        going.lease.settle(writer, exchange, charged, outcome="released", blobs=blobs, **{**whole, **none})
        return
    if how == 8:
        usage, charged, estimated, flags = None, held, True, ["no_usage"]
    else:
        usage = _usage(maker, how)
        charged, estimated, flags = _charge(maker, going, held, usage, unpriced=how == 6)
    step = 0 if maker.over else maker.off("estimate") if estimated else maker.off("charged")
    charged = Usd(max(0, charged.pico + step))
    said = {"usage": usage, "estimated": estimated, "flags": flags}
    going.lease.settle(writer, exchange, charged, outcome="settled", blobs=blobs, **{**whole, **said})


def _usage(maker: Maker, how: int) -> dict[str, int]:
    draw = maker.draw
    if how == 0:
        return {"audio_in": draw(TOKENS)}
    usage = {"input": draw(st.sampled_from((1, 2, 25))), "output": draw(st.sampled_from((1, 7)))}
    if how == 1:
        usage |= {"input": draw(TOKENS), "cache_read": draw(TOKENS)}
    if how == 2:
        usage |= {"cache_write_1h": draw(TOKENS), "reasoning": 5}
    if how == 3:
        usage |= {"input": draw(TOKENS), "output": draw(st.sampled_from((20, 60, 61)))}
    return usage


def _charge(
    maker: Maker, going: Going, held: Usd, usage: dict[str, int], *, unpriced: bool
) -> tuple[Usd, bool, list[str]]:
    """As the gateway charges: what has no price at the worst case, and no less where more was used than tokens."""
    price = maker.design.model(str(going.trial.model), going.trial.arm).price
    try:
        cost = price.cost(Usage({Bucket(bucket): count for bucket, count in usage.items()}))
    except NoPrice as error:
        return held, True, [f"no_price_{error.bucket.value}"]
    return (max(cost, held), True, ["unpriced_units"]) if unpriced else (cost, False, [])


def unheard(maker: Maker, going: Going, exchange: str, held: Usd) -> None:
    """The process died before its end."""
    ended = {"exchange": exchange, "outcome": "unknown", "charged": str(held), "overrun": False}
    Writer(maker, going.id).post(Kind.EXCHANGE_ENDED, **unanswered(None, estimated=True), **ended)
