"""What can be done about trials that have no final: a resume, or, where no money of the run is left, another run."""

from __future__ import annotations

from pathlib import Path

from proctor.admission.limits import limits_of
from proctor.budget.authority import ceiling_after
from proctor.core.money import ZERO, Usd
from proctor.report.reading import Reading
from proctor.report.spending import spend_of
from proctor.report.text import command, dollars, field, safe, short_path, typable


def resumes(reading: Reading) -> bool:
    """Whether a resume has something to do: a trial to try, or an opening to end that a dead process left open."""
    if reading.complete:
        return False
    return reading.state.ended is None or _fits(reading)


def _fits(reading: Reading) -> bool:
    """Whether money lets a block of any trial without a final be admitted in another opening."""
    limits = limits_of(reading.design)
    models = {row.trial.model for row in reading.rows if not row.final}
    # a machine of its own for each: that one model's block does not fit says nothing of another's
    return any(ceiling_after(limits, reading.state).admit_block(0, model) is None for model in models)


def go_on_lines(run: Path, reading: Reading) -> list[str]:
    """How to go on, for people; none where every trial has its final."""
    if resumes(reading):
        return resume_lines(run)
    return [] if reading.complete else field("go on", another_run(reading))


def resume_lines(run: Path) -> list[str]:
    """The command that goes on with a run."""
    return [f"go on      {safe(command('proctor', 'resume', short_path(run)))}"]


def another_run(reading: Reading) -> str:
    """What is left to do where a resume would start nothing."""
    money = spend_of(reading.design, reading.state)
    spent = ZERO if money is None else Usd(money.before.pico + money.charged.pico)
    if reading.state.overruns:
        why = "a provider billed more than was held, so a resume starts nothing; mend its price or bound. "
    else:
        why = "no trial that is left fits this run's money, so a resume starts nothing. "
    then = (
        f"What is left needs another run: in the study, raise allocation and cap, set spent_before to {_exact(spent)} "
        f"({dollars(spent)}, this run's included), let `proctor plan STUDY --write` work out the rest, and give "
        "`proctor run STUDY` another --out"
    )
    return typable(why + then)


def _exact(amount: Usd) -> str:
    """As it is written in a study: without zeros that say nothing."""
    whole, _, decimals = str(amount).partition(".")
    return f'"{whole}.{decimals.rstrip("0")}"' if decimals.rstrip("0") else f'"{whole}"'
