"""The named points of a rollout, at which its world is well defined."""

from __future__ import annotations

from enum import StrEnum


class Boundary(StrEnum):
    """In order."""

    ENV_READY = "env-ready"
    POST_RESEARCH = "post-research"
    PRE_VERIFY = "pre-verify"
    POST_VERIFY = "post-verify"
