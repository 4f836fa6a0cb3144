"""What the gateway says itself: each format's own shape of an error, at a status at which its clients stop."""

from __future__ import annotations

import json

import pytest

from proctor.core.families import Family
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.gateway.wire.formats import WIRES
from proctor.gateway.wire.refusing import refused

# Statuses that the providers' own SDKs send a request again at.
REPEATED = {408, 409, 429}
FINAL = [reason for reason in Reason if reason.family in (Family.GATEWAY, Family.BUDGET)]


@pytest.mark.parametrize("api", WIRES)
@pytest.mark.parametrize("reason", FINAL, ids=lambda reason: reason.id)
def test_a_refusal_reads_back_as_an_error_of_its_format_and_is_not_to_be_repeated(api: str, reason: Reason) -> None:
    answer = refused(api, Refusal(reason, "because of this"))
    assert 400 <= answer.status < 500 and answer.status not in REPEATED
    assert answer.headers == {"content-type": "application/json", "x-should-retry": "false"}
    reader = WIRES[api].reader()
    reader.feed(answer.body)
    error = reader.close().error
    assert error is not None
    assert "because of this" in error.message
    assert reason.id in answer.body.decode()
    assert error.kind


@pytest.mark.parametrize("api", WIRES)
def test_an_upstream_that_gave_no_answer_may_be_asked_again(api: str) -> None:
    gone = refused(api, Refusal(Reason.PROVIDER_UNREACHABLE, "no connection"))
    late = refused(api, Refusal(Reason.PROVIDER_TIMEOUT, "no reply"))
    assert (gone.status, late.status) == (502, 504)
    assert "x-should-retry" not in gone.headers


def test_what_is_wrong_shows_in_the_status_where_the_clients_of_a_format_can_bear_it() -> None:
    statuses = {
        Reason.TOKEN_UNKNOWN: 401,
        Reason.ROUTE_UNKNOWN: 404,
        Reason.MODEL_NOT_LISTED: 404,
        Reason.REQUEST_UNREADABLE: 400,
        Reason.REQUEST_TOO_LARGE: 413,
    }
    for reason, status in statuses.items():
        for api in ("chat", "anthropic", "gemini"):
            assert refused(api, Refusal(reason, "x")).status == status
        assert refused("responses", Refusal(reason, "x")).status == 400
    final = {api: refused(api, Refusal(Reason.CEILING_REACHED, "x")).status for api in WIRES}
    assert (final["chat"], final["responses"], final["anthropic"]) == (401, 400, 403)


def test_a_message_is_bounded_and_always_has_a_json_form() -> None:
    body = refused("chat", Refusal(Reason.FEATURE_UNPRICED, "\ud800" + "x" * 10_000)).body
    assert len(body) < 3_000
    assert json.loads(body)["error"]["message"].startswith("?x")
