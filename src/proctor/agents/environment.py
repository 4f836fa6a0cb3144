"""The variables that point programs at the gateway of their attempt, under the names that SDKs and tools read."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.core.models import Door

# by the format of the model: the variables of its address (with what follows it), and those of its key
_OPENAI = ({"OPENAI_BASE_URL": "/v1", "OPENAI_API_BASE": "/v1"}, ("OPENAI_API_KEY",))
_FAMILIES: Mapping[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "chat": _OPENAI,
    "responses": _OPENAI,
    "practice": _OPENAI,
    "anthropic": ({"ANTHROPIC_BASE_URL": ""}, ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
    "gemini": ({"GOOGLE_GEMINI_BASE_URL": ""}, ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
}
# a proxy of the host is none inside, and the gateway is on the loopback
_DIRECT = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


def variables(door: Door) -> dict[str, str]:
    """What a program inside finds its model by; `PROCTOR_BASE_URL`, `_TOKEN`, `_MODEL` and `_API` in any format."""
    addresses, keys = _FAMILIES[door.api]
    own = {
        "PROCTOR_BASE_URL": door.base_url,
        "PROCTOR_TOKEN": door.token,
        "PROCTOR_MODEL": door.model,
        "PROCTOR_API": door.api,
    }
    found = {name: door.base_url + path for name, path in addresses.items()}
    return {**_DIRECT, **own, **found, **dict.fromkeys(keys, door.token)}
