"""What a study may admit to be changed of requests that agents inside of a sandbox make."""

from __future__ import annotations

from enum import StrEnum


class Mutation(StrEnum):
    """One change."""

    INCLUDE_USAGE = "include_usage"
    CLAMP_MAX_OUTPUT = "clamp_max_output"
