"""What went wrong with an exchange, by one ordered table: why, whether to send again, and what is owed.

The first row that fits holds. Facts are types, statuses and the provider's own words for kind and code; the text of a
message decides nothing. A status that says no is taken at its word, whatever became of the rest of the reply: nothing
was made, so nothing is owed. Once a request may have left and no status came, or one that says yes, its worst case is
owed, or what its usage says where it has one.
"""

from __future__ import annotations

import email.utils
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from proctor.core.reasons import Reason
from proctor.gateway.upstream import Cut, HttpReply, Late, NotSent, SendFailed, TooLarge
from proctor.gateway.wire.base import Flag, Reply

TRIES = 5
FIRST_WAIT_SEC = 0.5
MAX_WAIT_SEC = 30.0
# A provider may ask for more than our own waits; beyond this, it is asked again all the same.
MAX_ASKED_WAIT_SEC = 60.0


class Owed(StrEnum):
    """What an exchange without a usable answer is charged."""

    NOTHING = "nothing"
    USAGE = "usage"
    WORST_CASE = "worst_case"


@dataclass(frozen=True, slots=True)
class Failure:
    """What follows. A reason that ends the run is never sent again."""

    reason: Reason
    owed: Owed
    again: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one try: the HTTP status, what broke it off, and the reply where it could be read.

    `status` is that of HTTP where it says no, else the one that the body names.
    """

    status: int | None
    broken: SendFailed | None
    reply: Reply | None
    words: frozenset[str]
    refused: bool

    @classmethod
    def of(cls, http: HttpReply | SendFailed, reply: Reply | None) -> Seen:
        """Args: http: what the upstream gave; reply: its body as read, where there is one."""
        error = reply.error if reply is not None else None
        words = (
            frozenset(word.lower() for word in (error.kind, error.code) if word) if error is not None else frozenset()
        )
        # 300 and above say no; below, a body can still name a status
        refused = http.status is not None and http.status >= 300
        status = http.status if refused or error is None or error.status is None else error.status
        return cls(status, http if isinstance(http, SendFailed) else None, reply, words, refused)

    def flagged(self, *flags: Flag) -> bool:
        """Whether the reply has one of these flags."""
        return self.reply is not None and not set(flags).isdisjoint(self.reply.flags)


class _Row(NamedTuple):
    fits: Callable[[Seen], bool]
    reason: Reason
    again: bool
    # where the provider did not refuse with a status
    owed: Owed = Owed.USAGE


def _broken(kind: type[SendFailed]) -> Callable[[Seen], bool]:
    return lambda seen: isinstance(seen.broken, kind)


def _said(*statuses: int, words: tuple[str, ...] = ()) -> Callable[[Seen], bool]:
    wanted = frozenset(words)
    return lambda seen: seen.status in statuses or not wanted.isdisjoint(seen.words)


def _status(first: int, last: int) -> Callable[[Seen], bool]:
    return lambda seen: seen.status is not None and first <= seen.status <= last


_QUOTA = ("insufficient_quota", "billing_error", "billing_not_active", "billing_hard_limit_reached", "payment_required")
_KEY = ("invalid_api_key", "authentication_error", "unauthenticated", "permission_error", "permission_denied")
_MODEL = ("model_not_found", "not_found_error", "not_found")
_CONTEXT = ("context_length_exceeded", "context_window_exceeded", "request_too_large")
_RATE = ("rate_limit_exceeded", "rate_limit_error", "resource_exhausted")
_FAULT = ("overloaded_error", "api_error", "server_error", "internal", "unavailable", "timeout_error")

# 402, and 429 with such a word, come before 429 alone: an empty account does not fill by waiting.
TABLE: tuple[_Row, ...] = (
    _Row(_broken(NotSent), Reason.PROVIDER_UNREACHABLE, again=True, owed=Owed.NOTHING),
    _Row(_said(402, words=_QUOTA), Reason.QUOTA_EXHAUSTED, again=False),
    _Row(_said(413, words=_CONTEXT), Reason.CONTEXT_EXCEEDED, again=False),
    _Row(_said(401, 403, words=_KEY), Reason.KEY_REJECTED, again=False),
    _Row(_said(404, words=_MODEL), Reason.MODEL_NOT_FOUND, again=False),
    _Row(_said(429, words=_RATE), Reason.RATE_LIMITED, again=True),
    _Row(_said(408, 409, 425, words=_FAULT), Reason.PROVIDER_FAILED, again=True),
    _Row(_status(500, 999), Reason.PROVIDER_FAILED, again=True),
    _Row(_status(300, 499), Reason.REQUEST_REJECTED, again=False),
    _Row(_broken(TooLarge), Reason.REPLY_TOO_LARGE, again=False, owed=Owed.WORST_CASE),
    _Row(_broken(Late), Reason.PROVIDER_TIMEOUT, again=True, owed=Owed.WORST_CASE),
    _Row(_broken(Cut), Reason.REPLY_UNREADABLE, again=True, owed=Owed.WORST_CASE),
    _Row(lambda seen: seen.reply is not None and seen.reply.error is not None, Reason.PROVIDER_FAILED, again=True),
    _Row(lambda seen: seen.flagged(Flag.TOO_LARGE), Reason.REPLY_TOO_LARGE, again=False, owed=Owed.WORST_CASE),
    _Row(
        lambda seen: seen.flagged(Flag.UNREADABLE, Flag.TRUNCATED),
        Reason.REPLY_UNREADABLE,
        again=True,
        owed=Owed.WORST_CASE,
    ),
    _Row(lambda seen: seen.reply is None or not seen.reply.whole, Reason.REPLY_UNREADABLE, again=True),
)


def classify(seen: Seen) -> Failure | None:
    """What the first row that fits says; None for an answer that can be used."""
    for row in TABLE:
        if row.fits(seen):
            return Failure(row.reason, Owed.NOTHING if seen.refused else row.owed, row.again)
    return None


def wait_sec(tries: int, asked: float | None, chance: float) -> float:
    """Seconds until the next try.

    Args:
        tries: how many there were.
        asked: what the provider asks for, in seconds.
        chance: from 0 to 1, so that many who fail together do not come again together.
    """
    own = min(FIRST_WAIT_SEC * 2.0 ** (tries - 1), MAX_WAIT_SEC) * (1 + chance) / 2
    return own if asked is None else max(own, min(asked, MAX_ASKED_WAIT_SEC))


def asked_wait(http: HttpReply | SendFailed, reply: Reply | None, now: datetime) -> float | None:
    """Seconds that the provider asks to wait: in `retry-after`, as a number or a date, or in the body."""
    if reply is not None and reply.error is not None and reply.error.retry_after_sec is not None:
        return reply.error.retry_after_sec
    said = http.headers.get("retry-after", "").strip() if isinstance(http, HttpReply) else ""
    if said.isascii() and said.isdecimal():
        return float(said[:9])
    try:
        return max(0.0, (email.utils.parsedate_to_datetime(said) - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        # no date, or one without its zone
        return None
