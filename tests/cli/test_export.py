"""proctor export public, and every command on the copy that it makes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from journal_parts import KEY
from proctor.api import Refused, Run
from run_parts import Ask, Story, Try, design, make_run

TRIAL = "alpha/sun/only"
ROW = "query/sun/only"


@pytest.fixture
async def asked(tmp_path: Path) -> Path:
    """A run of a task and a question, each with an exchange."""
    message = {"role": "assistant", "content": "THE RESPONSE"}
    response = {"object": "chat.completion", "model": "sun", "choices": [{"index": 0, "message": message}]}
    request = {"model": "sun", "messages": [{"role": "user", "content": "THE REQUEST"}]}
    ask = Ask(request, response, {"input": 10, "output": 5})
    frozen = design(("alpha", "query"), ("only",), models=("sun",))
    tasks = tuple(replace(task, format="question") if task.name == "query" else task for task in frozen.tasks)
    one = Try(asks=(ask,), agent_output=b"THE OUTPUT\n")
    story = Story(tries={("alpha", "only"): (one,), ("query", "only"): (replace(one, answer=b"THE ANSWER"),)})
    return (await make_run(tmp_path / "run", replace(frozen, tasks=tasks), story)).path


def test_what_it_says(proctor: Any, run: Path, tmp_path: Path) -> None:
    said = proctor("export", "public", run, "-o", tmp_path / "copy", "--withhold", "instructions,agent-files")
    assert said.status == 0 and said.err == ""
    for words in ("instructions: 1 body, 12 bytes", "agent-files: ", "shown       the journal, whole; requests"):
        assert words in said.out
    command = next(line for line in said.out.splitlines() if line.startswith("verify")).split()
    assert command[-2:] == ["--key", KEY.fingerprint]
    verified = proctor("verify", tmp_path / "copy", "--key", KEY.fingerprint)
    assert verified.status == 0 and "withheld in this copy" in verified.out


def test_what_it_says_to_programs(proctor: Any, asked: Path, tmp_path: Path) -> None:
    said = proctor("export", "public", asked, "-o", tmp_path / "copy", "--json")
    told = said.json()
    assert said.status == 0 and told["asked"] == ["instructions", "requests", "responses", "answers"]
    # both attempts asked the same
    bodies = {"instructions": 2, "requests": 1, "responses": 1, "answers": 1}
    assert {word: counted["bodies"] for word, counted in told["withheld"].items()} == bodies
    assert (told["path"], told["key"], told["ended"]) == (str(tmp_path / "copy"), KEY.fingerprint, True)
    assert told["left_out"] == {"files": 0, "bytes": 0, "first": []}
    listed = json.loads((tmp_path / "copy/withheld.json").read_bytes())
    assert sum(counted["bytes"] for counted in told["withheld"].values()) == sum(b["size"] for b in listed["blobs"])


def test_nothing_may_be_withheld(proctor: Any, run: Path, tmp_path: Path) -> None:
    told = proctor("export", "public", run, "-o", tmp_path / "copy", "--withhold", "none", "--json").json()
    assert (told["asked"], told["withheld"]) == ([], {})


def test_nothing_that_was_said_is_shown_unless_asked_for_and_what_may_repeat_it_is_named(
    proctor: Any, asked: Path, tmp_path: Path
) -> None:
    said = proctor("export", "public", asked, "-o", tmp_path / "copy")
    packs = b"".join(path.read_bytes() for path in (tmp_path / "copy/packs").iterdir())
    of_run = b"".join(path.read_bytes() for path in (asked / "packs").iterdir())
    for text in (b"THE REQUEST", b"THE RESPONSE", b"THE ANSWER"):
        assert text in of_run and text not in packs
    assert "note        agent-files, verifier-files, artifacts: shown where" in said.out
    assert "note        the journal is shown: 1 answer has its scoring in it (`detail`)" in said.out
    help_text = " ".join(proctor("export", "public", "--help").out.split())
    assert "(default: instructions, requests, responses, answers)" in help_text
    said = proctor("export", "public", asked, "-o", tmp_path / "less", "--withhold", "requests,responses")
    assert "note        instructions, answers: shown, and may repeat what is withheld" in said.out
    said = proctor("export", "public", asked, "-o", tmp_path / "all", "--withhold", "none")
    assert "note" not in said.out


def test_bytes_that_no_entry_names_are_named_and_said_to_fail_the_run(proctor: Any, run: Path, tmp_path: Path) -> None:
    with (run / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"body":{')
    with (run / "packs/0001.pack").open("ab") as pack:
        pack.write(bytes(2048))
    (run / "stray.txt").write_bytes(b"x")
    assert proctor("verify", run).status == 1
    said = proctor("export", "public", run, "-o", tmp_path / "copy")
    lines = [line.strip() for line in said.out.splitlines()]
    at = lines.index("left out    3 files with bytes that no entry names, 2.0 KiB:")
    assert lines[at + 1 : at + 4] == ["journal.jsonl: 9 bytes", "packs/0001.pack: 2.0 KiB", "stray.txt: 1 byte"]
    assert lines[at + 4].startswith("note        with these the run does not verify")


@pytest.mark.parametrize("words", ["everything", "none,requests", "requests,,responses"])
def test_kinds_that_there_are_not(words: str, proctor: Any, run: Path, tmp_path: Path) -> None:
    said = proctor("export", "public", run, "-o", tmp_path / "copy", "--withhold", words)
    assert said.status == 2 and "--withhold takes instructions, requests, responses, answers" in said.err
    assert not (tmp_path / "copy").exists()


def test_what_refuses(proctor: Any, run: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/x").touch()
    said = proctor("export", "public", run, "-o", tmp_path / "there")
    assert said.status == 3 and "refused: would_overwrite" in said.err
    assert proctor("export", "public", tmp_path / "there", "-o", tmp_path / "copy").status == 2
    next(run.glob("trials/*/0/agent")).joinpath("link").symlink_to("nowhere")
    said = proctor("export", "public", run, "-o", tmp_path / "copy")
    assert said.status == 3 and "refused: evidence_damaged" in said.err and "agent/link" in said.err


# Every command on the copy.


@pytest.fixture
def copy(proctor: Any, asked: Path, tmp_path: Path) -> Path:
    """All that can be left out is."""
    kinds = "instructions,requests,responses,answers,agent-files,verifier-files,artifacts"
    assert proctor("export", "public", asked, "-o", tmp_path / "copy", "--withhold", kinds).status == 0
    return tmp_path / "copy"


def test_show_says_what_is_withheld_and_shows_the_rest(proctor: Any, copy: Path, asked: Path) -> None:
    said = proctor("show", copy)
    assert said.status == 0 and "copy       public: " in said.out
    assert "copy       public: " not in proctor("show", asked).out
    said = proctor("show", copy, TRIAL)
    assert said.status == 0 and "10 input, 5 output" in said.out
    assert "the request cannot be read: evidence_withheld" in said.out
    assert "the answer cannot be read: evidence_withheld" in said.out
    (turn,) = proctor("show", copy, TRIAL, "--json").json()["tries"][0]["conversation"]
    assert (turn["withheld"], turn["answer"], turn["new_messages"]) == (["request", "response"], None, [])
    assert turn["unread"].startswith("evidence_withheld")
    said = proctor("show", copy, ROW)
    assert said.status == 0 and "submitted" in said.out and "(evidence_withheld: " in said.out
    told = proctor("show", copy, ROW, "--json").json()["tries"][0]
    assert (told["instruction"], told["answer"]["text"]) == (None, None)
    assert told["withheld"] == ["instruction", "answer"]
    assert "THE " not in said.out


def test_logs_of_a_trial_refuse_what_is_withheld(proctor: Any, copy: Path) -> None:
    assert proctor("logs", copy).status == 0
    said = proctor("logs", copy, TRIAL)
    assert said.status == 3 and "refused: evidence_withheld" in said.err and "agent/stdout.txt" in said.err
    assert "nothing was printed" not in said.err


def test_resume_refuses_and_changes_nothing(proctor: Any, copy: Path) -> None:
    before = sorted(path.relative_to(copy) for path in copy.rglob("*"))
    said = proctor("resume", copy)
    assert said.status == 3 and "refused: evidence_withheld" in said.err
    assert sorted(path.relative_to(copy) for path in copy.rglob("*")) == before


def test_results_reports_proofs_and_derived_files_need_no_body(
    proctor: Any, asked: Path, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for words in (["results"], ["results", "--jsonl"], ["status"], ["prove", TRIAL]):
        command, *more = words
        of_copy, of_run = proctor(command, copy, *more), proctor(command, asked, *more)
        assert (of_copy.status, of_copy.err) == (0, of_run.err)
        assert of_copy.out.replace(str(copy), str(asked)) == of_run.out
    assert proctor("report", copy, "-o", tmp_path / "page.html").status == 0
    rebuilt = proctor("show", copy, "--rebuild", "--json")
    assert rebuilt.status == 0 and {each["copy"] for each in rebuilt.json()} == {"same"}


def test_verify_says_that_something_is_withheld(proctor: Any, asked: Path, copy: Path) -> None:
    of_run, of_copy = (proctor("verify", path, "--key", KEY.fingerprint, "--json").json() for path in (asked, copy))
    failed = [[check["check"] for check in of["checks"] if check["status"] == "fail"] for of in (of_run, of_copy)]
    assert failed[0] == failed[1]
    assert any("withheld in this copy" in caveat for caveat in of_copy["caveats"])


def test_from_python_what_is_withheld_is_refused(copy: Path) -> None:
    trial = Run(copy).trial("alpha")
    assert trial.grade == "pass" and [attempt.exchanges[0]["withheld"] for attempt in trial.tries()]
    row = Run(copy).trial("query").tries()[0]
    for ask in (lambda: trial.conversation, lambda: row.answer, lambda: row.instruction):
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.reasons == ("evidence_withheld",)


@pytest.mark.parametrize("what", ["none", "deep", "a FIFO", "a link", "other types"])
def test_a_list_that_is_none_is_said_by_type(what: str, proctor: Any, copy: Path) -> None:
    path = copy / "withheld.json"
    path.unlink()
    if what == "a FIFO":
        os.mkfifo(path)
    elif what == "a link":
        path.symlink_to("/dev/zero")
    else:
        content = {"none": b"[]", "deep": b"[" * 100_000, "other types": b'{"blobs":[{"blob":1,"size":1}],"files":[]}'}
        path.write_bytes(content[what])
    for words in (["resume", copy], ["show", copy, TRIAL], ["export", "public", copy, "-o", copy.parent / "again"]):
        said = proctor(*words)
        assert said.status == 3, words
        assert "refused: evidence_damaged" in said.err or "refused: evidence_unreadable" in said.err
    assert proctor("show", copy).status == 0


def test_a_copy_is_anchored_by_nobody_and_stays_as_it_is(proctor: Any, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    before = sorted(path.relative_to(copy) for path in copy.rglob("*"))
    said = proctor("anchor", copy, "--drop", tmp_path / "out")
    assert said.status == 3 and "evidence_withheld" in said.err
    assert sorted(path.relative_to(copy) for path in copy.rglob("*")) == before
    assert list((tmp_path / "out").iterdir()) == []
