"""Writes the vectors of designs, costs, grades and runs. They are frozen: who changes the format makes new ones.

`python tests/vectors/make.py NAME…` writes those files alone. What is expected is written by hand where a case is, or
is the runner's answer; `tests/verify/differential/test_vectors.py` holds both programs to all of it.
"""

from __future__ import annotations

import base64
import copy
import json
import random
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), *(str(HERE.parent / each) for each in ("verify", "vectors"))]

from primitives import money, sha256  # noqa: E402
from vector_runs import BUDGET, ROW, RUNS, TASK, frozen  # noqa: E402

from proctor.core.canonical import encode  # noqa: E402
from proctor.core.prices import NoPrice, PriceRow, Prices  # noqa: E402
from proctor.core.usage import Bucket, Usage  # noqa: E402
from proctor.grading.files import Absent, Content, VerdictFiles  # noqa: E402
from proctor.grading.grade import Assurance, VerifierOutcome, grade  # noqa: E402
from proctor.grading.solved import DuplicateTests, parse_solved  # noqa: E402
from proctor.grading.verdicts import read_verdicts  # noqa: E402

Body = dict[str, Any]


def designs() -> list[Body]:
    """Designs, each with what it is and which checks it fails."""
    found = []
    for name, failed, alter in DESIGNS:
        design = frozen(BUDGET, [ROW, TASK])
        _two_models(design)
        alter(design)
        data = encode(design)
        counts = {"trials": None, "blocks": None, "ceiling": None}
        if "design.plan" not in failed:
            blocks = len(design["tasks"]) * max(1, len(design["models"])) * design["stage"]["epochs"]
            counts = {"trials": blocks * len(design["arms"]), "blocks": blocks, "ceiling": _ceiling(design)}
        said = {"name": name, "design": design, "sha256": sha256(data), **counts, "failed": list(failed)}
        found.append(said)
    return found


def _two_models(design: Body) -> None:
    """Luna and moon, expected to cost 3 to 1; caps and reserves exact."""
    moon = copy.deepcopy(design["models"][0])
    design["models"].append({**moon, "name": "moon"})
    blocks = len(design["tasks"])
    design["budget"] |= {
        "spent_before": "1.000000000000",
        "allocation": "144.000000000000",
        "cap": "150.000000000000",
        "margin": "25.000000000000",
        "cap_quantum": "0.010000000000",
        "reserve_quantum": "0.001000000000",
        "reserve_factor": 3,
        "models": [
            {"name": "luna", "expected": "36.000000000000", "cap": "108.000000000000", "blocks": blocks},
            {"name": "moon", "expected": "12.000000000000", "cap": "36.000000000000", "blocks": blocks},
        ],
        "prior_spend": {"amount": "1.000000000000", "source": "a bill", "sha256": "0" * 64},
    }
    for share, reserve in zip(design["budget"]["models"], ("54.000000000000", "18.000000000000"), strict=True):
        share["reserve"] = reserve


def _ceiling(design: Body) -> str | None:
    budget = design.get("budget")
    return (
        None if budget is None else money(int(budget["cap"].replace(".", "")) + int(budget["margin"].replace(".", "")))
    )


Alter = Callable[[Body], object]


def _budget(**amounts: Any) -> Alter:
    return lambda design: design["budget"].update(amounts)


def _share(at: int, **amounts: Any) -> Alter:
    return lambda design: design["budget"]["models"][at].update(amounts)


def _all(*alters: Alter) -> Alter:
    return lambda design: [alter(design) for alter in alters]


def _free(design: Body) -> None:
    for model in design["models"]:
        for row in model["price"]["rows"]:
            row["usd_per_million"] = money(0)


def _practice(at: int, **more: Any) -> Alter:
    return lambda design: design["models"][at].update({"provider": "practice", "api": "practice", **more})


def _anchor(**anchor: Any) -> Alter:
    return lambda design: design.update(anchor={"every_sec": 600, "required": False, **anchor})


def _third(design: Body) -> None:
    """A cap and a reserve that have no decimal text: of a third."""
    _budget(allocation="1.000000000000")(design)
    _share(0, expected="2.000000000000", cap="0.666666666667")(design)
    _share(1, expected="1.000000000000", cap="0.333333333333")(design)
    for share, reserve in zip(design["budget"]["models"], ("0.200000000000", "0.100000000000"), strict=True):
        share["reserve"] = reserve
    _budget(reserve_factor=0.2, cap_quantum="0.000000000001")(design)


