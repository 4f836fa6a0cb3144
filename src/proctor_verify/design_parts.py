"""Parts of a design, models, money, tools, question rows and anchors: their shapes, and what is read of them.

Unlike the rest of a design they are taken apart to the last field: money is added up by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from proctor_verify.errors import Unreadable
from proctor_verify.prices import Prices, pico
from proctor_verify.shapes import (
    COUNT,
    FLAG,
    FROM_ONE,
    MONEY,
    NUMBER,
    SHA256,
    TEXT,
    Shape,
    among,
    list_of,
    one_of,
    or_null,
    record,
    where,
    with_optional,
)
from proctor_verify.vocabulary import ANCHORS, BUCKETS, MUTATIONS, SCORERS

PRACTICE = "practice"
QUESTION = "question"
MAX_ROWS = 256
MAX_AMOUNT = 10**27

_TRUE = Shape("true", lambda v: v is True)
# Entries add such amounts up, and have a digit more for it.
_AMOUNT = where(MONEY, "at most 10^15 dollars", lambda v: pico(v) <= MAX_AMOUNT)
_FUNCTION = record(name=TEXT, sha256=SHA256)
_ROWS = where(
    list_of(record(bucket=among("a token bucket", BUCKETS), above_inputs=COUNT, usd_per_million=_AMOUNT)),
    f"at most {MAX_ROWS}, one for each bucket and start, and one from 0 for each bucket",
    lambda rows: len(rows) <= MAX_ROWS and _are_whole([(row["bucket"], row["above_inputs"]) for row in rows]),
)
_PRICE = with_optional(record(source=TEXT, rows=_ROWS), per_request=_AMOUNT)
_MODEL = with_optional(
    record(
        name=TEXT,
        provider=TEXT,
        model=TEXT,
        api=one_of("chat", "responses", "anthropic", "gemini", "practice"),
        base_url=or_null(TEXT),
        effort=or_null(TEXT),
        max_output_tokens=FROM_ONE,
        request_timeout_sec=FROM_ONE,
        api_key_env=or_null(TEXT),
        rpm=or_null(FROM_ONE),
        tpm=or_null(FROM_ONE),
        price=_PRICE,
    ),
    synthetic=_TRUE,
    context_window=FROM_ONE,
    mutations=list_of(among("a mutation", MUTATIONS)),
)
_TOOL = record(name=TEXT, python=_FUNCTION, pool=FROM_ONE)
_QUESTIONS = with_optional(
    record(path=TEXT, sha256=SHA256, scorer=among("a scorer", SCORERS), scorer_timeout_sec=FROM_ONE),
    scorer_function=_FUNCTION,
)
_BUDGET = with_optional(
    record(
        spent_before=_AMOUNT,
        allocation=_AMOUNT,
        cap=_AMOUNT,
        margin=_AMOUNT,
        cap_quantum=_AMOUNT,
        reserve_quantum=_AMOUNT,
        reserve_factor=where(NUMBER, "above 0", lambda v: v > 0),
        models=list_of(record(name=TEXT, expected=_AMOUNT, cap=_AMOUNT, reserve=_AMOUNT, blocks=COUNT)),
    ),
    prior_spend=record(amount=_AMOUNT, source=TEXT, sha256=SHA256),
)
_ANCHOR = where(
    with_optional(record(every_sec=FROM_ONE, required=FLAG), git=TEXT, drop=TEXT),
    "with git, drop or both",
    lambda v: "git" in v or "drop" in v,
)
SELECTION = with_optional(record(), limit=FROM_ONE, arms=list_of(TEXT), models=list_of(TEXT))
_ARM_MODEL = record(effort=or_null(TEXT), max_output_tokens=or_null(FROM_ONE))


@dataclass(frozen=True)
class Model:
    """One model: what it costs, how much it may answer, whether it is made up, and what may be changed of requests."""

    provider: str
    api: str
    prices: Prices
    max_output: int
    synthetic: bool
    mutations: frozenset[str]


@dataclass(frozen=True)
class Share:
    """The money of one model, in picodollars; `blocks` are those of the whole stage."""

    expected: int
    cap: int
    reserve: int
    blocks: int


@dataclass(frozen=True)
class Budget:
    """The money of a stage, in picodollars. `factor` is the exact value of the decimal in the design."""

    spent_before: int
    allocation: int
    cap: int
    margin: int
    cap_quantum: int
    reserve_quantum: int
    factor: Fraction
    shares: dict[str, Share]
    prior: int

    @property
    def ceiling(self) -> int:
        """The hard ceiling."""
        return self.cap + self.margin

    @cached_property
    def reserves(self) -> frozenset[int]:
        """What the blocks of any of its models may set aside."""
        return frozenset(share.reserve for share in self.shares.values())


@dataclass(frozen=True)
class Anchors:
    """Where checkpoints are pushed: what the design calls the place, by the kind of anchor."""

    locations: dict[str, str]
    required: bool


@dataclass(frozen=True)
class Parts:
    """What a design says of models, money, rows and anchors.

    `max_output` has the arms that bound the output otherwise than the models do; `rows` has 1 for each task that is a
    question row, else 0.
    """

    models: dict[str, Model]
    max_output: dict[str, int]
    budget: Budget | None
    rows: bytes
    anchors: Anchors

    @property
    def synthetic(self) -> tuple[str, ...]:
        """Names of the models that are made up, in the design's order."""
        return tuple(name for name, model in self.models.items() if model.synthetic)


