"""All guards: what must hold before anything acts. `docs/guards.md` is made from this registry.

Each guard is a pure function over `Facts`. A fact that is missing makes its dependants silent: the guard on the fact
itself speaks.
"""

from __future__ import annotations

from collections.abc import Iterable

from proctor.admission.anchors import ANCHORS
from proctor.admission.facts import Component, Facts
from proctor.admission.model_guards import MODELS
from proctor.admission.money_guards import MONEY
from proctor.admission.provenance import GitState
from proctor.core.guards import Registry
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

REGISTRY: Registry[Facts] = Registry()
guard = REGISTRY.guard

_SHOWN = 20


@guard("waivers-known", "Every --waive names a reason that may be waived.", Reason.UNKNOWN_WAIVER)
def waivers_known(facts: Facts) -> Iterable[Refusal]:
    """A waiver of something else would be a promise that nobody keeps."""
    waivable = sorted(reason.id for reason in Reason if reason.waivable)
    for name in facts.request.waive:
        if name not in waivable:
            yield Refusal(
                Reason.UNKNOWN_WAIVER,
                f"{name!r} cannot be waived",
                path="--waive",
                observed=name,
                required=waivable,
            )


@guard(
    "study-sound",
    "The study can be read, and every key, value, name and file in it is good.",
    *(
        Reason.STUDY_NOT_FOUND,
        Reason.STUDY_UNREADABLE,
        Reason.UNKNOWN_KEY,
        Reason.MISSING_KEY,
        Reason.WRONG_TYPE,
        Reason.INVALID_VALUE,
        Reason.MONEY_INVALID,
        Reason.UNKNOWN_NAME,
        Reason.DUPLICATE_NAME,
        Reason.FILE_MISSING,
        Reason.FILE_UNREADABLE,
    ),
)
def study_sound(facts: Facts) -> Iterable[Refusal]:
    """What reading the study found."""
    return [refusal for refusal in facts.study if refusal.reason is not Reason.NOT_IN_THIS_VERSION]


@guard("study-in-this-version", "The study asks for nothing that this version cannot do.", Reason.NOT_IN_THIS_VERSION)
def study_in_this_version(facts: Facts) -> Iterable[Refusal]:
    """A key of a later version is never read over."""
    return [refusal for refusal in facts.study if refusal.reason is Reason.NOT_IN_THIS_VERSION]


@guard(
    "tasks-readable",
    "Every selected task can be read in a format of this version, and is unambiguous.",
    *(
        Reason.TASK_NOT_FOUND,
        Reason.TASK_UNREADABLE,
        Reason.TASK_FORMAT_LATER,
        Reason.TASK_UNSAFE,
        Reason.TASK_DUPLICATE,
        Reason.UNKNOWN_NAME,
        Reason.INVALID_VALUE,
    ),
)
def tasks_readable(facts: Facts) -> Iterable[Refusal]:
    """What reading the tasks found."""
    return facts.tasks


@guard("tasks-selected", "At least one task is selected.", Reason.NOTHING_SELECTED)
def tasks_selected(facts: Facts) -> Iterable[Refusal]:
    """An empty run would be a success that says nothing."""
    if facts.selected == 0 and not facts.tasks and not facts.questions:
        yield Refusal(Reason.NOTHING_SELECTED, "no task is selected", observed=0, required="at least 1 task")


@guard(
    "tasks-runnable",
    "Every selected task can run in the sandbox that is there, with this agent.",
    *(
        Reason.TASK_NOT_GRADABLE,
        Reason.TASK_NO_SOLUTION,
        Reason.TASK_NEEDS_DOCKER,
        Reason.TASK_NEEDS_COMPOSE,
        Reason.TASK_NEEDS_GPU,
        Reason.TASK_OS_UNSUPPORTED,
        Reason.TASK_ENV_MISSING,
        Reason.TASK_NEEDS_PACKAGES,
        Reason.TASK_NEEDS_ROOT,
        Reason.NETWORK_UNAVAILABLE,
        Reason.ROOTFS_INVALID,
        Reason.IMAGE_MISSING,
        Reason.IMAGE_MOVED,
        Reason.BUILD_UNSUPPORTED,
        Reason.NOT_IN_THIS_VERSION,
        Reason.FILE_UNREADABLE,
        Reason.TASK_UNREADABLE,
        Reason.TASK_UNSAFE,
        Reason.INVALID_VALUE,
    ),
)
def tasks_runnable(facts: Facts) -> Iterable[Refusal]:
    """What stands between a task and the sandbox."""
    return facts.obstacles


@guard(
    "agent-sound",
    "The agent of every arm is installed, or handed over in Python, and takes its settings.",
    *(
        Reason.UNKNOWN_AGENT,
        Reason.AGENT_INVALID,
        Reason.AGENT_OPTIONS_INVALID,
        Reason.AGENT_UNSUITABLE,
        Reason.BUNDLE_MISSING,
        Reason.BUNDLE_CHANGED,
        Reason.DUPLICATE_NAME,
        Reason.FILE_MISSING,
        Reason.FILE_UNREADABLE,
    ),
)
def agent_sound(facts: Facts) -> Iterable[Refusal]:
    """What making the agents found."""
    return facts.agents


@guard(
    "agent-version",
    "The agent of every arm reports the version that the study expects, where it expects one.",
    *(Reason.RUNTIME_VERSION_ABSENT, Reason.RUNTIME_SKEW),
)
def agent_version(facts: Facts) -> Iterable[Refusal]:
    """Absence is decided before anything is compared."""
    return facts.skews


