"""The guard registry: one rule, one stable id, one doc line, one function.

A guard is a pure function from frozen facts to refusals. It never touches the world: what it needs to know has
been read before, and where a fact is missing it says nothing (the guard on that fact speaks instead).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

Facts = TypeVar("Facts")
Check = Callable[[Facts], Iterable[Refusal]]


@dataclass(frozen=True)
class Guard(Generic[Facts]):
    """One admission rule: `id` is stable, `doc` is the line of the guards table, `reasons` is all it may say."""

    id: str
    doc: str
    reasons: tuple[Reason, ...]
    check: Check[Facts]

    @property
    def waivable(self) -> tuple[Reason, ...]:
        """The reasons of this guard that `--waive` may name."""
        return tuple(r for r in self.reasons if r.waivable)


class Registry(Generic[Facts]):
    """All guards over one kind of facts, in the order of their declaration."""

    def __init__(self) -> None:
        self._guards: dict[str, Guard[Facts]] = {}

    def guard(self, guard_id: str, doc: str, *reasons: Reason) -> Callable[[Check[Facts]], Check[Facts]]:
        """Declare a guard. Raises ValueError when the id is taken or no reason is named."""

        def register(check: Check[Facts]) -> Check[Facts]:
            if guard_id in self._guards:
                raise ValueError(f"guard id {guard_id!r} is declared twice")
            if not reasons:
                raise ValueError(f"guard {guard_id!r} names no reason")
            self._guards[guard_id] = Guard(guard_id, doc, reasons, check)
            return check

        return register

    def include(self, other: Registry[Facts]) -> None:
        """Take the guards of another registry, after those that are here. Raises ValueError when an id is taken."""
        for guard in other:
            self.guard(guard.id, guard.doc, *guard.reasons)(guard.check)

    def __iter__(self) -> Iterator[Guard[Facts]]:
        return iter(self._guards.values())

    def run(self, facts: Facts, *, disabled: frozenset[str] = frozenset()) -> list[Refusal]:
        """Every refusal of every guard, in declaration order; `disabled` is for the test that no guard is dead.

        Raises:
            ValueError: a guard spoke a reason that it did not declare.
        """
        found: list[Refusal] = []
        for guard in self._guards.values():
            if guard.id in disabled:
                continue
            for refusal in guard.check(facts):
                if refusal.reason not in guard.reasons:
                    raise ValueError(f"guard {guard.id!r} spoke {refusal.reason.id!r}, which it does not declare")
                refusal.guard = guard.id
                found.append(refusal)
        return found
