"""Studies whose models cost something, and what must hold of the money of any run of theirs, counted anew."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from proctor.core.money import ZERO, Usd
from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from spending_parts import totals

PRACTICE = 'provider = "practice"\nmodel = "practice-1"\nmax_output_tokens = 100\n'
SKILL = "---\nname: sums\ndescription: how sums are done\n---\nTake care.\n"
_PICO = Usd(1)


def dear(name: str, model: str, most: int = 100) -> str:
    """A made-up model whose answers to sums, of one token each, cost a dollar; before, `most` dollars are held."""
    price = 'input = "0"\noutput = "1"\nper = "1"\nsource = "made up for a test"\n'
    return f'provider = "practice"\nmodel = "{model}"\nmax_output_tokens = {most}\n[models.{name}.price]\n{price}'


def sums(count: int, **more: Any) -> list[dict[str, Any]]:
    """Question rows that the practice model answers, right or wrong."""
    pairs = [(3 + number // 90, 10 + number % 90) for number in range(count)]
    return [{"id": f"q{a}x{b}", "prompt": f"What is {a} * {b}?", "target": a * b, **more} for a, b in pairs]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@dataclass(frozen=True)
class Plan:
    """A stage's money. `expected` is by model; caps and reserves follow from it, to the picodollar.

    `change` replaces single amounts of the text: what is refused then.
    """

    expected: Mapping[str, str]
    allocation: str = "1.50"
    cap: str | None = None
    margin: str = "0.50"
    before: str = "0"
    factor: int = 1

    def text(self, blocks: int) -> str:
        """The tables of the stage; `blocks` of each model."""
        each = {name: Usd.parse(amount).fraction() for name, amount in self.expected.items()}
        share = Usd.parse(self.allocation).fraction() / sum(each.values(), Fraction(0))
        amounts = {
            "expected_costs": each,
            "caps": {name: share * amount for name, amount in each.items()},
            "reserves": {name: self.factor * amount / blocks for name, amount in each.items()},
        }
        lines = [
            "[stages.main.budget]",
            f'spent_before = "{self.before}"',
            f'allocation = "{self.allocation}"',
            f'cap = "{self.cap or self.allocation}"',
            f'margin = "{self.margin}"',
            'cap_quantum = "0.000000000002"',
            'reserve_quantum = "0.000000000002"',
            f"reserve_factor = {self.factor}",
        ]
        for table, values in amounts.items():
            lines.append(f"[stages.main.{table}]")
            lines += [f'{name} = "{Usd(int(amount / _PICO.fraction()))}"' for name, amount in values.items()]
        return "\n".join(lines) + "\n"


def write_study(
    folder: Path,
    *,
    rows: Sequence[Mapping[str, Any]] = (),
    tasks: str | None = None,
    models: Mapping[str, str] | None = None,
    money: Plan | None = None,
    blocks: int | None = None,
    arms: str = "[arms.plain]\n",
    stage: str = "lanes = 2\n",
    agent: str = 'name = "toolloop"\ntimeout = "10m"\n',
    grading: str = 'scorer = "number"\n',
    top: str = "",
) -> Path:
    """A study of models; `arms` are tables, of which those with skills find `skills` beside the study."""
    (folder / "skills/sums").mkdir(parents=True)
    (folder / "skills/sums/SKILL.md").write_text(SKILL)
    if rows:
        write_rows(folder / "rows.jsonl", rows)
    where = ('questions = "rows.jsonl"\n' if rows else "") + (f"path = {json.dumps(tasks)}\n" if tasks else "")
    named = {"practice": PRACTICE} if models is None else models
    tables = "".join(f"[models.{name}]\n{text}" for name, text in named.items())
    study = folder / "study.toml"
    study.write_text(
        f'[study]\nname = "money"\n[tasks]\n{where}[draw]\nseed = 20261130\n{tables}[agent]\n{agent}'
        f'[sandbox]\nkind = "namespace"\n[grading]\n{grading}{top}{arms}[stages.main]\ntype = "standard"\n{stage}'
        + ("" if money is None else money.text(len(rows) if blocks is None else blocks))
    )
    return study


@dataclass(frozen=True)
class Counted:
    """What a journal says of its money: all of it, and that of attempts that were cut short."""

    total: Usd
    superseded: Usd
    outcomes: Mapping[str, int]
    estimated: int
    overruns: int


def check_money(run: Path) -> Counted:
    """The ceiling holds at every entry, each exchange ends once, holds are zero at every rest.

    All of it from the entries alone, by rules that are written here again.
    """
    budget = json.loads((run / "design.json").read_bytes())["budget"]
    before, cap, margin = (Usd.parse(budget[name]) for name in ("spent_before", "cap", "margin"))
    entries = list(read_entries(run / "journal.jsonl"))
    ended = _ended(entries)
    overran = False
    for entry, (total, held) in zip(entries, totals(entries, before), strict=True):
        overran = overran or (entry.kind is Kind.EXCHANGE_ENDED and entry.body["overrun"])
        assert overran or total <= (cap + margin).pico, (entry.kind, entry.body)
        if entry.kind is Kind.BLOCK_ADMITTED and entry.body["reserve"] != str(ZERO):
            assert not overran and total <= cap.pico, entry.body
        if entry.kind is Kind.RUN_ENDED:
            assert held == 0
    cut = {
        entry.body["attempt"]
        for entry in entries
        if entry.kind is Kind.ATTEMPT_ENDED and entry.body["outcome"] in ("lost", "interrupted")
    }
    outcomes: dict[str, int] = {}
    for body in ended:
        outcomes[body["outcome"]] = outcomes.get(body["outcome"], 0) + 1
    return Counted(
        total=_sum(ended),
        superseded=_sum(body for body in ended if body["attempt"] in cut),
        outcomes=outcomes,
        estimated=sum(body["estimated"] for body in ended),
        overruns=sum(body["overrun"] for body in ended),
    )


def _ended(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The bodies of `exchange.ended`, after it was seen that each is the one end of one that was admitted."""
    held: dict[str, str] = {}
    ended: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if entry.kind is Kind.EXCHANGE_ADMITTED:
            assert entry.body["exchange"] not in held
            held[entry.body["exchange"]] = entry.body["held"]
        if entry.kind is Kind.EXCHANGE_ENDED:
            exchange = entry.body["exchange"]
            assert exchange not in ended
            ended[exchange] = dict(entry.body)
            charged, most = Usd.parse(entry.body["charged"]), Usd.parse(held[exchange])
            assert entry.body["overrun"] is (charged > most)
            if entry.body["outcome"] == "unknown":
                assert (charged, entry.body["estimated"]) == (most, True)
            if entry.body["outcome"] == "released":
                assert charged == ZERO
    assert held.keys() == ended.keys()
    return list(ended.values())


def _sum(bodies: Iterable[Mapping[str, Any]]) -> Usd:
    return Usd(sum(Usd.parse(body["charged"]).pico for body in bodies))
