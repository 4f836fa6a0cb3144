"""What calls take in more than one form: names, and agreement to what a run can cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from proctor.admission.spending import AtMost, Confirm

Names: TypeAlias = str | Sequence[str]
"""One name, or several."""

Agree: TypeAlias = bool | Callable[[AtMost], bool]
"""True agrees, False does not; a function is asked, and shown what is at stake."""


def names(given: Names) -> tuple[str, ...]:
    """All of them."""
    return (given,) if isinstance(given, str) else tuple(given)


def confirm_by(agree: Agree) -> Confirm:
    """As admission asks it: after all guards agree, and only where the run may cost real money."""

    async def confirm(spending: AtMost) -> bool:
        return agree if isinstance(agree, bool) else bool(agree(spending))

    return confirm
