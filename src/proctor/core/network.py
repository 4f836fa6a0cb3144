"""What a world may reach."""

from __future__ import annotations

from enum import StrEnum


class Network(StrEnum):
    """What a phase may reach, strictest first."""

    NONE = "none"
    GATEWAY_ONLY = "gateway-only"
    ALLOWLIST = "allowlist"
    PUBLIC = "public"
