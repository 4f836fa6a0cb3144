"""Numbers of tokens, as providers give them: in several places, growing, and not always numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from proctor.core.usage import Bucket, Usage
from proctor.gateway.wire.base import Flag
from proctor.gateway.wire.notes import Notes

# Above every context window by far, and so small that no sum of costs leaves what a record can hold.
MAX_TOKENS = 10**12
# What providers call the service, the speed and the place that their list prices are for.
_LISTED = frozenset({"", "default", "auto", "standard", "on_demand", "unspecified", "global", "not_available"})


class Counts:
    """The last number of each name, but never one below what was already said.

    One number that cannot be a count makes all of them useless: which of the others to trust is not known.
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._numbers: dict[str, int] = {}
        self._valid = True
        self._shrank = False
        self.listed = True

    def say(self, name: str, value: Any) -> None:
        """A number was given for this name; null says nothing."""
        if value is None:
            return
        if type(value) is not int or not 0 <= value <= MAX_TOKENS:
            self.spoil()
        elif value < self._numbers.get(name, 0):
            self._shrank = True
        else:
            self._numbers[name] = value

    def served(self, *how: Any) -> None:
        """The tier, the speed or the place of an answer was said; `listed` is whether list prices are for these."""
        self.listed = self.listed and all(
            word is None or (isinstance(word, str) and word.lower() in _LISTED) for word in how
        )

    def part(self, value: Any) -> dict[str, Any]:
        """A usage or a part of one, which is an object; null says nothing."""
        if isinstance(value, dict):
            return value
        if value is not None:
            self.spoil()
        return {}

    def spoil(self) -> None:
        """Something was given that cannot be a usage."""
        self._valid = False
        self._notes.add(Flag.USAGE_INVALID)

    def get(self, name: str) -> int | None:
        """The number of a name, None where none was given."""
        return self._numbers.get(name)

    def __getitem__(self, name: str) -> int:
        return self._numbers.get(name, 0)

    @property
    def flags(self) -> list[Flag]:
        """What of the numbers does not fit together."""
        return [Flag.USAGE_SHRANK] if self._shrank else []

    @property
    def spoiled(self) -> bool:
        """Whether something was given that cannot be a usage."""
        return not self._valid

    @property
    def usable(self) -> bool:
        """Whether there is any number, and none of them is impossible."""
        return self._valid and bool(self._numbers)


def usage(tokens: Mapping[Bucket, int], flags: list[Flag], notes: Notes) -> Usage:
    """The usage of these buckets, without the empty ones, and with what does not fit noted in both places.

    Args:
        tokens: by bucket; a negative number is a part that exceeds its whole, and counts as none.
        flags: what was found so far.
        notes: where the flags are added.
    """
    if any(count < 0 for count in tokens.values()):
        flags.append(Flag.PART_EXCEEDS_WHOLE)
    notes.add(*flags)
    kept = {bucket: count for bucket, count in tokens.items() if count > 0}
    return Usage(MappingProxyType(kept), tuple(dict.fromkeys(flag.value for flag in flags)))
