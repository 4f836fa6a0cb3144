"""Question sets: a file of rows, checked once, kept as its bytes, and parsed a row at a time when one is asked for.

A row's digest is SHA-256 over the canonical JSON of `{"row": …}`, with `files` (path → SHA-256 of what the row
attaches) and `function` (SHA-256 of the file of the row's own scorer function) where it has them.
"""

from __future__ import annotations

import codecs
import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.core.canonical import encode
from proctor.core.files import read_regular
from proctor.core.questions import Question, Scorer
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.strictjson import loads
from proctor.tasks.functions import find_function
from proctor.tasks.question_files import Attachments
from proctor.tasks.question_row import Fault, attached, read_row

MAX_LINE_BYTES = 1 << 20
MAX_SET_BYTES = 1 << 30
MAX_REPORTED = 20

_DIGEST_BYTES = 32

RowCheck = Callable[[Question], str | None]
"""What a scorer says against a row that it cannot score, in one sentence; None where it can."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row as selections see it; its metadata is parsed when looked at."""

    name: str
    questions: QuestionSet

    @property
    def path(self) -> Path:
        """The set that it stands in."""
        return self.questions.path

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The row's free values."""
        return self.questions.row(self.name).metadata


class QuestionSet:
    """A question set that was read and found right: `len`, iteration over `Row`, and rows by id.

    `sha256` is of the file's bytes, hex. `functions` are the digests of the files of scorer functions that rows name
    themselves, `tools` all names of tools in rows.
    """

    def __init__(self, path: Path, data: bytes, scorer: Scorer, scorer_function: str | None) -> None:
        self.path = path
        self.sha256 = hashlib.sha256(data).hexdigest()
        self.functions: dict[str, str] = {}
        self.tools: set[str] = set()
        self._data = data
        self._scorer = scorer
        self._scorer_function = scorer_function
        self._attachments = Attachments(path.parent)
        self._ids: list[str] = []
        self._starts = array("Q")
        self._digests = bytearray()
        self._clusters: dict[str, str] = {}

    @property
    def ids(self) -> list[str]:
        """The ids of all rows, sorted."""
        return self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Row]:
        return (Row(name, self) for name in self._ids)

    def digest(self, name: str) -> str:
        """The row's digest, hex. Raises KeyError."""
        at = self._at(name) * _DIGEST_BYTES
        return self._digests[at : at + _DIGEST_BYTES].hex()

    def cluster(self, name: str) -> str | None:
        """What the row shares with those that it belongs together with; None where it stands alone."""
        return self._clusters.get(name)

    def row(self, name: str) -> Question:
        """The row of that id.

        Raises:
            KeyError: there is none.
            Refusal: TASK_CHANGED where a file that it attaches is no longer what was read.
        """
        start = self._starts[self._at(name)]
        end = self._data.find(b"\n", start)
        value = loads(self._data[start : end if end >= 0 else len(self._data)], max_bytes=MAX_LINE_BYTES)
        try:
            return self._question(value)
        except Fault as fault:
            raise fault.refusal(f"{self.path.name}: {name}") from fault

    def _question(self, value: Any) -> Question:
        return read_row(value, scorer=self._scorer, scorer_function=self._scorer_function, texts=self._attachments.text)

    def _at(self, name: str) -> int:
        at = bisect_left(self._ids, name)
        if at == len(self._ids) or self._ids[at] != name:
            raise KeyError(name)
        return at

    def _read(self, base: Path, check: RowCheck) -> list[Refusal]:
        """Check every line, and keep where rows stand. At most `MAX_REPORTED` refusals, in order of lines."""
        found: list[Refusal] = []
        lines: dict[str, int] = {}
        starts, digests = array("Q"), bytearray()
        for number, start, line in _lines(self._data):
            where = f"{self.path.name}:{number}"
            try:
                question = self._question(_parsed(line, where))
                if (earlier := lines.get(question.id)) is not None:
                    raise Fault(f"the id {question.id!r} stands on line {earlier} too", question.id, "another id")
                if (why := check(question)) is not None:
                    raise Fault(why, None, f"what the scorer `{question.scorer.value}` takes")
                digest = self._digest(question, base, where)
            except Fault as fault:
                found.append(fault.refusal(where))
            except Refusal as refusal:
                found.append(refusal)
            else:
                lines[question.id] = number
                if question.cluster is not None:
                    self._clusters[question.id] = question.cluster
                starts.append(start)
                digests += digest
                self.tools.update(question.tools or ())
            if len(found) == MAX_REPORTED:
                break
        if found:
            return found
        ids = list(lines)
        order = sorted(range(len(ids)), key=ids.__getitem__)
        self._ids = [ids[at] for at in order]
        self._starts = array("Q", (starts[at] for at in order))
        self._digests = bytearray().join(digests[at * _DIGEST_BYTES : (at + 1) * _DIGEST_BYTES] for at in order)
        return []

    def _digest(self, question: Question, base: Path, where: str) -> bytes:
        over: dict[str, Any] = {"row": question.row}
        if files := attached(question.row):
            over["files"] = {path: self._attachments.digest(path) for path in files}
        if "scorer_function" in question.row and question.scorer_function is not None:
            name = question.scorer_function
            if name not in self.functions:
                self.functions[name] = find_function(name, base, where).sha256
            over["function"] = self.functions[name]
        try:
            return hashlib.sha256(encode(over)).digest()
        except Refusal as refusal:
            raise Fault(f"{refusal.message}: write it as a string", None, "numbers within 2^53 - 1") from refusal


