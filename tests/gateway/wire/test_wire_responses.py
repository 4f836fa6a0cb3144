"""Replies of the Responses format, where it has ways of its own."""

from __future__ import annotations

from typing import Any

import pytest
from wire_parts import (
    RESPONSES,
    RESPONSES_BEGUN,
    RESPONSES_EVENTS,
    RESPONSES_ITEMS,
    RESPONSES_USAGE,
    item_begun,
    item_done,
    item_piece,
    read,
    sse,
)

from proctor.core.models import Finish, ToolCall
from proctor.gateway.wire.base import Flag, Native, Reply, WireError

BEGUN = {"type": "response.created", "response": RESPONSES_BEGUN}
TEXT = RESPONSES_ITEMS[1]


def whole(*items: dict[str, Any], **more: Any) -> Reply:
    return read("responses", {**RESPONSES, "output": list(items), **more})


def streamed(*events: dict[str, Any]) -> Reply:
    return read("responses", sse(*events), stream=True)


@pytest.mark.parametrize(
    ("status", "reason", "finish"),
    [
        ("completed", None, Finish.STOP),
        ("incomplete", "max_output_tokens", Finish.LENGTH),
        ("incomplete", "content_filter", Finish.REFUSED),
        ("incomplete", "steered", Finish.OTHER),
        ("incomplete", None, Finish.OTHER),
        ("cancelled", None, Finish.OTHER),
    ],
)
def test_why_a_response_ended(status: str, reason: str | None, finish: Finish) -> None:
    response = {**RESPONSES, "output": [TEXT], "status": status, "incomplete_details": reason and {"reason": reason}}
    for reply in (
        read("responses", response),
        streamed(BEGUN, item_done(1), {"type": f"response.{status}", "response": response}),
    ):
        assert (reply.finish, reply.raw_finish) == (finish, reason or status)
        assert reply.flags == ()
        assert reply.usage is not None


def test_an_event_says_the_end_where_its_response_does_not() -> None:
    bare = {key: said for key, said in RESPONSES.items() if key != "status"}
    assert streamed(BEGUN, {"type": "response.completed", "response": bare}).finish is Finish.TOOLS


def test_a_refusal_is_one_whatever_the_status_says() -> None:
    said = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
    assert whole(said).finish is Finish.REFUSED
    pieces = [
        BEGUN,
        item_begun(1, content=[]),
        item_piece(1, "refusal", "no", content_index=0),
        {"type": "response.completed", "response": {**RESPONSES, "output": []}},
    ]
    assert streamed(*pieces).finish is Finish.REFUSED


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_a_response_that_is_still_made_has_no_finish(status: str) -> None:
    assert Flag.NO_FINISH in whole(status=status, usage=None).flags


FAILED = {**RESPONSES_BEGUN, "status": "failed", "error": {"code": "server_error", "message": "broke"}}
WRAPPED = {"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "none"}}


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ([BEGUN, {"type": "response.failed", "response": FAILED}], WireError(None, "server_error", "broke")),
        (
            [BEGUN, WRAPPED, {"type": "response.failed", "response": FAILED}],
            WireError("insufficient_quota", "insufficient_quota", "none"),
        ),
        ([BEGUN, {"type": "error", "code": "e", "message": "flat"}], WireError("error", "e", "flat")),
        ([BEGUN, {"type": "response.failed", "response": {**FAILED, "error": None}}], WireError(code="failed")),
    ],
)
def test_each_way_to_fail(events: list[dict[str, Any]], error: WireError) -> None:
    reply = streamed(*events)
    assert reply.error == error
    assert not reply.whole
    assert reply.flags == ()


def test_what_came_before_a_cut_is_kept_and_never_sent_back_as_whole() -> None:
    reply = streamed(*RESPONSES_EVENTS[:10], *RESPONSES_EVENTS[11:14])
    assert (reply.text, reply.thoughts) == ("Ich schaue nach: ü👋", "a tool helps")
    assert reply.calls == (ToolCall("t1", "look", {"at": "a[0]"}, '{"at":"a[0]"}'),)
    assert reply.native is None
    assert {Flag.TRUNCATED, Flag.NO_FINISH} == set(reply.flags)


def test_items_go_back_as_they_were_when_each_was_done() -> None:
    changed = [{**RESPONSES_ITEMS[0], "encrypted_content": "another"}, *RESPONSES_ITEMS[1:]]
    reply = streamed(
        *RESPONSES_EVENTS[:-1], {"type": "response.completed", "response": {**RESPONSES, "output": changed}}
    )
    assert reply.native == Native("responses", RESPONSES_ITEMS)
    assert streamed(BEGUN, RESPONSES_EVENTS[-1]).native == Native("responses", RESPONSES_ITEMS)


