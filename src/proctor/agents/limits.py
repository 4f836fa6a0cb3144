"""The settings of toolloop: what it says first, and how far it may go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from proctor.core.near import closest_hint
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

# What a deadline of a week and a budget never come to: larger numbers are mistakes.
MOST_STEPS = 100_000
MOST_SECONDS = 7 * 24 * 3600
MOST_TOKENS = 10**12


@dataclass(frozen=True)
class LoopSettings:
    """`steps` and `tokens` bound one attempt (None: no bound), `shell_timeout` (seconds) one command.

    `system` is the system prompt, in place of the agent's own; None leaves that.
    """

    steps: int = 50
    tokens: int | None = None
    shell_timeout: float = 120.0
    system: str | None = None


def read_settings(settings: Mapping[str, Any]) -> LoopSettings:
    """The settings as a study gives them.

    Raises:
        Refusal: AGENT_OPTIONS_INVALID for a key that is not known, or a value that is none of its key.
    """
    known = [field.name for field in fields(LoopSettings)]
    for key in settings:
        if key not in known:
            what = f"the agent 'toolloop' does not know {key!r}{closest_hint(str(key), known)}"
            raise _invalid(what, "agent.settings", key, known)
    return LoopSettings(
        steps=_count(settings, "steps", MOST_STEPS) or LoopSettings.steps,
        tokens=_count(settings, "tokens", MOST_TOKENS),
        shell_timeout=_seconds(settings, "shell_timeout") or LoopSettings.shell_timeout,
        system=_text(settings, "system"),
    )


def _count(settings: Mapping[str, Any], key: str, most: int) -> int | None:
    if key not in settings:
        return None
    value = settings[key]
    if type(value) is not int or not 1 <= value <= most:
        raise _refused(key, value, f"a whole number, from 1 to {most}")
    return value


def _seconds(settings: Mapping[str, Any], key: str) -> float | None:
    if key not in settings:
        return None
    value = settings[key]
    if type(value) not in (int, float) or not 0 < value <= MOST_SECONDS:
        raise _refused(key, value, f"seconds, above 0, at most {MOST_SECONDS}")
    return float(value)


def _text(settings: Mapping[str, Any], key: str) -> str | None:
    if key not in settings:
        return None
    value = settings[key]
    if not isinstance(value, str) or not value.strip():
        raise _refused(key, value, "text that is not empty")
    return value


def _refused(key: str, value: Any, required: str) -> Refusal:
    return _invalid(f"`{key}` of toolloop is {required}", f"agent.settings.{key}", repr(value)[:80], required)


def _invalid(message: str, path: str, observed: Any, required: Any) -> Refusal:
    return Refusal(Reason.AGENT_OPTIONS_INVALID, message, path=path, observed=observed, required=required)
