"""Which route a request is, by method and path, in both forms in which SDKs write it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_parts import model

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.gateway.wire.formats import WIRES
from proctor.gateway.wire.routes import Kind, Route, find_route, models_body, routes_of

POSTS = {
    "/chat/completions": ("chat", Kind.ANSWER),
    "/responses": ("responses", Kind.ANSWER),
    "/embeddings": ("chat", Kind.EMBEDDINGS),
    "/messages": ("anthropic", Kind.ANSWER),
    "/messages/count_tokens": ("anthropic", Kind.COUNT),
}


@pytest.mark.parametrize("version", ["", "/v1", "/v1/v1"])
@pytest.mark.parametrize("query", ["", "?beta=true", "?"])
@pytest.mark.parametrize("path", POSTS)
def test_a_post_is_a_route_with_and_without_the_version(path: str, version: str, query: str) -> None:
    api, kind = POSTS[path]
    sent = f"/v1{path}" if api == "anthropic" else path
    assert find_route("POST", version + path + query) == Route(api, kind, sent)


@pytest.mark.parametrize("version", ["", "/v1", "/v1beta"])
@pytest.mark.parametrize(
    ("action", "kind", "stream"),
    [
        ("generateContent", Kind.ANSWER, False),
        ("streamGenerateContent", Kind.ANSWER, True),
        ("countTokens", Kind.COUNT, False),
    ],
)
def test_a_gemini_path_names_the_model_and_whether_it_streams(
    version: str, action: str, kind: Kind, stream: bool
) -> None:
    rest = f"/models/gemini-3-pro:{action}"
    sent = Route("gemini", kind, (version or "/v1beta") + rest, "gemini-3-pro", stream)
    assert find_route("POST", f"{version}{rest}?alt=sse") == sent


def test_a_list_of_models_is_asked_for_in_whole_or_by_name() -> None:
    assert find_route("GET", "/v1/models?client_version=1.2") == Route("chat", Kind.MODELS, "/v1/models")
    assert find_route("GET", "/models/one%2Ftwo") == Route("chat", Kind.MODELS, "/models/one%2Ftwo", "one/two")
    assert find_route("GET", "/v1beta/models/m") == Route("gemini", Kind.MODELS, "/v1beta/models/m", "m")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/responses"),
        ("HEAD", "/v1/models"),
        ("post", "/v1/messages"),
        ("DELETE", "/v1/responses"),
        ("POST", "/v1/models"),
        ("GET", "/"),
        ("GET", ""),
        ("HEAD", "/api/hello"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "/v1/v1/v1/messages"),
        ("POST", "/v2/messages"),
        ("POST", "/v1beta/messages"),
        ("POST", "//v1/messages"),
        ("POST", "http://elsewhere/v1/messages"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("POST", "/v1/messages/batches"),
        ("POST", "/v1beta/models/m:batchGenerateContent"),
        ("POST", "/v1beta/models/m:embedContent"),
        ("POST", "/v1beta/models/a/b:generateContent"),
        ("POST", "/v1beta/models/:generateContent"),
        ("POST", "/v1beta/tunedModels/m:generateContent"),
        ("POST", "/v1/%6dessages"),
    ],
)
def test_what_else_is_asked_is_no_route(method: str, path: str) -> None:
    assert find_route(method, path) is None


@given(st.text(), st.text())
def test_any_text_is_a_route_or_none(method: str, path: str) -> None:
    assert find_route(method, path) is None
    assert find_route("POST", path) is None
    assert find_route("POST", f"/v1{path}") is None


@pytest.mark.parametrize("api", WIRES)
def test_what_our_own_agents_send_is_a_route_of_their_format(api: str) -> None:
    call = WIRES[api].request(model(api=api), [])
    found = find_route("POST", call.path)
    assert found is not None
    assert found.path == call.path
    assert found.api in routes_of(api)


def test_every_format_has_routes_and_a_list_of_its_one_model() -> None:
    for api in WIRES:
        assert routes_of(api)
        whole = json.loads(models_body(api, "m-1"))
        entries = whole.get("data", whole.get("models"))
        assert [entry.get("id") or entry["name"] for entry in entries] == ["models/m-1" if api == "gemini" else "m-1"]
        assert json.loads(models_body(api, "m-1", "m-1")) == entries[0]
        with pytest.raises(Refusal) as refused:
            models_body(api, "m-1", "m-2")
        assert refused.value.reason is Reason.MODEL_NOT_LISTED
    assert routes_of("responses") == routes_of("chat") == {"chat", "responses"}
    with pytest.raises(KeyError):
        routes_of("telex")
