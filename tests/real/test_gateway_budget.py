"""Many agents inside on one budget that is enough for half: the ceiling holds at every entry, streams or not."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from real_runs import Leftovers, Proctor, bodies, ended, proctor, write_task

from doorway import CHAT, EVENTS, asking, doorway, listening, stream
from loopback import KEY as MODEL_KEY
from loopback import FakeClock, admitted, chat, model, provider
from money_runs import Plan, check_money, dear, write_study
from proctor.core.money import ZERO, Usd
from proctor.evidence.kinds import Kind
from proctor.gateway.gateway import Gateway
from spending_parts import Spending, limits, totals

__all__ = ["proctor"]
pytestmark = pytest.mark.real

AGENTS = 64
ASKED = 6
# of EVENTS, at a dollar a token
COST = 5


async def test_64_doors_with_a_budget_for_half(tmp_path: Path) -> None:
    body = asking(max_tokens=10, stream=True)
    # what is charged for half of all, and room for the worst case of each that is under way
    ceiling = Usd.parse(str(AGENTS * ASKED * COST // 2 + len(body) + 10))
    spending = await Spending.open(tmp_path, limits(ceiling))
    assert await spending.authority.admit_block(0, "task", "m", 1) is None
    clock = FakeClock()
    gateway = Gateway(admitted(tmp_path), {"TEST_MODEL_KEY": MODEL_KEY}, clock, sleep=clock.sleep)
    statuses: list[int] = []
    async with provider(stream(*EVENTS)) as it, aiohttp.ClientSession() as session:
        design = model(it.url)

        async def agent(number: int) -> None:
            attempt, record = spending.attempt(f"task-{number}")
            lease = spending.authority.lease(attempt, 0, "m")
            opened = await gateway.open(design, lease, record, attempt, listening())
            headers = {"authorization": f"Bearer {opened.door.token}"}
            for _ in range(ASKED):
                async with session.post(opened.door.base_url + CHAT, data=body, headers=headers) as reply:
                    await reply.read()
                    statuses.append(reply.status)
            await opened.close()
            spending.end_attempt(record, attempt)
            await record.settle()

        await asyncio.gather(*map(agent, range(AGENTS)))
    assert spending.authority.held == ZERO
    spending.authority.end_block(0)
    await gateway.close()
    every = list(totals(await spending.entries(), ZERO))
    assert max(total for total, _ in every) <= ceiling.pico
    assert every[-1] == (statuses.count(200) * COST * 10**12, 0)
    # what nobody could pay for was refused, what one could was not
    assert 0 < statuses.count(200) <= AGENTS * ASKED // 2 + (len(body) + 10) // COST
    assert len(it.seen) == statuses.count(200) < len(statuses) == AGENTS * ASKED


# asks in streams until it is refused, and leaves the right word
AGENT = f"""
import json, os, sys, urllib.error, urllib.request
body = {{"model": os.environ["PROCTOR_MODEL"], "stream": True, "stream_options": {{"include_usage": True}}}}
body["messages"] = [{{"role": "user", "content": "What is 12 * 13?"}}]
headers = {{"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}}
for _ in range({ASKED}):
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        assert urllib.request.urlopen(request).read().endswith(b"data: [DONE]\\n\\n")
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
        sys.exit(1)
open("/app/answer", "w").write("right\\n")
"""


def test_64_agents_with_a_budget_for_half_leave_a_run_that_verifies(proctor: Proctor, tmp_path: Path) -> None:
    command = f"python3 -c {shlex.quote(AGENT)}"
    # an answer costs one dollar, for which 20 are held
    half = AGENTS * ASKED // 2
    study = write_study(
        tmp_path / "study",
        tasks="tasks",
        models={"luna": dear("luna", "luna", most=20)},
        money=Plan({"luna": "100"}, allocation=str(half), margin="20"),
        blocks=AGENTS,
        agent=f'name = "command"\ntimeout = "20m"\ncommand = {json.dumps(command)}\n',
        grading="",
        top="",
        stage=f"lanes = {AGENTS}\n",
    )
    text = study.read_text().replace('kind = "namespace"\n', 'kind = "namespace"\nnetwork = "gateway-only"\n')
    study.write_text(text)
    for number in range(AGENTS):
        write_task(study.parent / f"tasks/t{number:02}")
    left, run = Leftovers(), tmp_path / "run"
    status, said = proctor(
        "run", study, "--out", run, "--jobs", str(AGENTS), "--waive", "git_dirty", "--quiet", "--yes"
    )
    assert (status, ended(run)["reason"]) == (4, "ceiling_reached"), said
    proctor.check(run)
    left.check(run)
    counted = check_money(run)
    assert counted.total <= Usd.parse(str(half + 20)) and counted.overruns == counted.estimated == 0
    exchanges = bodies(run, Kind.EXCHANGE_ENDED)
    assert {body["outcome"] for body in exchanges} == {"settled"} and exchanges
    assert bodies(run, Kind.EXCHANGE_REFUSED)
    assert all(body["chunks"] is not None for body in exchanges)


async def test_a_thousand_connections_at_once(tmp_path: Path) -> None:
    together = asyncio.Event()
    waiting = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal waiting
        waiting += 1
        if waiting == 1_000:
            together.set()
        await together.wait()
        return web.Response(body=chat().body)

    async with provider(answer) as it, doorway(tmp_path, model(it.url, request_timeout_sec=1200), connections=0) as way:
        answers = await asyncio.gather(*(way.post(asking()) for _ in range(1_000)))
        done = await way.bodies(Kind.EXCHANGE_ENDED)
    assert {status for status, _, _ in answers} == {200}
    assert len(done) == 1_000 and {body["outcome"] for body in done} == {"settled"}
