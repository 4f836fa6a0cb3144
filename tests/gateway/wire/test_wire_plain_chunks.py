"""A chunk that says text alone is read the short way: with a key that nobody reads beside it, it says the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor.gateway.wire.base import Reply
from proctor.gateway.wire.formats import WIRES

MAYBE = {
    "usage": st.sampled_from(
        [None, {}, {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}, {"prompt_tokens": -1}]
    ),
    "service_tier": st.sampled_from([None, "default", "flex", 7]),
    "model": st.sampled_from(["m", "other", None, 3, ""]),
    "object": st.sampled_from(["chat.completion.chunk", "error", None]),
    "message": st.just("said"),
    "error": st.sampled_from([None, "", "broken", {"message": "broken", "code": 500}]),
    "detail": st.just("said"),
    "type": st.sampled_from(["error", "chunk"]),
    "id": st.just("1"),
}
DELTA = st.fixed_dictionaries(
    {},
    optional={
        "content": st.sampled_from(["a", "", "é\n", None, 4, [{"type": "text", "text": "part"}]]),
        "role": st.just("assistant"),
        "reasoning": st.sampled_from(["thought", None]),
        "refusal": st.sampled_from(["no", None]),
        "tool_calls": st.just([{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]),
    },
)
CHOICE = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 1, None, "0", False]),
        "delta": st.one_of(DELTA, st.sampled_from([None, "a", []])),
        "finish_reason": st.sampled_from([None, "stop", "length", 1]),
        "logprobs": st.none(),
        "usage": MAYBE["usage"],
        "error": MAYBE["error"],
        "message": st.just({"content": "whole"}),
    },
)
CHOICES = st.one_of(st.lists(st.one_of(CHOICE, st.just("a")), max_size=2), st.sampled_from([None, "a", {}]))
CHUNK = st.fixed_dictionaries({}, optional={**MAYBE, "choices": CHOICES})


def read(chunks: list[dict[str, Any]]) -> Reply:
    reader = WIRES["chat"].reader(stream=True)
    for chunk in chunks:
        reader.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    return reader.close()


@given(st.lists(CHUNK, max_size=6))
def test_text_alone_says_the_same_beside_what_nobody_reads(chunks: list[dict[str, Any]]) -> None:
    begun = [{"model": "m", "choices": [{"index": 0, "delta": {"role": "assistant"}}]}, *chunks]
    assert read(begun) == read([{**chunk, "unread": 1} for chunk in begun])


@given(st.lists(st.text(min_size=1), min_size=1))
def test_text_comes_together_in_its_order(words: list[str]) -> None:
    chunks = [{"model": "m", "choices": [{"index": 0, "delta": {"content": word}}]} for word in words]
    assert read(chunks).text == "".join(word.encode("utf-16", "surrogatepass").decode("utf-16") for word in words)
