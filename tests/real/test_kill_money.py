"""A run that spends is killed (-9) at any moment, again and again: nothing said is lost, and nothing paid twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

import killed_child
import pytest
from provider_runs import KEY, VARIABLE
from real_runs import ENOUGH_SEC, Proctor, bodies, ended, is_live
from threaded_provider import QuietHandler, ThreadedProvider

from money_runs import Plan, check_money, sums, write_study
from proctor.core.money import Usd
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries

pytestmark = pytest.mark.real

KILLS = int(os.environ.get("PROCTOR_MONEY_KILLS", "40"))
LANES, ROWS = 4, 12 * KILLS
# so many rows does no opening use up, however fast the machine is, nor wait for its moment longer
MOST_SAID = 120
# dollars: what an exchange holds, and what an answer of ours costs
HELD, COST = 100, 2
MODEL = f"""
provider = "mine"
api = "chat"
model = "m-1"
api_key_env = "{VARIABLE}"
max_output_tokens = {HELD}
request_timeout = "10m"
base_url = "{{url}}"
[models.m.price]
input = "0"
output = "1"
per = "1"
source = "made up for a test"
"""


@dataclass
class Seen:
    """The journal as far as whole lines of it stand: of each row the exchange that is in flight."""

    path: Path
    offset: int = 0
    row_of: dict[str, str] = field(default_factory=dict)
    flying: dict[str, str] = field(default_factory=dict)

    def look(self) -> None:
        """Read what was added; what a recovery cuts off was no whole line."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            new = stream.read()
        whole = new[: new.rfind(b"\n") + 1]
        self.offset += len(whole)
        for line in whole.splitlines():
            entry = json.loads(line)
            body = entry["body"]
            if entry["kind"] == "attempt.admitted":
                self.row_of[body["attempt"]] = body["task"]
            elif entry["kind"] == "exchange.admitted":
                self.flying[self.row_of[body["attempt"]]] = body["exchange"]
            elif entry["kind"] == "exchange.ended":
                del self.flying[self.row_of[body["attempt"]]]


