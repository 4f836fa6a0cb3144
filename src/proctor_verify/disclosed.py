"""What a run owns to and a verdict does not show: attempts that do not count, waivers, verifiers in shared worlds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from proctor_verify.checks.manifests import manifest_names, read_manifest
from proctor_verify.errors import Unreadable
from proctor_verify.run import Run
from proctor_verify.vocabulary import GRADES

_WHERE = {
    "shared": "in the world that the agent had been in (shared): what it left there can have changed them",
    "live": "in the agent's world while that went on (live): the agent can have changed them",
}


def disclosed(run: Run) -> Iterator[str]:
    """A sentence each, for the list of what a report cannot show."""
    yield from _not_counted(run)
    yield from _waived(run)
    for assurance, words in _WHERE.items():
        if count := run.assurances[assurance]:
            grades = "1 grade was" if count == 1 else f"{count:,} grades were"
            yield f"what a verifier of its own would have said: {grades} given {words}"


def _not_counted(run: Run) -> Iterator[str]:
    """What was tried again: to try until it goes well looks like that, too."""
    tallies = run.groups.values()
    superseded, replaced = sum(each.superseded for each in tallies), sum(each.replaced for each in tallies)
    counts = [f"{superseded:,} lost or interrupted"] if superseded else []
    counts += [f"{replaced:,} replaced after a fault of infrastructure"] if replaced else []
    if not counts:
        return
    dropped: Counter[str] = sum((each.dropped for each in tallies), Counter())
    graded = " and ".join(f"{dropped[grade]:,} of them had been graded {grade}" for grade in GRADES if dropped[grade])
    but = f"; {graded}" if graded else ""
    yield f"why attempts do not count ({', '.join(counts)}{but}): that none is for how it went is the operator's word"


def _waived(run: Run) -> Iterator[str]:
    """Refusals that the operator let pass, by the manifests of what was admitted."""
    reasons: Counter[str] = Counter()
    for name in manifest_names(run):
        try:
            manifest = read_manifest(run, f"manifests/{name}")
        except Unreadable:
            continue  # said by the checks of manifests
        if manifest["verdict"] == "admitted":
            reasons.update({*manifest["waivers"]["used"], *(each["reason"] for each in manifest["refusals"])})
    if reasons:
        said = ", ".join(f"{reason} ({count:,})" if count > 1 else reason for reason, count in sorted(reasons.items()))
        yield f"what was let pass: guards refused, and the operator waived that: {said}; manifests have what was found"
