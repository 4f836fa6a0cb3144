"""What the parts of a study say about each other: every name must be defined, and fit where it stands. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from proctor.core.claims import ClaimTest
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study.problems import dotted, unknown_name
from proctor.study.schema import Hypothesis, Stage, StudyFile


def name_refusals(file: StudyFile) -> list[Refusal]:
    """Every name that refers to nothing, stands twice, or does not fit."""
    return [
        *_tasks(file),
        *_empty(file),
        *_hypotheses(file),
        *(found for name, stage in file.stages.items() for found in _stage(name, stage, file)),
        *_tools(file),
    ]


def stage_arms(file: StudyFile, stage: Stage) -> tuple[str, ...]:
    """The arms of a stage, in order: its own list, or all of the study."""
    return stage.arms if stage.arms is not None else tuple(file.arms)


def stage_models(file: StudyFile, stage: Stage) -> tuple[str, ...]:
    """The models of a stage, in order: its own list, or all of the study."""
    return stage.models if stage.models is not None else tuple(file.models)


def _tasks(file: StudyFile) -> Iterator[Refusal]:
    if file.tasks.path is None and file.tasks.questions is None:
        path = "tasks.path"
        yield Refusal(Reason.MISSING_KEY, f"`{path}` is needed and not there: the folder of the tasks", path=path)
    yield from _twice("a task", file.tasks.ids or (), "tasks.ids")


def _empty(file: StudyFile) -> Iterator[Refusal]:
    for key, named in (("arms", file.arms), ("stages", file.stages)):
        if not named:
            yield Refusal(
                Reason.INVALID_VALUE, f"`{key}` stands there and holds none", path=key, required="one or more"
            )


def _hypotheses(file: StudyFile) -> Iterator[Refusal]:
    yield from _twice("a hypothesis", [each.id for each in file.hypothesis], "hypothesis")
    for number, hypothesis in enumerate(file.hypothesis):
        yield from _hypothesis(hypothesis, file, ("hypothesis", number))


def _hypothesis(hypothesis: Hypothesis, file: StudyFile, within: tuple[str | int, ...]) -> Iterator[Refusal]:
    stage = file.stages.get(hypothesis.stage)
    if stage is None:
        yield unknown_name("stage", hypothesis.stage, file.stages, dotted((*within, "stage")))
    arms = stage_arms(file, stage) if stage is not None else tuple(file.arms)
    for place, name in enumerate(hypothesis.compare):
        if name not in arms:
            yield unknown_name("arm of that stage", name, arms, dotted((*within, "compare", place)))
    if stage is not None and stage.epochs > 1 and hypothesis.test is ClaimTest.MCNEMAR:
        yield Refusal(
            Reason.INVALID_VALUE,
            "the test `mcnemar` compares one trial of each task in each arm, and the stage tries each more often",
            path=dotted((*within, "test")),
            observed={"epochs": stage.epochs},
            required="epochs = 1, or the test sign-flip",
        )
    binary = hypothesis.endpoint == "solved" or hypothesis.endpoint.startswith("test:")
    if hypothesis.test is ClaimTest.MCNEMAR and not binary:
        yield Refusal(
            Reason.INVALID_VALUE,
            "the test `mcnemar` compares yes and no, and this endpoint is a number",
            path=dotted((*within, "test")),
            observed=hypothesis.endpoint,
            required="the endpoint solved or test:<full name>, or the test sign-flip",
        )


def _stage(name: str, stage: Stage, file: StudyFile) -> Iterator[Refusal]:
    within = ("stages", name)
    if stage.arms is not None:
        yield from _defined("arm", stage.arms, file.arms, (*within, "arms"))
        if not stage.arms:
            path = dotted((*within, "arms"))
            yield Refusal(Reason.INVALID_VALUE, f"`{path}` is an empty list", path=path, required="one arm or more")
    models = stage_models(file, stage)
    yield from _defined("model", stage.models or (), file.models, (*within, "models"))
    for model, arms in stage.model_arms.items():
        yield from _defined("model of that stage", [model], models, (*within, "model_arms"))
        yield from _defined("arm of that stage", arms, stage_arms(file, stage), (*within, "model_arms", model))
    for key in ("expected_costs", "caps", "reserves"):
        yield from _defined("model of that stage", getattr(stage, key), models, (*within, key))
    for number, link in enumerate(stage.after):
        earlier = [each for each in file.stages if each != name]
        yield from _defined("other stage", [link.stage], earlier, (*within, "after", number, "stage"))
    if stage.capture:
        yield from _twice("a boundary", stage.capture, dotted((*within, "capture")))


def _tools(file: StudyFile) -> Iterator[Refusal]:
    for name, tool in file.tools.items():
        if (tool.python is None) == (tool.provider_side is None):
            path = dotted(("tools", name))
            yield Refusal(Reason.INVALID_VALUE, f"`{path}` needs one of `python` and `provider_side`", path=path)
    for name, arm in file.arms.items():
        yield from _defined("tool", arm.tools or (), file.tools, ("arms", name, "tools"))
    for name, profile in file.arm_profiles.items():
        within = ("arm_profiles", name)
        yield from _defined("arm", [name], file.arms, within)
        yield from _defined("tool", profile.requires, file.tools, (*within, "requires"))
        yield from _defined("tool", profile.forbids, file.tools, (*within, "forbids"))
        if profile.superset_of is not None:
            yield from _defined("arm", [profile.superset_of], file.arms, (*within, "superset_of"))
    if file.scoring.judge != "none":
        yield from _defined("model", [file.scoring.judge], file.models, ("scoring", "judge"))


def _defined(what: str, names: Iterable[str], known: Iterable[str], within: tuple[str | int, ...]) -> Iterator[Refusal]:
    defined = tuple(known)
    return (unknown_name(what, name, defined, dotted(within)) for name in names if name not in defined)


def _twice(what: str, names: Iterable[str], path: str) -> Iterator[Refusal]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield Refusal(
                Reason.DUPLICATE_NAME, f"{what} named {name!r} stands twice in `{path}`", path=path, observed=name
            )
        seen.add(name)
