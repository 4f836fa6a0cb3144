"""What a run came to, for people: grades of each arm with their bounds, pairs, disclosures, and what to type next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from proctor.analysis.interval import Interval
from proctor.core.exits import Exit
from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.runfolder import RunFolder
from proctor.report.agents import agent_lines
from proctor.report.anchored import anchored, anchored_lines
from proctor.report.cells import CellResult, cells
from proctor.report.compared import comparison_lines
from proctor.report.comparing import comparisons
from proctor.report.costs import cost_lines, synthetic_lines
from proctor.report.endings import endings_lines
from proctor.report.left import go_on_lines, resume_lines
from proctor.report.paired import Pairs, paired_counts
from proctor.report.reading import Reading, Row, read_run
from proctor.report.selected import selection_text
from proctor.report.spending import spend_of
from proctor.report.text import command, count, safe, short_path, table, with_model
from proctor.report.trial import short_id

# what these two mean for a run; for other commands they mean more
_DONE: dict[int, str] = {
    Exit.DONE: "done, and every trial is graded",
    Exit.DOES_NOT_HOLD: "done, and not every trial is graded",
}
_NOT_COMPARABLE = "* of the graded trials alone, a denominator of its own: not comparable between arms or runs"


def print_end(run: Path, exit_status: int, reason: Reason | None, message: str | None) -> None:
    """Print to standard output how a run ended, what it came to, where the evidence is and what to type next.

    Evidence that cannot be read is said, never raised: how the run ended is on the record already.
    """
    try:
        if not RunFolder(run).is_admitted():
            click.secho(f"{ending(exit_status, reason, message)}: nothing was admitted, nothing ran", bold=True)
            return
        reading = read_run(RunFolder(run), validate=False)
        body = [] if reason is Reason.PREPARED_ONLY else results_lines(reading)
        head = f"{safe(reading.design.study.name)} · {safe(reading.design.stage.name)}: "
        key = fingerprint(reading)
        steps = go_on_lines(run, reading)
        held, entries = anchored(reading), reading.state.entries
    except Refusal as refusal:
        body, head, key, steps = [f"the run cannot be read: {safe(str(refusal))}"], "", None, resume_lines(run)
        held, entries = [], 0
    try:
        click.secho(head + ending(exit_status, reason, message), bold=True)
        for line in [*body, "", *_anchored(run, held, entries), *next_steps(run, key), *steps]:
            click.echo(line)
    except BrokenPipeError:
        pass  # the status of a run is that of its record, whoever stopped reading


def ending(exit_status: int, reason: Reason | None, message: str | None) -> str:
    """How a process of a run ended, in one line."""
    if reason is Reason.PREPARED_ONLY:
        return f"prepared, nothing was run (exit status {exit_status})"
    known = exit_status in set(Exit)
    text = _DONE.get(exit_status) or (Exit(exit_status).doc.partition(" (")[0] if known else "ended")
    if reason is not None and reason is not Reason.INTERRUPTED:
        said = message or ""
        if said.startswith(f"{reason.id}: "):
            text += f": {safe(said)}"
        else:
            # a message of one word is the cause of a stop, which the reason says better
            text += f": {reason.id}" + (f", {safe(said)}" if " " in said else "")
    return f"{text} (exit status {exit_status})"


def _anchored(run: Path, held: list[dict[str, Any]], entries: int) -> list[str]:
    """Where the run is anchored, and what to type where that is not all of it."""
    told = anchored_lines(held, entries)
    lines = [f"{'' if number else 'anchored':10} {line}" for number, line in enumerate(told)]
    if any(each["size"] != entries for each in held):
        lines.append(f"push       {safe(command('proctor', 'anchor', short_path(run)))}")
    return lines


def next_steps(run: Path, key: str | None) -> list[str]:
    """Where the evidence is, and the command that checks it."""
    shown = short_path(run)
    verify = ["proctor", "verify", shown, *(["--key", key] if key else [])]
    return [f"evidence   {safe(shown)}", f"verify     {safe(command(*verify))}"]


def fingerprint(reading: Reading) -> str | None:
    """The fingerprint of the key that signed the run's first opening, as the run says."""
    key = (reading.state.admitted or {}).get("key")
    said = key.get("fingerprint") if isinstance(key, dict) else None
    return said if isinstance(said, str) else None


def results_lines(reading: Reading) -> list[str]:
    """The tables of a run's results; the first line is empty."""
    groups, results = reading.groups(), cells(reading)
    compared = comparisons(reading)
    part = selection_text(reading.design)
    lines = ["", *synthetic_lines(reading.design), *([safe(part)] if part else []), *agent_lines(reading.design), ""]
    lines += _grades_table(groups, results)
    lines += _ungraded(groups, reading.rows)
    lines += _repeats(results)
    lines += endings_lines(reading)
    lines += _disclosed(reading)
    if len(reading.design.arms) > 1:
        lines += _pairs(paired_counts(reading.design, reading.rows))
    lines += comparison_lines(compared)
    lines += cost_lines(results, reading, spend_of(reading.design, reading.state))
    return lines


