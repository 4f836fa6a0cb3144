"""Amounts filled into a study's text: however it is laid out, nothing else of it changes."""

from __future__ import annotations

import copy
import tomllib

import pytest

from proctor.study.edit import with_amounts

TABLES = {
    "budget": {"allocation": "1.50", "cap": "1.50"},
    "expected_costs": {"luna": "1.00"},
    "caps": {"luna": "1.50"},
    "reserves": {"luna": "0.30"},
}
STAGE = '[study]\nname = "x"\n\n[stages.main]  # the one\nepochs = 3 # three\n'
TEXTS = {
    "no stage is written": '[study]\nname = "x" # named\n',
    "a stage": STAGE,
    "tables after it": STAGE + '\n[stopping]\nrule = "e-value"\n',
    "some of it is there": STAGE + '\n[stages.main.caps] # old\nluna = "9"  # ours\n\n[stages.second]\nepochs = 1\n',
    "all of it is there": STAGE
    + '[stages.main.budget]\nallocation = "7"\ncap = "8"\nmargin = "9" # room\n'
    + "".join(f'[stages.main.{name}]\nluna = "7"\n' for name in ("expected_costs", "caps", "reserves")),
    "its parts stand apart": STAGE + '[draw]\nseed = 1\n[stages.second]\nepochs = 1\n[stages.main.caps]\nluna = "2"\n',
    "dotted keys": 'stages.main.epochs = 3\n[study]\nname = "x"\n',
    "an inline stage": '[study]\nname = "x"\n[stages]\nmain = { epochs = 3 }\n',
    "all inline": 'stages = { main = { epochs = 3, caps = { luna = "9" } } }\n[study]\nname = "x"\n',
    "no line end at the end": STAGE.rstrip(),
    "other line ends": STAGE.replace("\n", "\r\n"),
    "quoted names": '[study]\nname = "x"\n["stages"."main"]\n"epochs" = 3\n',
    "names beyond ASCII in comments": STAGE + "# für später – 日本\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_only_the_amounts_change(name: str) -> None:
    text = TEXTS[name]
    edited = with_amounts(text, "main", TABLES)
    was, now = tomllib.loads(text), tomllib.loads(edited)
    wanted = copy.deepcopy(was)
    for table, amounts in TABLES.items():
        wanted.setdefault("stages", {}).setdefault("main", {}).setdefault(table, {}).update(amounts)
    assert now == wanted
    assert [part for part in text.split() if part.startswith("#")] == [
        part for part in edited.split() if part.startswith("#")
    ]
    assert with_amounts(edited, "main", TABLES) == edited


def test_an_amount_that_is_equal_stays_as_it_is_written() -> None:
    text = STAGE + '\n[stages.main.caps]\nluna = "1.5"\n'
    assert with_amounts(text, "main", {"caps": {"luna": "1.500"}}) == text


def test_line_ends_of_the_file_are_kept() -> None:
    edited = with_amounts(STAGE.replace("\n", "\r\n"), "main", TABLES)
    assert edited.count("\n") == edited.count("\r\n")
    assert "\r" not in with_amounts(STAGE, "main", TABLES)


def test_what_is_new_stands_apart_from_what_comes_after() -> None:
    edited = with_amounts(STAGE + '\n[stopping]\nrule = "e-value"\n', "main", TABLES)
    assert 'luna = "0.30"\n\n[stopping]' in edited
    assert "\n\n\n" not in edited
