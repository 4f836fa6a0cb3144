"""Money and tokens of a run for people, and the words that say that a model is made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.core.money import Usd
from proctor.report.cells import CellResult
from proctor.report.reading import Reading
from proctor.report.spending import Spend
from proctor.report.text import count, dollars, field, plain, safe, table
from proctor.study import Design


def synthetic_text(design: Design) -> str | None:
    """The sentence that stands with every result of a made-up model; None where there is none."""
    if not design.synthetic:
        return None
    names = plain(design.synthetic)
    is_are = "is" if len(design.synthetic) == 1 else "are"
    return f"SYNTHETIC: {names} {is_are} made up by rules. No model answered, and the costs are no money."


def synthetic_lines(design: Design) -> list[str]:
    """The same, as a line of its own."""
    text = synthetic_text(design)
    return [] if text is None else [safe(text)]


def cost_lines(results: Sequence[CellResult], reading: Reading, money: Spend | None) -> list[str]:
    """What each arm with each model cost, what was spent against caps and ceiling, and what must be said of it."""
    if money is None:
        return []
    head = ["cost of", "charged", "per solved", "exchanges", "tokens in", "tokens out", "tokens per solved"]
    rows = [_row(each) for each in results if each.spent is not None]
    lines = ["", *table(head, rows, right=range(1, len(head)))]
    for number, line in enumerate(money.lines()):
        lines += field("" if number else "spent", line)
    lines += _disclosed(results)
    for body in reading.state.reached:
        lines += field("stopped", safe(reached_text(body)))
    return lines


def reached_text(body: Mapping[str, Any]) -> str:
    """What a `ceiling.reached` entry says, in a sentence."""
    scope = str(body["scope"]).replace("_", " ")
    whose = scope if body["model"] is None else f"{scope} of {body['model']}"
    spent, wanted, limit = (dollars(Usd.parse(body[name])) for name in ("spent", "wanted", "limit"))
    return f"money ran out ({whose}): {spent} spent or set aside, {wanted} more was wanted, the limit is {limit}"


def _row(each: CellResult) -> list[str | int | None]:
    spent = each.spent
    assert spent is not None
    per = spent.per(each.passed)
    name = f"{each.model} · {each.arm}" + (" SYNTHETIC" if each.synthetic else "")
    money = None if per is None else dollars(per[0])
    tokens = None if per is None else f"{per[1]:,}"
    into, out = f"{spent.tokens_in:,}", f"{spent.tokens_out:,}"
    return [name, dollars(spent.cost), money, f"{spent.exchanges:,}", into, out, tokens]


def _disclosed(results: Sequence[CellResult]) -> list[str]:
    estimated = sum(each.spent.estimated for each in results if each.spent)
    overruns = sum(each.spent.overruns for each in results if each.spent)
    lines = []
    if estimated:
        what = f"{count(estimated, 'exchange')} charged at the worst case, for want of a usage"
        lines += field("estimated", f"{what}: tokens of theirs are not counted")
    if overruns:
        lines += field("overruns", f"{count(overruns, 'exchange')} cost more than was held: charged all the same")
    return lines
