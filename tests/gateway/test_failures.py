"""The table of failures, row by row: why, again or not, and what is owed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.models import Finish
from proctor.core.reasons import Reason
from proctor.core.usage import Bucket, Usage
from proctor.gateway.failures import (
    MAX_ASKED_WAIT_SEC,
    MAX_WAIT_SEC,
    TABLE,
    Failure,
    Owed,
    Seen,
    asked_wait,
    classify,
    wait_sec,
)
from proctor.gateway.upstream import Cut, HttpReply, Late, NotSent, SendFailed, TooLarge
from proctor.gateway.wire.base import Flag, Reply, WireError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
USAGE = Usage({Bucket.INPUT: 3})


def of(
    status: int, kind: str | None = None, code: str | None = None, *, body_status: int | None = None
) -> Failure | None:
    error = WireError(kind=kind, code=code, message="quota key context", status=body_status)
    return classify(Seen.of(HttpReply(status, {}, b""), Reply(error=error)))


STATUSES = {
    300: (Reason.REQUEST_REJECTED, False),
    302: (Reason.REQUEST_REJECTED, False),
    400: (Reason.REQUEST_REJECTED, False),
    401: (Reason.KEY_REJECTED, False),
    402: (Reason.QUOTA_EXHAUSTED, False),
    403: (Reason.KEY_REJECTED, False),
    404: (Reason.MODEL_NOT_FOUND, False),
    405: (Reason.REQUEST_REJECTED, False),
    408: (Reason.PROVIDER_FAILED, True),
    409: (Reason.PROVIDER_FAILED, True),
    413: (Reason.CONTEXT_EXCEEDED, False),
    422: (Reason.REQUEST_REJECTED, False),
    425: (Reason.PROVIDER_FAILED, True),
    429: (Reason.RATE_LIMITED, True),
    499: (Reason.REQUEST_REJECTED, False),
    500: (Reason.PROVIDER_FAILED, True),
    503: (Reason.PROVIDER_FAILED, True),
    529: (Reason.PROVIDER_FAILED, True),
    599: (Reason.PROVIDER_FAILED, True),
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_that_says_no_owes_nothing(status: int) -> None:
    reason, again = STATUSES[status]
    assert of(status) == Failure(reason, Owed.NOTHING, again)
    # whatever became of the body
    for broken in (Late("x", status=status), Cut("x", status=status), TooLarge("x", status=status)):
        assert classify(Seen.of(broken, None)) == Failure(reason, Owed.NOTHING, again)


@pytest.mark.parametrize(
    ("status", "kind", "code", "reason", "again"),
    [
        (429, "insufficient_quota", "insufficient_quota", Reason.QUOTA_EXHAUSTED, False),
        (400, "invalid_request_error", "billing_hard_limit_reached", Reason.QUOTA_EXHAUSTED, False),
        (400, "billing_error", None, Reason.QUOTA_EXHAUSTED, False),
        (400, "invalid_request_error", "context_length_exceeded", Reason.CONTEXT_EXCEEDED, False),
        (400, "invalid_request_error", "model_not_found", Reason.MODEL_NOT_FOUND, False),
        (400, "invalid_request_error", "invalid_api_key", Reason.KEY_REJECTED, False),
        (429, "RESOURCE_EXHAUSTED", "429", Reason.RATE_LIMITED, True),
        (529, "overloaded_error", None, Reason.PROVIDER_FAILED, True),
        (400, "invalid_request_error", None, Reason.REQUEST_REJECTED, False),
    ],
)
def test_the_words_of_a_provider_go_before_its_status(
    status: int, kind: str, code: str | None, reason: Reason, again: bool
) -> None:
    assert of(status, kind, code) == Failure(reason, Owed.NOTHING, again)


@pytest.mark.parametrize(
    ("kind", "code", "body_status", "reason", "again"),
    [
        (None, None, None, Reason.PROVIDER_FAILED, True),
        (None, "502", 502, Reason.PROVIDER_FAILED, True),
        (None, "429", 429, Reason.RATE_LIMITED, True),
        ("insufficient_quota", None, None, Reason.QUOTA_EXHAUSTED, False),
        (None, "402", 402, Reason.QUOTA_EXHAUSTED, False),
    ],
)
def test_an_error_with_status_200_owes_what_it_used(
    kind: str | None, code: str | None, body_status: int | None, reason: Reason, again: bool
) -> None:
    assert of(200, kind, code, body_status=body_status) == Failure(reason, Owed.USAGE, again)


@pytest.mark.parametrize(
    ("broken", "reason", "owed", "again"),
    [
        (NotSent("x"), Reason.PROVIDER_UNREACHABLE, Owed.NOTHING, True),
        (Late("x"), Reason.PROVIDER_TIMEOUT, Owed.WORST_CASE, True),
        (Late("x", status=200), Reason.PROVIDER_TIMEOUT, Owed.WORST_CASE, True),
        (Cut("x"), Reason.REPLY_UNREADABLE, Owed.WORST_CASE, True),
        (Cut("x", status=200), Reason.REPLY_UNREADABLE, Owed.WORST_CASE, True),
        (TooLarge("x", status=200), Reason.REPLY_TOO_LARGE, Owed.WORST_CASE, False),
    ],
)
def test_no_whole_reply(broken: SendFailed, reason: Reason, owed: Owed, again: bool) -> None:
    assert classify(Seen.of(broken, None)) == Failure(reason, owed, again)


@pytest.mark.parametrize(
    ("flag", "reason", "owed", "again"),
    [
        (Flag.UNREADABLE, Reason.REPLY_UNREADABLE, Owed.WORST_CASE, True),
        (Flag.TRUNCATED, Reason.REPLY_UNREADABLE, Owed.WORST_CASE, True),
        (Flag.MALFORMED, Reason.REPLY_UNREADABLE, Owed.USAGE, True),
        (Flag.NO_ANSWER, Reason.REPLY_UNREADABLE, Owed.USAGE, True),
        (Flag.TOO_LARGE, Reason.REPLY_TOO_LARGE, Owed.WORST_CASE, False),
    ],
)
def test_a_reply_that_is_not_whole(flag: Flag, reason: Reason, owed: Owed, again: bool) -> None:
    reply = Reply(finish=Finish.STOP, usage=USAGE, flags=(flag,))
    assert classify(Seen.of(HttpReply(200, {}, b""), reply)) == Failure(reason, owed, again)


@pytest.mark.parametrize("flag", [flag for flag in Flag if Reply(flags=(flag,)).whole])
def test_flags_that_leave_an_answer(flag: Flag) -> None:
    assert classify(Seen.of(HttpReply(200, {}, b""), Reply(text="yes", flags=(flag,)))) is None


@given(st.text(), st.sampled_from(sorted(STATUSES)))
def test_the_text_of_a_message_decides_nothing(message: str, status: int) -> None:
    said = classify(Seen.of(HttpReply(status, {}, b""), Reply(error=WireError(message=message))))
    assert said == of(status)


def test_what_would_end_the_run_is_never_sent_again() -> None:
    assert not [row for row in TABLE if row.reason.ends_run and row.again]


@given(st.integers(1, 60), st.floats(0, 1), st.one_of(st.none(), st.floats(0, 1e9)))
def test_waits_double_within_their_bounds(tries: int, chance: float, asked: float | None) -> None:
    own = min(0.5 * 2 ** (tries - 1), MAX_WAIT_SEC)
    waited = wait_sec(tries, asked, chance)
    if asked is None:
        assert own / 2 <= waited <= own
    else:
        assert min(asked, MAX_ASKED_WAIT_SEC) <= waited <= max(own, MAX_ASKED_WAIT_SEC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("9" * 5000, 999_999_999.0),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0),
        ("Thu, 01 Jan 2026 00:00:05", None),
        ("soon", None),
        ("-5", None),
        ("1e3", None),
        ("٣", None),
        ("", None),
        ("Thu, 99 Jan 99999 00:00:05 GMT", None),
    ],
)
def test_what_a_provider_asks_for(header: str, seconds: float | None) -> None:
    assert asked_wait(HttpReply(429, {"retry-after": header}, b""), None, NOW) == seconds


def test_a_wait_may_stand_in_the_body() -> None:
    reply = Reply(error=WireError(retry_after_sec=12.5))
    assert asked_wait(HttpReply(429, {"retry-after": "3"}, b""), reply, NOW) == 12.5
    assert asked_wait(NotSent("x"), None, NOW) is None
