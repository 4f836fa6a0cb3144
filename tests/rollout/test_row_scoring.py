"""Rows scored where their scorers run, and tools of rows called as a model calls them."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor.core.models import Message, Role, ToolBox, ToolCall
from proctor.core.outcomes import GradeState
from proctor.core.questions import Question, Scorer
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_admitted
from proctor.grading.scorers.base import Scored
from proctor.rollout.scoring import score_row
from proctor.rollout.toolbox import MAX_RESULT_CHARS, FunctionTools, open_tools
from proctor.rollout.workers import Workers
from proctor.study.actors import FunctionDesign, ToolDesign

SOURCE = '''
from __future__ import annotations
import os, time

def add(a: int, b: float = 2, *, note: str | None = None) -> float:
    """Add two numbers.

    The second is 2 if it is left out.
    """
    return a + b
def flag(on: bool): return {"on": on}
def text(of: str) -> str: return "t:" + of
def nothing(): return None
def boom(): raise KeyError("gone")
def long(): return "x" * 200_000
def crash(): os._exit(3)
def untyped(a): return a
def listed(a: list[int]): return a
def starred(*args: int): return args

def fits(answer, row): return answer == row["metadata"]["wanted"]
def named(answer, row): return {"reward": 0.5, "length": len(answer), "detail": "half"}
def raises(answer, row): raise ValueError("cannot tell")
def hangs(answer, row): time.sleep(3600)
def chatters(answer, row): return "good"
'''
SHA256 = hashlib.sha256(SOURCE.encode()).hexdigest()


@pytest.fixture
async def workers(tmp_path: Path) -> AsyncIterator[Workers]:
    (tmp_path / "mine.py").write_text(SOURCE)
    token = seal_admitted(run_id="a" * 26, run_dir=tmp_path, design_sha256="0" * 64, label="proctor-test")
    async with Workers(token, tmp_path) as made:
        yield made


def question(scorer: Scorer, target: Any, function: str | None = None) -> Question:
    row = {"id": "q", "prompt": "?", "target": target, "metadata": {"wanted": "yes"}}
    return Question(
        id="q",
        messages=(Message(Role.USER, "?"),),
        target=target,
        choices={},
        tolerance=None,
        tools=None,
        metadata={},
        cluster=None,
        scorer=scorer,
        scorer_function=function,
        row=row,
    )


async def scored(workers: Workers, asked: Question, answer: str | None, *, deadline_sec: float = 30) -> Scored:
    functions = {asked.scorer_function: SHA256} if asked.scorer_function else {}
    return await score_row(asked, answer, workers=workers, functions=functions, deadline_sec=deadline_sec)


@pytest.mark.parametrize(
    ("function", "answer", "state", "reason", "said"),
    [
        ("mine:fits", "yes", "pass", None, "True"),
        ("mine:fits", "no", "fail", Reason.WRONG_ANSWER, "False"),
        ("mine:fits", "", "fail", Reason.WRONG_ANSWER, "False"),
        ("mine:fits", None, "fail", Reason.NO_ANSWER, "no answer"),
        ("mine:named", "yes", "fail", Reason.WRONG_ANSWER, "half"),
        ("mine:raises", "yes", "ungraded", Reason.SCORER_FAILED, "ValueError: cannot tell"),
        ("mine:crash", "yes", "ungraded", Reason.SCORER_FAILED, "TypeError"),
        ("mine:chatters", "yes", "ungraded", Reason.SCORER_FAILED, "str"),
    ],
)
async def test_a_function_scores(
    workers: Workers, function: str, answer: str | None, state: str, reason: Reason | None, said: str
) -> None:
    found = await scored(workers, question(Scorer.PYTHON, "yes", function), answer)
    assert (found.state, found.reason) == (state, reason) and said in found.detail


async def test_named_numbers_of_a_function_are_rewards(workers: Workers) -> None:
    found = await scored(workers, question(Scorer.PYTHON, "yes", "mine:named"), "four")
    assert found.rewards == {"reward": 0.5, "length": 4}


async def test_a_function_that_hangs_leaves_the_answer_ungraded_and_the_next_is_scored(workers: Workers) -> None:
    found = await scored(workers, question(Scorer.PYTHON, "yes", "mine:hangs"), "yes", deadline_sec=0.3)
    assert (found.state, found.reason) == (GradeState.UNGRADED, Reason.SCORER_TIMEOUT)
    assert (await scored(workers, question(Scorer.PYTHON, "yes", "mine:fits"), "yes")).state is GradeState.PASS


async def test_a_function_that_changed_is_not_asked(workers: Workers, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE + "\n")
    with pytest.raises(Refusal) as refused:
        await scored(workers, question(Scorer.PYTHON, "yes", "mine:fits"), "yes")
    assert refused.value.reason is Reason.TASK_CHANGED


async def test_a_pattern_is_searched_with_a_deadline(workers: Workers) -> None:
    assert (await scored(workers, question(Scorer.REGEX, r"\bP\w+s\b"), "to Paris")).state is GradeState.PASS
    assert (await scored(workers, question(Scorer.REGEX, r"\bP\w+s\b"), "to Rome")).state is GradeState.FAIL
    hostile = question(Scorer.REGEX, {"pattern": "(a+)+$", "example": "aa"})
    found = await scored(workers, hostile, "a" * 60 + "b", deadline_sec=0.5)
    assert (found.state, found.reason) == (GradeState.UNGRADED, Reason.SCORER_TIMEOUT)
    assert (await scored(workers, hostile, "aaa")).state is GradeState.PASS
    assert (await scored(workers, hostile, None)).reason is Reason.NO_ANSWER


@pytest.mark.parametrize("answer", ["2", "x" * 200_000 + " 2"])
async def test_rules_need_no_worker(workers: Workers, answer: str) -> None:
    assert (await scored(workers, question(Scorer.NUMBER, 2), answer)).state is GradeState.PASS
    assert workers.processes == []


def design(*functions: str) -> list[ToolDesign]:
    return [ToolDesign(name, FunctionDesign(f"mine:{name}", SHA256), 1) for name in functions]


def asks(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("c1", name, arguments, "")


async def test_a_model_is_told_of_a_tool_what_its_function_says(workers: Workers) -> None:
    tools: ToolBox = await open_tools(workers, design("add", "flag"), "luna")
    add, flag = tools.specs
    assert (add.name, add.description) == ("add", "Add two numbers.\n\nThe second is 2 if it is left out.")
    assert add.parameters == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "number"}, "note": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert flag.parameters["properties"] == {"on": {"type": "boolean"}}


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("add", {"a": 1}, "3"),
        ("add", {"a": 1, "b": 1.5}, "2.5"),
        ("add", {"a": 1, "b": None, "note": None}, "3"),
        ("flag", {"on": True}, '{"on": true}'),
        ("text", {"of": "é"}, "t:é"),
        ("nothing", {}, "null"),
        ("boom", {}, "error: KeyError: 'gone'"),
        ("add", {}, "error: add needs the argument 'a'"),
        ("add", {"a": 1, "c": 2}, "error: add has no argument 'c'; it has: a, b, note"),
        ("add", {"a": "1"}, "error: the argument 'a' of add is of type integer"),
        ("add", {"a": True}, "error: the argument 'a' of add is of type integer"),
        ("add", {"a": 1.5}, "error: the argument 'a' of add is of type integer"),
        ("flag", {"on": 1}, "error: the argument 'on' of flag is of type boolean"),
        ("text", {"of": None}, "error: the argument 'of' of text is of type string"),
        ("shell", {}, "error: there is no tool 'shell'; there are: add, flag, text, nothing, boom"),
    ],
)
async def test_what_a_call_gives_is_text(workers: Workers, name: str, arguments: Mapping[str, Any], text: str) -> None:
    tools = await open_tools(workers, design("add", "flag", "text", "nothing", "boom"), "luna")
    assert await tools.call(asks(name, **arguments)) == text


async def test_arguments_that_are_no_object_are_said(workers: Workers) -> None:
    tools = await open_tools(workers, design("add"), "luna")
    assert "not a JSON object" in await tools.call(ToolCall("c1", "add", None, "{"))


async def test_a_tool_that_dies_is_text_and_a_long_result_is_cut(workers: Workers) -> None:
    tools = await open_tools(workers, design("crash", "long"), "luna")
    assert "status 3" in await tools.call(asks("crash"))
    text = await tools.call(asks("long"))
    assert text.startswith("x" * MAX_RESULT_CHARS + "\n[100000 more")


async def test_a_row_has_only_the_tools_that_it_names(workers: Workers) -> None:
    tools = await open_tools(workers, design("add", "text"), "luna")
    assert tools.only(None) is tools
    only = tools.only(["text", "absent"])
    assert [spec.name for spec in only.specs] == ["text"]
    assert "there is no tool 'add'" in await only.call(asks("add", a=1))
    assert FunctionTools((), {}).specs == ()


@pytest.mark.parametrize("function", ["untyped", "listed", "starred"])
async def test_a_function_that_cannot_be_described_is_no_tool(workers: Workers, function: str) -> None:
    with pytest.raises(Refusal) as refused:
        await open_tools(workers, design(function), "luna")
    assert refused.value.reason is Reason.TOOL_INVALID and refused.value.path == f"tools.{function}"
