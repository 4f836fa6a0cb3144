"""The kinds of sandbox that a study may ask for."""

from __future__ import annotations

from enum import StrEnum


class SandboxChoice(StrEnum):
    """`auto` is the first of the others, in their order, that can run every selected task."""

    AUTO = "auto"
    NAMESPACE = "namespace"
    DOCKER = "docker"
