"""What a stage calls and asks, gathered: its models and their keys, its question rows, functions and money."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proctor.admission.facts import CallingFacts, KeyFacts, Request
from proctor.admission.models import arm_refusals, resolve_models
from proctor.admission.money import key_facts
from proctor.agents.base import Abilities
from proctor.core.dotenv import pick_keys, with_dotenv
from proctor.core.refusal import Refusal
from proctor.grading.scorers.score import check_row
from proctor.study import LoadedStudy, ModelDesign
from proctor.study.actors import FunctionDesign, ToolDesign
from proctor.study.design import QuestionsDesign
from proctor.study.names import stage_arms, stage_models
from proctor.study.problems import unknown_name
from proctor.study.schema import Stage, StudyFile
from proctor.tasks.functions import find_function
from proctor.tasks.questions import QuestionSet, read_questions


@dataclass(frozen=True)
class Calling:
    """What was found; `keys` holds what the variables of the models' keys hold, for the run alone."""

    models: Mapping[str, ModelDesign] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    key_facts: tuple[KeyFacts, ...] = ()
    rows: QuestionSet | None = None
    questions: QuestionsDesign | None = None
    tools: tuple[ToolDesign, ...] = ()
    functions: Mapping[str, str] = field(default_factory=dict)
    model_refusals: tuple[Refusal, ...] = ()
    row_refusals: tuple[Refusal, ...] = ()
    function_refusals: tuple[Refusal, ...] = ()


def gather_calling(loaded: LoadedStudy, file: StudyFile, stage: Stage, request: Request) -> Calling:
    """Read all of it, once."""
    names = stage_models(file, stage)
    models, model_refusals = resolve_models({name: file.models[name] for name in names}, request.priced_on)
    model_refusals += arm_refusals(models, {name: file.arms[name] for name in stage_arms(file, stage)})
    wanted = [name for name in request.models or names if name in models]
    called = [models[name] for name in wanted]
    variables = named_variables(called)
    keys: dict[str, str] = {}
    if variables:
        try:
            keys, _ = pick_keys(variables, with_dotenv(os.environ, loaded.folder))
        except Refusal as refusal:
            model_refusals.append(refusal)
    functions = _Functions(loaded.folder)
    tools = tuple(
        ToolDesign(name, found, tool.pool)
        for name, tool in file.tools.items()
        if tool.python is not None and (found := functions.design(tool.python, f"tools.{name}.python")) is not None
    )
    rows, questions, row_refusals = _rows(loaded, file, functions)
    unknown = sorted((rows.tools if rows is not None else set()) - file.tools.keys())
    functions.refusals += [unknown_name("tool", name, file.tools, "tasks.questions") for name in unknown]
    return Calling(
        models=models,
        keys=keys,
        key_facts=key_facts(called, keys),
        rows=rows,
        questions=questions,
        tools=tools,
        functions=_scorers(rows, questions),
        model_refusals=tuple(model_refusals),
        row_refusals=tuple(row_refusals),
        function_refusals=tuple(functions.refusals),
    )


def calling_facts(
    file: StudyFile, stage: Stage, rows: int, models: Mapping[str, ModelDesign], able: Abilities
) -> CallingFacts:
    """What the stage asks of its agent."""
    apis = {name: model.api for name, model in models.items()}
    priced = {name: frozenset(row.bucket for row in model.price.rows) for name, model in models.items()}
    return CallingFacts(file.agent.name, able, stage_models(file, stage), rows, apis, priced)


class _Functions:
    """Python functions by name, known by the digest of their module's file, which is read and never imported."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self.refusals: list[Refusal] = []

    def design(self, name: str, path: str) -> FunctionDesign | None:
        """The function as the design holds it."""
        try:
            return FunctionDesign(name, find_function(name, self._base, path).sha256)
        except Refusal as refusal:
            self.refusals.append(refusal)
        return None


def _rows(
    loaded: LoadedStudy, file: StudyFile, functions: _Functions
) -> tuple[QuestionSet | None, QuestionsDesign | None, list[Refusal]]:
    if file.tasks.questions is None:
        return None, None, []
    grading = file.grading
    rows, refusals = read_questions(
        loaded.folder / file.tasks.questions,
        scorer=grading.scorer,
        scorer_function=grading.scorer_function,
        check=check_row,
        base=loaded.folder,
    )
    if rows is None:
        return None, None, refusals
    function = None
    if grading.scorer_function is not None:
        function = functions.design(grading.scorer_function, "grading.scorer_function")
    design = QuestionsDesign(file.tasks.questions, rows.sha256, grading.scorer, grading.scorer_timeout, function)
    return rows, design, refusals


def _scorers(rows: QuestionSet | None, questions: QuestionsDesign | None) -> dict[str, str]:
    own = dict(rows.functions) if rows is not None else {}
    if questions is not None and questions.scorer_function is not None:
        own[questions.scorer_function.name] = questions.scorer_function.sha256
    return own


def named_variables(models: Iterable[ModelDesign]) -> frozenset[str]:
    """Variables that hold keys: no task is handed what they hold."""
    return frozenset(model.api_key_env for model in models if model.api_key_env is not None)
