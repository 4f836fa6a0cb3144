"""Runner and verifier hold the same designs to the same rules, and call what is broken by the same names."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from guards_shown import BY_MAKING, CHECK_OF, IN_THE_PLAN, NOT_FROZEN, ONLY_ADMISSION
from hypothesis import HealthCheck, given, settings
from stages import Case, cases

from proctor.admission.facts import Facts, Request
from proctor.admission.guards import REGISTRY
from proctor.admission.models import resolve_models
from proctor.admission.money import money_facts
from proctor.admission.money_guards import MONEY
from proctor.core.canonical import encode
from proctor.study import FrozenTask, Parts, freeze, plan
from proctor.study.design import Design, ModelDesign, QuestionsDesign
from proctor.study.load import LoadedStudy, check_tables
from proctor_verify.checks import DESIGN_RULES
from proctor_verify.designs_alone import DesignReport, judged

QUESTIONS = QuestionsDesign("units.jsonl", "0" * 64, "exact", 30)
REQUEST = Request("run", Path("runs/x"))
ALL = bool(os.environ.get("PROCTOR_DIFFERENTIAL"))
EXAMPLES = 10_000 if ALL else 300


def test_designs_agree(folder: Path) -> None:
    said: Counter[str] = Counter()

    # the sample is the same every time, so that what it reaches is known
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=not ALL, suppress_health_check=list(HealthCheck))
    @given(cases())
    def agree(case: Case) -> None:
        loaded = check_tables(case.tables, folder, None, "0" * 64)
        assert loaded.refusals == ()
        ours, design = _runner(loaded, case)
        value = _by_hand(design, case) if case.by_hand else design.to_json()
        theirs = judged(encode(value))
        assert theirs.report.failed() == ours
        assert theirs.exit_status == bool(ours)
        said.update(ours or ["nothing"])
        if not case.by_hand:
            _same_design(design, theirs)

    agree()
    assert said.keys() == {"nothing", *CHECK_OF.values()}, said
    print(f"designs: {dict(said)}")


def _runner(loaded: LoadedStudy, case: Case) -> tuple[list[str], Design]:
    """The ids of what the guards refuse, as the checks are called, and the design that is frozen."""
    assert loaded.file is not None
    found, refusals = resolve_models(loaded.file.models, "2026-01-01")
    assert refusals == []
    tasks = [FrozenTask(f"q{number}", "0" * 64, "question", "units.jsonl") for number in range(case.tasks)]
    design, refusals = freeze(loaded, "main", Parts(tasks, found, (), QUESTIONS), case.selection)
    assert design is not None, refusals
    money = money_facts(loaded.file, "main", _seen(found.values(), case), case.tasks)
    guards = [refusal.guard for refusal in MONEY.run(Facts(REQUEST, money=money))]
    return [CHECK_OF[str(guard)] for guard in dict.fromkeys(guards)], design


def _seen(models: Collection[ModelDesign], case: Case) -> list[ModelDesign]:
    """What prices stand in the design: where there is no budget, what a selection leaves out is in no part of it."""
    chosen = case.selection.models
    if "budget" in case.tables["stages"]["main"] or not chosen:
        return list(models)
    return [model for model in models if model.name in chosen]


def _by_hand(design: Design, case: Case) -> dict[str, Any]:
    """The design with a share for each model that all amounts are given of: frozen, they would be zeros."""
    stage, value = case.tables["stages"]["main"], design.to_json()
    given_of = [stage[key] for key in ("expected_costs", "caps", "reserves")]
    shares = value["budget"]["models"]
    value["budget"]["models"] = [share for share in shares if all(share["name"] in table for table in given_of)]
    return value


def _same_design(design: Design, theirs: DesignReport) -> None:
    planned = plan(design).planned
    assert (theirs.trials, theirs.blocks) == (planned["trials"], planned["blocks"])
    assert theirs.sha256 == design.sha256
    assert theirs.report.synthetic == design.synthetic


def test_every_guard_and_every_rule_has_its_row() -> None:
    rows = [*CHECK_OF, *IN_THE_PLAN, *NOT_FROZEN]
    assert len(rows) == len(set(rows)) and ONLY_ADMISSION.keys() <= CHECK_OF.keys()
    assert {guard.id for guard in REGISTRY} == set(rows)
    assert [*BY_MAKING, *CHECK_OF.values()] == [rule.id for rule in DESIGN_RULES]
