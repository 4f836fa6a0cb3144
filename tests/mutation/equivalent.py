"""Mutants that no input can tell from the real thing, each with the reason why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equivalent:
    """A mutant by its module, function, and text before and after."""

    module: str
    where: str
    before: str
    after: str
    why: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.module, self.where, self.before, self.after


_ENCODES = "what was read nests 64 deep at most, and what is made of it two more: encoding it never fails"

EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "proctor_verify.checks.derived",
        "Derived._compare",
        """self.fail(f'{attempt.folder}/{NAME}', f"cannot hold what the attempt's entries come to: {error}")""",
        "pass",
        _ENCODES,
    ),
    Equivalent(
        "proctor_verify.checks.keys",
        "Seen.finish",
        "if not witnesses",
        "if False",
        "where there are none, nothing is said of any: it saves reading the run's checkpoints alone",
    ),
    Equivalent(
        "proctor_verify.checks.order",
        "Ordered.entry",
        "place < self._reached[model]",
        "place <= self._reached[model]",
        "a trial that began in this opening already is passed over above, and no two of a model have one place",
    ),
    Equivalent(
        "proctor_verify.checks.summaries",
        "Summaries._want",
        "self.fail_at(entry, f'names {path}, which cannot hold what the journal adds up to: {error}')",
        "pass",
        _ENCODES,
    ),
    Equivalent(
        "proctor_verify.checks.withheld",
        "Named.entry",
        "if not self._withheld.bodies",
        "if False",
        "where nothing is listed, nothing is found in the list: it saves looking in it alone",
    ),
    Equivalent(
        "proctor_verify.money",
        "Money._forget",
        "if not block.held and (not block.reserve)",
        "if False",
        "a block that has nothing set aside and holds nothing takes up nothing: forgetting it saves memory alone",
    ),
)
