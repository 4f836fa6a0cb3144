"""What the HTML report shows, as plain values: the template only lays them out.

Every text goes through `safe` and through escaping, names of tasks and arms above all. Nothing is loaded from
anywhere, nothing runs in it, and a page of 10,000 tasks is as small as one of a few hundred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from proctor.analysis.interval import Interval
from proctor.core.reasons import Reason
from proctor.evidence.spent import Spent
from proctor.report.agents import agents_text
from proctor.report.anchored import anchored, anchored_lines
from proctor.report.cells import CellResult, cells
from proctor.report.compared import amount_text, decision_text, finds_text, names, p_text, range_text
from proctor.report.comparing import Comparison, comparisons, repeated
from proctor.report.costs import reached_text, synthetic_text
from proctor.report.reading import Reading, Row
from proctor.report.selected import selection_text
from proctor.report.spending import spend_of
from proctor.report.summary import ending, fingerprint
from proctor.report.text import command, count, dollars, safe

SHOWN_TASKS = 200
_NAME_CHARS = 120
_QUESTION_CHARS = 4_000
_TEMPLATE = Path(__file__).with_name("page.html.j2")


def page(reading: Reading) -> str:
    """The whole page."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(context(reading))


def _shown(value: Any) -> Any:
    """Nothing that steers a reader's eyes: bidi overrides and control characters are written as escapes."""
    return safe(value) if type(value) is str else value


def context(reading: Reading) -> dict[str, Any]:
    """The values that the template names."""
    design, groups, results = reading.design, reading.groups(), cells(reading)
    compared, money = comparisons(reading), spend_of(reading.design, reading.state)
    admitted = reading.state.admitted or {}
    key, held = fingerprint(reading), anchored(reading)
    # the place of the run at whoever reads the page is not known
    verify = ["proctor", "verify", "RUN", *(["--key", key] if key else [])]
    return {
        "title": f"{design.study.name} · {design.stage.name}",
        "question": _cut(design.study.question or "", _QUESTION_CHARS),
        "synthetic": synthetic_text(design),
        "part": selection_text(design),
        "ended": _ending(reading),
        "facts": [
            ("tasks", f"{len(design.tasks):,}"),
            ("agent", _cut("; ".join(agents_text(design)))),
            ("arms", ", ".join(_cut(arm.name) for arm in design.arms)),
            ("models", ", ".join(_cut(model.name) for model in design.models) or "none"),
            ("epochs", str(design.stage.epochs)),
            ("trials", f"{reading.state.finals:,} of {len(reading.rows):,} with a final"),
            ("counts as solved", design.grading.solved),
        ],
        "modelled": money is not None,
        "arms": [_arm(group, results) for group in groups],
        "repeats": [_repeats(each) for each in results if each.repeats is not None],
        "compared": _compared(compared),
        "costs": [_cost(each, each.spent) for each in results if each.spent is not None],
        "spent": [] if money is None else list(money.lines()),
        "reached": [reached_text(body) for body in reading.state.reached],
        "ungraded": [
            (_cell(group["model"], group["arm"]), number, reason, _summary(reason))
            for group in groups
            for reason, number in group["ungraded_by_reason"].items()
        ],
        "disclosures": _disclosures(reading, results),
        "matrix": _matrix(reading),
        "verify": " ".join(verify),
        "anchored": any(each["size"] is not None for each in held),
        "digests": [
            ("run", str(admitted.get("run_id"))),
            ("design.json", f"sha256:{design.sha256}"),
            ("key", str(key)),
            ("journal", count(reading.state.entries, "entry", "entries")),
            *[("anchored", line) for line in anchored_lines(held, reading.state.entries)],
            *[(_cut(model.name), f"{model.provider}/{model.model}") for model in design.models],
        ],
    }


def _ending(reading: Reading) -> str:
    ended = reading.state.ended
    if ended is None:
        return "no end on the record: it runs, or its process died"
    reason = Reason.by_id(str(ended["reason"])) if ended["reason"] else None
    return ending(int(ended["exit_status"]), reason, None)


