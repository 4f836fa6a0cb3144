"""A whole task on a sandbox: its worlds, users, networks and variables, and everything that stops it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.environment_plan import EnvironmentPlan, missing_variables, other_than_root, plan_environment
from proctor.tasks.offer import Offer, agent_network, verifier_network
from proctor.tasks.task import SOLUTION, TESTS, Task
from proctor.tasks.variables import resolve

# Agents that take no prompt, so that what the task gives an agent beyond it (servers, a prior context) cannot matter.
_WITHOUT_PROMPT = frozenset({None, "oracle", "nop"})


@dataclass(frozen=True)
class TaskPlan:
    """A task on a sandbox. `verifier` is None where the verifier works on the agent's world.

    `bring_tests` says whether `tests/` has to be put at `/tests` (a separate verifier's own build may bring it). Users
    are names or ids as text, None for root. `host_variables` names every host variable whose value went in.
    """

    main: EnvironmentPlan
    verifier: EnvironmentPlan | None
    bring_tests: bool
    agent_user: str | None
    verifier_user: str | None
    agent_network: str
    verifier_network: str
    verifier_env: Mapping[str, str]
    solution_env: Mapping[str, str]
    host_variables: tuple[str, ...]
    notes: tuple[str, ...]


def plan_task(task: Task, offer: Offer) -> tuple[TaskPlan, list[Refusal]]:
    """How the task runs there, and everything that stops it: the plan means something where nothing does."""
    verifier_as = {"verifier": task.verifier.user}
    main_as = {"agent": task.agent.user, **(verifier_as if task.verifier_environment is None else {})}
    main, refusals = plan_environment(task.environment, task.tree, offer, main_as)
    own: EnvironmentPlan | None = None
    if task.verifier_environment is not None:
        own, more = plan_environment(task.verifier_environment, task.tree, offer, verifier_as)
        seen = {refusal.message for refusal in refusals}
        refusals += [refusal for refusal in more if refusal.message not in seen]
    verifier_env = resolve(task.verifier.env, offer.host_env, offer.withheld_env, seen=False)
    solution_templates = task.solution_env if offer.agent == "oracle" else {}
    solution_env = resolve(solution_templates, offer.host_env, offer.withheld_env, seen=False)
    agent_mode, verifier_mode = _networks(task, offer)
    refusals += missing_variables(verifier_env, "verifier.env", task.tree)
    refusals += missing_variables(solution_env, "solution.env", task.tree)
    refusals += _contents(task, offer) + _features(task, offer)
    refusals += _unavailable({"agent": agent_mode, "verifier": verifier_mode}, task, offer)
    taken = [main.host_variables, own.host_variables if own else (), verifier_env.from_host, solution_env.from_host]
    plan = TaskPlan(
        main=main,
        verifier=own,
        bring_tests=own is None or not own.brings("/tests"),
        agent_user=_user(task.agent.user, main.user),
        verifier_user=_user(task.verifier.user, (own or main).user),
        agent_network=agent_mode,
        verifier_network=verifier_mode,
        verifier_env=verifier_env.env,
        solution_env=solution_env.env,
        host_variables=tuple(dict.fromkeys(name for names in taken for name in names)),
        notes=tuple(_network_notes(task, agent_mode, verifier_mode)),
    )
    return plan, refusals


def _networks(task: Task, offer: Offer) -> tuple[str, str]:
    """The networks of the agent and of the verifier, as they are to be."""
    asked = task.environment.table.mode
    own = task.verifier_environment.table.mode if task.verifier_environment else None
    agent = agent_network(offer.network, task.agent.mode or asked)
    return agent, verifier_network(offer.network, task.verifier.mode or own or asked)


def _unavailable(modes: Mapping[str, str], task: Task, offer: Offer) -> list[Refusal]:
    where = str(task.path / "task.toml")
    return [
        Refusal(
            Reason.NETWORK_UNAVAILABLE,
            f"The {phase} is to have the network {mode}, which {offer.sandbox} does not have here.",
            path=where,
            observed=sorted(offer.networks),
            required=mode,
        )
        for phase, mode in modes.items()
        if mode not in offer.networks
    ]


def _user(said: str | int | None, environment: str | None) -> str | None:
    user = environment if said is None else str(said)
    return user if other_than_root(user) else None


def _contents(task: Task, offer: Offer) -> list[Refusal]:
    """What the task must bring to be run at all."""
    found: list[Refusal] = []
    if task.toml.steps:  # each step has its own, and the task is refused for its steps
        return found
    if task.tests_script is None:
        image = task.verifier_environment.image if task.verifier_environment else None
        if image is None:
            message = f"The task has no {TESTS}."
            found.append(Refusal(Reason.TASK_NOT_GRADABLE, message, path=str(task.path / TESTS)))
        elif not offer.builds_images:
            message = f"The tests come with the image {image}, which a stand-in does not hold."
            found.append(Refusal(Reason.TASK_NEEDS_DOCKER, message, path=str(task.path / "task.toml"), observed=image))
    if offer.agent == "oracle" and task.solution_script is None:
        message = f"The task has no {SOLUTION}."
        found.append(Refusal(Reason.TASK_NO_SOLUTION, message, path=str(task.path / SOLUTION)))
    return found


def _features(task: Task, offer: Offer) -> list[Refusal]:
    """What the format has and this version does not run, and what only several containers can give."""
    where = str(task.path / "task.toml")
    later = []
    if task.toml.steps:
        later.append(f"[[steps]] ({len(task.toml.steps)})")
    if offer.agent not in _WITHOUT_PROMPT:
        if task.environment.table.mcp_servers:
            later.append("environment.mcp_servers")
        if task.tree.has_file("trajectory.json"):
            later.append("trajectory.json (a prior context for the agent)")
    found = [Refusal(Reason.NOT_IN_THIS_VERSION, f"The task uses {what}.", path=where, observed=what) for what in later]
    services = {item.service for item in task.artifacts} | {item.service for item in task.verifier.collect}
    services -= {"main"}
    if services:
        message = f"Artifacts or commands are of other services than main: {', '.join(sorted(services))}."
        found.append(Refusal(Reason.TASK_NEEDS_COMPOSE, message, path=where, observed=sorted(services)))
    return found


def _network_notes(task: Task, agent_mode: str, verifier_mode: str) -> list[str]:
    asked = task.environment.table.mode
    pairs = (("agent", task.agent.mode or asked, agent_mode), ("verifier", task.verifier.mode or asked, verifier_mode))
    return [
        f"the task allows the {phase} the network {said}; the study's {mode} is stricter and holds"
        for phase, said, mode in pairs
        if said in ("public", "allowlist") and said != mode
    ]
