"""What of a request changes its price: closed lists, one for each format.

A request that says nothing but what is listed here costs what its tokens cost. Everything else changes the price in a
way that nobody here knows, or is new: both are named, and refused. Where input is not in the body (pictures, files,
what a provider has kept), its size is not known, and only the model's context window bounds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from proctor.core.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

# Whether a value of a key leaves the price as it is. Null is the same as absent, and never asked about.
Rule = Callable[[Any], bool]


def _any(value: Any) -> bool:
    return True


def _empty(value: Any) -> bool:
    return value is False or value in ("", [], {})


def _one_of(*words: str) -> Rule:
    return lambda value: isinstance(value, str) and value in words


def _all_of(*words: str) -> Rule:
    return lambda value: isinstance(value, list) and all(isinstance(each, str) and each in words for each in value)


class _Keys:
    """A rule for an object: it leaves the price as it is where all of its own keys do."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules

    def __call__(self, value: Any) -> bool:
        return not self.changing(value)

    def changing(self, value: Any) -> list[str]:
        """What of a value changes the price: keys, those of objects within with their path; empty for all of it."""
        return changing(value, self._rules) if isinstance(value, dict) else [""]


def changing(value: Mapping[str, Any], rules: Mapping[str, Rule]) -> list[str]:
    """The keys of an object that are not listed, or that say what is not; of objects in it by their path."""
    found: list[str] = []
    for key, said in value.items():
        rule = rules.get(key)
        if said is None or (rule is not None and rule(said)):
            continue
        within = rule.changing(said) if isinstance(rule, _Keys) else [""]
        found += [f"{key}.{name}" if name else key for name in within]
    return found


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _free(names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), _any)


def _is_edit(value: Any) -> bool:
    # A compaction by the provider is a call of the model on its own, above every bound of this one.
    return isinstance(value, dict) and str(value.get("type")).startswith("clear_")


_CACHING: Rule = _Keys({**_free("mode comparison_response_id"), "ttl": _one_of("30m"), "prewarm": _empty})

# "auto" is what a request without a tier gets; which tier that is, is the account's own setting.
_CHAT: dict[str, Rule] = {
    **_free(
        "model messages stream stream_options max_tokens max_completion_tokens n best_of tools tool_choice functions "
        "function_call parallel_tool_calls temperature top_p top_k top_a min_p typical_p frequency_penalty "
        "presence_penalty repetition_penalty logit_bias logprobs top_logprobs seed random_seed stop stop_token_ids "
        "min_tokens ignore_eos response_format guided_json guided_regex guided_choice guided_grammar metadata user "
        "safety_identifier prompt_cache_key prompt_cache_retention reasoning_effort reasoning reasoning_format "
        "include_reasoning thinking enable_thinking thinking_budget chat_template_kwargs verbosity store usage "
        "transforms safe_prompt prompt_mode"
    ),
    "service_tier": _one_of("auto", "default", "standard", "on_demand"),
    "modalities": _all_of("text"),
    "prompt_cache_options": _CACHING,
    # what other providers know, sent empty by clients that speak to all of them
    **dict.fromkeys(("prediction", "audio", "web_search_options", "moderation", "plugins", "models"), _empty),
}
_RESPONSES: dict[str, Rule] = {
    **_free(
        "model input instructions stream stream_options max_output_tokens max_tool_calls tools tool_choice "
        "parallel_tool_calls temperature top_p top_logprobs frequency_penalty presence_penalty text include metadata "
        "client_metadata user safety_identifier prompt_cache_key prompt_cache_retention store truncation"
    ),
    "service_tier": _one_of("auto", "default"),
    "reasoning": _Keys({**_free("effort summary generate_summary context"), "mode": _one_of("standard")}),
    "prompt_cache_options": _CACHING,
    **dict.fromkeys(("background", "moderation", "context_management"), _empty),
}
_ANTHROPIC: dict[str, Rule] = {
    **_free(
        "model messages system max_tokens stream stop_sequences temperature top_p top_k tools tool_choice metadata "
        "thinking output_format cache_control diagnostics"
    ),
    "output_config": _Keys(_free("effort format task_budget")),
    "context_management": _Keys({"edits": lambda edits: isinstance(edits, list) and all(map(_is_edit, edits))}),
    "service_tier": _one_of("auto", "standard_only"),
    "speed": _one_of("standard"),
    "inference_geo": _one_of("global"),
    **dict.fromkeys(("mcp_servers", "fallbacks", "container", "compaction"), _empty),
}
_GEMINI: dict[str, Rule] = {
    **_free("model contents systemInstruction tools toolConfig safetySettings labels store"),
    "serviceTier": _one_of("unspecified", "standard"),
    "generationConfig": _Keys(
        {
            **_free(
                "candidateCount frequencyPenalty logprobs maxOutputTokens mediaResolution presencePenalty "
                "responseJsonSchema responseLogprobs responseMimeType responseSchema seed stopSequences temperature "
                "thinkingConfig topK topP"
            ),
            "responseModalities": _all_of("TEXT"),
        }
    ),
}