def _disclosed(reading: Reading) -> list[str]:
    """How many grades come with something that a reader must know, and how to read it of one."""
    rows = [row for row in reading.rows if row.tries.disclosures]
    if not rows:
        return []
    show = command("proctor", "show", short_path(reading.run.path), short_id(reading.rows, rows[0]))
    return ["", f"disclosed  {count(len(rows), 'grade')} with something to know beside it, such as {safe(show)}"]


def _grades_table(groups: list[dict[str, Any]], results: Sequence[CellResult]) -> list[str]:
    intervals = {(each.model, each.arm): each.interval for each in results}
    partial = any(_is_partial(group) for group in groups)
    modelled = any(group["model"] is not None for group in groups)
    head = [*(["model"] if modelled else []), "arm", "planned", *GradeState]
    first_number = len(head) - 4
    head += ["pass / planned", "95 % interval", *(["mean reward"] if partial else [])]
    rows = []
    for group in groups:
        row = [*([group["model"]] if modelled else []), group["arm"], group["planned"]]
        row += [group["pass"], group["fail"], group["ungraded"], _rate(group["headline"])]
        row.append(_interval(intervals[group["model"], group["arm"]]))
        if partial:
            mean = group["mean_reward"]
            row.append(None if mean["decimal"] is None else mean["decimal"] + ("" if mean["comparable"] else " *"))
        rows.append(row)
    return [*table(head, rows, right=range(first_number, first_number + 4)), *_graded_only(groups)]


def _graded_only(groups: list[dict[str, Any]]) -> list[str]:
    """What is the same as the headline where all is graded: the rate of what is, and the headline's bounds."""
    if all(group["graded_only"]["comparable"] for group in groups):
        return []
    rows = []
    for group in groups:
        graded, bounds = group["graded_only"], group["bounds"]
        rate = _rate(graded) + ("" if graded["comparable"] else " *")
        within = f"[{_fraction(bounds['low'])}, {_fraction(bounds['high'])}]"
        rows.append([with_model(group["model"], group["arm"]), rate, within])
    return ["", *table(["graded only", "pass / graded", "bounds of pass / planned"], rows), _NOT_COMPARABLE]


def _is_partial(group: dict[str, Any]) -> bool:
    """Whether its rewards say more than its grades do."""
    mean = group["mean_reward"]["decimal"]
    return mean is not None and mean != group["graded_only"]["decimal"]


def _rate(rate: dict[str, Any]) -> str:
    if not rate["den"]:
        return _fraction(rate)
    return f"{_fraction(rate)} = {100 * rate['num'] / rate['den']:.1f} %"


def _interval(found: Interval | None) -> str | None:
    return None if found is None else f"[{100 * found.low:.1f}, {100 * found.high:.1f}] %"


def _repeats(results: Sequence[CellResult]) -> list[str]:
    """pass@k and pass^k, where tasks were tried more than once."""
    rows = []
    for each in results:
        found = each.repeats
        if found is not None:
            rates = [
                None if rate is None else f"{float(100 * rate):.1f} %" for rate in (found.any_passes, found.all_pass)
            ]
            rows.append([with_model(each.model, each.arm), found.k, *rates, f"{found.tasks}/{found.planned}"])
    head = ["repeats", "k", "pass@k: any of k", "pass^k: all of k", "tasks with k graded"]
    return ["", *table(head, rows, right=[1])] if rows else []


def _fraction(rate: dict[str, Any]) -> str:
    return f"{rate['num']}/{rate['den']}"


def _ungraded(groups: list[dict[str, Any]], planned: Sequence[Row]) -> list[str]:
    begun = Counter((row.trial.model, row.trial.arm) for row in planned if not row.final and row.tries.attempts)
    rows = [
        [
            with_model(group["model"], group["arm"]),
            count,
            reason,
            _means(reason, count, begun[group["model"], group["arm"]]),
        ]
        for group in groups
        for reason, count in group["ungraded_by_reason"].items()
    ]
    return ["", *table(["ungraded", "trials", "reason", "which means"], rows, right=[1])] if rows else []


def _means(reason_id: str, trials: int, begun: int) -> str:
    """What a reason means; of trials without a final also how many `begun` and came to none."""
    if reason_id != Reason.NOT_RUN.id or not begun:
        return _summary(reason_id)
    said = f"{begun} of {trials} begun, without an end that counts"
    return said if begun == trials else f"{said}; the others not begun"


def _summary(reason_id: str) -> str:
    reason = Reason.by_id(reason_id)
    return reason.summary if reason else "(a reason that this version does not know)"


def _pairs(pairs: list[Pairs]) -> list[str]:
    if not pairs:
        return []
    repeated = any(each.repeats > 1 for each in pairs)
    head = ["tasks", "both passed", "only first", "only second", "neither"]
    if repeated:
        head = ["tasks (repeats averaged)", "both always", "first more", "second more", "never", "even"]
    rows = []
    for each in pairs:
        name = with_model(each.model, f"{each.first} | {each.second}")
        row = [name, each.both, each.first_only, each.second_only, each.neither]
        rows.append([*row, *([each.even] if repeated else []), each.not_compared])
    return ["", *table([*head, "not compared"], rows, right=range(1, len(head) + 1))]