@guard(
    "sandbox-available",
    "A sandbox of the wanted kind can be had on this machine.",
    *(
        Reason.SANDBOX_UNAVAILABLE,
        Reason.USER_NAMESPACES_FORBIDDEN,
        Reason.BWRAP_MISSING,
        Reason.ROOTFS_INVALID,
        Reason.DOCKER_UNAVAILABLE,
    ),
)
def sandbox_available(facts: Facts) -> Iterable[Refusal]:
    """What the probe found."""
    return () if facts.sandbox is None else facts.sandbox.refusals


@guard("sandbox-network", "The sandbox can give the network that the study asks for.", Reason.NETWORK_UNAVAILABLE)
def sandbox_network(facts: Facts) -> Iterable[Refusal]:
    """Nothing runs with another network than the one on the record."""
    if facts.sandbox is None or not facts.sandbox.available or facts.network is None:
        return
    networks = facts.sandbox.capabilities.networks
    if Network(facts.network) not in networks:
        yield Refusal(
            Reason.NETWORK_UNAVAILABLE,
            f"the network {facts.network!r} cannot be given by this sandbox",
            path="sandbox.network",
            observed=sorted(network.value for network in networks),
            required=facts.network,
        )


@guard("git-readable", "If the study lies in a git repository, git can read it.", Reason.GIT_BROKEN)
def git_readable(facts: Facts) -> Iterable[Refusal]:
    """Identity that is there and cannot be read is not the same as none."""
    if facts.git is not None and facts.git.state is GitState.BROKEN:
        yield Refusal(Reason.GIT_BROKEN, "git cannot read the study's repository", observed=facts.git.why)


@guard("git-clean", "The study's repository has no changes that no commit holds.", Reason.GIT_DIRTY)
def git_clean(facts: Facts) -> Iterable[Refusal]:
    """A result from an uncommitted state cannot be found again."""
    if facts.git is not None and facts.git.state is GitState.DIRTY:
        yield Refusal(
            Reason.GIT_DIRTY,
            "the study's repository has no commit yet"
            if facts.git.head is None
            else "the study's repository has changes that no commit holds",
            observed={"changes": facts.git.changes, "paths": list(facts.git.named)},
            required="a clean work tree",
        )


@guard("components-supported", "Components that the run depends on are in their range.", Reason.VERSION_UNSUPPORTED)
def components_supported(facts: Facts) -> Iterable[Refusal]:
    """Found before the run, not in the middle of it."""
    for component in facts.components:
        if not _in_range(component):
            yield Refusal(
                Reason.VERSION_UNSUPPORTED,
                f"{component.name} is outside of its supported range",
                path=component.name,
                observed=component.version,
                required=f">= {_dotted(component.at_least)}, < {_dotted(component.below)}",
            )


@guard("folder-free", "No other process writes the run.", Reason.RUN_LOCKED)
def folder_free(facts: Facts) -> Iterable[Refusal]:
    """One writer, always."""
    if facts.folder.locked is not None:
        yield facts.folder.locked


@guard("run-new", "A new run goes into a folder that holds no admitted run.", Reason.RUN_EXISTS)
def run_new(facts: Facts) -> Iterable[Refusal]:
    """A run is never overwritten."""
    if facts.request.command != "resume" and facts.folder.admitted:
        yield Refusal(
            Reason.RUN_EXISTS,
            "a run was admitted in this folder already",
            path="--out",
            observed=facts.request.out.name,
        )


@guard("run-there", "A resume names a folder that holds an admitted run.", Reason.RUN_NOT_FOUND)
def run_there(facts: Facts) -> Iterable[Refusal]:
    """There must be something to go on with."""
    if facts.request.command == "resume" and not facts.folder.admitted:
        yield Refusal(Reason.RUN_NOT_FOUND, "no admitted run is in this folder")


@guard(
    "evidence-sound",
    "What a resume builds on is the evidence that was written.",
    *(Reason.EVIDENCE_UNREADABLE, Reason.EVIDENCE_DAMAGED, Reason.FORMAT_UNKNOWN, Reason.JSON_INVALID),
)
def evidence_sound(facts: Facts) -> Iterable[Refusal]:
    """Nothing is appended to damaged evidence."""
    if facts.folder.evidence is not None:
        yield facts.folder.evidence


@guard("run-incomplete", "A resume has something left to do.", Reason.RUN_COMPLETE)
def run_incomplete(facts: Facts) -> Iterable[Refusal]:
    """A complete run is closed."""
    if facts.request.command == "resume" and facts.folder.complete:
        yield Refusal(Reason.RUN_COMPLETE, "every planned trial has its final")


@guard("design-same", "A resume finds every frozen field as it was.", Reason.DESIGN_CHANGED)
def design_same(facts: Facts) -> Iterable[Refusal]:
    """Resume narrows the work, never the design."""
    for name, was, now in facts.changed[:_SHOWN]:
        yield Refusal(
            Reason.DESIGN_CHANGED,
            f"the frozen field {name} differs",
            path=name,
            observed=now,
            required=was,
        )


@guard("tasks-same", "A resume finds every task's content as it was.", Reason.TASK_CHANGED)
def tasks_same(facts: Facts) -> Iterable[Refusal]:
    """Same name, other content: another task."""
    for name in facts.changed_tasks[:_SHOWN]:
        yield Refusal(Reason.TASK_CHANGED, f"the content of task {name!r} differs from what was admitted", path=name)


REGISTRY.include(MODELS)
REGISTRY.include(MONEY)
REGISTRY.include(ANCHORS)


def _in_range(component: Component) -> bool:
    parts = []
    for part in (component.version or "").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        parts.append(int(digits))
    return component.at_least <= tuple(parts) < component.below


def _dotted(parts: tuple[int, ...]) -> str:
    return ".".join(map(str, parts))
