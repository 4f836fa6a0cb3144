"""The kinds of sandbox that a study may ask for, and when images are brought for them."""

from __future__ import annotations

from enum import StrEnum


class SandboxChoice(StrEnum):
    """`auto` is the first of the others, in their order, that can run every selected task."""

    AUTO = "auto"
    NAMESPACE = "namespace"
    DOCKER = "docker"


class Pull(StrEnum):
    """When an image is pulled."""

    MISSING = "missing"
    ALWAYS = "always"
    NEVER = "never"
