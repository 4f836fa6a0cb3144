"""What a gateway of its own shows while it serves: one row a model, and what is left of the budget."""

from __future__ import annotations

import io
from typing import Any

from proctor.core.money import Usd
from proctor.evidence.callstate import OPENED, CallState
from proctor.evidence.exchanges import unanswered
from proctor.evidence.kinds import Kind
from proctor.report.calls import CallsShown, as_record, lines

BUDGET = Usd.parse("5")


def state() -> CallState:
    """One model with an exchange done and one in flight, and requests that were refused."""
    found = CallState()
    found.apply(OPENED, {"record": "r"})
    for number in range(2):
        body: dict[str, Any] = {"exchange": f"1:gpt\x1b[2J/{number}", "model": "gpt\x1b[2J", "held": "2.000000000000"}
        found.apply(Kind.EXCHANGE_ADMITTED.id, body)
    end = {"exchange": "1:gpt\x1b[2J/0", "outcome": "settled", "charged": "0.500000000000", "overrun": False}
    usage = {"input": 1200, "cache_read": 34, "output": 5, "reasoning": 6}
    found.apply(Kind.EXCHANGE_ENDED.id, {**end, **unanswered(None, estimated=False), "usage": usage})
    found.apply(Kind.EXCHANGE_REFUSED.id, {"model": "other"})
    found.apply(Kind.EXCHANGE_REFUSED.id, {"model": None})
    return found


def test_each_model_has_a_row_and_the_sum_says_what_is_left() -> None:
    head, first, second, total = lines(state(), BUDGET)
    assert "in flight" in head and "\x1b" not in first
    assert first.split()[1:] == ["1", "-", "-", "1", "1,234", "11", "$0.50", "$2.00"]
    assert second.split() == ["other", "0", "-", "1", "-", "0", "0", "$0.00", "-"]
    assert total == "1 exchanges · 1 in flight · 2 refused · $0.50 of $5.00 charged, $2.50 left"
    assert as_record(state(), BUDGET)["left"] == "2.500000000000"


def test_lines_are_said_where_there_is_no_terminal_and_none_where_it_is_quiet() -> None:
    stream, silent = io.StringIO(), io.StringIO()
    for to, quiet in ((stream, False), (silent, True)):
        with CallsShown(to, state(), BUDGET, quiet=quiet) as shown:
            shown.tick()
            shown.tick()
            shown.drains()
            shown.end()
    assert stream.getvalue().count("$2.50 left") == 2 and "stopping: 1 in flight" in stream.getvalue()
    assert silent.getvalue() == ""
