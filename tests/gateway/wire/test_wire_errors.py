"""What providers say went wrong, in every shape in which they do."""

from __future__ import annotations

from typing import Any

import pytest
from wire_parts import ANTHROPIC_EVENTS, CHAT_CHUNKS, chunk, read, sse

from proctor.core.models import Finish
from proctor.gateway.wire.base import Flag, WireError

SHAPES: list[tuple[str, Any, WireError]] = [
    (
        "chat",
        {"error": {"message": "No credit", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}},
        WireError("insufficient_quota", "insufficient_quota", "No credit"),
    ),
    ("chat", {"error": {"message": "Slow down", "code": 429}}, WireError(None, "429", "Slow down", 429)),
    (
        "chat",
        {"error": {"message": "No call", "type": "x", "code": "tool_use_failed", "status_code": 400}},
        WireError("x", "tool_use_failed", "No call", 400),
    ),
    ("chat", {"error": "Unauthorized"}, WireError(message="Unauthorized")),
    ("chat", {"error": ["a", 1]}, WireError(message='["a",1]')),
    ("chat", {"error": {}}, WireError()),
    ("chat", {"object": "error", "message": "Bad", "type": "y", "code": 3000}, WireError("y", "3000", "Bad")),
    ("chat", {"detail": "Not Found"}, WireError(message="Not Found")),
    ("chat", {"detail": [{"msg": "field required"}]}, WireError(message='[{"msg":"field required"}]')),
    (
        "chat",
        [{"error": {"code": 400, "message": "Key", "status": "INVALID"}}],
        WireError("INVALID", "400", "Key", 400),
    ),
    ("chat", {"choices": [{"error": {"code": 502, "message": "Gone"}}]}, WireError(None, "502", "Gone", 502)),
    (
        "anthropic",
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        WireError("overloaded_error", None, "Overloaded"),
    ),
    (
        "gemini",
        {
            "error": {
                "code": 429,
                "message": "Quota",
                "status": "RESOURCE_EXHAUSTED",
                "details": [7, {"retryDelay": 3}, {"@type": "google.rpc.RetryInfo", "retryDelay": "34.4s"}],
            }
        },
        WireError("RESOURCE_EXHAUSTED", "429", "Quota", 429, 34.4),
    ),
]


@pytest.mark.parametrize(("api", "body", "error"), SHAPES)
def test_each_shape_of_an_error(api: str, body: Any, error: WireError) -> None:
    for reply in (read(api, body), read(api, body, stream=True)):
        assert reply.error == error
        assert not reply.whole
        assert reply.usage is None


@pytest.mark.parametrize("word", [7, None, [], {}, "", True])
def test_words_of_a_wrong_type_are_left_out(word: Any) -> None:
    error = read("chat", {"error": {"type": word, "code": [word], "message": {"a": word}, "details": word}}).error
    assert error is not None
    assert (error.kind, error.code, error.retry_after_sec) == (None, None, None)


def test_messages_are_bounded() -> None:
    error = read("chat", {"error": {"message": "m" * 5_000, "type": "t" * 5_000, "code": 10**30}}).error
    assert error == WireError("t" * 200, None, "m" * 1_000)


def test_an_error_in_the_middle_of_a_stream_keeps_what_came() -> None:
    error = {"error": {"message": "Broke", "type": "server_error"}}
    reply = read("chat", sse(*CHAT_CHUNKS[:5], error), stream=True)
    assert (reply.text, reply.error) == ("Ich schaue nach: ü👋", WireError("server_error", None, "Broke"))
    assert reply.flags == ()
    reply = read("anthropic", sse(*ANTHROPIC_EVENTS[:9], {"type": "error", **error}), stream=True)
    assert (reply.text, reply.error) == ("Ich schaue nach: ü👋", WireError("server_error", None, "Broke"))


def test_one_chunk_may_hold_an_error_choices_and_a_usage() -> None:
    usage = {"prompt_tokens": 4, "completion_tokens": 2}
    last = chunk({"content": ""}, None, usage=usage, error={"code": 400, "message": "Token limit reached"})
    reply = read("chat", sse(chunk({"content": "a"}, "length"), last, done=True), stream=True)
    assert (reply.text, reply.finish) == ("a", Finish.LENGTH)
    assert reply.error == WireError(None, "400", "Token limit reached", 400)
    assert reply.usage is not None
    assert reply.usage.as_record() == {"input": 4, "output": 2}


def test_an_event_that_is_no_json_is_flagged_and_the_rest_is_read() -> None:
    body = sse(*CHAT_CHUNKS[:5]) + b"data: {broken\n\ndata: 7\n\n" + sse(*CHAT_CHUNKS[5:])
    reply = read("chat", body, stream=True)
    assert reply.flags == (Flag.UNREADABLE, Flag.MALFORMED)
    assert reply.usage is not None
    assert not reply.whole
