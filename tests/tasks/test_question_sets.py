"""Question sets: what a row may be, each bad input by name, digests, attached files, selecting."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.models import Role
from proctor.core.questions import Question, Scorer
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.scorers.score import check_row
from proctor.tasks.questions import MAX_LINE_BYTES, QuestionSet, read_questions
from proctor.tasks.selection import select

ROW: dict[str, Any] = {"id": "a", "prompt": "1 + 1?", "target": "2"}


def write(folder: Path, *lines: Any) -> Path:
    path = folder / "units.jsonl"
    encoded = [line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode() for line in lines]
    path.write_bytes(b"\n".join(encoded) + b"\n")
    return path


def read(folder: Path, *lines: Any, scorer: str = "exact", function: str | None = None) -> QuestionSet:
    found, refusals = read_questions(write(folder, *lines), scorer=scorer, scorer_function=function, check=check_row)
    assert refusals == [] and found is not None
    return found


def refused(folder: Path, *lines: Any, scorer: str = "exact") -> list[Refusal]:
    found, refusals = read_questions(write(folder, *lines), scorer=scorer, scorer_function=None, check=check_row)
    assert found is None and refusals
    return refusals


def row(**more: Any) -> dict[str, Any]:
    return ROW | more


def test_a_set_is_read(tmp_path: Path) -> None:
    rows = [row(id="b", metadata={"level": 1}, cluster="c", tools=["calc"]), row()]
    questions = read(tmp_path, *rows)
    assert questions.ids == ["a", "b"] and len(questions) == 2 and questions.tools == {"calc"}
    assert questions.sha256 == hashlib.sha256((tmp_path / "units.jsonl").read_bytes()).hexdigest()
    asked = questions.row("b")
    assert (asked.id, asked.target, asked.scorer, asked.tools, asked.cluster) == (
        "b",
        "2",
        Scorer.EXACT,
        ("calc",),
        "c",
    )
    assert asked.metadata == {"level": 1} and asked.row == rows[0] and questions.row("a").tools is None
    assert [(message.role, message.text) for message in asked.messages] == [(Role.USER, "1 + 1?")]
    for absent in ("", "A", "aa", "c"):
        with pytest.raises(KeyError):
            questions.row(absent)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n  \n"])
def test_how_lines_end_changes_nothing(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "units.jsonl"
    first, last = json.dumps(row()).encode(), json.dumps(row(id="b", prompt="\u2028?")).encode()
    path.write_bytes(first + (end or b"\n") + last + end)
    questions, refusals = read_questions(path, scorer="exact", scorer_function=None, check=check_row)
    assert refusals == [] and questions is not None and questions.ids == ["a", "b"]
    assert questions.row("b").messages[0].text == "\u2028?"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json", Reason.QUESTIONS_UNREADABLE),
        (b'{"id": "a"', Reason.QUESTIONS_UNREADABLE),
        (b'{"id": "a", "prompt": "\xff", "target": "2"}', Reason.QUESTIONS_UNREADABLE),
        (b'{"id": "wrong", "id": "right", "prompt": "?", "target": "2"}', Reason.QUESTIONS_UNREADABLE),
        (b'{"id": "a", "prompt": "?", "target": NaN}', Reason.QUESTIONS_UNREADABLE),
        (b'{"id": "a", "prompt": "?", "target": 1e400}', Reason.QUESTIONS_UNREADABLE),
        (b'{"id": "a", "prompt": "\\ud800", "target": "2"}', Reason.QUESTIONS_UNREADABLE),
        (b'{"id": "a", "prompt": "?", "target": ' + b"1" * 5_000 + b"}", Reason.QUESTIONS_UNREADABLE),
        (b"[" * 100_000 + b"]" * 100_000, Reason.QUESTIONS_UNREADABLE),
        (row(prompt="x" * MAX_LINE_BYTES), Reason.QUESTIONS_UNREADABLE),
        (b"[]", Reason.QUESTION_INVALID),
        (b'"a"', Reason.QUESTION_INVALID),
        ({}, Reason.QUESTION_INVALID),
        ({"id": "a", "prompt": "?"}, Reason.QUESTION_INVALID),
        *[(row(id=bad), Reason.QUESTION_INVALID) for bad in (7, "", " a", "a\n", "a\tb", "x" * 201, None, True)],
        *[(row(prompt=bad), Reason.QUESTION_INVALID) for bad in (7, None, "", "  ", [], ["hi"], {})],
        (row(prompt=[{"role": "user"}]), Reason.QUESTION_INVALID),
        (row(prompt=[{"role": "user", "content": "?", "name": "x"}]), Reason.QUESTION_INVALID),
        (row(prompt=[{"role": "tool", "content": "?"}]), Reason.QUESTION_INVALID),
        (row(prompt=[{"role": "user", "content": 5}]), Reason.QUESTION_INVALID),
        (
            row(prompt=[{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]),
            Reason.QUESTION_INVALID,
        ),
        *[(row(target=bad), Reason.QUESTION_INVALID) for bad in (None, True, ["2"], "", {"a": 1})],
        (row(target=2**53), Reason.QUESTION_INVALID),
        *[(row(choices=bad), Reason.QUESTION_INVALID) for bad in ("AB", [], ["x"], ["x", 2], ["x", " x"], ["x", ""])],
        *[(row(choices=bad), Reason.QUESTION_INVALID) for bad in ({"A": "x"}, {"a": "x", "b": "y"}, {"A": 1, "B": 2})],
        (row(choices=[str(n) for n in range(27)]), Reason.QUESTION_INVALID),
        (row(scorer="choice"), Reason.QUESTION_INVALID),
        (row(scorer="number", target="two"), Reason.QUESTION_INVALID),
        (row(scorer="exakt"), Reason.QUESTION_INVALID),
        (row(scorer=["exact"]), Reason.QUESTION_INVALID),
        (row(scorer="judge"), Reason.NOT_IN_THIS_VERSION),
        (row(scorer="python"), Reason.QUESTION_INVALID),
        (row(scorer_function="a:b"), Reason.QUESTION_INVALID),
        (row(scorer="python", scorer_function="no_such:f"), Reason.TOOL_INVALID),
        (row(tolerance=0.1), Reason.QUESTION_INVALID),
        *[
            (row(scorer="number", target=2, tolerance=bad), Reason.QUESTION_INVALID)
            for bad in (-1, "0.1", True, {}, {"relative": -1}, {"absolute": 1, "relative": 1}, {"both": 1}, [1])
        ],
        *[(row(tools=bad), Reason.QUESTION_INVALID) for bad in ("calc", [1], ["a", "a"], [""], {})],
        *[(row(files=bad), Reason.QUESTION_INVALID) for bad in ("x", [1], ["/etc/passwd"], ["../x"], ["a/../../x"])],
        *[(row(files=[bad]), Reason.QUESTION_INVALID) for bad in ("absent.txt", ".", "a//b", "folder", "a\\b", "a\0b")],
        (row(metadata=[]), Reason.QUESTION_INVALID),
        (row(cluster=5), Reason.QUESTION_INVALID),
    ],
)
def test_a_bad_row_is_refused_by_its_line(tmp_path: Path, line: Any, reason: Reason) -> None:
    (tmp_path / "folder").mkdir()
    found = refused(tmp_path, row(id="fine"), line, row(id="fine too"))
    assert [(each.reason, each.path) for each in found] == [(reason, "units.jsonl:2")]
    json.dumps(found[0].as_record())


def test_an_unknown_key_names_the_closest(tmp_path: Path) -> None:
    (found,) = refused(tmp_path, row(promt="x"))
    assert found.reason is Reason.QUESTION_INVALID and "`prompt`" in found.message


def test_an_id_that_stands_twice_names_both_lines(tmp_path: Path) -> None:
    (found,) = refused(tmp_path, row(), row(id="b"), row(target="3"))
    assert found.path == "units.jsonl:3" and "line 1" in found.message


def test_all_bad_lines_are_told_up_to_twenty(tmp_path: Path) -> None:
    assert len(refused(tmp_path, *[row(id=f"r{n}", target=None) for n in range(7)])) == 7
    assert len(refused(tmp_path, *[row(id=f"r{n}", target=None) for n in range(50)])) == 20


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"\xef\xbb\xbf" + json.dumps(ROW).encode(), json.dumps(ROW).encode("utf-16")]
)
def test_what_is_no_question_set(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "units.jsonl").write_bytes(data)
    found, refusals = read_questions(tmp_path / "units.jsonl", scorer="exact", scorer_function=None, check=check_row)
    assert found is None and refusals[0].reason is Reason.QUESTIONS_UNREADABLE


@pytest.mark.parametrize("kind", ["absent", "folder", "pipe"])
def test_what_is_no_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    found, refusals = read_questions(path, scorer="exact", scorer_function=None, check=check_row)
    assert found is None and [each.reason for each in refusals] == [Reason.QUESTIONS_UNREADABLE]


def test_choices_are_listed_unless_the_prompt_lists_them(tmp_path: Path) -> None:
    choices = ["red", "blue"]
    listed = "Which?\n(A) red\n(B) blue"
    half = "Which?\nA: red"
    questions = read(
        tmp_path,
        row(id="a", prompt="Which?", target="A", choices=choices),
        row(id="b", prompt=listed, target="A", choices=choices),
        row(id="c", prompt=half, target="red", choices={"B": "blue", "A": "red"}),
        scorer="choice",
    )
    texts = [questions.row(name).messages[-1].text for name in questions.ids]
    assert texts == ["Which?\n\nA) red\nB) blue", listed, half + "\n\nA) red\nB) blue"]


def test_attached_texts_stand_in_fences_behind_the_last_message(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("x,y\n")
    (tmp_path / "b.md").write_text("```\ncode\n````")
    prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Sum?"}]
    questions = read(tmp_path, row(prompt=prompt, files=["data/a.csv", "b.md"]))
    system, user = questions.row("a").messages
    assert (system.role, system.text) == (Role.SYSTEM, "Be brief.")
    assert user.text == "Sum?\n\ndata/a.csv:\n```\nx,y\n```\n\nb.md:\n`````\n```\ncode\n````\n`````"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n", b"a\0b"])
def test_a_file_that_is_no_text_waits_for_a_later_version(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.png").write_bytes(data)
    (found,) = refused(tmp_path, row(files=["x.png"]))
    assert found.reason is Reason.NOT_IN_THIS_VERSION


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "secret").write_text("s")
    (tmp_path / "set/link").symlink_to("../secret")
    (found,) = refused(tmp_path / "set", row(files=["link"]))
    assert found.reason is Reason.QUESTION_INVALID and "leads out" in found.message


@pytest.mark.parametrize("kind", ["pipe", "large"])
def test_a_file_that_cannot_be_attached(tmp_path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(tmp_path / "x")
    else:
        (tmp_path / "x").write_bytes(b"x" * ((1 << 20) + 1))
    (found,) = refused(tmp_path, row(files=["x"]))
    assert found.reason is Reason.QUESTION_INVALID


def test_a_file_that_changed_since_it_was_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("one")
    questions = read(tmp_path, row(files=["x.txt"]))
    (tmp_path / "x.txt").write_text("two")
    with pytest.raises(Refusal) as found:
        questions.row("a")
    assert found.value.reason is Reason.TASK_CHANGED


def test_a_row_has_a_digest_of_all_that_it_is(tmp_path: Path) -> None:
    def digest(**more: Any) -> str:
        return read(tmp_path, row(id="0"), row(**more)).digest("a")

    (tmp_path / "x.txt").write_text("one")
    (tmp_path / "mine.py").write_text("def f(answer, row): return True\n")
    whole = hashlib.sha256(b'{"row":{"id":"a","prompt":"1 + 1?","target":"2"}}').hexdigest()
    function = {"scorer": "python", "scorer_function": "mine:f"}
    assert digest() == whole
    before = digest(files=["x.txt"]), digest(**function)
    (tmp_path / "x.txt").write_text("two")
    (tmp_path / "mine.py").write_text("def f(answer, row): return False\n")
    after = digest(files=["x.txt"]), digest(**function)
    found = [whole, digest(prompt="1+1?"), digest(metadata={}), digest(target=2), *before, *after]
    assert len(set(found)) == len(found)


def test_the_order_of_keys_is_no_part_of_a_digest(tmp_path: Path) -> None:
    there = read(tmp_path, row(metadata={"x": 1, "y": 2})).digest("a")
    back = dict(reversed(list(row(metadata={"y": 2, "x": 1}).items())))
    assert read(tmp_path, back).digest("a") == there


def test_scorer_functions_of_rows_are_found_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f(answer, row): return True\n")
    (tmp_path / "sets").mkdir()
    path = write(tmp_path / "sets", row(scorer="python", scorer_function="mine:f"), row(id="b"))
    questions, refusals = read_questions(
        path, scorer="python", scorer_function="study:g", check=check_row, base=tmp_path
    )
    assert refusals == [] and questions is not None
    assert questions.functions == {"mine:f": hashlib.sha256((tmp_path / "mine.py").read_bytes()).hexdigest()}
    assert [questions.row(name).scorer_function for name in questions.ids] == ["mine:f", "study:g"]


def test_rows_are_selected_as_tasks_are(tmp_path: Path) -> None:
    rows = [row(id=f"r{n:03d}", metadata={"level": n % 3, "easy": n % 2 == 0}) for n in range(30)]
    questions = read(tmp_path, *rows)

    def names(**by: Any) -> list[str]:
        return [each.name for each in select(questions, **by)]

    assert names() == questions.ids
    assert names(include=["r00*"]) == questions.ids[:10]
    assert names(ids=["r007", "r003"]) == ["r003", "r007"]
    assert names(where={"level": 2, "easy": True}, slice_="1:3") == ["r008", "r014"]
    assert names(where={"easy": 1}) == [] and names(where={"absent": None}) == questions.ids
    with pytest.raises(Refusal) as found:
        names(ids=["r099"])
    assert found.value.reason is Reason.UNKNOWN_NAME


TEXT = st.text(min_size=1).filter(lambda text: text.strip() and len(text) < 100)


@given(
    st.lists(st.tuples(TEXT, TEXT, st.dictionaries(st.text(), st.integers(-9, 9), max_size=3)), min_size=1, max_size=8)
)
def test_rows_come_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    written = [
        {"id": f"r{at}", "prompt": prompt, "target": target, "metadata": metadata}
        for at, (prompt, target, metadata) in enumerate(rows)
    ]
    path = write(tmp_path_factory.getbasetemp(), *written)
    questions, refusals = read_questions(path, scorer="exact", scorer_function=None, check=check_row)
    assert refusals == [] and questions is not None
    found: list[Question] = [questions.row(name) for name in questions.ids]
    assert [each.row for each in found] == written
    assert [each.messages[0].text for each in found] == [each["prompt"] for each in written]


def test_what_a_row_costs_beside_its_bytes_is_bounded(tmp_path: Path) -> None:
    """A parsed row takes twenty times this."""
    import tracemalloc

    path = write(tmp_path, *(row(id=f"row-{n:05d}", metadata={"level": n}) for n in range(3_000)))
    tracemalloc.start()
    try:
        questions, _ = read_questions(path, scorer="exact", scorer_function=None, check=check_row)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert questions is not None and held - path.stat().st_size < 3_000 * 150


def test_no_json_that_is_none_passes_for_a_row(tmp_path: Path, cases: Path) -> None:
    suite = {case.name: case.read_bytes() for case in (cases / "json/JSONTestSuite").rglob("n_*.json")}
    within_a_line = {name: data for name, data in suite.items() if b"\n" not in data}
    assert len(within_a_line) > 50
    for name, data in within_a_line.items():
        line = b'{"id": "a", "prompt": "?", "target": "x", "metadata": {"value": ' + data + b"}}"
        (found,) = refused(tmp_path, line)
        assert found.reason is Reason.QUESTIONS_UNREADABLE and found.path == "units.jsonl:1", name
