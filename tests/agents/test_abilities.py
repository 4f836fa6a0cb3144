"""What agents say of themselves, and what follows where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.agents.base import Abilities, Version, abilities, agent_abilities, installed_agents
from proctor.agents.handed import identify
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket


class Plain:
    """What an agent has to say, and no more."""

    name = "plain"
    needs_solution = False
    needs_model = True

    def __init__(self, settings: Any, base: Path) -> None: ...

    def version(self) -> Version:
        return Version("1")

    async def answer(self, turn: Any) -> None: ...


class Inside(Plain):
    name = "inside"
    needs_model = False
    takes_model = True
    inside = True
    apis = frozenset({"chat"})


def test_an_agent_that_says_no_more_takes_its_model_from_outside_in_any_format() -> None:
    assert abilities(Plain) == Abilities(needs_model=True, takes_model=True, answers_rows=True)


@pytest.mark.parametrize("agent_class", [Plain, Inside])
def test_one_that_was_handed_over_is_able_to_what_its_class_says(agent_class: type) -> None:
    made = identify(agent_class.name, agent_class)({}, Path())
    assert abilities(made) == abilities(agent_class)
    assert agent_abilities("no-such", agent_class) == abilities(agent_class)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("takes_model", 1),
        ("takes_prompt", None),
        ("inside", "yes"),
        ("apis", ["chat"]),
        ("apis", "chat"),
        ("apis", frozenset({1})),
    ],
)
def test_what_is_no_answer_to_it_is_refused(flag: str, value: Any) -> None:
    odd = type("Odd", (Plain,), {"name": "odd", flag: value, "__module__": __name__})
    with pytest.raises(Refusal) as caught:
        identify("odd", odd)
    assert caught.value.reason is Reason.AGENT_INVALID and flag in caught.value.message


@pytest.mark.parametrize(
    ("name", "able"),
    [
        ("oracle", Abilities(False, False, answers_rows=True, needs_solution=True, takes_prompt=False)),
        ("nop", Abilities(False, False, answers_rows=True, takes_prompt=False)),
        ("toolloop", Abilities(True, True, answers_rows=True)),
        ("command", Abilities(False, True, inside=True)),
        ("mini-swe-agent", Abilities(True, True, True, frozenset({"chat"}))),
        ("claude-code", Abilities(True, True, True, frozenset({"anthropic"}), frozenset({Bucket.CACHE_WRITE}))),
        ("codex", Abilities(True, True, True, frozenset({"responses"}))),
    ],
)
def test_what_each_agent_of_ours_can_do(name: str, able: Abilities) -> None:
    assert agent_abilities(name) == able
    assert installed_agents()[name].load().name == name


def test_an_agent_that_there_is_not_can_do_nothing_that_is_known() -> None:
    assert agent_abilities("no-such") is None
