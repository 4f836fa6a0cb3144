"""The providers that are known: the wire format that each speaks, where it is, and where its key is usually kept."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.core.wires import ANTHROPIC, CHAT, GEMINI, PRACTICE


@dataclass(frozen=True)
class Provider:
    """One provider. `api` is its wire format; `base_url` and `key_env` are None where it has none.

    `prices` is what the price table calls it, where that is another name.
    """

    api: str
    base_url: str | None
    key_env: str | None
    prices: str | None = None


PROVIDERS: dict[str, Provider] = {
    "openai": Provider(CHAT, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Provider(ANTHROPIC, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "google": Provider(GEMINI, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    "openrouter": Provider(CHAT, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "deepseek": Provider(CHAT, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "mistral": Provider(CHAT, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "groq": Provider(CHAT, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "x-ai": Provider(CHAT, "https://api.x.ai/v1", "XAI_API_KEY"),
    "together": Provider(CHAT, "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "fireworks": Provider(CHAT, "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "cerebras": Provider(CHAT, "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "moonshotai": Provider(CHAT, "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    PRACTICE: Provider(PRACTICE, None, None),
}
