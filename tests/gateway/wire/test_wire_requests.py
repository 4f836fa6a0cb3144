"""Requests of all formats: what is sent for a conversation, and what is read back of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wire_parts import ANTHROPIC, CHAT, GEMINI_PARTS, RESPONSES_ITEMS, WHOLE, model, read

from proctor.core.models import Message, Role, ToolCall, ToolSpec
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.gateway.wire.base import Call, Native, endpoint
from proctor.gateway.wire.formats import WIRES, api_of_route, conversation
from proctor.gateway.wire.requests import check_effort
from proctor.study.actors import ModelDesign
from proctor.study.providers import PROVIDERS

MODELS = {
    "chat": model(),
    "responses": model(api="responses"),
    "anthropic": model("anthropic", "anthropic"),
    "gemini": model("google", "gemini"),
}
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}
TOOLS = [ToolSpec("look", "looks", SCHEMA)]
TALK = [
    Message(Role.SYSTEM, "be brief"),
    Message(Role.USER, "hi"),
    Message(Role.ASSISTANT, "", (ToolCall("a", "look", {"at": "x"}, '{"at":"x"}'), ToolCall("b", "nap", None, "{"))),
    Message(Role.TOOL, "seen", call_id="a", tool="look"),
    Message(Role.TOOL, "", call_id="b", tool="nap"),
    Message(Role.USER, "go on"),
    Message(Role.ASSISTANT, "done"),
]


def sent(called: ModelDesign, messages: list[Message], tools: Any = (), most: int | None = None) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(WIRES[called.api].request(called, messages, tools, most).body)
    return body


def test_a_chat_request() -> None:
    call = WIRES["chat"].request(model(effort="low"), TALK, TOOLS, 50)
    function = {"name": "look", "description": "looks", "parameters": SCHEMA}
    assert (call.path, dict(call.headers)) == ("/chat/completions", {"content-type": "application/json"})
    assert json.loads(call.body) == {
        "model": "m-1",
        "max_completion_tokens": 50,
        "reasoning_effort": "low",
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at":"x"}'}},
                    {"id": "b", "type": "function", "function": {"name": "nap", "arguments": "{"}},
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "seen"},
            {"role": "tool", "tool_call_id": "b", "content": ""},
            {"role": "user", "content": "go on"},
            {"role": "assistant", "content": "done"},
        ],
    }


def test_other_providers_of_the_chat_format_are_told_max_tokens() -> None:
    body = sent(model("mistral"), TALK[:2])
    assert body["max_tokens"] == 1_000
    assert not {"max_completion_tokens", "reasoning_effort", "tools"} & body.keys()


def test_an_anthropic_request() -> None:
    call = WIRES["anthropic"].request(model("anthropic", "anthropic", effort="max"), TALK, TOOLS, 5_000)
    assert call.path == "/v1/messages"
    assert call.headers["anthropic-version"] == "2023-06-01"
    assert json.loads(call.body) == {
        "model": "m-1",
        "max_tokens": 1_000,
        "system": "be brief",
        "output_config": {"effort": "max"},
        "thinking": {"type": "adaptive"},
        "tools": [{"name": "look", "description": "looks", "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "a", "name": "look", "input": {"at": "x"}},
                    {"type": "tool_use", "id": "b", "name": "nap", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "seen"},
                    {"type": "tool_result", "tool_use_id": "b", "content": ""},
                    {"type": "text", "text": "go on"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        ],
    }
    older = sent(model("anthropic", "anthropic", "claude-opus-4-5-20251101", "low"), TALK[:2])
    assert (older["output_config"], "thinking" in older) == ({"effort": "low"}, False)


def test_a_responses_request() -> None:
    call = WIRES["responses"].request(model(api="responses", effort="low"), TALK, TOOLS, 50)
    assert (call.path, dict(call.headers)) == ("/responses", {"content-type": "application/json"})
    assert json.loads(call.body) == {
        "model": "m-1",
        "instructions": "be brief",
        "max_output_tokens": 50,
        "store": False,
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "look", "description": "looks", "parameters": SCHEMA, "strict": False}],
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"at":"x"}'},
            {"type": "function_call", "call_id": "b", "name": "nap", "arguments": "{"},
            {"type": "function_call_output", "call_id": "a", "output": "seen"},
            {"type": "function_call_output", "call_id": "b", "output": ""},
            {"role": "user", "content": "go on"},
            {"role": "assistant", "content": "done"},
        ],
    }
    assert not {"reasoning", "include", "tools", "instructions"} & sent(model(api="responses"), TALK[1:2]).keys()


def test_reasoning_that_was_kept_nowhere_is_not_referred_to() -> None:
    items = [{"type": "reasoning", "id": "r", "summary": []}, {"type": "message", "id": "m", "content": []}]
    said = Message(Role.ASSISTANT, native=Native("responses", items))
    assert sent(MODELS["responses"], [said])["input"] == [{"type": "message", "content": []}]


def test_items_of_every_kind_of_call_read_back_as_calls_and_their_results() -> None:
    items = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "brief"}]},
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "encrypted_content": "x"},
        {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": '{"is": "text"}'},
        {"type": "local_shell_call", "call_id": "b", "action": {"command": ["ls"]}},
        {"type": "custom_tool_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "local_shell_call_output", "call_id": "b", "output": {"stdout": "f"}},
    ]
    body = json.dumps({"model": "m", "instructions": "first", "input": items}).encode()
    assert conversation("responses", body) == [
        Message(Role.SYSTEM, "first"),
        Message(Role.SYSTEM, "brief"),
        Message(Role.USER, "hi"),
        Message(
            Role.ASSISTANT,
            calls=(
                ToolCall("a", "patch", None, '{"is": "text"}'),
                ToolCall("b", "local_shell", {"command": ["ls"]}, '{"command":["ls"]}'),
            ),
        ),
        Message(Role.TOOL, "ok", call_id="a", tool="patch"),
        Message(Role.TOOL, '{"stdout":"f"}', call_id="b", tool="local_shell"),
    ]
    assert conversation("responses", b'{"input":"hi"}') == [Message(Role.USER, "hi")]


def test_the_format_of_a_recorded_exchange_is_that_of_its_route() -> None:
    routes = {
        "POST /v1/chat/completions": "chat",
        "POST /openai/v1/chat/completions": "chat",
        "POST /v1/responses": "responses",
        "POST /anthropic/v1/messages": "anthropic",
        "POST /v1/messages/count_tokens": "anthropic",
        "POST /v1beta/models/m:generateContent": "gemini",
        "POST /practice": None,
        "GET /v1/messages": None,
        "": None,
    }
    assert {route: api_of_route(route) for route in routes} == routes


def test_a_gemini_request() -> None:
    call = WIRES["gemini"].request(model("google", "gemini", "models/gemini-3/x", "high"), TALK, TOOLS, 50)
    assert call.path == "/v1beta/models/gemini-3%2Fx:generateContent"
    declared = {"name": "look", "description": "looks", "parametersJsonSchema": SCHEMA}
    assert json.loads(call.body) == {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "generationConfig": {"maxOutputTokens": 50, "thinkingConfig": {"thinkingLevel": "high"}},
        "tools": [{"functionDeclarations": [declared]}],
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "look", "args": {"at": "x"}}},
                    {"functionCall": {"name": "nap", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "look", "response": {"result": "seen"}}},
                    {"functionResponse": {"name": "nap", "response": {"result": ""}}},
                    {"text": "go on"},
                ],
            },
            {"role": "model", "parts": [{"text": "done"}]},
        ],
    }
    older = sent(model("google", "gemini", "gemini-2.5-flash", "low"), TALK[:2])
    assert older["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 1_024}


@pytest.mark.parametrize("api", sorted(WHOLE))
def test_an_answer_goes_back_to_its_own_format_as_it_came_and_to_others_rebuilt(api: str) -> None:
    reply = read(api, WHOLE[api])
    said = Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native)
    came: dict[str, Any] = {
        "chat": {"messages": [CHAT["choices"][0]["message"]]},
        "responses": {"input": RESPONSES_ITEMS},
        "anthropic": {"messages": [{"role": "assistant", "content": ANTHROPIC["content"]}]},
        "gemini": {"contents": [{"role": "model", "parts": GEMINI_PARTS}]},
    }
    (name,) = came[api]
    assert sent(MODELS[api], [said])[name] == came[api][name]
    for other in WHOLE.keys() - {api}:
        rebuilt = sent(MODELS[other], [said])
        assert rebuilt == sent(MODELS[other], [Message(Role.ASSISTANT, reply.text, reply.calls)])


def test_gemini_is_told_the_ids_that_it_gave_and_no_others() -> None:
    parts = [{"functionCall": {"id": "g1", "name": "look"}}, {"functionCall": {"name": "nap"}}]
    native = Native("gemini", {"role": "model", "parts": parts})
    talk = [
        Message(Role.ASSISTANT, native=native),
        Message(Role.TOOL, "1", call_id="g1", tool="look"),
        Message(Role.TOOL, "2", call_id="call_1", tool="nap"),
    ]
    answers = [part["functionResponse"] for part in sent(MODELS["gemini"], talk)["contents"][1]["parts"]]
    assert [answer.get("id") for answer in answers] == ["g1", None]


@pytest.mark.parametrize("api", sorted(WHOLE))
@pytest.mark.parametrize("word", ["hgih", "HIGH", ""])
def test_an_effort_that_is_no_word_of_the_provider_is_refused(api: str, word: str) -> None:
    called = model(MODELS[api].provider, api, effort=word)
    for act in (lambda: check_effort(called, WIRES[api].efforts), lambda: WIRES[api].request(called, TALK)):
        with pytest.raises(Refusal) as caught:
            act()
        assert caught.value.reason is Reason.INVALID_VALUE
        assert caught.value.path == "models.luna.effort"
    for known in ("low", "medium", "high", None):
        check_effort(model(MODELS[api].provider, api, effort=known), WIRES[api].efforts)


@pytest.mark.parametrize("api", sorted(WHOLE))
def test_text_that_no_request_can_carry_is_refused(api: str) -> None:
    with pytest.raises(Refusal) as caught:
        WIRES[api].request(MODELS[api], [Message(Role.USER, "half \ud83d")])
    assert caught.value.reason is Reason.JSON_INVALID
    assert caught.value.observed == "U+D83D"


@pytest.mark.parametrize("api", sorted(WHOLE))
def test_a_conversation_reads_back(api: str) -> None:
    read_back = conversation(api, WIRES[api].request(MODELS[api], TALK, TOOLS).body)
    assert [message.role for message in read_back] == [message.role for message in TALK]
    assert [message.text for message in read_back] == [message.text for message in TALK]
    assert [message.tool for message in read_back] == [message.tool for message in TALK]
    (calls,) = [message.calls for message in read_back if message.calls]
    assert [call.name for call in calls] == ["look", "nap"]
    assert calls[0].arguments == {"at": "x"}


@pytest.mark.parametrize("api", sorted(WHOLE))
@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"{", b'{"a":1,"a":1}'])
def test_a_body_that_is_no_object_has_no_digest_and_no_conversation(api: str, body: bytes) -> None:
    for act in (lambda: WIRES[api].digest(body), lambda: conversation(api, body)):
        with pytest.raises(Refusal) as caught:
            act()
        assert caught.value.reason is Reason.JSON_INVALID


@pytest.mark.parametrize("api", sorted(WHOLE))
@pytest.mark.parametrize("wrong", [7, "x", [], [7], [[7]], {}, [{"role": 7, "content": 7, "parts": 7}], None])
def test_a_conversation_of_wrong_types_is_read_as_far_as_it_can_be(api: str, wrong: Any) -> None:
    said = ("messages", "contents", "system", "systemInstruction", "input", "instructions")
    body = json.dumps(dict.fromkeys(said, wrong)).encode()
    assert all(message.calls == () for message in conversation(api, body))
    assert len(WIRES[api].digest(body)) == 64


@pytest.mark.parametrize("api", sorted(WHOLE))
def test_a_digest_is_of_what_is_said_and_of_the_tools_alone(api: str) -> None:
    def digest(messages: list[Message], tools: Any = TOOLS, most: int | None = None, called: str = "m-1") -> str:
        asked = model(MODELS[api].provider, api, called)
        return WIRES[api].digest(WIRES[api].request(asked, messages, tools, most).body)

    assert digest(TALK) == digest(TALK, most=7) == digest(TALK, called="m-2")
    others = [
        digest(TALK[1:]),
        digest(TALK[:-1]),
        digest([TALK[0], Message(Role.USER, "ho"), *TALK[2:]]),
        digest(TALK, ()),
    ]
    assert len({digest(TALK), *others}) == 5


def test_digests_do_not_depend_on_how_the_body_is_written() -> None:
    wire = WIRES["chat"]
    body = b'{"tools": [], "messages": [{"role": "user", "content": "\\u00fc", "n": 10000000000000000000000}]}'
    other = '{"messages":[{"n":1e22,"content":"ü","role":"user"}],"temperature":0}'.encode()
    assert wire.digest(body) == wire.digest(other)


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://a.example/v1", "/chat/completions", "https://a.example/v1/chat/completions"),
        ("https://a.example/v1/", "/chat/completions", "https://a.example/v1/chat/completions"),
        ("http://127.0.0.1:8000", "/chat/completions", "http://127.0.0.1:8000/chat/completions"),
        ("https://a.example", "/v1/messages", "https://a.example/v1/messages"),
        ("https://a.example/v1", "/v1/messages", "https://a.example/v1/messages"),
        ("https://a.example/anthropic/", "/v1/messages", "https://a.example/anthropic/v1/messages"),
        ("https://a.example/v1", "/v1beta/models/g:generateContent", "https://a.example/v1/models/g:generateContent"),
        (
            "https://a.example/x?api-version=3",
            "/chat/completions",
            "https://a.example/x/chat/completions?api-version=3",
        ),
        ("https://a.example/version", "/v1/messages", "https://a.example/version/v1/messages"),
    ],
)
def test_paths_are_joined_to_any_base_url(base: str, path: str, url: str) -> None:
    assert endpoint(base, path) == url


def test_every_provider_speaks_a_format_and_the_key_is_in_no_request() -> None:
    assert {provider.api for provider in PROVIDERS.values()} <= set(WIRES)
    headers = {api: WIRES[api].auth_header("k-1") for api in WHOLE}
    assert headers == {
        "chat": ("authorization", "Bearer k-1"),
        "responses": ("authorization", "Bearer k-1"),
        "anthropic": ("x-api-key", "k-1"),
        "gemini": ("x-goog-api-key", "k-1"),
    }
    calls: list[Call] = [WIRES[api].request(MODELS[api], TALK) for api in WHOLE]
    assert all(not {"authorization", "x-api-key", "x-goog-api-key"} & call.headers.keys() for call in calls)
