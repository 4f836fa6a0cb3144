"""What the second program is shown: every plant and every sound run, made once, and which lines each reaches."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from builder import Story
from money_stories import money_story
from plants import Plant, all_plants, all_sound
from primitives import Signer
from stories import full_story, random_story
from verdicts import Case, all_cases

_SHAPES = 12


@dataclass(frozen=True)
class Shown:
    """A run folder, and what is to be said of it: the one check that fails, what a case says, or that it holds."""

    name: str
    folder: Path
    signer: Signer
    plant: Plant | None = None
    case: Case | None = None

    def is_as_ever(self) -> bool:
        """Whether the second program, as this process has it, says what it should."""
        if self.plant is not None:
            report = self.plant.look(self.folder, self.signer)
            return report.failed() == [self.plant.check] and report.exit_status == 1
        if self.case is not None:
            return self.case.holds(self.folder, self.signer)
        from proctor_verify import Status, verify

        said = verify(self.folder, self.signer.fingerprint)
        calm = all(result.status in (Status.PASS, Status.NOT_APPLICABLE) for result in said.results)
        return calm and said.failed() == [] and (said.exit_status == 0)


def make_all(into: Path) -> list[Shown]:
    """Every plant, every sound run that looks odd, and some of any shape, each in a folder of its own."""
    made: list[Shown] = []

    def sound(name: str, story: Story) -> None:
        folder = into / f"{len(made):04d}"
        story.write(folder)
        made.append(Shown(name, folder, story.signer))

    sound("the full story", full_story())
    sound("the money story", money_story())
    for number, (make, alter) in enumerate(all_sound()):
        story = make()
        alter(story)
        sound(f"odd and sound {number} {getattr(alter, '__name__', '')}", story)
    for seed in range(_SHAPES):
        sound(f"shape {seed}", random_story(seed))
    for case in all_cases():
        folder = into / f"{len(made):04d}"
        folder.mkdir(parents=True)
        made.append(Shown(case.what, folder, case.write(folder), case=case))
    for plant in all_plants():
        folder = into / f"{len(made):04d}"
        made.append(Shown(plant.id, folder, plant.write(folder), plant))
    return made


Reached = dict[tuple[str, int], set[int]]


def lines_reached(shown: Iterable[tuple[int, Shown]], below: str) -> Reached:
    """Which of them reach a line of a file below a folder."""
    reached: Reached = defaultdict(set)
    for number, each in shown:
        seen: set[tuple[str, int]] = set()

        def local(frame: FrameType, event: str, arg: Any, seen: set[tuple[str, int]] = seen) -> Any:
            seen.add((frame.f_code.co_filename, frame.f_lineno))
            return local

        def look(frame: FrameType, event: str, arg: Any, local: Callable[..., Any] = local) -> Any:
            if not frame.f_code.co_filename.startswith(below):
                return None
            return local(frame, event, arg)

        sys.settrace(look)
        try:
            each.is_as_ever()
        finally:
            sys.settrace(None)
        for place in seen:
            reached[place].add(number)
    return reached
