"""Freezing: one stage of a study and the tasks that were found, made into a design. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from proctor.core.money import ZERO
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.grade import Assurance
from proctor.study.actors import ArmDesign, FunctionDesign, ModelDesign, ToolDesign
from proctor.study.arms import Resolved
from proctor.study.design import (
    FORMAT,
    MAX_DESIGN_BYTES,
    MAX_DESIGN_PARTS,
    MAX_TRIALS,
    AnchorDesign,
    BudgetDesign,
    Design,
    DrawDesign,
    FrozenTask,
    GradingDesign,
    HypothesisDesign,
    ModelMoney,
    PriorSpendDesign,
    QuestionsDesign,
    Selection,
    StageDesign,
    StudyName,
)
from proctor.study.load import LoadedStudy
from proctor.study.names import stage_arms, stage_models
from proctor.study.problems import unknown_name
from proctor.study.schema import Stage, StudyFile

EVERYTHING = Selection()


@dataclass(frozen=True)
class Parts:
    """What was found of the things that a study names.

    `tasks` are those that the study and the stage select, in any order, `models` those of the stage as they are
    called, by name. `agent_code` is the class of an agent that was handed over in Python.
    """

    tasks: Sequence[FrozenTask]
    models: Mapping[str, ModelDesign] = field(default_factory=dict)
    tools: tuple[ToolDesign, ...] = ()
    questions: QuestionsDesign | None = None
    agent_code: FunctionDesign | None = None


def freeze(
    loaded: LoadedStudy, stage: str, parts: Parts, selection: Selection = EVERYTHING
) -> tuple[Design | None, list[Refusal]]:
    """The design of a stage, or everything that stands against one.

    Args:
        loaded: a study; its own refusals stand against freezing.
        stage: the stage's name.
        parts: what the study names, as it was found.
        selection: what the command line narrows; recorded in the design, and the denominators are what is left.

    Refusals: UNKNOWN_NAME, TASK_DUPLICATE, NOTHING_SELECTED, INVALID_VALUE (a limit below 1, too many
    tasks), and the study's own.
    """
    if loaded.file is None or loaded.resolved is None or loaded.refusals:
        return None, list(loaded.refusals)
    table = loaded.file.stages.get(stage)
    if table is None:
        return None, [unknown_name("stage", stage, loaded.file.stages, "--stage")]
    arms, found = _arms(loaded.resolved, stage_arms(loaded.file, table), selection)
    models = stage_models(loaded.file, table)
    found += [
        unknown_name("model of that stage", model, models, "--model")
        for model in selection.models
        if model not in models
    ]
    chosen, problems = _tasks(parts.tasks, selection.limit)
    found += problems
    if found:
        return None, found
    # One selection, one design: the order in which the options were typed changes nothing.
    narrowed = Selection(
        selection.limit,
        tuple(arm.name for arm in arms) if selection.arms else (),
        tuple(model for model in models if model in selection.models),
    )
    named = [model for model in narrowed.models or models if model in parts.models]
    used = replace(parts, tasks=chosen, models={model: parts.models[model] for model in named})
    budget = _budget(loaded.file, table, len(parts.tasks) * table.epochs)
    design = _design(loaded.file, loaded.resolved, stage, table, arms, used, budget, narrowed)
    return (None, [_too_large(design)]) if design.is_too_large else (design, [])


def _too_large(design: Design) -> Refusal:
    return Refusal(
        Reason.INVALID_VALUE,
        "the design is too large: nobody would read it",
        path="tasks",
        observed=f"{len(design.tasks):,} tasks, {design.trials:,} trials",
        required=f"{MAX_DESIGN_BYTES:,} bytes and {MAX_DESIGN_PARTS:,} values in `design.json`, and {MAX_TRIALS:,} "
        "trials, at most",
        remedy="Make several stages of it, lower its epochs, or give fewer tasks with `--limit`.",
    )


def _arms(
    resolved: Resolved, names: Sequence[str], selection: Selection
) -> tuple[tuple[ArmDesign, ...], list[Refusal]]:
    found = [unknown_name("arm of that stage", arm, names, "--arm") for arm in selection.arms if arm not in names]
    wanted = selection.arms or names
    return tuple(resolved.arms[name] for name in names if name in wanted), found


def _tasks(tasks: Sequence[FrozenTask], limit: int | None) -> tuple[tuple[FrozenTask, ...], list[Refusal]]:
    found: list[Refusal] = []
    for name, count in Counter(task.name for task in tasks).items():
        if count > 1:
            paths = sorted(task.path for task in tasks if task.name == name)
            what = f"{count} tasks are named {name!r}"
            found.append(Refusal(Reason.TASK_DUPLICATE, what, path=paths[0], observed=paths))
    if limit is not None and limit < 1:
        found.append(
            Refusal(Reason.INVALID_VALUE, "a limit counts tasks, from 1", path="--limit", observed=limit, required=1)
        )
    elif not tasks:
        found.append(Refusal(Reason.NOTHING_SELECTED, "no task is selected", path="tasks", observed=0, required=1))
    return tuple(sorted(tasks, key=lambda task: task.name)[:limit]), found


def _design(
    file: StudyFile,
    resolved: Resolved,
    name: str,
    stage: Stage,
    arms: tuple[ArmDesign, ...],
    parts: Parts,
    budget: BudgetDesign | None,
    selection: Selection,
) -> Design:
    hypotheses = tuple(
        HypothesisDesign(
            each.id,
            each.endpoint,
            (each.compare[0], each.compare[1]),
            each.test.value,
            each.direction.value,
            each.alpha,
        )
        for each in file.hypothesis
        if each.stage == name
    )
    return Design(
        format=FORMAT,
        study=StudyName(file.study.name, file.study.question),
        stage=StageDesign(name, stage.type, stage.epochs, stage.lanes, stage.deadline, stage.replacements),
        draw=DrawDesign(file.draw.seed),
        agent=replace(resolved.agent, code=parts.agent_code),
        models=tuple(parts.models.values()),
        arms=tuple(
            arm if arm.agent is None else replace(arm, agent=replace(arm.agent, code=parts.agent_code)) for arm in arms
        ),
        tasks=tuple(parts.tasks),
        sandbox=resolved.sandbox,
        grading=GradingDesign(
            file.grading.solved,
            file.grading.duplicate_tests.value,
            file.grading.verifier_timeout,
            None if file.grading.assurance is Assurance.ISOLATED else file.grading.assurance.value,
        ),
        tools=parts.tools,
        questions=parts.questions,
        budget=budget,
        hypotheses=hypotheses,
        baseline=_baseline(arms, hypotheses),
        anchor=None if (own := file.anchor) is None else AnchorDesign(own.every, own.required, own.git, own.drop),
        selection=None if selection == EVERYTHING else selection,
    )


def _budget(file: StudyFile, stage: Stage, blocks: int) -> BudgetDesign | None:
    """The stage's money, of all its models: what a selection leaves out changes no rule of it.

    An amount that is not given is zero here; the guards on money look at the study's own keys.
    """
    table, prior = stage.budget, file.prior_spend
    if table is None:
        return None
    factor = table.reserve_factor
    return BudgetDesign(
        spent_before=str(table.spent_before),
        allocation=str(table.allocation),
        cap=str(table.cap),
        margin=str(table.margin),
        cap_quantum=str(table.cap_quantum),
        reserve_quantum=str(table.reserve_quantum),
        reserve_factor=int(factor) if float(factor).is_integer() else factor,
        models=tuple(
            ModelMoney(
                model,
                str(stage.expected_costs.get(model, ZERO)),
                str(stage.caps.get(model, ZERO)),
                str(stage.reserves.get(model, ZERO)),
                blocks,
            )
            for model in stage_models(file, stage)
        ),
        prior_spend=None if prior is None else PriorSpendDesign(str(prior.amount), prior.source, prior.sha256),
    )


def _baseline(arms: tuple[ArmDesign, ...], hypotheses: tuple[HypothesisDesign, ...]) -> str | None:
    """The arm that others are compared with: the first hypothesis's, else the first that differs in nothing."""
    named = [each.compare[1] for each in hypotheses] + [arm.name for arm in arms if arm.is_control]
    return next((name for name in named if any(arm.name == name for arm in arms)), None)
