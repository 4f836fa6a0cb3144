"""The HTML page: everything in it, nothing from elsewhere, whatever names are."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from proctor.evidence.fold import RunState
from proctor.evidence.runfolder import RunFolder
from proctor.report.page import SHOWN_TASKS, page
from proctor.report.reading import Reading, Row, Tries, read_run
from proctor.study import Design, plan
from proctor.study.design import HypothesisDesign, StudyName
from run_parts import Ask, Story, Try, design, make_run

VOID = frozenset({"meta", "br", "link", "img", "input", "hr"})


class Page(HTMLParser):
    """Tags, texts and attributes of a page, which closes what it opens."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def made(frozen: Design) -> Reading:
    """A run without files in which every trial passed."""
    drawn = plan(frozen)
    rows = tuple(Row(trial, "pass", None, 1.0, True, Tries(1)) for trial in drawn.trials())
    state = RunState()
    state.grades.update({"pass": len(rows)})
    return Reading(RunFolder(Path("nowhere")), frozen, state, rows)


def loads_nothing(found: Page) -> None:
    assert not {"script", "link", "img", "iframe", "object", "embed", "form", "base"} & set(found.tags)
    names = {name for name, _ in found.attributes}
    assert not {"src", "href", "xlink:href", "srcset", "action"} & names
    assert not any(name.startswith("on") for name in names)


async def test_a_page_says_what_the_run_came_to(tmp_path: Path) -> None:
    claim = HypothesisDesign("H1", "solved", ("skilled", "plain"), "mcnemar", "greater", 0.05)
    frozen = replace(
        design(models=("sun",)), hypotheses=(claim,), study=StudyName("hints", "Does a hint help <at all>?")
    )
    ask = Ask({"messages": []}, None, {"input": 1000, "output": 10})
    story = Story(
        default=(Try(asks=(ask,)),),
        tries={("beta", "plain"): (Try(reward=None),), ("alpha", "plain"): (Try(reward="0"),)},
    )
    run = await make_run(tmp_path / "run", frozen, story, end=1)
    reading = read_run(run)
    html = page(reading)
    found = Page(html)
    loads_nothing(found)
    for fact in (
        "hints · main",
        "Does a hint help <at all>?",
        "SYNTHETIC: sun is made up by rules",
        "H1: sun · skilled - plain",
        "not supported",
        "reward_missing",
        "$0.0042",
        f"sha256:{frozen.sha256}",
        "proctor verify RUN --key sha256:",
        "✗",
    ):
        assert fact in found.text, fact
    assert str(tmp_path) not in html, "where the run lies is nobody's business"
    assert ("role", "alert") in found.attributes and found.text.count("SYNTHETIC") >= 6


async def test_a_page_without_models_has_no_costs(tmp_path: Path) -> None:
    found = Page(page(read_run(await make_run(tmp_path / "run", design(arms=("only",))))))
    loads_nothing(found)
    assert "SYNTHETIC" not in found.text and "Costs" not in found.text and "Comparisons" not in found.text


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "{{ 7 * 7 }}{% raw %}",
        "</style><style>*{display:none}",
        "&lt;b&gt;",
        "'onmouseover='x",
    ],
)
def test_names_are_only_text(name: str) -> None:
    frozen = design((name,), (name, "plain"), models=(name,))
    frozen = replace(frozen, study=StudyName(name, name))
    found = Page(page(made(frozen)))
    loads_nothing(found)
    assert found.text.count(name) >= 8
    assert found.tags.count("style") == 1


def test_names_cannot_turn_the_page_around() -> None:
    name = "abc\u202edef\u2066\x07"
    html = page(made(design((name,), (name, "plain"))))
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x07]", html)
    assert "abc\\u202edef\\u2066\\x07" in html


def test_ten_thousand_tasks_make_a_small_page() -> None:
    tasks = [f"task-{number:05}" for number in range(10_000)]
    html = page(made(design(tasks)))
    assert len(html) < 120_000
    assert html.count("task-") == SHOWN_TASKS and f"{10_000 - SHOWN_TASKS:,} more tasks are not shown" in html


def test_long_names_are_cut() -> None:
    html = page(made(design(("x" * 5000,), ("y" * 5000, "plain"))))
    assert "x" * 200 not in html and "y" * 200 not in html
