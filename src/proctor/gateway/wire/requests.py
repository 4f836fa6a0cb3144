"""What the requests of all formats share: bodies, bounds, digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from typing import Any

from proctor.core import canonical, strictjson
from proctor.core.canonical import MAX_SAFE_INTEGER
from proctor.core.models import Message, Role
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.gateway.wire.notes import Notes
from proctor.study.actors import ModelDesign

MAX_REQUEST_BYTES = 64 * 2**20
JSON_HEADERS = {"content-type": "application/json"}


def body_of(value: dict[str, Any]) -> bytes:
    """A request's body. Raises Refusal `json_invalid` for text that holds half of a surrogate pair."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise Refusal(
            Reason.JSON_INVALID,
            "a message holds half of a surrogate pair, which no request can carry",
            observed=f"U+{ord(error.object[error.start]):04X}",
        ) from error
    except ValueError as error:
        raise Refusal(Reason.JSON_INVALID, "a message holds a number that no request can carry") from error


def output_bound(model: ModelDesign, asked: int | None) -> int:
    """Tokens that may come out: what is asked for, at most the model's own maximum."""
    return model.max_output_tokens if asked is None else min(asked, model.max_output_tokens)


def check_effort(model: ModelDesign, words: Collection[str]) -> None:
    """Refuse, as `invalid_value`, an effort that is none of these words."""
    if model.effort is not None and model.effort not in words:
        raise Refusal(
            Reason.INVALID_VALUE,
            f"the effort of model `{model.name}` is no word of its provider",
            path=f"models.{model.name}.effort",
            observed=model.effort,
            required=list(words),
        )


def system_of(messages: Iterable[Message]) -> str:
    """The system prompt of a conversation, empty where there is none."""
    return "\n\n".join(message.text for message in messages if message.role is Role.SYSTEM)


def read_request(body: bytes | dict[str, Any]) -> dict[str, Any]:
    """The object that a request's body is, which may have been read already. Raises Refusal `json_invalid`."""
    if isinstance(body, dict):
        return body
    value = strictjson.loads(body, max_bytes=MAX_REQUEST_BYTES)
    if not isinstance(value, dict):
        raise Refusal(Reason.JSON_INVALID, "the body of a request is no JSON object", observed=type(value).__name__)
    return value


def content_digest(messages: Any, tools: Any) -> str:
    """SHA-256 (hex) of the canonical JSON of `{messages, tools}`."""
    content = {"messages": messages, "tools": tools}
    try:
        encoded = canonical.encode(content)
    except Refusal:
        # Beyond 2^53 canonical JSON knows doubles alone: such integers are read as the doubles they stand for.
        encoded = canonical.encode(_as_doubles(content))
    return hashlib.sha256(encoded).hexdigest()


def _as_doubles(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_doubles(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_doubles(each) for each in value]
    if type(value) is int and abs(value) > MAX_SAFE_INTEGER:
        return float(value)
    return value


def as_list(value: Any) -> list[Any]:
    """A value as a list of itself where it is none; null is empty."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(content: Any, notes: Notes) -> str:
    """The text of a content that is text itself, or a list of parts that have some."""
    parts = as_list(content)
    return "".join(part if isinstance(part, str) else notes.text(notes.obj(part).get("text")) for part in parts)
