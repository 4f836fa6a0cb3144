"""A run that is killed in the middle of its agents' streams: each is charged once, and no key stays anywhere."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from provider_runs import KEY, VARIABLE, model
from real_runs import Leftovers, Proctor, bodies, ended, has_entry, kill, outcomes, proctor, until, write_task
from threaded_provider import QuietHandler, ThreadedProvider

from money_runs import Plan, check_money, write_study
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import MAX_FRAME_CONTENT

__all__ = ["proctor"]
pytestmark = pytest.mark.real

TASKS = 3
SEC = 600
AGENT = """
import json, os, urllib.request
body = {"model": os.environ["PROCTOR_MODEL"], "stream": True, "stream_options": {"include_usage": True}}
body["messages"] = [{"role": "user", "content": "What is 12 * 13?"}]
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as reply:
    open("/app/seen", "wb").write(reply.read())
open("/app/answer", "w").write("right\\n")
"""


class Provider(ThreadedProvider):
    """Streams more than is kept in memory, and a key; then the end, once `go_on` is set."""

    def __init__(self) -> None:
        it = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                key = self.headers["authorization"].removeprefix("Bearer ")
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True
                try:
                    self.event({"choices": [{"index": 0, "delta": {"content": f"the key is {key}"}}]})
                    for _ in range(2 * MAX_FRAME_CONTENT // 50_000):
                        self.event({"choices": [{"index": 0, "delta": {"content": "x" * 50_000}}]})
                    it.go_on.wait(SEC)
                    self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
                    self.event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
                    self.wfile.write(b"data: [DONE]\n\n")
                except OSError:
                    pass

            def event(self, value: object) -> None:
                self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
                self.wfile.flush()

        super().__init__(Handler)


@pytest.fixture
def provider() -> Iterator[Provider]:
    it = Provider()
    yield it
    it.end()


def drafts(run: Path) -> list[Path]:
    return [path for path in (run / "blobs/00").glob(".*") if path.stat().st_size]


def holding(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


def test_streams_that_a_kill_breaks_off_are_charged_once_and_leave_no_key(
    proctor: Proctor, provider: Provider, tmp_path: Path
) -> None:
    proctor.env[VARIABLE] = KEY
    study = write_study(
        tmp_path / "study",
        tasks="tasks",
        models={"m": model("m", provider.url)},
        money=Plan({"m": "10000"}, allocation="100000", margin="100000"),
        blocks=TASKS,
        agent=f'name = "command"\ntimeout = "10m"\ncommand = {json.dumps("python3 -c " + shlex.quote(AGENT))}\n',
        grading="",
        stage=f"lanes = {TASKS}\n",
    )
    study.write_text(study.read_text().replace('"namespace"\n', '"namespace"\nnetwork = "gateway-only"\n'))
    for number in range(TASKS):
        write_task(study.parent / f"tasks/t{number}")
    left, run = Leftovers(), tmp_path / "run"
    words: tuple[object, ...] = ("run", study, "--out", run, "--waive", "git_dirty", "--quiet", "--yes")
    for kills in (1, 2):
        with proctor.start(*words) as process:
            until("all is asked", has_entry(run, Kind.EXCHANGE_ADMITTED, kills * TASKS))
            until("all streams are in files", lambda: len(drafts(run)) == TASKS)
            kill(process)
        assert len(drafts(run)) == TASKS and holding(run / "blobs", KEY.encode()) == []
        words = ("resume", run, "--quiet", "--yes")
    provider.go_on.set()
    status, said = proctor(*words)
    assert (status, ended(run)["reason"]) == (0, None), said
    proctor.check(run)
    left.check(run)
    done = bodies(run, Kind.EXCHANGE_ENDED)
    assert [body["outcome"] for body in done] == ["unknown"] * 2 * TASKS + ["settled"] * TASKS
    counted = check_money(run)
    assert (counted.estimated, counted.overruns) == (2 * TASKS, 0)
    assert drafts(run) == []
    assert outcomes(run) == {"completed": TASKS, "lost": 2 * TASKS}
    for folder in (run, study.parent):
        assert holding(folder, KEY.encode()) == []
