"""Both programs against the frozen vectors of designs, costs, grades and runs, which other implementers go by too."""

from __future__ import annotations

import base64
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from guards_shown import CHECK_OF
from judges import JUDGES, Recorded
from primitives import sha256

from proctor.admission.facts import Facts, MoneyFacts, Request
from proctor.admission.money_guards import MONEY
from proctor.budget.rules import Frame
from proctor.core.canonical import encode
from proctor.core.money import ZERO, Usd
from proctor.core.prices import NoPrice, PriceRow, Prices
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket, Usage
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.scan import scan
from proctor.grading.files import Absent, Content, VerdictFiles
from proctor.grading.grade import Assurance, VerifierOutcome, grade
from proctor.grading.solved import DuplicateTests, parse_solved
from proctor.grading.verdicts import read_verdicts
from proctor.study import Design, plan
from proctor.study.design import read_design
from proctor_verify import Status, verify
from proctor_verify import verdicts as theirs
from proctor_verify.canonical import encode as their_encode
from proctor_verify.designs_alone import judged
from proctor_verify.prices import Prices as TheirPrices
from proctor_verify.prices import usd

Case = dict[str, Any]
VECTORS = Path(__file__).parents[2] / "vectors"


def _cases(name: str) -> list[Case]:
    found: list[Case] = json.loads((VECTORS / f"{name}.json").read_bytes())
    return found


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


@pytest.mark.parametrize("case", _cases("designs"), ids=lambda case: case["name"])
def test_designs(case: Case, tmp_path: Path) -> None:
    data = encode(case["design"])
    assert data == their_encode(case["design"])
    assert sha256(data) == case["sha256"]
    found = judged(data)
    assert found.report.failed() == case["failed"]
    assert (found.trials, found.blocks, found.ceiling) == (case["trials"], case["blocks"], case["ceiling"])
    if "design.plan" in case["failed"]:
        return
    (tmp_path / "design.json").write_bytes(data)
    design = read_design(tmp_path / "design.json")
    assert design.sha256 == case["sha256"]
    assert plan(design).planned == {"trials": case["trials"], "blocks": case["blocks"]}
    shown = [check for check in case["failed"] if check in CHECK_OF.values()]
    # how many blocks are planned is no word of the study's: freezing counts them
    if design.budget is None or {share.blocks for share in design.budget.models} <= {case["blocks"] // _count(design)}:
        facts = Facts(Request("run", Path("runs/x")), money=_money(design))
        said = dict.fromkeys(CHECK_OF[str(refusal.guard)] for refusal in MONEY.run(facts))
        assert list(said) == shown


def _count(design: Design) -> int:
    return max(1, len(design.models))


def _money(design: Design) -> MoneyFacts:
    """What a study says that such a design is frozen from."""
    budget = design.budget
    blocks = len(design.tasks) * design.stage.epochs
    names = tuple(model.name for model in design.models)
    if budget is None:
        return MoneyFacts("main", names, design.models, None, {}, {}, {}, blocks, 1, 1)
    amounts = [
        Usd.parse(getattr(budget, name))
        for name in ("spent_before", "allocation", "cap", "margin", "cap_quantum", "reserve_quantum")
    ]
    tables = [
        {share.name: Usd.parse(getattr(share, name)) for share in budget.models}
        for name in ("expected", "cap", "reserve")
    ]
    prior = Usd.parse(budget.prior_spend.amount) if budget.prior_spend is not None else ZERO
    frame = Frame(*amounts, Fraction(str(budget.reserve_factor)))
    return MoneyFacts("main", names, design.models, frame, *tables, blocks, 1, 1, prior)


@pytest.mark.parametrize("case", _cases("costs"), ids=lambda case: case["name"])
def test_costs(case: Case) -> None:
    price = case["price"]
    rows = tuple(PriceRow(row["bucket"], row["above_inputs"], row["usd_per_million"]) for row in price["rows"])
    ours, other = Prices(price["source"], rows, price.get("per_request")), TheirPrices(price)
    for asked in case["costs"]:
        cost = other.cost(asked["usage"])
        assert asked["cost"] == (None if cost is None else usd(cost))
        usage = Usage({Bucket(bucket): count for bucket, count in asked["usage"].items()})
        if asked["cost"] is not None:
            assert str(ours.cost(usage)) == asked["cost"]
        else:
            with pytest.raises(NoPrice):
                ours.cost(usage)
    for asked in case["worst_cases"]:
        bounds = asked["input_bound"], asked["output_bound"]
        worst = other.worst_case(*bounds)
        assert asked["held"] == (None if worst is None else usd(worst))
        if asked["held"] is not None:
            assert str(ours.worst_case(*bounds)) == asked["held"]
        else:
            with pytest.raises(NoPrice):
                ours.worst_case(*bounds)


def test_grades() -> None:
    for case in _cases("grades"):
        said = {name: case[name] for name in ("grade", "reason", "reward", "rewards")}
        files = {f"verifier/{name}": _bytes(case[name]) for name in ("reward.txt", "reward.json")}
        named = {path: data for path, data in files.items() if data is not None}
        made = grade(
            read_verdicts(VerdictFiles(*(Absent() if data is None else Content(data) for data in files.values()))),
            VerifierOutcome(**case["ended"]),
            rule=parse_solved(case["rule"]),
            duplicate_tests=DuplicateTests.REFUSE,
            assurance=Assurance.ISOLATED,
        ).as_record()
        assert said == {"grade": made["state"], **{name: made[name] for name in ("reason", "reward", "rewards")}}
        rewards = theirs.read_rewards(named.keys(), lambda path, most, named=named: named[path][:most])
        stands = theirs.standing(theirs.Rule.read(case["rule"]), rewards, case["ended"], named.keys())
        assert stands.allowed == {(case["grade"], case["reason"])}
        assert (stands.reward, dict(rewards.numbers)) == (case["reward"], case["rewards"])


@pytest.mark.parametrize("case", _cases("runs"), ids=lambda case: case["name"])
def test_runs(case: Case, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for path, content in case["files"].items():
        file = run / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(content, validate=True))
    report = verify(run, case["key"])
    doubts = [result.check for result in report.results if result.status is Status.CANNOT_TELL]
    assert (report.failed(), report.exit_status) == (case["failed"], case["exit_status"])
    assert doubts == case["cannot_tell"] or case["failed"] in (["journal.lines"], ["journal.kinds"])
    try:
        scan(RunFolder(run))
        ours = {check for check, judge in JUDGES.items() if not judge(Recorded(run))}
    except Refusal:
        # damage to the runner, who goes on with nothing of it
        assert case["failed"] or case["cannot_tell"]
    else:
        assert ours == {*case["failed"]} & JUDGES.keys()
