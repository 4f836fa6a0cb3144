"""What a sandbox kind offers here, and which root may stand in for a task's image.

- an image that the study substitutes by name gets that root; packages that the task installs must then be in it;
- a plain distribution's image, or `python`, may be stood in for by the default root as long as nothing is installed;
- any other image holds something that only it holds: it needs a sandbox with images, or a substitute by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from proctor.core.network import Network
from proctor.tasks.recipe import Unsupported
from proctor.tasks.roots import RootFacts

# Images of a distribution and nothing else; `python` adds the interpreter, which a stand-in must have too.
_PLAIN_IMAGES = frozenset(
    {
        *("almalinux", "alpine", "amazonlinux", "archlinux", "bash", "busybox", "centos", "debian", "fedora"),
        *("oraclelinux", "rockylinux", "ubuntu", "python"),
    }
)

Named = TypeVar("Named")


@dataclass(frozen=True)
class Offer:
    """A sandbox kind on this machine, and what the study wants of it.

    `networks` are the modes that the kind has, `network` the one that the study asks for. `host_env` is what `${VAR}`
    may be looked up in, `withheld_env` names in it that never go in. `substitutes` maps images as the study writes
    them to roots, and `image_substitutes` to images, for a kind that has them. `needs_solution` and
    `takes_prompt` are of the agent: to one without a prompt, what a task gives beyond it (roles, a prior context) does
    not matter.
    """

    sandbox: str
    builds_images: bool
    many_users: bool
    networks: frozenset[str]
    network: str
    default_root: RootFacts
    substitutes: Mapping[str, RootFacts] = field(default_factory=dict)
    image_substitutes: Mapping[str, str] = field(default_factory=dict)
    host_env: Mapping[str, str] = field(default_factory=dict)
    withheld_env: frozenset[str] = frozenset()
    needs_solution: bool = False
    takes_prompt: bool = True


@dataclass(frozen=True)
class StandIn:
    """The root in an image's place; `explicit` says that the study names it for this image."""

    root: RootFacts
    explicit: bool
    notes: tuple[str, ...] = ()


def stand_in(image: str, offer: Offer) -> StandIn | None:
    """The root that stands in for an image, or None where none may."""
    wanted = canonical_image(image)
    root = _named(wanted, offer.substitutes)
    repository, _, tag = wanted.partition("@")[0].rpartition(":")
    explicit = root is not None
    if root is None:
        if repository not in _PLAIN_IMAGES or (repository == "python" and not offer.default_root.pythons):
            return None
        root = offer.default_root
    version = re.match(r"\d+\.\d+", tag) if repository == "python" else None
    if version is None or version[0] in root.pythons:
        return StandIn(root, explicit)
    has = ", ".join(sorted(root.pythons)) or "none"
    return StandIn(root, explicit, (f"{image}: python {version[0]} is asked for, the root has {has}",))


def substitute_image(image: str, offer: Offer) -> str:
    """The image to take for one that a task names: the study's substitute for it, else that image itself."""
    return _named(canonical_image(image), offer.image_substitutes) or image


def _named(wanted: str, substitutes: Mapping[str, Named]) -> Named | None:
    named = {canonical_image(name): given for name, given in substitutes.items()}
    return named.get(wanted) or named.get(wanted.partition("@")[0])


def canonical_image(image: str) -> str:
    """An image's name with its tag (`latest` where none is given) and without Docker's default registry."""
    name, at, digest = image.partition("@")
    for prefix in ("docker.io/", "index.docker.io/", "library/"):
        name = name.removeprefix(prefix)
    if ":" not in name.rpartition("/")[2]:
        name += ":latest"
    return name + at + digest


def agent_network(study: str, task: str | None) -> str:
    """The agent's network: the stricter of the study's and the task's (None: it says nothing).

    A task's `no-network` allows the gateway: the way to a model is the study's, and no network of the task's.
    """
    said = Network.PUBLIC if task is None else Network.GATEWAY_ONLY if task == "no-network" else Network(task)
    return min(Network(study), said, key=list(Network).index).value


def verifier_network(study: str, task: str | None) -> str:
    """The verifier's network: as the agent's, and without a gateway, which only agents use."""
    mode = agent_network(study, task)
    return Network.NONE.value if mode == Network.GATEWAY_ONLY else mode


def no_stand_in(image: str, line: int, text: str) -> Unsupported:
    """The image's line as something that needs a sandbox with images."""
    return Unsupported(line, text, f"{image} holds what no other root can be known to hold")
