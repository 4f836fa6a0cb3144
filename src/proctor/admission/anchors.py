"""The anchors of a study, looked at before anything is pushed there: whether each is there, read-only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from proctor.admission.admitted import admitted_of, first_request
from proctor.admission.facts import AnchorFacts, Facts, Request
from proctor.core.guards import Registry
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Probe
from proctor.evidence.anchors import drop, git
from proctor.evidence.anchors.places import AnchorKind, Place, is_relative, places
from proctor.evidence.runfolder import RunFolder
from proctor.study import Design

ANCHORS: Registry[Facts] = Registry()


@ANCHORS.guard("anchor-reachable", "Every anchor of a study that requires them is there.", Reason.ANCHOR_UNREACHABLE)
def anchor_reachable(facts: Facts) -> Iterable[Refusal]:
    """Nothing would start; and of a run without its anchors nobody could say since when it is so."""
    for each in facts.anchors:
        if each.required and each.why is not None:
            yield Refusal(
                Reason.ANCHOR_UNREACHABLE,
                f"the anchor cannot be used: {each.why}",
                path=f"anchor.{each.anchor}",
                observed=each.location,
                remedy="Look at the address and the network, or make the folder or repository, and start again.",
            )


def look_at(found: Sequence[Place], required: bool, probe: Probe) -> tuple[AnchorFacts, ...]:
    """Ask each place whether it is there, with a deadline."""
    return tuple(AnchorFacts(each.kind.value, each.location, required, _why_not(each, probe)) for each in found)


def _why_not(place: Place, probe: Probe) -> str | None:
    if place.kind is AnchorKind.DROP:
        return drop.look(place, probe)
    return git.look(place, probe, os.environ)


def anchor_notices(facts: Iterable[AnchorFacts]) -> list[str]:
    """A sentence for each anchor that is not there and need not be."""
    return [
        f"the anchor {each.anchor} {each.location} cannot be used: {each.why}; the run goes on without it"
        for each in facts
        if each.why is not None and not each.required
    ]


def design_places(run: RunFolder, design: Design) -> tuple[Place, ...]:
    """The anchors of an admitted run's design; a path starts at the folder of the study that its first manifest names.

    Raises:
        Refusal: `study_not_found` where a path starts at a folder that is not there any more; `evidence_unreadable`.
    """
    if design.anchor is None:
        return ()
    base = _study_folder(run)
    found = places(design.anchor.git, design.anchor.drop, base or Path("/"))
    for each in found:
        if is_relative(each) and base is None:
            raise Refusal(
                Reason.STUDY_NOT_FOUND,
                f"the anchor {each} starts at the study's folder, which is not where the run's manifest says",
                path=f"anchor.{each.kind}",
                observed=each.location,
                remedy="Put the study back, or name the place itself with --git or --drop.",
            )
    return found


def _study_folder(run: RunFolder) -> Path | None:
    study = Request("anchor", run.path).resumed(first_request(run, admitted_of(run))).study
    if study is None or not study.exists():
        return None
    return (study if study.is_dir() else study.parent).resolve()
