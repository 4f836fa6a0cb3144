"""Which kind of sandbox the selected tasks run in, and which images their worlds are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.sandboxes import Pull, SandboxChoice
from proctor.core.tokens import Probe
from proctor.sandbox.base import Availability, Image, SandboxKind, Tier
from proctor.study import Design
from proctor.study.design import ImageDesign
from proctor.tasks.images import images_of
from proctor.tasks.plan import TaskPlan

SANDBOXES = "proctor.sandboxes"
# in the order in which `auto` tries them
KINDS = tuple(choice.value for choice in SandboxChoice if choice is not SandboxChoice.AUTO)
# what another kind of sandbox may be able to do
_ELSEWHERE = frozenset(
    {
        Reason.TASK_NEEDS_DOCKER,
        Reason.TASK_NEEDS_PACKAGES,
        Reason.TASK_NEEDS_ROOT,
        Reason.NETWORK_UNAVAILABLE,
    }
)

Plans = Mapping[tuple[str, str], TaskPlan]
Weigh = Callable[[Availability], tuple[Plans, list[Refusal]]]


@dataclass(frozen=True)
class World:
    """A kind of sandbox, what it can do here, and the tasks on it: their plans and what stands in their way."""

    kind: SandboxKind
    available: Availability
    plans: Plans = field(default_factory=dict)
    obstacles: tuple[Refusal, ...] = ()


def sandbox_kind(name: str) -> SandboxKind:
    """The kind of that name. The study's schema knows the names."""
    (point,) = entry_points(group=SANDBOXES, name=name)
    kind: SandboxKind = point.load()()
    return kind


def kind_of(design: Design) -> SandboxKind:
    """The kind that a frozen design has come to."""
    return sandbox_kind(KINDS[0] if design.sandbox.kind == SandboxChoice.AUTO else design.sandbox.kind)


def choose(wanted: str, frozen: Design | None, weigh: Weigh, probe: Probe) -> World:
    """The world that the study asks for; of `auto`, the first whose kind nothing speaks against, else the first.

    A run goes on in the kind that it began with.
    """
    began = None if frozen is None else frozen.sandbox.kind
    names: Sequence[str] = (wanted,)
    if wanted == SandboxChoice.AUTO:
        names = KINDS if began is None else KINDS[:1] if began == SandboxChoice.AUTO else (began,)
    first: World | None = None
    for name in names:
        kind = sandbox_kind(name)
        available = kind.probe(probe)
        plans, obstacles = weigh(available) if available.available else ({}, [])
        world = World(kind, available, plans, tuple(obstacles))
        if available.available and not obstacles:
            return world
        first = first or world
        if available.available and not any(obstacle.reason in _ELSEWHERE for obstacle in obstacles):
            # what stands against it would in every other kind, and nothing else does
            return world
    assert first is not None
    return first


def find_images(
    world: World, frozen: Design | None, pull: Pull, probe: Probe
) -> tuple[dict[str, Image], list[Refusal]]:
    """Every image that the tasks' worlds are from, by name as it is taken, and what stands against the others.

    A run goes on with the images that it began with, whatever their names stand for now.
    """
    names = images_of(image for plan in world.plans.values() for image in plan.images)
    if not names:
        return {}, []
    began = {} if frozen is None else {image.name: image.id for image in frozen.images}
    found: dict[str, Image] = {}
    against: list[Refusal] = []
    looked = world.kind.images([name for name in names if name not in began], probe, pull=pull)
    again = world.kind.images([began[name] for name in names if name in began], probe, pull=Pull.MISSING)
    for name in names:
        image = looked[name] if name not in began else again[began[name]]
        if isinstance(image, Image):
            found[name] = replace(image, reference=name)
        elif name in began:
            what = f"the image {name} with which the run began is not here any more"
            against.append(Refusal(Reason.IMAGE_MOVED, what, path=name, observed=image.message, required=began[name]))
        else:
            against.append(image)
    return found, against


def dressed(design: Design, world: World, images: Mapping[str, Image]) -> Design:
    """The design with what `auto` came to, and its images. One without images stands as the study says it."""
    if not world.available.capabilities.builds_images:
        return design
    arms = [
        arm if arm.sandbox is None else replace(arm, sandbox=replace(arm.sandbox, kind=world.kind.name))
        for arm in design.arms
    ]
    return replace(
        design,
        sandbox=replace(design.sandbox, kind=world.kind.name),
        arms=tuple(arms),
        images=tuple(ImageDesign(name, image.id or image.pull or "") for name, image in sorted(images.items())),
    )


def sandbox_record(available: Availability) -> dict[str, Any]:
    """For the manifest."""
    capabilities = available.capabilities
    return {
        "kind": available.kind,
        "available": available.available,
        "tier": available.tier.value,
        "networks": sorted(network.value for network in capabilities.networks),
        "limits": sorted(capabilities.limits),
        "many_users": available.tier is Tier.PRIVILEGED,
        "notes": list(available.notes),
        "facts": dict(available.facts),
    }
