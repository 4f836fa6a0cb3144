"""The requests that the providers' own clients send, by method and path.

SDKs are given a base URL that ends in the version, or one that does not, and add it themselves or do not: a path
without it, or with it twice, is the same route.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from urllib.parse import unquote

import orjson

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.wires import ANTHROPIC, CHAT, GEMINI, PRACTICE, RESPONSES


class Kind(StrEnum):
    """What a request is for: an answer that is paid for, a count of tokens, a list of models, or vectors."""

    ANSWER = "answer"
    COUNT = "count"
    MODELS = "models"
    EMBEDDINGS = "embeddings"


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `api` is chat | responses | anthropic | gemini; a list of models is `chat` in all formats but Gemini.

    `path` is the one that `Wire.request` would send to below the base URL of a model, whichever form came. `model` is
    the model that the path names, `stream` whether it asks for a stream: both are only there in the Gemini format,
    whose bodies do not say them, and in a path to one model.
    """

    api: str
    kind: Kind
    path: str
    model: str | None = None
    stream: bool = False


# By path without its version; base URLs of the Anthropic format have none, those of OpenAI's end with it.
_FIXED: Mapping[str, Route] = MappingProxyType(
    {
        "/chat/completions": Route(CHAT, Kind.ANSWER, "/chat/completions"),
        "/responses": Route(RESPONSES, Kind.ANSWER, "/responses"),
        "/embeddings": Route(CHAT, Kind.EMBEDDINGS, "/embeddings"),
        "/messages": Route(ANTHROPIC, Kind.ANSWER, "/v1/messages"),
        "/messages/count_tokens": Route(ANTHROPIC, Kind.COUNT, "/v1/messages/count_tokens"),
    }
)
_GEMINI_ACTIONS: Mapping[str, tuple[Kind, bool]] = MappingProxyType(
    {
        "generateContent": (Kind.ANSWER, False),
        "streamGenerateContent": (Kind.ANSWER, True),
        "countTokens": (Kind.COUNT, False),
    }
)
_BETA = "/v1beta"
_VERSION = re.compile(r"(/v1(?:beta)?)(?:/v1(?:beta)?)?(?=/)", re.ASCII)
_GEMINI = re.compile(r"/models/([^/:]+):([A-Za-z]+)", re.ASCII)
# Names of compatible servers hold slashes.
_MODELS = re.compile(r"/models(?:/(.+))?", re.ASCII)

# What a model of each `ModelDesign.api` may be asked by; its list of models is answered beside these.
_BY_API: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        CHAT: frozenset({CHAT, RESPONSES}),
        RESPONSES: frozenset({CHAT, RESPONSES}),
        ANTHROPIC: frozenset({ANTHROPIC}),
        GEMINI: frozenset({GEMINI}),
        PRACTICE: frozenset({CHAT}),
    }
)


def find_route(method: str, path: str) -> Route | None:
    """The route of a request, None where there is none.

    Args:
        method: as it stands in the request line.
        path: the request's target, with or without its query.
    """
    path = path.partition("?")[0]
    match = _VERSION.match(path)
    version, rest = (match.group(1), path[match.end() :]) if match is not None else ("", path)
    if method == "GET":
        listed = _MODELS.fullmatch(rest)
        if listed is None:
            return None
        name = unquote(listed.group(1)) if listed.group(1) else None
        return Route(GEMINI if version == _BETA else CHAT, Kind.MODELS, path, name)
    if method != "POST":
        return None
    if rest in _FIXED:
        return None if version == _BETA else _FIXED[rest]
    action = _GEMINI.fullmatch(rest)
    if action is None or action.group(2) not in _GEMINI_ACTIONS:
        return None
    kind, stream = _GEMINI_ACTIONS[action.group(2)]
    return Route(GEMINI, kind, (version or _BETA) + rest, unquote(action.group(1)), stream)


def routes_of(model_api: str) -> frozenset[str]:
    """The `Route.api` by which a model of this `ModelDesign.api` may be asked.

    Raises KeyError: a format that is not known.
    """
    return _BY_API[model_api]


def models_body(model_api: str, model: str, asked: str | None = None) -> bytes:
    """The list of models, or the one that was `asked` for, in the format of the model: there is only this one.

    Raises:
        Refusal: `model_not_listed` where another one was asked for.
    """
    if asked is not None and asked.removeprefix("models/") != model.removeprefix("models/"):
        raise Refusal(Reason.MODEL_NOT_LISTED, "the trial has another model than this", observed=asked, required=model)
    entry, listed = _LISTS[model_api](model)
    return orjson.dumps(listed if asked is None else entry)


def _openai_list(model: str) -> tuple[dict[str, object], dict[str, object]]:
    entry: dict[str, object] = {"id": model, "object": "model", "created": 0, "owned_by": "proctor"}
    # Codex reads a list of its own in `models`; from an empty one it learns nothing, and keeps what it knows.
    return entry, {"object": "list", "data": [entry], "models": []}


def _anthropic_list(model: str) -> tuple[dict[str, object], dict[str, object]]:
    entry: dict[str, object] = {
        "type": "model",
        "id": model,
        "display_name": model,
        "created_at": "1970-01-01T00:00:00Z",
    }
    return entry, {"data": [entry], "has_more": False, "first_id": model, "last_id": model}


def _gemini_list(model: str) -> tuple[dict[str, object], dict[str, object]]:
    name = model.removeprefix("models/")
    methods = list(_GEMINI_ACTIONS)
    entry: dict[str, object] = {
        "name": f"models/{name}",
        "displayName": name,
        "supportedGenerationMethods": methods,
    }
    return entry, {"models": [entry]}


_LISTS = MappingProxyType(
    {
        CHAT: _openai_list,
        RESPONSES: _openai_list,
        PRACTICE: _openai_list,
        ANTHROPIC: _anthropic_list,
        GEMINI: _gemini_list,
    }
)