def test_a_response_that_starts_anew_is_void_but_for_its_usage() -> None:
    used = {"type": "response.created", "response": {**RESPONSES_BEGUN, "usage": RESPONSES_USAGE}}
    done = {"type": "response.completed", "response": {**RESPONSES, "output": [], "usage": None}}
    reply = streamed(used, item_done(2), BEGUN, item_done(1), done)
    assert (reply.calls, reply.text, reply.flags) == ((), "Ich schaue nach: ü👋", (Flag.RESTARTED,))
    assert reply.usage is not None


CALLS = [
    (
        {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": '{"a":1}'},
        ToolCall("c", "p", None, '{"a":1}'),
    ),
    (
        {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
        ToolCall("c", "local_shell", {"command": ["ls"]}, '{"command":["ls"]}'),
    ),
    (
        {"type": "apply_patch_call", "call_id": "c", "operation": {"x": 1}},
        ToolCall("c", "apply_patch", {"x": 1}, '{"x":1}'),
    ),
    ({"type": "function_call", "name": "f", "arguments": "{"}, ToolCall("call_0", "f", None, "{")),
    ({"type": "function_call", "call_id": "c", "name": "f"}, ToolCall("c", "f", {}, "")),
]


@pytest.mark.parametrize(("item", "call"), CALLS)
def test_items_that_the_client_answers_are_calls(item: dict[str, Any], call: ToolCall) -> None:
    reply = whole(item)
    assert reply.calls == (call,)
    assert reply.finish is Finish.TOOLS


@pytest.mark.parametrize(
    "more",
    [
        {"output": [{"type": "web_search_call", "status": "completed"}, TEXT]},
        {"output": [{"type": "code_interpreter_call"}]},
        {"service_tier": "priority"},
        {"usage": {**RESPONSES_USAGE, "input_tokens_details": {"cache_write_tokens_details": {"ttl_12h_tokens": 3}}}},
    ],
)
def test_what_has_a_price_of_its_own_is_flagged(more: dict[str, Any]) -> None:
    reply = read("responses", {**RESPONSES, **more})
    assert reply.usage is not None
    assert reply.usage.flags == (Flag.UNPRICED_UNITS.value,)


@pytest.mark.parametrize("tier", ["default", "auto", None])
def test_the_usual_tiers_are_not(tier: str | None) -> None:
    assert read("responses", {**RESPONSES, "service_tier": tier}).flags == ()


@pytest.mark.parametrize(
    ("usage", "buckets", "flags"),
    [
        (
            {**RESPONSES_USAGE, "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 4}},
            {"input": 8, "cache_read": 8, "cache_write": 4, "output": 7, "reasoning": 5},
            (),
        ),
        ({"input_tokens": 3, "output_tokens": 2}, {"input": 3, "output": 2}, ()),
        (
            {"input_tokens": 3, "output_tokens": 2, "total_tokens": 4},
            {"input": 3, "output": 2},
            (Flag.TOTAL_DIFFERS,),
        ),
        ({"input_tokens": 3}, None, (Flag.USAGE_INVALID,)),
        ({"input_tokens": -3, "output_tokens": 2}, None, (Flag.USAGE_INVALID,)),
        ({"input_tokens": 3, "output_tokens": 2, "output_tokens_details": 7}, None, (Flag.USAGE_INVALID,)),
        (7, None, (Flag.USAGE_INVALID,)),
        (None, None, ()),
    ],
)
def test_usage(usage: Any, buckets: dict[str, int] | None, flags: tuple[Flag, ...]) -> None:
    reply = whole(TEXT, usage=usage)
    assert (None if reply.usage is None else reply.usage.as_record()) == buckets
    assert reply.flags == flags


@pytest.mark.parametrize(
    "event",
    [
        item_piece(7, "output_text", "x", content_index=0),
        item_piece(1, "output_text", "x", content_index="a"),
        {"type": "response.output_text.delta", "delta": "x"},
        {"type": "response.output_item.added", "item": TEXT},
        {"type": "response.output_item.done", "output_index": "0", "item": TEXT},
        {"type": "response.output_item.added", "output_index": 0, "item": 7},
    ],
)
def test_a_piece_that_fits_nowhere_is_flagged(event: dict[str, Any]) -> None:
    reply = streamed(BEGUN, item_begun(1, content=[]), event, RESPONSES_EVENTS[-1])
    assert Flag.MALFORMED in reply.flags
    assert not reply.whole


def test_events_that_are_not_known_add_nothing() -> None:
    strange = [{"type": "response.new.delta", "delta": "x", "output_index": 0}, {"type": "keepalive"}, {}]
    assert streamed(*RESPONSES_EVENTS[:4], *strange, *RESPONSES_EVENTS[4:]) == streamed(*RESPONSES_EVENTS)
