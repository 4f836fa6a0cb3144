"""Comparisons for people: what was preregistered with its decision, then everything else under that label."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from proctor.core.claims import ClaimTest
from proctor.core.money import Usd
from proctor.report.comparing import Comparison, Decision
from proctor.report.text import dollars, field, safe, with_model

_FINDS = "finds from: the smallest true difference that a run like this finds with 80 % power"
_INDENT = 14
_CLUSTERED = "tasks stand in clusters: the interval takes that in, McNemar's test does not"


def comparison_lines(compared: Sequence[Comparison]) -> list[str]:
    """A block for each, what was preregistered first, and what is to be known of them; nothing without a comparison."""
    claimed = [each for each in compared if each.claim is not None]
    others = [each for each in compared if each.claim is None]
    lines = [line for each in [*claimed, *others] for line in _block(each)]
    if compared:
        lines.append(_FINDS)
    if any(
        each.estimate and each.estimate.clustered and each.p and each.p.test == ClaimTest.MCNEMAR for each in compared
    ):
        lines.append(_CLUSTERED)
    return lines


def _block(each: Comparison) -> list[str]:
    label = "not preregistered" if each.claim is None else f"preregistered {safe(each.claim)}"
    rows = [] if each.claim is None else [("decision", f"{decision_text(each)} (alpha {each.alpha})")]
    rows += [("difference", _difference(each)), ("p", _p(each)), ("tasks", f"{each.compared}/{each.planned}")]
    if (found := finds_text(each)) is not None:
        rows.append(("finds from", found))
    head = f"{label}: {safe(_row_name(each))}"
    return ["", head, *(line for name, text in rows for line in field(f"  {name}", text, _INDENT))]


def _difference(each: Comparison) -> str:
    parts = []
    if each.estimate is not None:
        parts.append(amount_text(each, each.estimate.mean, signed=True))
        low_high = each.estimate.interval
        if low_high is not None:
            parts.append(f"95 % interval {range_text(each, Fraction(low_high.low), Fraction(low_high.high))}")
    if each.bounds is not None:
        parts.append(f"bounds over all tasks {range_text(each, *each.bounds)}")
    return ", ".join(parts) or "-"


def _p(each: Comparison) -> str:
    how = f"{each.test}, {each.direction.value}"
    if each.p is None:
        return f"- ({how})"
    by_itself = f"{p_text(each.p.p, each.p.error)} ({how})"
    return by_itself if each.claim is None else f"{by_itself}, {p_text(each.adjusted) or '-'} by Holm"


def _row_name(each: Comparison) -> str:
    return names(each) + (" SYNTHETIC" if each.synthetic else "")


def names(each: Comparison) -> str:
    """What is compared: `model · first - second`, and the endpoint where it is not `solved`."""
    pair = f"{each.first} - {each.second}"
    endpoint = "" if each.endpoint == "solved" else f" ({each.endpoint})"
    return with_model(each.model, pair) + endpoint


def amount_text(each: Comparison, value: Fraction, *, signed: bool) -> str:
    """An amount in the endpoint's own unit: percentage points, dollars, tokens, or a plain number."""
    sign = "+" if signed and value > 0 else ""
    if each.share:
        return f"{sign}{float(100 * value):.1f} pp"
    if each.endpoint == "cost":
        return sign + dollars(Usd(round(value * 10**12)))
    return f"{sign}{float(value):,.0f}" if each.endpoint == "tokens" else f"{sign}{float(value):.4g}"


def range_text(each: Comparison, low: Fraction, high: Fraction) -> str:
    """Both ends of an interval or of bounds."""
    if low == high:
        return amount_text(each, low, signed=True)
    if each.share:
        return f"[{float(100 * low):+.1f}, {float(100 * high):+.1f}] pp"
    return f"[{amount_text(each, low, signed=True)}, {amount_text(each, high, signed=True)}]"


def finds_text(each: Comparison) -> str | None:
    """The smallest difference that such a run finds; None where that cannot be told."""
    if each.detectable is None:
        return "nothing" if each.p is not None and each.test is ClaimTest.MCNEMAR else None
    if each.share and each.detectable > 1:
        return "nothing"  # no two rates are further apart
    return amount_text(each, Fraction(each.detectable), signed=False)


def p_text(p: float | None, error: float | None = None) -> str | None:
    """A p-value with four decimals, and the standard error of one that was drawn."""
    if p is None:
        return None
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.4f}" + ("" if error is None else f" ± {error:.4f}")


def decision_text(each: Comparison) -> str:
    """The decision of a hypothesis, and what stands against it."""
    if each.decision is None or each.decision is Decision.OPEN:
        return f"open: {each.why_open}"
    if each.stands_at_bounds is None:
        return each.decision.value
    return each.decision.value + (
        ", whatever the ungraded are" if each.stands_at_bounds else ", but the ungraded could change that"
    )