def _arm(group: dict[str, Any], results: Sequence[CellResult]) -> dict[str, Any]:
    own = next(each for each in results if (each.model, each.arm) == (group["model"], group["arm"]))
    planned, low, high = group["planned"], group["bounds"]["low"]["num"], group["bounds"]["high"]["num"]
    graded = group["pass"] + group["fail"]
    return {
        "name": _cell(group["model"], group["arm"]),
        "synthetic": own.synthetic,
        "planned": planned,
        "passed": group["pass"],
        "failed": group["fail"],
        "ungraded": group["ungraded"],
        "rate": _percent(Fraction(group["pass"], planned)),
        "graded": f"{_percent(Fraction(group['pass'], graded))} of {graded:,}" if graded else "none",
        "interval": _interval(own.interval),
        "low": _at(low / planned),
        "high": _at(high / planned),
        "from": None if own.interval is None else _at(own.interval.low),
        "to": None if own.interval is None else _at(own.interval.high),
        "bounds": f"{_percent(Fraction(low, planned))} to {_percent(Fraction(high, planned))}",
    }


def _repeats(each: CellResult) -> tuple[str, int, str | None, str | None, str]:
    found = each.repeats
    assert found is not None
    one, every = (None if rate is None else _percent(rate) for rate in (found.any_passes, found.all_pass))
    return _cell(each.model, each.arm), found.k, one, every, f"{found.tasks:,} of {found.planned:,}"


def _compared(compared: Sequence[Comparison]) -> list[dict[str, Any]]:
    shares = [end for each in compared if each.share for end in _ends(each)]
    return [_difference(each, _extent(shares if each.share else _ends(each))) for each in compared]


def _ends(each: Comparison) -> list[Fraction]:
    found, ends = each.estimate, list(each.bounds or ())
    if found is not None:
        ends.append(found.mean)
        if found.interval is not None:
            ends += [Fraction(found.interval.low), Fraction(found.interval.high)]
    return ends


def _extent(ends: Sequence[Fraction]) -> Fraction:
    """Half the width of an axis around zero: a whole number of tenths of what has to be shown."""
    furthest = max(map(abs, ends), default=Fraction(0)) or Fraction(1)
    step = Fraction(10) ** (len(str(int(furthest))) - 2 if furthest >= 1 else -1)
    return max(step, ceil(furthest / step) * step)


def _difference(each: Comparison, extent: Fraction) -> dict[str, Any]:
    found, low_high = each.estimate, None if each.estimate is None else each.estimate.interval

    def at(value: Fraction) -> float:
        return _at(float((value / extent + 1) / 2))

    return {
        "name": _cut(names(each)),
        "synthetic": each.synthetic,
        "claim": each.claim,
        "tasks": f"{each.compared:,} of {each.planned:,}",
        "difference": None if found is None else amount_text(each, found.mean, signed=True),
        "interval": None if low_high is None else range_text(each, Fraction(low_high.low), Fraction(low_high.high)),
        "bounds": None if each.bounds is None else range_text(each, *each.bounds),
        "p": p_text(None if each.p is None else each.p.p, None if each.p is None else each.p.error),
        "adjusted": p_text(each.adjusted),
        "test": f"{each.test}, {each.direction.value}",
        "alpha": each.alpha,
        "decision": decision_text(each) if each.claim else None,
        "finds": finds_text(each),
        "axis": amount_text(each, extent, signed=False),
        "point": None if found is None else at(found.mean),
        "from": None if low_high is None else at(Fraction(low_high.low)),
        "to": None if low_high is None else at(Fraction(low_high.high)),
        "low": None if each.bounds is None else at(each.bounds[0]),
        "high": None if each.bounds is None else at(each.bounds[1]),
    }


