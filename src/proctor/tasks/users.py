"""Who works in a task's world: whether that takes several users, and whether a root that stands in knows them."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.recipe import Command, Copy, Folder, Recipe
from proctor.tasks.roots import RootFacts
from proctor.tasks.tree import Tree


def root_id(user: str | int | None) -> str | None:
    """Root by its number, as an image without that name has it; None stays None."""
    return None if user is None else ":".join(part.replace("root", "0") for part in str(user).split(":"))


def other_than_root(user: str | int | None) -> bool:
    """Whether a user (or user:group) is not root's."""
    return user is not None and any(part not in ("root", "0", "") for part in str(user).split(":"))


def several_users(
    recipe: Recipe | None, runs_as: Mapping[str, str | int | None], tree: Tree, file: str
) -> list[Refusal]:
    """A TASK_NEEDS_ROOT refusal where a task takes more users than root; `runs_as` says who is to run as whom."""
    found = [f"the {who} runs as {user}" for who, user in runs_as.items() if other_than_root(user)]
    for step in recipe.steps if recipe else ():
        owner = step.chown if isinstance(step, Copy) else step.owner if isinstance(step, Command) else None
        if other_than_root(owner):
            found.append(f"line {step.line} of its Dockerfile gives files to {owner}")
        if isinstance(step, Folder | Command) and other_than_root(step.user):
            found.append(f"line {step.line} of its Dockerfile runs as {step.user}")
    if not found:
        return []
    message = f"Several users are needed: {'; '.join(found)}."
    return [Refusal(Reason.TASK_NEEDS_ROOT, message, path=str(tree.root / file), observed=found)]


def unknown_users(runs_as: Mapping[str, str | int | None], root: RootFacts, tree: Tree, file: str) -> list[Refusal]:
    """Names that the task's image would know and the root in its place does not; ids need no name."""
    if root.users is None:
        return []
    names = {who: str(user).partition(":")[0] for who, user in runs_as.items() if other_than_root(user)}
    unknown = {who: name for who, name in names.items() if name and not name.isdecimal() and name not in root.users}
    if not unknown:
        return []
    said = ", ".join(f"{name} (the {who})" for who, name in unknown.items())
    message = f"The root {root.path} has no user {said}, whom the task's image would bring."
    return [Refusal(Reason.TASK_NEEDS_DOCKER, message, path=str(tree.root / file), observed=unknown)]