class Provider(ThreadedProvider):
    """Answers sums. `asked` counts requests by the exchange in whose name they came, `answered` those that it answered.

    What a request stands for is read in the journal while it is here: the exchange that its row, the mark in its body,
    has in flight. `when` is called before and after each answer.
    """

    def __init__(self, journal: Path) -> None:
        self.asked: Counter[str] = Counter()
        self.answered: set[str] = set()
        self.faults: list[str] = []
        self.when: Callable[[str], None] = lambda moment: None
        self.active = 0
        self.changed = threading.Condition()
        seen, it = Seen(journal), self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                self.send_response(204)
                self.end_headers()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                with it.changed:
                    seen.look()
                    one, other = map(int, re.findall(r"What is (\d+) \* (\d+)\?", body.decode())[-1])
                    exchange = seen.flying.get(f"q{one}x{other}")
                    if exchange is None:
                        it.faults.append(f"{one} * {other} was asked for no exchange")
                        return
                    it.asked[exchange] += 1
                it.when("asked")
                message = {"role": "assistant", "content": str(one * other)}
                usage = {"prompt_tokens": 3, "completion_tokens": COST}
                said = {"model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
                data = json.dumps({**said, "usage": usage}).encode()
                try:
                    self.send_response(200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                    it.answered.add(exchange)
                except OSError:
                    return
                it.when("answered")

            def setup(self) -> None:
                with it.changed:
                    it.active += 1
                super().setup()

            def finish(self) -> None:
                try:
                    super().finish()
                except OSError:
                    pass
                with it.changed:
                    it.active -= 1
                    it.changed.notify_all()

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:
                    pass  # who asked is dead

        super().__init__(Handler)

    def rest(self) -> None:
        """Return once whatever a dead process sent has been read: connections are taken in their order."""
        host, port = self.server.server_address[:2]
        last = HTTPConnection(str(host), int(port), timeout=ENOUGH_SEC)
        last.request("GET", "/")
        last.getresponse().read()
        last.close()
        with self.changed:
            assert self.changed.wait_for(lambda: self.active == 0, ENOUGH_SEC)


class Loop:
    """Starts the program, kills it at a moment that chance chooses, and keeps what it was told."""

    def __init__(self, proctor: Proctor, study: Path, run: Path, provider: Provider, chance: random.Random) -> None:
        self.proctor, self.study, self.run, self.provider, self.chance = proctor, study, run, provider, chance
        self.acknowledged: dict[int, tuple[str, frozenset[str]]] = {}
        self.moments: Counter[str] = Counter()
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(killed_child.AHEAD)

    def once(self, *, to_its_end: bool = False) -> int:
        """One opening; the exit status, or minus the signal."""
        admitted = (self.run / "journal.jsonl").exists()
        words = ["resume", str(self.run)] if admitted else ["run", str(self.study), "--out", str(self.run)]
        words += ["--waive", "git_dirty", "--quiet", "--yes"]
        hearing, saying = self.context.Pipe(duplex=False)
        environ = {name: self.proctor.env[name] for name in ("XDG_CONFIG_HOME", VARIABLE)}
        process = self.context.Process(
            target=killed_child.program, args=(words, environ, str(self.proctor.home), saying)
        )
        process.start()
        saying.close()
        moment, after = self._moment()
        if to_its_end:
            moment = "its own end"
        self.moments[moment] += 1
        lock, left = threading.Lock(), [after]

        def come(what: str) -> None:
            with lock:
                left[0] -= what == moment
                if what == moment and left[0] <= 0:
                    process.kill()

        self.provider.when = come
        timer = threading.Timer(self.chance.random() * 1.5, process.kill)
        if moment == "time":
            timer.start()
        said = 0
        try:
            while True:
                seq, digest, blobs = json.loads(hearing.recv_bytes())
                assert seq not in self.acknowledged
                self.acknowledged[seq] = digest, frozenset(blobs)
                said += 1
                if said == MOST_SAID and not to_its_end:
                    process.kill()
                come("said")
        except (EOFError, OSError):
            pass  # the last word may be cut: then it was not said
        process.join(ENOUGH_SEC)
        timer.cancel()
        self.provider.when = lambda moment: None
        self.provider.rest()
        assert process.exitcode is not None and not is_live(self.run)
        return process.exitcode

    def _moment(self) -> tuple[str, int]:
        match self.chance.randrange(8):
            case 0:
                return "time", 0
            case 1 | 2:
                return "asked", self.chance.randint(1, 12)
            case 3 | 4:
                return "answered", self.chance.randint(1, 12)
            case _:
                return "said", self.chance.choice([1, 2, 3, *[self.chance.randint(1, 80)] * 5])


@pytest.fixture
def proctor(tmp_path: Path) -> Proctor:
    return Proctor(tmp_path)


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    it = Provider(tmp_path / "run" / "journal.jsonl")
    yield it
    it.end()


def test_nothing_is_lost_and_nothing_paid_twice(proctor: Proctor, provider: Provider, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    began = time.monotonic()
    proctor.env[VARIABLE] = KEY
    allocation = ROWS * COST + KILLS * LANES * HELD
    study = write_study(
        tmp_path / "study",
        rows=sums(ROWS),
        models={"m": MODEL.replace("{url}", provider.url)},
        money=Plan({"m": str(ROWS * COST)}, allocation=str(allocation), margin=str(LANES * HELD)),
        stage=f"lanes = {LANES}\nreplacements = 0\n",
    )
    run = tmp_path / "run"
    loop = Loop(proctor, study, run, provider, random.Random(seed))
    killed = 0
    while killed < KILLS:
        status = loop.once()
        # where the rows ran out there is nothing left to kill
        assert status == -9, f"ended by itself with {status} after {killed} kills"
        killed += 1
    assert loop.once(to_its_end=True) == 0

    assert provider.faults == []
    _check_acknowledged(run, loop)
    proctor.check(run)
    counted = check_money(run)
    done = {body["exchange"]: body for body in bodies(run, Kind.EXCHANGE_ENDED)}
    assert provider.asked.keys() <= done.keys(), "what came was on the record before"
    assert set(provider.asked.values()) == {1}, "no exchange was sent twice"
    for exchange in provider.answered:
        owed = {"settled": COST, "unknown": HELD}[done[exchange]["outcome"]]
        assert Usd.parse(done[exchange]["charged"]) == Usd.parse(str(owed))
    settled = {exchange for exchange, body in done.items() if body["outcome"] == "settled"}
    assert settled <= provider.answered, "what was not answered is not settled"
    assert counted.overruns == 0 and ended(run)["totals"]["pass"] == ROWS
    said = f"{len(loop.acknowledged):,} entries acknowledged, {len(provider.answered):,} requests answered"
    unknown = f"{counted.outcomes.get('unknown', 0):,} exchanges unknown"
    print(f"{killed:,} kills {dict(loop.moments)}: {said}, {unknown}; {time.monotonic() - began:,.0f} s")


def _check_acknowledged(run: Path, loop: Loop) -> None:
    """Each stands at its place, and says what was said."""
    entries = list(read_entries(run / "journal.jsonl"))
    for seq, (digest, blobs) in loop.acknowledged.items():
        kind, body = entries[seq].kind, entries[seq].body
        assert isinstance(kind, Kind)
        assert killed_child.told(kind.id, body, blobs) == digest, f"entry {seq} is not what was acknowledged"
