"""What stands in a request that changes its price, found by going through all of it once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket
from proctor.core.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES
from proctor.gateway.wire.features import KEPT, KEYS, TEXT_ITEMS, TEXT_PARTS, changing, provider_tool
from proctor.gateway.wire.requests import as_list

# A list of all that is wrong with a hostile request would be as long as the request.
_MOST_NAMED = 8
_MOST_CHARS = 60
_SNAKE = re.compile(r"_([a-z])")
# Their tokens have prices of their own.
_HEARD = re.compile("audio|video")
_SEEN = re.compile(r"image/|text/|application/pdf")


def camel(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object of the Gemini format, which knows each key in two spellings, by the one that its documents use.

    Raises:
        Refusal: `request_unreadable` where a key stands in both: two readers could see two things.
    """
    made = {_SNAKE.sub(lambda match: match[1].upper(), key): said for key, said in value.items()}
    if len(made) < len(value):
        raise Refusal(
            Reason.REQUEST_UNREADABLE, "an object has one key in two spellings", observed=[shown(key) for key in value]
        )
    return made


def shown(text: str) -> str:
    """Text of a request, as it may stand in a message about it."""
    return text[:_MOST_CHARS].encode("ascii", "backslashreplace").decode()


class Found:
    """What was found in a request of one format: see `Asked`."""

    def __init__(self, api: str) -> None:
        self._api = api
        self._elsewhere: dict[str, None] = {}
        self._unpriced: dict[str, None] = {}
        self.buckets: set[Bucket] = set()
        self.tools = False

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Input that is not in the body."""
        return tuple(self._elsewhere)[:_MOST_NAMED]

    @property
    def unpriced(self) -> tuple[str, ...]:
        """What changes the price."""
        return tuple(self._unpriced)[:_MOST_NAMED]

    def walk(self, request: Mapping[str, Any]) -> None:
        """Go through a request; of the Gemini format, one whose own keys are `camel`."""
        self._keys(request)
        self._caching(request)
        self._tools(request.get("tools"))
        self.tools = self.tools or bool(request.get("functions"))
        if self._api == CHAT:
            self._messages(request.get("messages"))
        elif self._api == ANTHROPIC:
            self._parts(request.get("system"))
            self._messages(request.get("messages"))
        elif self._api == RESPONSES:
            self._items(request.get("instructions"))
            self._items(request.get("input"))
        elif self._api == GEMINI:
            for content in (request.get("systemInstruction"), *as_list(request.get("contents"))):
                self._gemini_content(content)

    def _keys(self, request: Mapping[str, Any]) -> None:
        kept = KEPT[self._api]
        for key in changing(request, KEYS[self._api]):
            if key in kept:
                if not (key == "thread" and _object(request[key]).get("type") == "create"):
                    self._far(key)
            else:
                listed = key.partition(".")[0] in KEYS[self._api]
                self._dear(key if listed else f"unknown key {key}")

    def _tools(self, tools: Any) -> None:
        for each in as_list(tools):
            self.tools = True
            tool = _object(each)
            if self._api == GEMINI:
                tool = camel(tool)
            self._caching(tool)
            name = provider_tool(self._api, tool)
            if name is not None:
                self._dear(f"tool {name}")
            elif tool.get("type") == "namespace":
                self._tools(tool.get("tools"))

    def _messages(self, messages: Any) -> None:
        for each in as_list(messages):
            message = _object(each)
            self._parts(message.get("content"))
            if message.get("audio") is not None:
                self._dear("audio")

    def _parts(self, content: Any) -> None:
        if isinstance(content, str):
            return
        for each in as_list(content):
            if isinstance(each, str):
                continue
            part = _object(each)
            self._caching(part)
            kind = part.get("type")
            if isinstance(kind, str) and _HEARD.search(kind):
                self._dear(kind)
            elif kind == "document":
                self._document(_object(part.get("source")))
            elif not isinstance(kind, str) or kind not in TEXT_PARTS[self._api]:
                self._far(kind if isinstance(kind, str) else "a part without a type")
            if self._api == ANTHROPIC:
                if kind in ("tool_result", "search_result"):
                    self._parts(part.get("content"))
                self._tool_changes(part)

    def _document(self, source: Mapping[str, Any]) -> None:
        if source.get("type") == "content":
            self._parts(source.get("content"))
        elif source.get("type") != "text":
            self._far("document")

    def _tool_changes(self, part: Mapping[str, Any]) -> None:
        for change in (part, *map(_object, as_list(part.get("tool_changes")))):
            if change.get("type") == "tool_addition":
                tool = _object(change.get("tool"))
                if tool.get("type") == "tool_definition":
                    self._tools([tool.get("definition")])

    def _items(self, items: Any) -> None:
        if isinstance(items, str):
            return
        for each in as_list(items):
            item = _object(each)
            kind = item.get("type", "message")
            if kind == "reasoning":
                if not item.get("encrypted_content") and not item.get("content"):
                    self._far("reasoning")
            elif not isinstance(kind, str) or kind not in TEXT_ITEMS:
                self._far(kind if isinstance(kind, str) else "an item without a type")
            self._tools(item.get("tools"))
            self._parts(item.get("content"))
            if kind != "shell_call_output":
                self._parts(item.get("output"))

    def _gemini_content(self, content: Any) -> None:
        for each in as_list(camel(_object(content)).get("parts")):
            for key, said in camel(_object(each)).items():
                value = camel(_object(said))
                if key == "functionResponse":
                    self._gemini_content(value)
                elif "mimeType" in value or key == "fileData":
                    kind = value.get("mimeType")
                    seen = isinstance(kind, str) and _SEEN.match(kind)
                    (self._far if seen else self._dear)(f"{key} {kind}")
                elif said is not None and key not in TEXT_PARTS[GEMINI]:
                    self._far(key)

    def _caching(self, value: Mapping[str, Any]) -> None:
        control = value.get("cache_control")
        if control is None or self._api == GEMINI:
            return
        lifetime = _object(control).get("ttl")
        if lifetime in (None, "5m"):
            self.buckets.add(Bucket.CACHE_WRITE)
        elif lifetime == "1h":
            self.buckets.add(Bucket.CACHE_WRITE_1H)
        else:
            self._dear(f"cache_control for {lifetime}")

    def _far(self, name: str) -> None:
        self._elsewhere[shown(name)] = None

    def _dear(self, name: str) -> None:
        self._unpriced[shown(name)] = None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