EXACT = _budget(cap_quantum="0.000000000000", reserve_quantum="0.000000000000")
DESIGNS: tuple[tuple[str, tuple[str, ...], Alter], ...] = (
    ("sound", (), lambda d: None),
    ("no models and no budget", (), lambda d: (d.update(models=[]), d.pop("budget"))),
    ("models that cost nothing, and no budget", (), lambda d: (_free(d), d.pop("budget"))),
    ("no budget", ("budget.there",), lambda d: d.pop("budget")),
    (
        "no budget, and a request that costs",
        ("budget.there",),
        lambda d: (_free(d), d["models"][1]["price"].update(per_request=money(1)), d.pop("budget")),
    ),
    ("a share is missing", ("budget.whole",), lambda d: d["budget"]["models"].pop()),
    (
        "a share too many",
        ("budget.whole",),
        lambda d: d["budget"]["models"].append({**d["budget"]["models"][0], "name": "sun"}),
    ),
    ("a block too few", ("budget.whole",), _share(1, blocks=1)),
    ("a block too many", ("budget.whole",), _share(1, blocks=3)),
    (
        "shares and blocks of the whole stage, under a selection",
        (),
        lambda d: (d.update(selection={"limit": 1, "models": ["luna"]}), d["tasks"].pop(), d["models"].pop()),
    ),
    (
        "a share is missing under a selection",
        ("budget.whole",),
        lambda d: (d.update(selection={"limit": 2}), d["budget"]["models"].pop()),
    ),
    (
        "nothing of a budget that is not whole is compared",
        ("budget.whole",),
        _all(lambda d: d["budget"]["models"].pop(), _share(0, cap=money(1), reserve=money(2))),
    ),
    (
        "no cost is expected",
        ("budget.expected-positive",),
        _all(*(_share(at, expected=money(0), cap=money(0), reserve=money(0)) for at in (0, 1))),
    ),
    (
        "no cost is expected, and reserves above caps",
        ("budget.expected-positive", "budget.reserves-in-caps"),
        _all(*(_share(at, expected=money(0), cap=money(0), reserve="0.000500000000") for at in (0, 1))),
    ),
    ("a cap half a quantum above", (), _share(0, cap="108.005000000000")),
    ("a cap a picodollar more", ("budget.caps-proportional",), _share(0, cap="108.005000000001")),
    ("a cap half a quantum below", (), _share(1, cap="35.995000000000")),
    ("a cap a picodollar less", ("budget.caps-proportional",), _share(1, cap="35.994999999999")),
    ("exact, with quanta of zero", (), EXACT),
    (
        "a cap a picodollar off, with a quantum of zero",
        ("budget.caps-proportional",),
        _all(EXACT, _share(0, cap="108.000000000001")),
    ),
    ("a third, within half a picodollar", (), _third),
    ("a third, with a quantum of zero", ("budget.caps-proportional",), _all(_third, _budget(cap_quantum=money(0)))),
    ("a third, a picodollar off", ("budget.caps-proportional",), _all(_third, _share(1, cap="0.333333333334"))),
    ("a reserve half a quantum above", (), _share(1, reserve="18.000500000000")),
    ("a reserve a picodollar more", ("budget.reserves-proportional",), _share(1, reserve="18.000500000001")),
    ("a reserve half a quantum below", (), _share(0, reserve="53.999500000000")),
    ("a reserve a picodollar less", ("budget.reserves-proportional",), _share(0, reserve="53.999499999999")),
    (
        "a reserve a picodollar off, with a quantum of zero",
        ("budget.reserves-proportional",),
        _all(EXACT, _share(0, reserve="53.999999999999")),
    ),
    (
        "a factor of a tenth is a tenth",
        (),
        _all(
            EXACT, _budget(reserve_factor=0.1), _share(0, reserve="1.800000000000"), _share(1, reserve="0.600000000000")
        ),
    ),
    (
        "a factor of a ten-millionth",
        (),
        _all(
            EXACT,
            _budget(reserve_factor=1e-7),
            _share(0, reserve="0.000001800000"),
            _share(1, reserve="0.000000600000"),
        ),
    ),
    (
        "a factor a little above",
        ("budget.reserves-proportional",),
        _all(EXACT, _budget(reserve_factor=3.0000000000001)),
    ),
    ("an allocation of all of the cap", (), _budget(cap="144.000000000000")),
    ("an allocation a picodollar above the cap", ("budget.allocation-in-cap",), _budget(cap="143.999999999999")),
    (
        "a reserve of all of a cap",
        (),
        _all(_budget(reserve_factor=6), _share(0, reserve="108.000000000000"), _share(1, reserve="36.000000000000")),
    ),
    (
        "a reserve a picodollar above a cap",
        ("budget.reserves-in-caps",),
        _all(_budget(reserve_factor=6), _share(0, reserve="108.000000000001"), _share(1, reserve="36.000000000000")),
    ),
    ("prior spend that is counted", (), _budget(spent_before="1.000000000000")),
    (
        "prior spend a picodollar of which is not counted",
        ("budget.prior-spend-counted",),
        _budget(spent_before="0.999999999999"),
    ),
    ("nothing was spent before", (), lambda d: (d["budget"].pop("prior_spend"), _budget(spent_before=money(0))(d))),
    ("a picodollar is left", (), _budget(spent_before="174.999999999999")),
    ("all is spent before", ("budget.ceiling-free",), _budget(spent_before="175.000000000000")),
    (
        "all is spent before, and there are no models",
        (),
        lambda d: (d.update(models=[]), _budget(spent_before="175.000000000000", models=[])(d)),
    ),
    (
        "amounts of 10^15 dollars",
        (),
        _budget(cap="1000000000000000.000000000000", margin="1000000000000000.000000000000"),
    ),
    ("two rules at once", ("budget.allocation-in-cap", "budget.ceiling-free"), _budget(cap=money(0), margin=money(0))),
    ("a made-up model that is marked", (), _practice(1, synthetic=True)),
    ("a made-up model without its mark", ("synthetic.marked",), _practice(1)),
    ("a mark on another model", ("synthetic.marked",), lambda d: d["models"][0].update(synthetic=True)),
    ("a made-up model of another format", ("synthetic.marked",), _practice(1, api="chat", synthetic=True)),
    ("an amount above 10^15 dollars", ("design.plan",), _budget(cap="1000000000000000.000000000001")),
    ("an amount of 11 decimals", ("design.plan",), _budget(margin="25.00000000000")),
    ("an amount that is a number", ("design.plan",), _budget(margin=25)),
    ("an amount below zero", ("design.plan",), _budget(margin="-0.000000000001")),
    ("a factor of zero", ("design.plan",), _budget(reserve_factor=0)),
    ("two shares of one name", ("design.plan",), lambda d: d["budget"]["models"].append(d["budget"]["models"][0])),
    ("two models of one name", ("design.plan",), lambda d: d["models"].append(d["models"][0])),
    (
        "two prices of one tier",
        ("design.plan",),
        lambda d: d["models"][0]["price"]["rows"].append(d["models"][0]["price"]["rows"][0]),
    ),
    (
        "a bucket without a price from 0",
        ("design.plan",),
        lambda d: d["models"][0]["price"]["rows"][0].update(above_inputs=1),
    ),
    (
        "a bucket that there is not",
        ("design.plan",),
        lambda d: d["models"][0]["price"]["rows"][0].update(bucket="magic"),
    ),
    ("tasks that are not sorted", ("design.plan",), lambda d: d["tasks"].reverse()),
    ("two tasks of one name", ("design.plan",), lambda d: d["tasks"].insert(0, d["tasks"][0])),
    ("no tasks", ("design.plan",), lambda d: d.update(tasks=[])),
    ("no arms", ("design.plan",), lambda d: d.update(arms=[])),
    ("no epochs", ("design.plan",), lambda d: d["stage"].update(epochs=0)),
    ("an arm with a tool that is not there", ("design.plan",), lambda d: d["arms"][0].update(tools=["magic"])),
    ("an anchor", (), _anchor(git="https://models.example/a.git", drop="../drop")),
    ("an anchor in a folder alone", (), _anchor(drop="../drop", required=True)),
    ("an anchor that is nowhere", ("design.plan",), _anchor()),
    ("an anchor that is pushed to all the time", ("design.plan",), _anchor(drop="../drop", every_sec=0)),
    ("an anchor with a field too many", ("design.plan",), _anchor(drop="../drop", branch="main")),
    ("another format", ("design.plan",), lambda d: d.update(format=2)),
)


