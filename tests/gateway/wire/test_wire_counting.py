"""Replies that are no answer of a model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.gateway.wire.base import Flag, Reply
from proctor.gateway.wire.formats import conversation, reader_of
from proctor.gateway.wire.routes import find_route

COUNTS = ["/v1/messages/count_tokens", "/v1beta/models/m:countTokens"]


def read(path: str, body: Any) -> Reply:
    route = find_route("POST", path)
    assert route is not None
    reader = reader_of(route, False)
    reader.feed(body if isinstance(body, bytes) else json.dumps(body).encode())
    return reader.close()


@pytest.mark.parametrize(("path", "key"), list(zip(COUNTS, ["input_tokens", "totalTokens"], strict=True)))
def test_a_count_is_read_and_is_no_usage(path: str, key: str) -> None:
    reply = read(path, {key: 2095})
    assert (reply.text, reply.usage, reply.flags, reply.whole) == ("2095", None, (), True)


@pytest.mark.parametrize("path", COUNTS)
@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"<p>", {"input_tokens": -1}, {"totalTokens": "9"}])
def test_what_is_no_count_is_flagged(path: str, body: Any) -> None:
    assert not read(path, body).whole


@pytest.mark.parametrize("path", [*COUNTS, "/v1/embeddings"])
def test_an_error_is_one_on_every_route(path: str) -> None:
    error = read(path, {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}).error
    assert error is not None and error.kind == "overloaded_error"


def test_vectors_use_input_alone() -> None:
    body = {"object": "list", "model": "e", "data": [{"embedding": [0.1]}]}
    reply = read("/v1/embeddings", {**body, "usage": {"prompt_tokens": 8, "total_tokens": 8}})
    assert reply.usage is not None and reply.usage.as_record() == {"input": 8}
    assert (reply.model, reply.flags) == ("e", ())
    assert read("/v1/embeddings", body).usage is None
    assert read("/v1/embeddings", {**body, "usage": {"prompt_tokens": -8}}).flags == (Flag.USAGE_INVALID,)
    assert read("/v1/embeddings", {"object": "list"}).flags == (Flag.NO_ANSWER,)


def test_an_answer_is_read_by_its_format() -> None:
    assert read("/v1/responses", {"object": "response", "status": "completed", "output": []}).whole


def test_what_a_client_says_as_the_system_between_messages_reads_back_as_that() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": "be brief"}]}
    assert [message.role.value for message in conversation("anthropic", json.dumps(body).encode())] == [
        "user",
        "system",
    ]
