"""What a story is made of before it is sealed: entries to be, checkpoints to be, values to be worked out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from primitives import Body, Signer

if TYPE_CHECKING:
    from builder import Story


@dataclass
class Late:
    """A value that is worked out when the run is sealed, so that it fits whatever was planted before."""

    make: Callable[[Story], Any]


@dataclass
class Step:
    """An entry to be; `after` alters its fields when they are all known, `raw` its line."""

    kind: str
    body: Body
    mono: int | None = None
    raw: Callable[[bytes], bytes] = lambda line: line
    after: Callable[[Body], None] | None = None


@dataclass
class Checkpoint:
    """A signed head over what stands so far; hooks alter it on its way.

    An entry names it at once where `named`; else a step `checkpoint.made` without a body may name it later.
    """

    named: bool = True
    text: Callable[[str], str] = lambda text: text
    file: Callable[[bytes], bytes] = lambda note: note
    entry: Callable[[Body], None] = lambda body: None
    signer: Signer | None = None
