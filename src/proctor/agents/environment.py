"""The variables that point programs at the gateway of their attempt, under the names that SDKs and tools read."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.core.wires import ANTHROPIC, CHAT, GEMINI, PRACTICE, RESPONSES

# by the format of the model: the variables of its address (with what follows it), and those of its key
_OPENAI = ({"OPENAI_BASE_URL": "/v1", "OPENAI_API_BASE": "/v1"}, ("OPENAI_API_KEY",))
_FAMILIES: Mapping[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    CHAT: _OPENAI,
    RESPONSES: _OPENAI,
    PRACTICE: _OPENAI,
    ANTHROPIC: ({"ANTHROPIC_BASE_URL": ""}, ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
    GEMINI: ({"GOOGLE_GEMINI_BASE_URL": ""}, ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
}
# a proxy of the host is none inside, and the gateway is on the loopback
DIRECT = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


def variables(api: str, base_url: str, token: str, model: str | None) -> dict[str, str]:
    """What a program finds its model by; `PROCTOR_BASE_URL`, `_TOKEN`, `_API` and `_MODEL` in any format.

    `model` None: there is more than one.
    """
    addresses, keys = _FAMILIES[api]
    own = {"PROCTOR_BASE_URL": base_url, "PROCTOR_TOKEN": token, "PROCTOR_API": api}
    if model is not None:
        own["PROCTOR_MODEL"] = model
    found = {name: base_url + path for name, path in addresses.items()}
    return {**DIRECT, **own, **found, **dict.fromkeys(keys, token)}
