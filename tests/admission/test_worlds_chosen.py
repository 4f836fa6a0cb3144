"""Which kind of sandbox `auto` comes to, by what stands against the tasks in each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fake_worlds import FakeKind, Steps
from proctor.admission import worlds
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe
from proctor.sandbox.base import Availability, Probe

ELSEWHERE, ANYWHERE = Reason.TASK_NEEDS_DOCKER, Reason.TASK_NO_SOLUTION


class Named(FakeKind):
    """A kind that is here, or is not, under that name."""

    def __init__(self, name: str, here: bool) -> None:
        super().__init__(Steps())
        self.called, self.here = name, here

    def probe(self, probe: Probe) -> Availability:
        return replace(super().probe(probe), kind=self.called, available=self.here)


@pytest.mark.parametrize(
    ("engine", "namespace", "docker", "chosen"),
    [
        (True, [], [ELSEWHERE], "namespace"),
        (True, [ELSEWHERE], [], "docker"),
        (True, [ANYWHERE], [ANYWHERE], "namespace"),
        (True, [ELSEWHERE, ANYWHERE], [ANYWHERE], "docker"),
        (True, [ELSEWHERE], [ELSEWHERE], "namespace"),
        (False, [ELSEWHERE], [], "namespace"),
    ],
)
def test_what_another_kind_can_do_stands_against_no_task(
    monkeypatch: pytest.MonkeyPatch, engine: bool, namespace: list[Reason], docker: list[Reason], chosen: str
) -> None:
    against = {"namespace": namespace, "docker": docker}

    def weigh(available: Availability) -> tuple[dict[str, Any], list[Refusal]]:
        return {}, [Refusal(reason, "seen") for reason in against[available.kind]]

    monkeypatch.setattr(worlds, "sandbox_kind", lambda name: Named(name, name == "namespace" or engine))
    world = worlds.choose("auto", None, weigh, seal_probe(30))
    assert world.available.kind == chosen
    assert [refusal.reason for refusal in world.obstacles] == against[chosen]