def read_parts(design: dict[str, Any]) -> Parts:
    """The parts of a design whose names are known to be there, and unique.

    Raises:
        Unreadable: one of them has another form.
    """
    for model in design["models"]:
        _require(model, _MODEL, f"model {model['name']}")
    tools = _listed(design, "tools", _TOOL)
    names = {tool["name"] for tool in tools}
    if len(names) != len(tools):
        raise Unreadable("two of tools have one name")
    for arm in design["arms"]:
        chosen = arm.get("tools")
        if "tools" in arm and not (list_of(TEXT).holds(chosen) and len(set(chosen)) == len(chosen)):
            raise Unreadable(f"tools of arm {arm['name']} are no list of names")
        if chosen and not names.issuperset(chosen):
            raise Unreadable(f"arm {arm['name']} has tools that the design does not have")
        if "model" in arm:
            _require(arm["model"], _ARM_MODEL, f"model of arm {arm['name']}")
    return Parts(
        models={model["name"]: _model(model) for model in design["models"]},
        max_output={arm["name"]: most for arm in design["arms"] if (most := _max_output(arm)) is not None},
        budget=_budget(design["budget"]) if "budget" in design else None,
        rows=_rows(design),
        anchors=_anchors(design),
    )


def _model(model: dict[str, Any]) -> Model:
    return Model(
        provider=model["provider"],
        api=model["api"],
        prices=Prices(model["price"]),
        max_output=model["max_output_tokens"],
        synthetic="synthetic" in model,
        mutations=frozenset(model.get("mutations", ())),
    )


def _max_output(arm: dict[str, Any]) -> int | None:
    most: int | None = arm["model"]["max_output_tokens"] if "model" in arm else None
    return most


def _budget(value: Any) -> Budget:
    _require(value, _BUDGET, "budget")
    shares = {
        share["name"]: Share(pico(share["expected"]), pico(share["cap"]), pico(share["reserve"]), share["blocks"])
        for share in value["models"]
    }
    if len(shares) != len(value["models"]):
        raise Unreadable("two of the budget's models have one name")
    return Budget(
        **{
            name: pico(value[name])
            for name in ("spent_before", "allocation", "cap", "margin", "cap_quantum", "reserve_quantum")
        },
        # of the decimal as it stands there: 0.1 is a tenth
        factor=Fraction(repr(value["reserve_factor"])),
        shares=shares,
        prior=pico(value["prior_spend"]["amount"]) if "prior_spend" in value else 0,
    )


def _anchors(design: dict[str, Any]) -> Anchors:
    if "anchor" not in design:
        return Anchors({}, required=False)
    value = design["anchor"]
    _require(value, _ANCHOR, "anchor")
    return Anchors({kind: value[kind] for kind in sorted(ANCHORS) if kind in value}, value["required"])


def _rows(design: dict[str, Any]) -> bytes:
    path = None
    if "questions" in design:
        _require(design["questions"], _QUESTIONS, "questions")
        path = design["questions"]["path"]
    rows = bytearray()
    for task in design["tasks"]:
        if type(task.get("format")) is not str or type(task.get("path")) is not str:
            raise Unreadable(f"task {task['name']} has no format or no path")
        rows.append(task["format"] == QUESTION)
        if rows[-1] and task["path"] != path:
            raise Unreadable(f"row {task['name']} is of no question set that the design has")
    return bytes(rows)


def read_selection(design: dict[str, Any]) -> dict[str, Any] | None:
    """What was chosen of the stage, None where all of it is there. Raises Unreadable."""
    if "selection" not in design:
        return None
    selection: dict[str, Any] = design["selection"]
    _require(selection, SELECTION, "selection")
    return selection


def _listed(design: dict[str, Any], key: str, each: Shape) -> list[Any]:
    value = design.get(key, [])
    _require(value, list_of(each), key)
    found: list[Any] = value
    return found


def _require(value: Any, shape: Shape, what: str) -> None:
    if not shape.holds(value):
        raise Unreadable(f"{what} is not {shape.words}")


def _are_whole(rows: list[tuple[str, int]]) -> bool:
    return len(set(rows)) == len(rows) and {bucket for bucket, _ in rows} == {b for b, above in rows if above == 0}
