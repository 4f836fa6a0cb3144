"""What of a run a public copy can leave out: each kind, and what it asks for. Pure."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import NamedTuple

from proctor.evidence.kinds import Kind


class _Doc(NamedTuple):
    word: str
    doc: str


class Withhold(Enum):
    """Kinds of bodies; `word` is what `--withhold` takes."""

    INSTRUCTIONS = _Doc("instructions", "what agents were told: the texts of tasks and questions")
    REQUESTS = _Doc("requests", "bodies of requests to models, those that were refused too")
    RESPONSES = _Doc("responses", "bodies of models' answers, and the times at which their pieces came")
    ANSWERS = _Doc("answers", "the texts that agents submitted to questions")
    AGENT_FILES = _Doc("agent-files", "what agents left in `agent/` of their attempts: output, trajectories, logs")
    VERIFIER_FILES = _Doc(
        "verifier-files",
        "what tests left in `verifier/` of the attempts, but for reward.txt, reward.json, ctrf.json and junit.xml, "
        "from which grades are recomputed",
    )
    ARTIFACTS = _Doc("artifacts", "files that tasks declare and agents made, in `artifacts/` of the attempts")

    @property
    def word(self) -> str:
        """As it is typed."""
        return self.value.word

    @property
    def doc(self) -> str:
        """What it asks for."""
        return self.value.doc

    @classmethod
    def by_word(cls, word: str) -> Withhold | None:
        """The kind of that word, or None."""
        return next((kind for kind in cls if kind.word == word), None)


# All that was said: a question's text is its request's too, and its answer the response's.
DEFAULT = frozenset({Withhold.INSTRUCTIONS, Withhold.REQUESTS, Withhold.RESPONSES, Withhold.ANSWERS})
# What was cut off packs and blobs after a crash: bodies, and nobody knows of which kind.
QUARANTINED = "quarantined"

_BODIES = {
    (Kind.AGENT_STARTED, "instruction"): Withhold.INSTRUCTIONS,
    (Kind.EXCHANGE_ADMITTED, "request"): Withhold.REQUESTS,
    (Kind.EXCHANGE_REFUSED, "request"): Withhold.REQUESTS,
    (Kind.EXCHANGE_ENDED, "response"): Withhold.RESPONSES,
    (Kind.EXCHANGE_ENDED, "chunks"): Withhold.RESPONSES,
    (Kind.ANSWER_SCORED, "answer"): Withhold.ANSWERS,
}
_FOLDERS = {
    "agent": Withhold.AGENT_FILES,
    "verifier": Withhold.VERIFIER_FILES,
    "artifacts": Withhold.ARTIFACTS,
}
# The format lets no copy leave them out.
_KEPT = frozenset({"verifier/reward.txt", "verifier/reward.json", "verifier/ctrf.json", "verifier/junit.xml"})
_MAY_BE = frozenset({"source", "partial"})
_OF_BLOBS = frozenset(_BODIES.values())
_BLOB_PLACES = ("packs/", "blobs/")


def kind_of_body(kind: Kind, field: str) -> Withhold:
    """The kind of the blob that an entry names in a field.

    Raises:
        KeyError: the registry of kinds has a blob that no kind here asks for.
    """
    return _BODIES[kind, field]


def asks_for_file(asked: Collection[Withhold], path: str, role: str) -> Withhold | None:
    """The kind that has a file of an attempt left out, None where it is shown; `path` is below the attempt's folder."""
    if path in _KEPT or role not in _MAY_BE:
        return None
    kind = _FOLDERS.get(path.partition("/")[0])
    return kind if kind in asked else None


def asks_for_quarantined(asked: Collection[Withhold], source: str) -> bool:
    """Whether bytes that a recovery set aside are left out: what is no line of the journal may be any blob."""
    return source.startswith(_BLOB_PLACES) and not _OF_BLOBS.isdisjoint(asked)
