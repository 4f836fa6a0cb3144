"""Faults of the order in which an attempt goes through its steps, and of steps that are there more than once."""

from __future__ import annotations

from builder import Story
from money_stories import money_story
from plants import Alter, Plants
from steps import Late, Step

SOUND: list[Alter] = []
PLANTS = Plants()
plant = PLANTS.before_sealing
ROWS = Plants(money_story)
plant_of_rows = ROWS.before_sealing


def _again(s: Story, kind: str, **body: str) -> None:
    there = s.find(kind, **body)
    s.insert_after(there, Step(there.kind, dict(there.body)))


def _verified(s: Story) -> str:
    return str(s.find("verifier.ended").body["attempt"])


def _shared(s: Story) -> str:
    """An attempt that was verified where its agent had been."""
    attempt = _verified(s)
    s.design["grading"]["assurance"] = "shared"
    s.drop(s.find("sandbox.started", attempt=attempt, role="verifier"))
    for kind in ("verifier.ended", "attempt.graded"):
        s.find(kind, attempt=attempt).body["assurance"] = "shared"
    return attempt


def _ends_after(s: Story, kind: str, **body: str) -> None:
    """The agent of an attempt that was verified ends after that step of it, and no boundary says that it has before."""
    attempt = _verified(s)
    s.drop(s.find("attempt.boundary", attempt=attempt, boundary="pre-verify"))
    s.move_after(s.find(kind, attempt=attempt, **body), s.find("agent.ended", attempt=attempt))


@plant("attempts.phases", "an agent has two worlds")
def _(s: Story) -> None:
    _again(s, "sandbox.started", role="agent")


@plant("attempts.phases", "a verifier has two worlds")
def _(s: Story) -> None:
    _again(s, "sandbox.started", role="verifier")


@plant("attempts.phases", "a verifier ends twice, and the second end is the one that counts")
def _(s: Story) -> None:
    _again(s, "verifier.ended")


@plant("attempts.phases", "a verifier's world starts when the verifier has ended")
def _(s: Story) -> None:
    attempt = _verified(s)
    s.move_after(s.find("verifier.ended", attempt=attempt), s.find("sandbox.started", attempt=attempt, role="verifier"))


@plant("attempts.phases", "an agent ends when its verifier has a world")
def _(s: Story) -> None:
    _ends_after(s, "sandbox.started", role="verifier")


@plant("attempts.phases", "an agent ends when its verifier, in its own world, has ended")
def _(s: Story) -> None:
    _shared(s)
    _ends_after(s, "verifier.ended")


@plant_of_rows("attempts.phases", "an agent of a question row ends when it has its grade")
def _(s: Story) -> None:
    attempt = str(s.find("answer.scored").body["attempt"])
    s.move_after(s.find("attempt.graded", attempt=attempt), s.find("agent.ended", attempt=attempt))


@plant_of_rows("attempts.phases", "an agent ends when its attempt, which was not paid for, has its grade")
def _(s: Story) -> None:
    graded = s.find("attempt.graded", reason="ceiling_reached")
    ended = s.find("agent.ended").body
    s.insert_after(graded, Step("agent.ended", {**ended, "attempt": graded.body["attempt"]}))


@plant_of_rows("attempts.phases", "an answer is scored before its agent has ended")
def _(s: Story) -> None:
    attempt = str(s.find("answer.scored").body["attempt"])
    s.move_after(s.find("answer.scored", attempt=attempt), s.find("agent.ended", attempt=attempt))


@plant_of_rows("attempts.phases", "a request is refused before its agent has started")
def _(s: Story) -> None:
    refused = s.find("exchange.refused", reason="feature_unpriced")
    s.move_before(s.find("agent.started", attempt=refused.body["attempt"]), refused)


@plant_of_rows("attempts.phases", "a request is refused when its agent has ended")
def _(s: Story) -> None:
    refused = s.find("exchange.refused", reason="feature_unpriced").body
    ended = s.find("agent.ended")
    model = s.find("attempt.admitted", attempt=ended.body["attempt"]).body["model"]
    late = {**refused, "attempt": ended.body["attempt"], "model": model}
    s.insert_after(ended, Step("exchange.refused", late))


@plant("attempts.phases", "the verdict is named before the verifier has ended")
def _(s: Story) -> None:
    attempt = _verified(s)
    s.move_after(s.find("verifier.ended", attempt=attempt), s.find("attempt.files", attempt=attempt))
    s.move_after(s.find("attempt.files", attempt=attempt), s.find("verifier.ended", attempt=attempt))


def _files_of_the_agent_come_first(s: Story) -> None:
    attempt = _verified(s)
    folder = f"{s.find('attempt.admitted', attempt=attempt).body['folder']}/"
    s.files[f"{folder}agent/notes.txt"] = b"what it noted"
    named = Late(lambda s: [s.fact(folder, "agent/notes.txt", role="source")])
    s.insert_before(
        s.find("verifier.ended", attempt=attempt), Step("attempt.files", {"attempt": attempt, "files": named})
    )


