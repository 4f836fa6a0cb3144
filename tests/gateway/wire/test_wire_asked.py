"""What a request of an agent's own asks for: bounds, and all that changes its price, of every format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket
from proctor.gateway.wire.asked import Asked, read_asked
from proctor.gateway.wire.features import KEYS
from proctor.gateway.wire.routes import Route, find_route

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
    "count": "/v1/messages/count_tokens",
    "embeddings": "/v1/embeddings",
}
TEXT: dict[str, dict[str, Any]] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
    "responses": {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]},
    "anthropic": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "count": {"model": "m", "messages": []},
    "embeddings": {"model": "m", "input": "hi"},
}


def route(name: str) -> Route:
    found = find_route("POST", PATHS[name])
    assert found is not None
    return found


def asked(name: str, **more: Any) -> Asked:
    return read_asked(route(name), json.dumps({**TEXT[name], **more}).encode())


def said(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def parts(*given: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": list(given)}]}


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic", "gemini"])
def test_plain_text_has_nothing_that_changes_its_price(name: str) -> None:
    assert asked(name) == Asked("m", False, 9 if name == "anthropic" else None, 1, False)


def test_bounds_choices_streams_and_tools_are_read_where_each_format_says_them() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    chat = asked("chat", max_tokens=5, max_completion_tokens=7, n=3, stream=True, tools=[tool])
    assert (chat.max_output, chat.choices, chat.stream, chat.tools) == (7, 3, True, True)
    assert asked("chat", best_of=4, n=2).choices == 4
    assert asked("chat", functions=[{"name": "f"}]).tools
    assert asked("responses", max_output_tokens=11, stream=True).max_output == 11
    assert asked("anthropic", max_tokens=0, tools=[{"name": "f", "input_schema": {}}]).max_output == 0
    for config in ({"maxOutputTokens": 3, "candidateCount": 2}, {"max_output_tokens": 3, "candidate_count": 2}):
        for key in ("generationConfig", "generation_config"):
            gemini = asked("gemini", **{key: config})
            assert (gemini.max_output, gemini.choices, gemini.unpriced) == (3, 2, ())
    stream = find_route("POST", "/v1beta/models/m:streamGenerateContent?alt=sse")
    assert stream is not None and read_asked(stream, b'{"contents":[]}').stream


def test_a_null_is_the_same_as_nothing() -> None:
    nulls = {"max_tokens": None, "n": None, "stream": None, "service_tier": None, "prediction": None, "tools": None}
    assert asked("chat", **nulls) == asked("chat")
    assert asked("responses", previous_response_id=None, conversation=None, background=None) == asked("responses")


FAR: list[tuple[str, dict[str, Any], str]] = [
    ("chat", said([{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]), "image_url"),
    ("chat", said([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]), "image_url"),
    ("chat", said([{"type": "file", "file": {"file_id": "f"}}]), "file"),
    ("chat", said([{"no": "type"}]), "a part without a type"),
    ("responses", {"previous_response_id": "r"}, "previous_response_id"),
    ("responses", {"conversation": {"id": "c"}}, "conversation"),
    ("responses", {"input": [{"type": "item_reference", "id": "i"}]}, "item_reference"),
    ("responses", {"input": [{"type": "reasoning", "id": "rs", "summary": []}]}, "reasoning"),
    ("responses", {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input_image"),
    ("responses", {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "u"}]}]}, "input_file"),
    (
        "responses",
        {"input": [{"type": "function_call_output", "output": [{"type": "input_image", "image_url": "u"}]}]},
        "input_image",
    ),
    (
        "responses",
        {"input": [{"type": "computer_call_output", "output": {"type": "computer_screenshot"}}]},
        "computer_screenshot",
    ),
    ("responses", {"instructions": [{"type": "item_reference", "id": "i"}]}, "item_reference"),
    ("anthropic", said([{"type": "image", "source": {"type": "base64", "data": ""}}]), "image"),
    ("anthropic", said([{"type": "document", "source": {"type": "url", "url": "u"}}]), "document"),
    ("anthropic", said([{"type": "container_upload", "file_id": "f"}]), "container_upload"),
    ("anthropic", said([{"type": "tool_result", "content": [{"type": "image", "source": {}}]}]), "image"),
    (
        "anthropic",
        said([{"type": "document", "source": {"type": "content", "content": [{"type": "image"}]}}]),
        "image",
    ),
    ("anthropic", {"thread": {"type": "continue", "previous_message_id": "m"}}, "thread"),
    ("gemini", parts({"inlineData": {"mimeType": "image/png", "data": ""}}), "inlineData image/png"),
    ("gemini", parts({"inline_data": {"mime_type": "application/pdf"}}), "inlineData application/pdf"),
    ("gemini", parts({"executableCode": {"code": "1"}}), "executableCode"),
    (
        "gemini",
        parts({"functionResponse": {"parts": [{"inlineData": {"mimeType": "image/png"}}]}}),
        "inlineData image/png",
    ),
]


@pytest.mark.parametrize(("name", "more", "named"), FAR, ids=[f"{n}-{w}-{i}" for i, (n, _, w) in enumerate(FAR)])
def test_input_that_is_not_in_the_body_is_named(name: str, more: dict[str, Any], named: str) -> None:
    found = asked(name, **more)
    assert found.elsewhere == (named,)
    assert found.unpriced == ()


def tool(kind: str, **more: Any) -> dict[str, Any]:
    return {"tools": [{"type": kind, **more}]}


DEAR: list[tuple[str, dict[str, Any], str]] = [
    *[("chat", {"service_tier": tier}, "service_tier") for tier in ("flex", "priority", "scale", "fast", 1)],
    ("responses", {"service_tier": "ultrafast"}, "service_tier"),
    ("anthropic", {"service_tier": "priority"}, "service_tier"),
    ("gemini", {"serviceTier": "priority"}, "serviceTier"),
    ("chat", {"prediction": {"type": "content", "content": "x"}}, "prediction"),
    ("chat", {"modalities": ["text", "audio"]}, "modalities"),
    ("chat", {"modalities": "audio"}, "modalities"),
    ("chat", {"audio": {"voice": "v"}}, "audio"),
    ("chat", {"web_search_options": {"search_context_size": "high"}}, "web_search_options"),
    ("chat", {"prompt_cache_options": {"ttl": "12h"}}, "prompt_cache_options.ttl"),
    ("chat", {"prompt_cache_options": {"prewarm": True}}, "prompt_cache_options.prewarm"),
    ("chat", {"plugins": [{"id": "web"}]}, "plugins"),
    ("chat", {"models": ["other"]}, "models"),
    ("chat", {"something": 1}, "unknown key something"),
    ("chat", {"some\u2028thing": 1}, "unknown key some\\u2028thing"),
    ("chat", tool("web_search"), "tool web_search"),
    ("chat", {"tools": ["x"]}, "tool without a type"),
    ("chat", said([{"type": "input_audio", "input_audio": {"data": ""}}]), "input_audio"),
    ("chat", {"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, "audio"),
    *[
        ("responses", tool(kind), f"tool {kind}")
        for kind in (
            "web_search",
            "web_search_preview",
            "file_search",
            "code_interpreter",
            "image_generation",
            "mcp",
            "programmatic_tool_calling",
            "tool_search",
            "shell",
        )
    ],
    ("responses", tool("namespace", tools=[{"type": "mcp"}]), "tool mcp"),
    ("responses", {"input": [{"type": "additional_tools", "tools": [{"type": "mcp"}]}]}, "tool mcp"),
    ("responses", tool("shell", environment={"type": "container_auto"}), "tool shell"),
    ("responses", {"background": True}, "background"),
    ("responses", {"prompt": {"id": "p"}}, "unknown key prompt"),
    ("responses", {"reasoning": {"mode": "pro"}}, "reasoning.mode"),
    ("responses", {"reasoning": "high"}, "reasoning"),
    ("responses", {"context_management": [{"type": "compaction"}]}, "context_management"),
    *[
        ("anthropic", tool(kind, name="n"), f"tool {kind}")
        for kind in (
            "web_search_20250305",
            "web_fetch_20250910",
            "code_execution_20250825",
            "advisor_20260301",
            "mcp_toolset",
            "tool_search_tool_regex_20251119",
            "bash_20250124x",
        )
    ],
    ("anthropic", {"mcp_servers": [{"url": "u"}]}, "mcp_servers"),
    ("anthropic", {"container": "c"}, "container"),
    ("anthropic", {"speed": "fast"}, "speed"),
    ("anthropic", {"inference_geo": "us"}, "inference_geo"),
    ("anthropic", {"fallbacks": "default"}, "fallbacks"),
    ("anthropic", {"context_management": {"edits": [{"type": "compact_20260112"}]}}, "context_management.edits"),
    ("anthropic", {"output_config": {"new": 1}}, "output_config.new"),
    ("anthropic", {"cache_control": {"type": "ephemeral", "ttl": "9h"}}, "cache_control for 9h"),
    (
        "anthropic",
        said(
            [
                {
                    "type": "tool_addition",
                    "tool": {"type": "tool_definition", "definition": {"type": "web_search_20250305"}},
                }
            ]
        ),
        "tool web_search_20250305",
    ),
    *[
        ("gemini", {"tools": [{key: {}}]}, f"tool {named}")
        for key, named in (
            ("googleSearch", "googleSearch"),
            ("google_search", "googleSearch"),
            ("urlContext", "urlContext"),
            ("codeExecution", "codeExecution"),
            ("fileSearch", "fileSearch"),
            ("googleMaps", "googleMaps"),
        )
    ],
    ("gemini", {"cachedContent": "c"}, "unknown key cachedContent"),
    ("gemini", {"cached_content": "c"}, "unknown key cachedContent"),
    ("gemini", {"generationConfig": {"responseModalities": ["IMAGE"]}}, "generationConfig.responseModalities"),
    ("gemini", {"generationConfig": {"speechConfig": {}}}, "generationConfig.speechConfig"),
    ("gemini", parts({"inlineData": {"mimeType": "audio/wav"}}), "inlineData audio/wav"),
    ("gemini", parts({"fileData": {"fileUri": "u"}}), "fileData None"),
]


@pytest.mark.parametrize(("name", "more", "named"), DEAR, ids=[f"{n}-{w}-{i}" for i, (n, _, w) in enumerate(DEAR)])
def test_what_changes_the_price_is_named(name: str, more: dict[str, Any], named: str) -> None:
    found = asked(name, **more)
    assert found.unpriced == (named,)
    assert found.elsewhere == ()


FREE: list[tuple[str, dict[str, Any]]] = [
    ("chat", {"service_tier": "default", "modalities": ["text"], "metadata": {"a": "b"}, "store": True}),
    ("chat", {"tools": [{"type": "custom", "custom": {"name": "x"}}]}),
    ("responses", tool("shell", environment={"type": "local"})),
    ("responses", tool("tool_search", execution="client")),
    ("responses", tool("namespace", tools=[{"type": "function", "name": "f"}])),
    ("responses", {"input": "hi", "reasoning": {"effort": "high", "summary": "auto"}, "background": False}),
    ("responses", {"input": [{"type": "reasoning", "encrypted_content": "g", "summary": []}]}),
    ("responses", {"input": [{"type": "shell_call_output", "output": [{"stdout": "x"}]}]}),
    ("anthropic", {"tools": [{"name": "f", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]}),
    ("anthropic", {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}),
    ("anthropic", {"thread": {"type": "create"}, "speed": "standard", "mcp_servers": []}),
    ("anthropic", said([{"type": "document", "source": {"type": "text", "data": "x"}}])),
    ("gemini", {"tools": [{"functionDeclarations": []}], "system_instruction": {"parts": [{"text": "x"}]}}),
    (
        "gemini",
        parts({"functionResponse": {"name": "f", "response": {"image_url": "x"}}}, {"text": "", "thought": True}),
    ),
]


@pytest.mark.parametrize(("name", "more"), FREE)
def test_what_leaves_the_price_as_it_is_is_not(name: str, more: dict[str, Any]) -> None:
    found = asked(name, **more)
    assert (found.elsewhere, found.unpriced) == ((), ())


@pytest.mark.parametrize(
    "where",
    [
        lambda control: {"cache_control": control},
        lambda control: {"system": [{"type": "text", "text": "s", "cache_control": control}]},
        lambda control: {"tools": [{"name": "f", "cache_control": control}]},
        lambda control: said([{"type": "tool_result", "content": [{"type": "text", "cache_control": control}]}]),
    ],
)
def test_a_lifetime_of_the_cache_is_a_bucket_that_needs_a_price(where: Any) -> None:
    assert asked("anthropic", **where({"type": "ephemeral"})).buckets == {Bucket.CACHE_WRITE}
    assert asked("anthropic", **where({"type": "ephemeral", "ttl": "1h"})).buckets == {Bucket.CACHE_WRITE_1H}


def test_a_count_and_an_embedding_have_no_output() -> None:
    counted = asked("count", tools=[{"type": "web_search_20250305"}], speed="fast")
    assert counted == Asked("m", False, 0, 1, True)
    assert asked("embeddings", dimensions=3) == Asked("m", False, 0, 1, False)
    assert asked("embeddings", other=3).unpriced == ("unknown key other",)


BAD: list[tuple[str, bytes]] = [
    ("chat", b""),
    ("chat", b"[]"),
    ("chat", b"null"),
    ("chat", b"{"),
    ("chat", b'{"model":"m","model":"n"}'),
    ("chat", b'{"model":"m","messages":[],"temperature":NaN}'),
    ("chat", b'\xef\xbb\xbf{"model":"m"}'),
    ("chat", b'{"model":"\xff"}'),
    ("chat", b'{"model":"\\ud800"}'),
    ("chat", b'{"model":"m","x":' + b"[" * 100 + b"]" * 100 + b"}"),
    ("chat", b'{"model":"m","x":[' + b"{}," * 1_000_001 + b"{}]}"),
    ("chat", b"{}"),
    ("chat", b'{"model":""}'),
    ("chat", b'{"model":5}'),
    ("chat", b'{"model":"m","stream":1}'),
    ("chat", b'{"model":"m","stream":"true"}'),
    ("chat", b'{"model":"m","n":0}'),
    ("chat", b'{"model":"m","n":true}'),
    ("chat", b'{"model":"m","max_tokens":-1}'),
    ("chat", b'{"model":"m","max_tokens":1.5}'),
    ("chat", b'{"model":"m","max_tokens":"9"}'),
    ("chat", b'{"model":"m","max_tokens":10000000000}'),
    ("responses", b'{"model":"m","max_output_tokens":[]}'),
    ("gemini", b'{"generationConfig":{},"generation_config":{}}'),
    ("gemini", b'{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":2}}'),
    ("gemini", b'{"tools":[{"googleSearch":null,"google_search":{}}]}'),
    ("gemini", b'{"model":"models/other"}'),
    ("gemini", b'{"model":7}'),
]


@pytest.mark.parametrize(("name", "body"), BAD, ids=[f"{i}-{body[:40]!r}" for i, (_, body) in enumerate(BAD)])
def test_a_request_that_cannot_be_read_in_one_way_alone_is_refused(name: str, body: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        read_asked(route(name), body)
    assert refused.value.reason is Reason.REQUEST_UNREADABLE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)
STRUCTURE = (
    "type content parts text tools messages input contents source output tool_result namespace cache_control ttl "
    "document fileData functionResponse generationConfig reasoning tool_changes tool_addition tool definition"
)
WORDS = st.sampled_from(STRUCTURE.split())
SHAPED = st.recursive(
    st.none() | st.integers(0, 2) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(list(PATHS)), st.dictionaries(WORDS | st.text(max_size=9), JSON | SHAPED, max_size=4))
def test_any_object_is_read_or_refused_and_a_key_that_is_not_listed_is_always_named(
    name: str, more: dict[str, Any]
) -> None:
    try:
        found = asked(name, **more)
    except Refusal as refusal:
        assert refusal.reason is Reason.REQUEST_UNREADABLE
        return
    unlisted = [key for key, said in more.items() if said is not None and key not in KEYS.get(name, more)]
    # the Gemini format knows a listed key by its other spelling, too
    if any("_" not in key for key in unlisted):
        assert found.unpriced or found.elsewhere


@given(st.sampled_from(["chat", "responses", "anthropic", "gemini"]), st.dictionaries(st.text(), JSON, min_size=1))
def test_reading_does_not_depend_on_how_the_json_is_written(name: str, more: dict[str, Any]) -> None:
    value = {**TEXT[name], **more}
    try:
        plain = read_asked(route(name), json.dumps(value).encode())
    except Refusal:
        return
    assert read_asked(route(name), json.dumps(value, indent=3, ensure_ascii=False).encode("utf-8")) == plain
