"""Base64 with padding, in its one spelling: other bytes that a decoder takes for the same are none."""

from __future__ import annotations

import base64

from proctor_verify.errors import Unreadable


def decoded(text: str) -> bytes:
    """What it stands for.

    Raises:
        Unreadable: it is not base64, or not in that spelling.
    """
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        raise Unreadable("not base64") from None
    if base64.b64encode(raw).decode() != text:
        raise Unreadable("base64 with spare bits set")
    return raw
