"""A whole task on a sandbox: its worlds, users, networks and variables, and everything that stops it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.context import CopyIn
from proctor.tasks.environment_plan import EnvironmentPlan, missing_variables, plan_environment
from proctor.tasks.images import ImagePlan
from proctor.tasks.offer import Offer, agent_network, verifier_network
from proctor.tasks.recipe import Copy, Unsupported
from proctor.tasks.task import Task
from proctor.tasks.users import other_than_root, root_id
from proctor.tasks.variables import resolve


@dataclass(frozen=True)
class TaskPlan:
    """A task on a sandbox. `verifier` is None where the verifier works on the agent's world.

    `bring_tests` says whether the tests have to be put in (a separate verifier's own image or build may bring them).
    Users are names or ids as text, None for root; where the sandbox has images None is the image's own user, and root
    is 0 (`of_images` has them all). `host_variables` names every host variable whose value went in.
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

    @property
    def images(self) -> tuple[ImagePlan, ...]:
        """What its worlds are made from, where the sandbox has images."""
        worlds = (self.main, self.verifier)
        return tuple(world.image_plan for world in worlds if world is not None and world.image_plan is not None)

    def of_images(self, main: ImageKnows, verifier: ImageKnows | None) -> TaskPlan:
        """The plan with what only its images know."""
        world = self.main.of_image(main.workdir, main.user)
        own = None if self.verifier is None else self.verifier.of_image(*astuple(verifier or main))
        return replace(
            self,
            main=world,
            verifier=own,
            agent_user=self.agent_user or world.user,
            verifier_user=self.verifier_user or (own or world).user,
        )


@dataclass(frozen=True)
class ImageKnows:
    """What an image says of the worlds made from it: where commands start, and as whom (None: root)."""

    workdir: str
    user: str | None


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
    solution_templates = task.solution_env if offer.needs_solution else {}
    solution_env = resolve(solution_templates, offer.host_env, offer.withheld_env, seen=False)
    agent_mode, verifier_mode = _networks(task, offer)
    refusals += missing_variables(verifier_env, "verifier.env", task.tree, task.layout.file)
    refusals += missing_variables(solution_env, f"{task.layout.solution}.env", task.tree, task.layout.file)
    refusals += _contents(task, offer) + _features(task, offer)
    refusals += _unavailable({"agent": agent_mode, "verifier": verifier_mode}, task, offer)
    taken = [main.host_variables, own.host_variables if own else (), verifier_env.from_host, solution_env.from_host]
    plan = TaskPlan(
        main=main,
        verifier=own,
        bring_tests=not _brings_tests(task, own, offer),
        agent_user=_user(task.agent.user, main.user, offer),
        verifier_user=_user(task.verifier.user, (own or main).user, offer),
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
    return [
        Refusal(
            Reason.NETWORK_UNAVAILABLE,
            f"The {phase} is to have the network {mode}, which {offer.sandbox} does not have here.",
            path=task.where,
            observed=sorted(offer.networks),
            required=mode,
        )
        for phase, mode in modes.items()
        if mode not in offer.networks
    ]


def _user(said: str | int | None, environment: str | None, offer: Offer) -> str | None:
    user = environment if said is None else str(said)
    if other_than_root(user):
        return user
    # an image may say another user, which root that is said stands above
    return root_id(user) if offer.builds_images else None


def _brings_tests(task: Task, own: EnvironmentPlan | None, offer: Offer) -> bool:
    """Whether the verifier's own world has the tests in it before they are brought."""
    environment, target = task.verifier_environment, task.layout.tests_target
    if own is None or environment is None:
        return False
    if not offer.builds_images:
        return any(isinstance(s, CopyIn) and (s.target + "/").startswith(target + "/") for s in own.build)
    if environment.folder != task.layout.tests or environment.recipe is None or environment.image is not None:
        return environment.folder == task.layout.tests
    steps = environment.recipe.steps
    copies = (s.destination for s in steps if isinstance(s, Copy))
    # lines that are not followed here may bring them
    return any(isinstance(s, Unsupported) for s in steps) or any((c + "/").startswith(target + "/") for c in copies)


def _contents(task: Task, offer: Offer) -> list[Refusal]:
    """What the task must bring to be run at all."""
    found: list[Refusal] = []
    if task.toml.steps:  # each step has its own, and the task is refused for its steps
        return found
    layout = task.layout
    if not task.has_tests:
        own = task.verifier_environment
        image = own.image if own is not None and own.folder == layout.tests else None
        if image is None:
            message = f"The task has no {layout.test_script}."
            found.append(Refusal(Reason.TASK_NOT_GRADABLE, message, path=str(task.path / layout.test_script)))
        elif not offer.builds_images:
            message = f"The tests come with the image {image}, which a stand-in does not hold."
            found.append(Refusal(Reason.TASK_NEEDS_DOCKER, message, path=task.where, observed=image))
    if offer.needs_solution and not task.has_solution:
        message = f"The task has no {layout.solve_script}."
        found.append(Refusal(Reason.TASK_NO_SOLUTION, message, path=str(task.path / layout.solve_script)))
    return found


def _features(task: Task, offer: Offer) -> list[Refusal]:
    """What the format has and this version does not run, and what only several containers can give."""
    later = (*task.later, *task.later_prompts) if offer.takes_prompt else task.later
    found = [
        Refusal(Reason.NOT_IN_THIS_VERSION, f"The task uses {what}.", path=task.where, observed=what) for what in later
    ]
    if task.services:
        services = sorted(task.services)
        message = f"Artifacts or commands are of other services than main: {', '.join(services)}."
        found.append(Refusal(Reason.TASK_NEEDS_COMPOSE, message, path=task.where, observed=services))
    return found


def _network_notes(task: Task, agent_mode: str, verifier_mode: str) -> list[str]:
    asked = task.environment.table.mode
    pairs = (("agent", task.agent.mode or asked, agent_mode), ("verifier", task.verifier.mode or asked, verifier_mode))
    return [
        f"the task allows the {phase} the network {said}; the study's {mode} is stricter and holds"
        for phase, said, mode in pairs
        if said in ("public", "allowlist") and said != mode
    ]