def costs() -> list[Body]:
    """Prices with what usages cost, and the worst case within bounds; null where there is no price."""
    rng, found = random.Random(5), []
    amounts = ("0.000000000000", "0.000000000001", "0.333333333333", "2.500000000001", "1000000000.000000000000")
    for number in range(40):
        starts = rng.choice(((0,), (0, 50), (0, 50, 100)))
        buckets = rng.choice(
            (
                ("input", "output"),
                ("input", "output", "cache_read", "reasoning"),
                ("input",),
                ("cache_write_1h", "reasoning"),
            )
        )
        rows = [
            PriceRow(bucket, start, rng.choice(amounts))
            for bucket in buckets
            for start in starts
            if not start or rng.random() < 0.8
        ]
        prices = Prices("made up", tuple(rows), rng.choice((None, None, "0.000000000001", "0.010000000000")))
        usages = [
            {
                bucket: rng.choice((1, 2, 49, 50, 51, 100, 101, 10**9))
                for bucket in rng.sample(sorted(Bucket), rng.randrange(1, 4))
            }
            if rng.random() < 0.3
            else {bucket: rng.choice((1, 2, 49, 50, 51, 100, 101, 10**9)) for bucket in buckets}
            for _ in range(3)
        ]
        bounds = [(rng.choice((0, 1, 50, 51, 100, 101, 10**9)), rng.choice((0, 1, 7, 10**6))) for _ in range(3)]
        found.append(
            {
                "name": f"{number}: {len(starts)} tiers of {', '.join(buckets)}",
                "price": _price(prices),
                "costs": [{"usage": usage, "cost": _asked(prices.cost, _usage(usage))} for usage in usages],
                "worst_cases": [
                    {"input_bound": i, "output_bound": o, "held": _asked(prices.worst_case, i, o)} for i, o in bounds
                ],
            }
        )
    return found