def _cost(each: CellResult, spent: Spent) -> dict[str, Any]:
    per = spent.per(each.passed)
    return {
        "name": _cell(each.model, each.arm),
        "synthetic": each.synthetic,
        "charged": dollars(spent.cost),
        "solved": None if per is None else dollars(per[0]),
        "exchanges": f"{spent.exchanges:,}",
        "into": f"{spent.tokens_in:,}",
        "out": f"{spent.tokens_out:,}",
        "tokens": None if per is None else f"{per[1]:,}",
    }


def _disclosures(reading: Reading, results: Sequence[CellResult]) -> list[str]:
    counts = reading.state.counts.values()
    rows = sum(bool(row.tries.disclosures) for row in reading.rows)
    spent = [each.spent for each in results if each.spent is not None]
    facts = [
        (sum(each.superseded for each in counts), "attempt", "interrupted or lost, and made anew; its cost counts"),
        (sum(each.replaced for each in counts), "attempt", "in place of one that infrastructure ended"),
        (rows, "grade", "with something to know beside it: `proctor show RUN TRIAL`"),
        (sum(each.estimated for each in spent), "exchange", "charged at the worst case, for want of a usage"),
        (sum(each.overruns for each in spent), "exchange", "that cost more than was held, and was charged"),
    ]
    found = [f"{count(number, noun)} {what}" for number, noun, what in facts if number]
    ends: Counter[str] = Counter()
    for each in counts:
        ends.update(each.exceptions)
    found += [f"{count(number, 'attempt')} ended by {reason}" for reason, number in sorted(ends.items())]
    openings = len(reading.state.openings)
    if openings > 1:
        found.append(f"written by {openings} processes, one after the other")
    return found


def _matrix(reading: Reading) -> dict[str, Any]:
    """Tasks by model and arm, those on which arms differ first; at most so many tasks."""
    columns = [(model, arm.name) for model in reading.design.model_names for arm in reading.design.arms]
    by_task: dict[str, dict[tuple[str | None, str], list[Row]]] = {}
    for row in reading.rows:
        by_task.setdefault(row.trial.task, {}).setdefault((row.trial.model, row.trial.arm), []).append(row)
    told = {task: [repeated(own[column]) for column in columns] for task, own in by_task.items()}

    def even(task: str) -> bool:
        return len({(each.passed, each.ungraded) for each in told[task]}) == 1

    shown = sorted(told, key=lambda task: (even(task), task))[:SHOWN_TASKS]
    return {
        "columns": [(None if model is None else _cut(model), _cut(arm)) for model, arm in columns],
        "rows": [
            (_cut(task), [_mark(each.planned, each.passed, each.ungraded) for each in told[task]]) for task in shown
        ],
        "more": len(told) - len(shown),
        "export": command("proctor", "results", "RUN", "--csv").partition(" ")[2],
    }


def _mark(planned: int, passed: int, ungraded: int) -> tuple[str, str, str]:
    """Class, glyph and words of a cell."""
    words = f"{passed} of {planned} passed" + (f", {ungraded} ungraded" if ungraded else "")
    if ungraded == planned:
        return "ungraded", "?", words
    if planned == 1:
        return ("pass", "✓", words) if passed else ("fail", "✗", words)
    kind = "pass" if passed == planned else "fail" if passed + ungraded == 0 else "part"
    return kind, f"{passed}/{planned}" + ("?" if ungraded else ""), words


def _cut(name: str, most: int = _NAME_CHARS) -> str:
    return name if len(name) <= most else f"{name[:most]}…"


def _cell(model: str | None, arm: str) -> str:
    return _cut(arm) if model is None else f"{_cut(model)} · {_cut(arm)}"


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.1f} %"


def _interval(found: Interval | None) -> str | None:
    return None if found is None else f"{100 * found.low:.1f} to {100 * found.high:.1f} %"


def _at(share: float) -> float:
    """A place on a drawing of 200 units."""
    return round(200 * min(1.0, max(0.0, share)), 2)


def _summary(reason_id: str) -> str:
    reason = Reason.by_id(reason_id)
    return reason.summary if reason else "(a reason that this version does not know)"
