"""Replies of all formats: the same answer whether whole or streamed, however it is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wire_parts import (
    ANTHROPIC,
    ANTHROPIC_EVENTS,
    CHAT,
    CHAT_CHUNKS,
    GEMINI_CHUNKS,
    STREAMS,
    WHOLE,
    added,
    chunk,
    read,
    sse,
    started,
)

from proctor.core.models import Finish, ToolCall
from proctor.gateway.wire.base import Flag, Native
from proctor.gateway.wire.formats import answer
from proctor.gateway.wire.reading import MAX_REPLY_BYTES

APIS = sorted(WHOLE)
BUCKETS = {
    "chat": {"input": 12, "cache_read": 8, "output": 7, "reasoning": 5},
    "responses": {"input": 12, "cache_read": 8, "output": 7, "reasoning": 5},
    "anthropic": {"input": 3, "cache_read": 40, "cache_write": 12_000, "cache_write_1h": 304, "output": 550},
    "gemini": {"input": 12, "cache_read": 8, "tool_input": 3, "output": 7, "reasoning": 5},
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("streamed", [False, True])
def test_text_calls_finish_usage_and_model(api: str, streamed: bool) -> None:
    reply = read(api, sse(*STREAMS[api]), stream=True) if streamed else read(api, WHOLE[api])
    ids = ("call_0", "call_1") if api == "gemini" else ("t1", "t2")
    assert reply.text == "Ich schaue nach: ü👋"
    assert reply.thoughts == "a tool helps"
    assert [call.name for call in reply.calls] == ["look", "nap"]
    assert [call.arguments for call in reply.calls] == [{"at": "a[0]"}, {}]
    assert tuple(call.id for call in reply.calls) == ids
    assert reply.finish is Finish.TOOLS
    assert reply.model == "m-1-2026"
    assert reply.usage is not None
    assert reply.usage.as_record() == BUCKETS[api]
    assert reply.flags == reply.usage.flags == ()
    assert reply.whole


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("piece", [1, 2, 3, 5, 64])
def test_pieces_of_any_size_give_the_same_reply(api: str, piece: int) -> None:
    for body in (json.dumps(WHOLE[api], ensure_ascii=False).encode(), sse(*STREAMS[api])):
        assert read(api, body, stream=True, piece=piece) == read(api, body, stream=True) == answer(api, body)


@pytest.mark.parametrize("api", APIS)
def test_lines_may_end_with_crlf_and_the_last_event_without_any(api: str) -> None:
    body = sse(*STREAMS[api])
    assert read(api, body.replace(b"\n", b"\r\n"), stream=True, piece=1) == read(api, body, stream=True)
    assert read(api, body.removesuffix(b"\n\n"), stream=True) == read(api, body, stream=True)


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_is_cut_before_its_end_is_flagged(api: str) -> None:
    body = sse(*STREAMS[api][:4])
    for cut in (body, body[:-40], body[: len(body) // 2]):
        reply = read(api, cut, stream=True)
        assert Flag.TRUNCATED in reply.flags
        assert not reply.whole


def test_a_stream_needs_no_done_marker_once_a_finish_reason_came() -> None:
    assert read("chat", sse(*CHAT_CHUNKS), stream=True) == read("chat", sse(*CHAT_CHUNKS, done=True), stream=True)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "body", [b"", b"  \n", b"<html>502</html>", b'{"a": ', b"\xff\xfe", b"[" * 200, b'"text"', b"7"]
)
def test_what_is_no_reply_is_flagged(api: str, body: bytes) -> None:
    for stream in (False, True):
        reply = read(api, body, stream=stream)
        assert not reply.whole
        assert reply.usage is None
        assert reply.finish is Finish.OTHER


@pytest.mark.parametrize("api", APIS)
def test_more_than_any_answer_can_be_is_not_read(api: str) -> None:
    reader_body = b'{"a": "' + b"x" * MAX_REPLY_BYTES
    reply = read(api, reader_body)
    assert reply.flags[0] is Flag.TOO_LARGE
    assert not reply.whole


@pytest.mark.parametrize("api", APIS)
def test_an_empty_object_is_no_answer(api: str) -> None:
    assert Flag.NO_ANSWER in read(api, {}).flags


@pytest.mark.parametrize(
    ("api", "word", "finish"),
    [
        ("chat", "stop", Finish.STOP),
        ("chat", "length", Finish.LENGTH),
        ("chat", "content_filter", Finish.REFUSED),
        ("chat", "new_word", Finish.OTHER),
        ("anthropic", "end_turn", Finish.STOP),
        ("anthropic", "stop_sequence", Finish.STOP),
        ("anthropic", "max_tokens", Finish.LENGTH),
        ("anthropic", "refusal", Finish.REFUSED),
        ("anthropic", "pause_turn", Finish.OTHER),
        ("gemini", "STOP", Finish.STOP),
        ("gemini", "MAX_TOKENS", Finish.LENGTH),
        ("gemini", "SAFETY", Finish.REFUSED),
        ("gemini", "MALFORMED_FUNCTION_CALL", Finish.OTHER),
    ],
)
def test_why_a_model_stopped(api: str, word: str, finish: Finish) -> None:
    body: dict[str, Any] = {
        "chat": {"choices": [{"message": {"content": "x"}, "finish_reason": word}]},
        "anthropic": {"type": "message", "content": [{"type": "text", "text": "x"}], "stop_reason": word},
        "gemini": {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": word}]},
    }[api]
    reply = read(api, body)
    assert (reply.finish, reply.raw_finish, reply.text) == (finish, word, "x")
    assert reply.whole


def test_the_message_of_a_chat_comes_back_as_it_was() -> None:
    assert read("chat", CHAT).native == Native("chat", CHAT["choices"][0]["message"])


def test_the_blocks_of_anthropic_come_back_as_they_were_whole_or_streamed() -> None:
    assert read("anthropic", ANTHROPIC).native == Native("anthropic", ANTHROPIC["content"])
    assert read("anthropic", sse(*ANTHROPIC_EVENTS), stream=True).native == Native("anthropic", ANTHROPIC["content"])


def test_an_array_of_gemini_responses_reads_as_its_events_do() -> None:
    assert read("gemini", GEMINI_CHUNKS, stream=True, piece=7) == read("gemini", sse(*GEMINI_CHUNKS), stream=True)
    cut = json.dumps(GEMINI_CHUNKS).encode()[:-1]
    assert not read("gemini", cut, stream=True).whole
    assert Flag.TRUNCATED in read("gemini", GEMINI_CHUNKS[:2], stream=True).flags


def test_calls_of_a_chat_are_told_apart_however_they_are_numbered() -> None:
    def call(**fields: Any) -> dict[str, Any]:
        return chunk({"tool_calls": [fields]})

    first = {"id": "a", "function": {"name": "f", "arguments": "{"}}
    second = {"id": "b", "function": {"name": "g", "arguments": "{"}}
    more = {"function": {"arguments": "}"}}
    wanted = [ToolCall("a", "f", {}, "{}"), ToolCall("b", "g", {}, "{}")]
    for numbers in ([1, 1, 2, 2], [0, 0, 0, 0], [None, None, None, None]):
        events = [call(**fields, index=n) for fields, n in zip((first, more, second, more), numbers, strict=True)]
        assert list(read("chat", sse(*events, chunk({}, "stop")), stream=True).calls) == wanted


def test_calls_without_ids_in_a_whole_chat_are_two_and_get_ids() -> None:
    function = {"function": {"name": "f", "arguments": {"x": 1}}}
    reply = read("chat", {"choices": [{"message": {"tool_calls": [function, function]}, "finish_reason": "stop"}]})
    assert [(call.id, call.raw) for call in reply.calls] == [("call_0", '{"x":1}'), ("call_1", '{"x":1}')]
    assert reply.finish is Finish.TOOLS
    assert reply.native is None


@pytest.mark.parametrize("raw", ["[]", "7", "{", '{"a":1,"a":2}', '{"a":1e999}', "null", "{" * 5_000])
def test_arguments_that_are_no_object_are_none_and_stay_readable_as_text(raw: str) -> None:
    message = {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": raw}}]}
    reply = read("chat", {"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    assert reply.calls == (ToolCall("a", "f", None, raw),)
    assert reply.whole


def test_further_choices_are_flagged_and_not_mixed_in() -> None:
    body = {"choices": [{"index": n, "message": {"content": str(n)}, "finish_reason": "stop"} for n in (0, 1)]}
    reply = read("chat", body)
    assert (reply.text, reply.flags) == ("0", (Flag.SEVERAL_CHOICES,))


def test_a_message_that_starts_anew_is_void_but_for_its_usage() -> None:
    again = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3, "output_tokens": 1}}}
    text = [started(0, {"type": "text", "text": ""}), added(0, {"type": "text_delta", "text": "second"})]
    events = [*ANTHROPIC_EVENTS[:6], again, *text, *ANTHROPIC_EVENTS[-2:]]
    reply = read("anthropic", sse(*events), stream=True)
    assert (reply.text, reply.thoughts) == ("second", "")
    assert Flag.RESTARTED in reply.flags
    assert reply.usage is not None
    assert reply.usage.as_record() == BUCKETS["anthropic"]


def test_pieces_of_arguments_make_a_gemini_call() -> None:
    def piece(**call: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}

    def at(path: str, **value: Any) -> dict[str, Any]:
        return piece(willContinue=True, partialArgs=[{"jsonPath": path, **value}])

    events = [
        piece(name="book", willContinue=True),
        at("$.to.city", stringValue="Bo", willContinue=True),
        at("$.to.city", stringValue="nn"),
        at("$.seats[0].row", numberValue=3),
        at("$.seats[1]['at window']", boolValue=True),
        at("$.note", nullValue="NULL_VALUE"),
        piece(),
        piece(name="pay", args={"all": True}),
        {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]},
    ]
    reply = read("gemini", sse(*events), stream=True)
    booked = {"to": {"city": "Bonn"}, "seats": [{"row": 3}, {"at window": True}], "note": None}
    assert [(call.name, call.arguments) for call in reply.calls] == [("book", booked), ("pay", {"all": True})]
    assert reply.native is not None
    assert reply.native.value["parts"][0] == {"functionCall": {"name": "book", "args": booked}}
    assert reply.whole


@pytest.mark.parametrize("path", ["", "$", "a", "$.", "$..a", "$[1]", "$.a[9]", "$.a[x]", "$.k.x", "$" + ".a" * 65, 7])
def test_a_piece_of_arguments_that_fits_nowhere_is_flagged(path: Any) -> None:
    pieces = [{"jsonPath": "$.k", "numberValue": 1}, {"jsonPath": path, "numberValue": 1}]
    call = {"name": "f", "partialArgs": pieces}
    body = {"candidates": [{"content": {"parts": [{"functionCall": call}]}, "finishReason": "STOP"}]}
    assert read("gemini", body).flags == (Flag.MALFORMED,)