# The names of the bound of the output, the first as it is written where none is there; Gemini knows two spellings.
BOUNDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        CHAT: ("max_completion_tokens", "max_tokens"),
        RESPONSES: ("max_output_tokens",),
        ANTHROPIC: ("max_tokens",),
        GEMINI: ("maxOutputTokens", "max_output_tokens"),
    }
)

KEYS: Mapping[str, Mapping[str, Rule]] = MappingProxyType(
    {CHAT: _CHAT, RESPONSES: _RESPONSES, ANTHROPIC: _ANTHROPIC, GEMINI: _GEMINI}
)

# Keys by which a provider adds what it has kept of earlier requests.
KEPT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {CHAT: (), RESPONSES: ("previous_response_id", "conversation"), ANTHROPIC: ("thread",), GEMINI: ()}
)

# By these a request asks for another price, or for another model behind the one that it names.
_DEAR_HEADERS = re.compile(r"x-vertex-ai-llm-(?:shared-)?request-type|(?:x-portkey|cf-aig)-.+", re.IGNORECASE)

# Tools that the client runs. Those of a provider have prices of their own, or call the model more than once.
_OWN_TOOLS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        CHAT: re.compile("function|custom"),
        RESPONSES: re.compile("function|custom|namespace|local_shell|apply_patch|computer|computer_use_preview"),
        ANTHROPIC: re.compile("custom|(?:bash|text_editor|memory|computer)_[0-9]{8}", re.ASCII),
    }
)
_GEMINI_OWN_TOOL = "functionDeclarations"

# Parts whose content is text that stands in the body, sealed or not.
TEXT_PARTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        CHAT: _words("text refusal thinking"),
        RESPONSES: _words("input_text output_text text refusal summary_text reasoning_text"),
        ANTHROPIC: _words(
            "text thinking redacted_thinking tool_use tool_result tool_reference search_result compaction "
            "server_tool_use tool_addition tool_removal fallback"
        ),
        GEMINI: _words("text functionCall thought thoughtSignature partMetadata"),
    }
)
# Items of the Responses format that say all that they are; `reasoning` does where it holds its own content.
TEXT_ITEMS = _words(
    "message function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call "
    "local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output computer_call "
    "computer_call_output tool_search_call tool_search_output additional_tools compaction compaction_trigger"
)


def dear_headers(names: Iterable[str]) -> list[str]:
    """Those of a request's headers that change its price in a way that nobody here knows."""
    return [name.lower() for name in names if _DEAR_HEADERS.fullmatch(name)]


def provider_tool(api: str, tool: Mapping[str, Any]) -> str | None:
    """What a provider calls the tool of its own that this is; None for one that the client runs."""
    if api == GEMINI:
        return next((key for key, said in tool.items() if key != _GEMINI_OWN_TOOL and said is not None), None)
    kind = tool.get("type")
    if kind is None and api == ANTHROPIC:
        return None
    if not isinstance(kind, str):
        return "without a type"
    by_client = _OWN_TOOLS[api].fullmatch(kind) is not None
    if api == RESPONSES and kind == "tool_search":
        by_client = tool.get("execution") == "client"
    if api == RESPONSES and kind == "shell":
        place = tool.get("environment")
        by_client = isinstance(place, dict) and place.get("type") == "local"
    return None if by_client else kind
