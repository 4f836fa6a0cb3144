"""Usage of all formats: disjoint buckets, never negative, and flagged where the numbers contradict each other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_parts import ANTHROPIC, CHAT, CHAT_CHUNKS, GEMINI, RESPONSES, chunk, read, sse

from proctor.core.usage import Usage
from proctor.gateway.wire.base import Flag, Reply


def chat(usage: Any) -> Reply:
    return read("chat", {**CHAT, "usage": usage})


def anthropic(usage: Any) -> Reply:
    return read("anthropic", {**ANTHROPIC, "usage": usage})


def gemini(usage: Any) -> Reply:
    return read("gemini", {**GEMINI, "usageMetadata": usage})


def counted(reply: Reply) -> tuple[dict[str, int] | None, tuple[str, ...]]:
    if reply.usage is None:
        return None, reply.flags
    assert reply.usage.flags == reply.flags
    return reply.usage.as_record(), reply.flags


def openai(prompt: int, completion: int, total: int | None, *, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


@pytest.mark.parametrize(
    ("given_usage", "buckets", "flags"),
    [
        (openai(10, 20, 30, reasoning=5), {"input": 10, "output": 15, "reasoning": 5}, ()),
        # reasoning beside the completion, decided by the total
        (openai(10, 20, 35, reasoning=5), {"input": 10, "output": 20, "reasoning": 5}, ()),
        # cached tokens beside the prompt, decided by the total
        (openai(10, 20, 37, cached=7), {"input": 10, "cache_read": 7, "output": 20}, ()),
        (openai(10, 20, 42, cached=7, reasoning=5), {"input": 10, "cache_read": 7, "output": 20, "reasoning": 5}, ()),
        (openai(10, 20, None, cached=7), {"input": 3, "cache_read": 7, "output": 20}, ()),
        # a part larger than its whole: within it by the total, else beside it
        (openai(43, 10, 53, reasoning=11), {"input": 43, "reasoning": 11}, (Flag.PART_EXCEEDS_WHOLE,)),
        (openai(43, 10, None, reasoning=11), {"input": 43, "output": 10, "reasoning": 11}, (Flag.PART_EXCEEDS_WHOLE,)),
        # thoughts that the total alone knows of
        (openai(20, 151, 553), {"input": 20, "output": 151, "reasoning": 382}, (Flag.TOTAL_FILLED,)),
        (openai(20, 151, 150), {"input": 20, "output": 151}, (Flag.TOTAL_DIFFERS,)),
        (openai(20, 5, 23, reasoning=7), {"input": 20, "output": 5, "reasoning": 7},
         (Flag.TOTAL_DIFFERS, Flag.PART_EXCEEDS_WHOLE)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
         {"input": 5, "cache_read": 4, "output": 2}, ()),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cache_write_tokens": 6}},
         {"input": 3, "cache_write": 6, "output": 2}, ()),
        ({"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"audio_tokens": 6},
          "completion_tokens_details": {"audio_tokens": 1}},
         {"input": 3, "audio_in": 6, "output": 3, "audio_out": 1}, ()),
        ({"prompt_tokens": 9, "completion_tokens": 4, "num_sources_used": 2}, {"input": 9, "output": 4},
         (Flag.UNPRICED_UNITS,)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, {}, ()),
        ({"prompt_tokens": 9}, None, (Flag.USAGE_INVALID,)),
        ({}, None, ()),
        (None, None, ()),
    ],
)  # fmt: skip
def test_chat(given_usage: Any, buckets: dict[str, int] | None, flags: tuple[Flag, ...]) -> None:
    assert counted(chat(given_usage)) == (buckets, flags)


@pytest.mark.parametrize(
    ("given_usage", "buckets", "flags"),
    [
        ({"input_tokens": 3, "cache_creation_input_tokens": 12_304, "output_tokens": 550},
         {"input": 3, "cache_write": 12_304, "output": 550}, ()),
        ({"input_tokens": 3, "cache_creation_input_tokens": 9, "output_tokens": 5,
          "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 5}},
         {"input": 3, "cache_write": 4, "cache_write_1h": 5, "output": 5}, (Flag.TOTAL_DIFFERS,)),
        ({"input_tokens": 3, "output_tokens": 5, "server_tool_use": {"web_search_requests": 1}},
         {"input": 3, "output": 5}, (Flag.UNPRICED_UNITS,)),
        ({"input_tokens": 3, "output_tokens": 5, "iterations": []}, {"input": 3, "output": 5}, ()),
        ({"input_tokens": 3, "output_tokens": 5, "iterations": [{"input_tokens": 4, "output_tokens": 9}] * 2},
         {"input": 8, "output": 18}, ()),
        ({"input_tokens": 3, "output_tokens": 5, "iterations": [{"input_tokens": 1, "output_tokens": 9}] * 2},
         {"input": 3, "output": 18}, (Flag.TOTAL_DIFFERS,)),
        ({"input_tokens": 3, "output_tokens": 5, "iterations": [{"input_tokens": -1}]}, None, (Flag.USAGE_INVALID,)),
        ({"input_tokens": 3, "output_tokens": 5, "iterations": 7}, None, (Flag.USAGE_INVALID,)),
        ({"input_tokens": 3}, None, (Flag.USAGE_INVALID,)),
        (None, None, ()),
    ],
)  # fmt: skip
def test_anthropic(given_usage: Any, buckets: dict[str, int] | None, flags: tuple[Flag, ...]) -> None:
    assert counted(anthropic(given_usage)) == (buckets, flags)


@pytest.mark.parametrize(
    ("given_usage", "buckets", "flags"),
    [
        ({"promptTokenCount": 20, "candidatesTokenCount": 151, "totalTokenCount": 553},
         {"input": 20, "output": 151, "reasoning": 382}, (Flag.TOTAL_FILLED,)),
        ({"promptTokenCount": 20, "candidatesTokenCount": 151, "thoughtsTokenCount": 382, "totalTokenCount": 553},
         {"input": 20, "output": 151, "reasoning": 382}, ()),
        ({"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 24},
         {"input": 20, "output": 5}, (Flag.TOTAL_DIFFERS,)),
        ({"promptTokenCount": 20, "cachedContentTokenCount": 30, "totalTokenCount": 20},
         {"cache_read": 30}, (Flag.PART_EXCEEDS_WHOLE,)),
        ({"promptTokenCount": 20, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 8},
          {"modality": "AUDIO", "tokenCount": 12}]}, {"input": 8, "audio_in": 12}, ()),
        ({"candidatesTokenCount": 5}, None, (Flag.USAGE_INVALID,)),
        ({"promptTokenCount": 20, "promptTokensDetails": 7}, None, (Flag.USAGE_INVALID,)),
        ({"trafficType": "ON_DEMAND"}, None, ()),
    ],
)  # fmt: skip
def test_gemini(given_usage: Any, buckets: dict[str, int] | None, flags: tuple[Flag, ...]) -> None:
    assert counted(gemini(given_usage)) == (buckets, flags)


WORDS = [
    ("default", True),
    ("standard", True),
    ("", True),
    (None, True),
    ("priority", False),
    ("flex", False),
    (7, False),
]


@pytest.mark.parametrize(("word", "listed"), WORDS)
def test_an_answer_of_another_tier_than_list_prices_are_for_is_flagged(word: Any, listed: bool) -> None:
    flags = () if listed else (Flag.UNPRICED_UNITS,)
    used = {"input_tokens": 3, "output_tokens": 5}
    replies = [
        read("chat", {**CHAT, "service_tier": word}),
        read("chat", sse(*({**piece, "service_tier": word} for piece in CHAT_CHUNKS)), stream=True),
        read("responses", {**RESPONSES, "service_tier": word}),
        anthropic({**used, "service_tier": word}),
        anthropic({**used, "speed": word}),
        anthropic({**used, "iterations": [used], "inference_geo": word}),
        gemini({"promptTokenCount": 20, "serviceTier": word}),
    ]
    assert [reply.flags for reply in replies] == [flags] * len(replies)


def test_a_prompt_that_gemini_blocks_has_used_nothing() -> None:
    feedback = {"promptFeedback": {"blockReason": "SAFETY"}}
    reply = read("gemini", {**feedback, "usageMetadata": {"trafficType": "ON_DEMAND"}})
    assert reply.usage == Usage()
    assert reply.raw_finish == "SAFETY"
    assert reply.whole
    assert read("gemini", feedback).usage is None
    assert read("gemini", {**feedback, "usageMetadata": {"promptTokenCount": -1}}).usage is None


@pytest.mark.parametrize("bad", ["many", -1, True, 1.0, 1.5, [], {}, 10**13, 10**39])
@pytest.mark.parametrize("place", [(), ("prompt_tokens",), ("prompt_tokens_details", "cached_tokens"),
                                   ("completion_tokens_details",)])  # fmt: skip
def test_a_count_that_is_none_makes_a_usage_useless(bad: Any, place: tuple[str, ...]) -> None:
    usage: dict[str, Any] = openai(10, 20, 30)
    if not place:
        usage = bad
    elif len(place) == 1:
        usage[place[0]] = bad
    else:
        usage[place[0]][place[1]] = bad
    if bad == {} and place != ("prompt_tokens",) and place != ("prompt_tokens_details", "cached_tokens"):
        return
    reply = chat(usage)
    assert reply.usage is None
    assert Flag.USAGE_INVALID in reply.flags
    assert reply.whole


def test_usage_is_taken_wherever_it_appears() -> None:
    usage = openai(10, 20, 30)
    stop = chunk({}, "stop")
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    for events in (
        [stop, {"choices": [], "usage": usage}],
        [stop, {"choices": [{"index": 0, "delta": {}}], "usage": usage}],
        [stop, {"usage": usage}],
        [{**stop, "usage": usage}],
        [{"choices": [{**choice, "usage": usage}]}],
        [{**stop, "x_groq": {"usage": usage}}],
        [chunk({"content": "x"}, None, usage=openai(10, 1, 11)), chunk({"content": "y"}, "stop", usage=usage)],
        [chunk({}, None, usage=None), stop, {"usage": usage}, {"usage": None}],
    ):
        reply = read("chat", sse(*events, done=True), stream=True)
        assert counted(reply) == ({"input": 10, "output": 20}, ())


def test_the_last_value_of_each_field_counts_and_never_one_below_what_was_said() -> None:
    def events(*usages: dict[str, int]) -> bytes:
        first, *others = usages
        deltas = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage} for usage in others]
        return sse(
            {"type": "message_start", "message": {"model": "m", "usage": first}}, *deltas, {"type": "message_stop"}
        )

    twice = read("anthropic", events({"input_tokens": 25, "output_tokens": 1}, {"output_tokens": 15}), stream=True)
    assert counted(twice) == ({"input": 25, "output": 15}, ())
    grown = read("anthropic", events({"input_tokens": 43, "output_tokens": 1}, {"input_tokens": 61}), stream=True)
    assert counted(grown) == ({"input": 61, "output": 1}, ())
    shrunk = read("anthropic", events({"input_tokens": 43, "output_tokens": 1}, {"input_tokens": 0}), stream=True)
    assert counted(shrunk) == ({"input": 43, "output": 1}, (Flag.USAGE_SHRANK,))


def test_iterations_of_several_models_are_disclosed() -> None:
    parts = [{"model": name, "input_tokens": 4, "output_tokens": 2} for name in ("a", "b")]
    reply = anthropic({"input_tokens": 4, "output_tokens": 2, "iterations": parts})
    assert counted(reply) == ({"input": 8, "output": 4}, (Flag.SEVERAL_MODELS,))


COUNT = st.integers(0, 60)


@given(COUNT, COUNT, st.none() | COUNT, COUNT, COUNT)
def test_buckets_of_a_chat_add_up_or_are_flagged(
    prompt: int, completion: int, total: int | None, cached: int, reasoning: int
) -> None:
    usage = chat(openai(prompt, completion, total, cached=cached, reasoning=reasoning)).usage
    assert usage is not None
    assert all(count > 0 for count in usage.tokens.values())
    assert usage.total >= max(prompt, cached) + max(completion, reasoning)
    if not usage.flags:
        assert usage.total == (prompt + completion if total is None else total)
