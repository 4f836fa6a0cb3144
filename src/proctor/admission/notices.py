"""What holds and may surprise: said before a run and recorded in its manifest, refused by nothing.

A task's wish that the study narrows, a root that stands in for an image, a limit that cannot be held here, a key that
no schema knows, money that cannot be enough: each would otherwise first be seen as a number that looks wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from proctor.admission.ready import Ready
from proctor.core.money import Usd, exact_dollars
from proctor.core.network import Network
from proctor.sandbox.base import Availability, Tier
from proctor.study.design import Design

_NAMED = 3
_PUBLIC = Network.PUBLIC.value


def notices(ready: Ready, available: Availability) -> list[str]:
    """One sentence for each kind of thing, with the tasks that it concerns."""
    found = [*_stand_ins(ready), *_networks(ready), *_limits(ready, available), *_unknown_keys(ready)]
    return [*found, *_low_ceilings(ready.design), *_too_little(ready.design)]


def _stand_ins(ready: Ready) -> Iterator[str]:
    by_image: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (task, _), plan in ready.plans.items():
        for world in (plan.main, plan.verifier):
            if world is not None and world.base_substituted and not world.base_substituted["explicit"]:
                by_image[world.base_substituted["image"], world.base_substituted["root"]].add(task)
    for (image, root), tasks in sorted(by_image.items()):
        yield f"{root} stands in for the image {image}: {_names(tasks)}"


def _networks(ready: Ready) -> Iterator[str]:
    narrowed: dict[str, set[str]] = defaultdict(set)
    for (name, _), plan in ready.plans.items():
        task = ready.tasks[name]
        world = task.environment.table.mode
        pairs = ((task.agent.mode or world, plan.agent_network), (task.verifier.mode or world, plan.verifier_network))
        got = sorted({given for asked, given in pairs if asked == _PUBLIC and given != _PUBLIC})
        if got:
            narrowed[" and ".join(got)].add(name)
    for instead, tasks in sorted(narrowed.items()):
        yield f'a task asks for the network public and gets {instead} (network = "public" gives it): {_names(tasks)}'


def _limits(ready: Ready, available: Availability) -> Iterator[str]:
    asked: dict[str, set[str]] = defaultdict(set)
    for (name, arm), plan in ready.plans.items():
        sandbox = ready.design.sandbox_of(arm)
        wanted = {
            "cpus": plan.main.cpus or sandbox.cpus,
            "memory": plan.main.memory_bytes or sandbox.memory_bytes,
            "storage": plan.main.storage_bytes or sandbox.storage_bytes,
            "pids": sandbox.pids,
        }
        for limit, value in wanted.items():
            if value is not None and limit not in available.capabilities.limits:
                asked[limit].add(name)
    who = "an ordinary user's sandbox" if available.tier is Tier.ORDINARY else "this machine's sandbox"
    for limit, tasks in sorted(asked.items()):
        yield f"{who} does not hold the limit {limit}: {_names(tasks)}"


def _unknown_keys(ready: Ready) -> Iterator[str]:
    for name, task in sorted(ready.tasks.items()):
        for key in task.unknown_keys:
            close = f" (closest known: {key.closest})" if key.closest else ""
            yield f"{name}: {task.layout.file} has the unknown key {key.name}{close}, which nothing reads"


def _low_ceilings(design: Design) -> Iterator[str]:
    """Of models whose every request would be refused, unless their agent asks for less than it may."""
    if design.budget is None:
        return
    room = Usd.parse(design.budget.cap) + Usd.parse(design.budget.margin) - Usd.parse(design.budget.spent_before)
    for model in design.models:
        one = model.price.worst_case(1, model.max_output_tokens)
        if one > room:
            yield (
                f"an answer of {model.max_output_tokens:,} tokens by {model.name} would cost {exact_dollars(one)} USD,"
                f" and the hard ceiling leaves {exact_dollars(room)}: lower max_output_tokens, or give a larger margin"
            )


def _too_little(design: Design) -> Iterator[str]:
    """Of a whole stage whose expected costs do not fit; a part of it may."""
    budget = design.budget
    if budget is None or design.selection is not None:
        return
    total = Usd(sum(Usd.parse(each.expected).pico for each in budget.models))
    room = min(Usd.parse(budget.allocation), Usd.parse(budget.cap) - Usd.parse(budget.spent_before))
    if total > room:
        yield (
            f"{exact_dollars(total)} USD are expected, and the allocation and the cap leave {exact_dollars(room)}:"
            " a run that costs what is expected stops before its end"
        )


def _names(tasks: Iterable[str]) -> str:
    ordered = sorted(tasks)
    more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
    return ", ".join(ordered[:_NAMED]) + more