def _price(prices: Prices) -> Body:
    rows = [
        {"bucket": r.bucket, "above_inputs": r.above_inputs, "usd_per_million": r.usd_per_million} for r in prices.rows
    ]
    more = {} if prices.per_request is None else {"per_request": prices.per_request}
    return {"source": prices.source, "rows": rows, **more}


def _usage(counts: dict[str, int]) -> Usage:
    return Usage({Bucket(bucket): count for bucket, count in counts.items()})


def _asked(ask: Callable[..., object], *about: object) -> str | None:
    try:
        return str(ask(*about))
    except NoPrice:
        return None


RULES = ("reward >= 0.5", "reward > 0.5", "reward == 1", " acc>=1e0 ", "reward >= 1e-7")
TEXTS = (
    None,
    b"0.5",
    b"5e-1\n",
    b"0.49999999999999994",
    b"0.50000000000000001",
    b"1.0",
    b"1",
    b"-0.0",
    b"1e-7",
    b"x",
    b"nan",
    b"",
    b"9007199254740992",
)
DOCUMENTS = (
    None,
    b'{"acc":1}',
    b'{"acc":0.9999999999999999,"reward":0.5}',
    b'{"reward":1,"acc":true}',
    b"{}",
    b"[1]",
    b'{"reward":1,"reward":1}',
)
ENDS = (
    (0, None, False, None),
    (1, None, False, None),
    (124, None, False, None),
    (137, None, False, None),
    (126, None, False, None),
    (None, 9, False, None),
    (None, 9, True, None),
    (None, None, False, "no such program"),
)


def grades() -> list[Body]:
    """Reward files and an end of a verifier, with the grade under a rule; no test report stands."""
    rng = random.Random(6)
    every = list(product(RULES, TEXTS, DOCUMENTS, ENDS))
    chosen = [(rule, text, None, ENDS[0]) for rule in RULES for text in TEXTS] + rng.sample(every, 60)
    return [_graded(*each) for each in chosen]


def _graded(rule: str, text: bytes | None, document: bytes | None, end: tuple[Any, ...]) -> Body:
    files = VerdictFiles(*(Absent() if data is None else Content(data) for data in (text, document)))
    made = grade(
        read_verdicts(files),
        VerifierOutcome(*end),
        rule=parse_solved(rule),
        duplicate_tests=DuplicateTests.REFUSE,
        assurance=Assurance.ISOLATED,
    )
    said = made.as_record()
    return {
        "rule": rule,
        "reward.txt": _base64(text),
        "reward.json": _base64(document),
        "ended": dict(zip(("exit_code", "signal", "timed_out", "start_error"), end, strict=True)),
        "grade": said["state"],
        "reason": said["reason"],
        "reward": said["reward"],
        "rewards": said["rewards"],
    }


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def runs() -> list[Body]:
    """Whole run folders, each with what is said of it under its key."""
    found = []
    for run in RUNS:
        story = run.story()
        run.alter(story)
        with TemporaryDirectory() as where:
            folder = story.write(Path(where) / "run")
            run.spoil(folder)
            files = {str(each.relative_to(folder)): each for each in sorted(folder.rglob("*")) if each.is_file()}
            found.append(
                {
                    "name": run.name,
                    "key": run.key or story.signer.vkey,
                    "exit_status": int(bool(run.failed or run.cannot_tell)),
                    "failed": list(run.failed),
                    "cannot_tell": list(run.cannot_tell),
                    "files": {path: _base64(each.read_bytes()) for path, each in files.items()},
                }
            )
    return found


MAKERS: dict[str, Callable[[], list[Body]]] = {"designs": designs, "costs": costs, "grades": grades, "runs": runs}


def main() -> None:
    """Write what is named, or all."""
    for name in sys.argv[1:] or MAKERS:
        cases = MAKERS[name]()
        (HERE / f"{name}.json").write_text(json.dumps(cases, indent=1, ensure_ascii=True, sort_keys=True) + "\n")
        print(f"{name}.json: {len(cases)} cases")


if __name__ == "__main__":
    main()