SOUND.append(_files_of_the_agent_come_first)


@plant("attempts.phases", "the agent's world is ready before it starts")
def _(s: Story) -> None:
    attempt = _verified(s)
    s.move_before(
        s.find("sandbox.started", attempt=attempt, role="agent"),
        s.find("attempt.boundary", attempt=attempt, boundary="env-ready"),
    )


@plant("attempts.phases", "it is ready to be verified when the verifier has a world")
def _(s: Story) -> None:
    attempt = _verified(s)
    s.move_after(
        s.find("sandbox.started", attempt=attempt, role="verifier"),
        s.find("attempt.boundary", attempt=attempt, boundary="pre-verify"),
    )


@plant("attempts.phases", "it is ready to be verified when the verifier, without a world, has ended")
def _(s: Story) -> None:
    attempt = _shared(s)
    s.move_after(
        s.find("verifier.ended", attempt=attempt),
        s.find("attempt.boundary", attempt=attempt, boundary="pre-verify"),
    )


@plant("attempts.phases", "it has been verified when it has its grade")
def _(s: Story) -> None:
    attempt = _verified(s)
    s.insert_after(s.find("attempt.graded", attempt=attempt), _boundary(attempt, "post-verify"))


@plant("worlds.planned", "an agent starts in no world")
def _(s: Story) -> None:
    s.drop(s.find("sandbox.started", attempt=_verified(s), role="agent"))


@plant("worlds.planned", "an agent starts before its world")
def _(s: Story) -> None:
    attempt = _verified(s)
    s.drop(s.find("attempt.boundary", attempt=attempt, boundary="env-ready"))
    s.move_before(s.find("sandbox.started", attempt=attempt, role="agent"), s.find("agent.started", attempt=attempt))


@plant("attempts.phases", "a boundary is reached twice")
def _(s: Story) -> None:
    _again(s, "attempt.boundary", attempt=_verified(s), boundary="pre-verify")


@plant("attempts.phases", "a boundary is reached hundreds of times, of which no file can tell")
def _(s: Story) -> None:
    attempt = _verified(s)
    there = s.find("attempt.boundary", attempt=attempt, boundary="env-ready")
    s.insert_after(there, *(_boundary(attempt, "env-ready") for _ in range(300)))
    s.files[f"{s.find('attempt.admitted', attempt=attempt).body['folder']}/attempt.json"] = b"{}"


@plant("attempts.phases", "boundaries come in another order")
def _(s: Story) -> None:
    attempt = _verified(s)
    s.insert_after(s.find("attempt.boundary", attempt=attempt, boundary="env-ready"), _boundary(attempt, "post-verify"))


@plant("attempts.phases", "a world is ready when the agent has started")
def _(s: Story) -> None:
    attempt = _verified(s)
    s.move_after(
        s.find("agent.started", attempt=attempt), s.find("attempt.boundary", attempt=attempt, boundary="env-ready")
    )


@plant("attempts.phases", "an agent is at work where it is to be verified")
def _(s: Story) -> None:
    attempt = _verified(s)
    s.move_before(
        s.find("agent.ended", attempt=attempt), s.find("attempt.boundary", attempt=attempt, boundary="pre-verify")
    )


@plant("attempts.phases", "it was verified before the verifier ended")
def _(s: Story) -> None:
    attempt = _verified(s)
    s.insert_before(s.find("verifier.ended", attempt=attempt), _boundary(attempt, "post-verify"))


def _boundary(attempt: str, name: str) -> Step:
    return Step("attempt.boundary", {"attempt": attempt, "boundary": name})


def _plant_end(what: str, outcome: str, exception: str | None) -> None:
    """An attempt of the story that ended with that outcome, for another reason."""

    @plant("attempts.outcomes", what)
    def _(s: Story) -> None:
        s.find("attempt.ended", outcome=outcome).body["exception"] = exception


_plant_end("one that was lost was interrupted", "lost", "interrupted")
_plant_end("one that was lost ended the run", "lost", "write_failed")
_plant_end("one that was lost has no reason", "lost", None)
_plant_end("one that was interrupted was lost", "interrupted", "lost")
_plant_end("one that was interrupted lost its sandbox", "interrupted", "sandbox_lost")
_plant_end("one that was interrupted has no reason", "interrupted", None)
_plant_end("one that infrastructure ended was interrupted", "infrastructure", "interrupted")
_plant_end("one that infrastructure ended was lost", "infrastructure", "lost")
_plant_end("one that infrastructure ended ended the run", "infrastructure", "limit_unenforceable")
_plant_end("one that infrastructure ended has no reason", "infrastructure", None)


@plant("worlds.planned", "an agent's world starts when all is over")
def _(s: Story) -> None:
    ended = s.find("verifier.ended")
    world = s.find("sandbox.started", attempt=ended.body["attempt"], role="agent")
    s.drop(world)
    s.insert_after(ended, world)


PLANTS += ROWS