def read_questions(
    path: Path,
    *,
    scorer: str,
    scorer_function: str | None,
    check: RowCheck,
    base: Path | None = None,
) -> tuple[QuestionSet | None, list[Refusal]]:
    """Read and check a whole question set.

    Args:
        path: the file; attached files are relative to its folder.
        scorer, scorer_function: the study's, for rows that name none.
        check: what the scorers say against a row.
        base: the folder that scorer functions of rows are looked for in first, the study's; the file's own if None.

    Returns:
        The set, or None and the first `MAX_REPORTED` refusals: QUESTIONS_UNREADABLE (not strict JSON, a line above
        1 MiB, no rows …), QUESTION_INVALID, NOT_IN_THIS_VERSION, TOOL_INVALID; `path` is `units.jsonl:LINE`.
    """
    try:
        data = read_regular(path, MAX_SET_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return None, [_unreadable(f"the question set cannot be read: {why}", path.name)]
    if data is None:
        required = {"bytes": MAX_SET_BYTES}
        return None, [_unreadable("the question set is no file, or larger than one can be", path.name, None, required)]
    if data.startswith(codecs.BOM_UTF8):
        return None, [_unreadable("the question set starts with a byte-order mark", f"{path.name}:1", None, "UTF-8")]
    questions = QuestionSet(path, data, Scorer(scorer), scorer_function)
    found = questions._read(base or path.parent, check)
    if not found and not questions.ids:
        found = [_unreadable("the question set has no rows", path.name, 0, 1)]
    return (None if found else questions), found


def _lines(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number from 1, offset and bytes of each line that is not blank."""
    start, number = 0, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        line = data[start : min(end, start + MAX_LINE_BYTES + 1)]
        if not line.isspace() and line:
            yield number, start, line
        start = end + 1


def _parsed(line: bytes, where: str) -> Any:
    try:
        return loads(line, max_bytes=MAX_LINE_BYTES, path=where)
    except Refusal as refusal:
        raise _unreadable(refusal.message, where, refusal.observed, refusal.required) from refusal


def _unreadable(message: str, path: str, observed: Any = None, required: Any = None) -> Refusal:
    return Refusal(Reason.QUESTIONS_UNREADABLE, message, path=path, observed=observed, required=required)
