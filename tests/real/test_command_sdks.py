"""The providers' own SDKs in a world, pointed at the gateway by variables alone: the command agent needs no more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from namespace_bench import Bench, admitted, bench, kind

from proctor.agents.base import Turn
from proctor.agents.command import Command
from proctor.core.models import Door
from proctor.core.network import Network
from proctor.sandbox.base import Bundle, PutItem
from scripted_models import INPUT, OUTPUT, Say, ScriptedModels, serving

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real

TOKEN = "token-of-this-attempt"
OPENAI = """\
import os
from openai import OpenAI
client, asked = OpenAI(), [{"role": "user", "content": "Say it."}]
model = os.environ["PROCTOR_MODEL"]
tools = [{"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": {}}}}}]
plain = client.chat.completions.create(model=model, messages=asked, tools=tools)
print(plain.choices[0].message.content, plain.usage.prompt_tokens, plain.usage.completion_tokens)
told = {"stream": True, "stream_options": {"include_usage": True}}
parts = list(client.chat.completions.create(model=model, messages=asked, tools=tools, **told))
print("".join(part.choices[0].delta.content or "" for part in parts if part.choices), parts[-1].usage.total_tokens)
flat = [{"type": "function", "name": "bash", "parameters": {"properties": {"command": {}}}}]
answer = client.responses.create(model=model, input="Say it.", tools=flat)
print(answer.output_text, answer.usage.total_tokens)
with client.responses.stream(model=model, input="Say it.", tools=flat) as stream:
    print("".join(event.delta for event in stream if event.type == "response.output_text.delta"))
"""
ANTHROPIC = """\
import os
from anthropic import Anthropic
client, asked = Anthropic(), [{"role": "user", "content": "Say it."}]
model = os.environ["PROCTOR_MODEL"]
tools = [{"name": "bash", "input_schema": {"type": "object", "properties": {"command": {}}}}]
plain = client.messages.create(model=model, max_tokens=100, messages=asked, tools=tools)
print(plain.content[0].text, plain.usage.input_tokens, plain.usage.output_tokens)
with client.messages.stream(model=model, max_tokens=100, messages=asked, tools=tools) as stream:
    print("".join(stream.text_stream), stream.get_final_message().usage.output_tokens)
print(client.messages.count_tokens(model=model, messages=asked).input_tokens)
"""


@pytest.fixture(scope="module")
def sdks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both SDKs, for the interpreter that worlds of this host have."""
    folder = tmp_path_factory.mktemp("sdks")
    where = ["install", "--quiet", "--target", str(folder), "openai", "anthropic"]
    for words in (["uv", "pip", *where, "--python", "/usr/bin/python3"], [sys.executable, "-m", "pip", *where]):
        try:
            done = subprocess.run(words, capture_output=True, timeout=300, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return folder
    pytest.skip("neither uv nor pip can bring the SDKs here")


@pytest.mark.parametrize(
    ("api", "program", "said"),
    [
        (
            "chat",
            OPENAI,
            [f"right {INPUT} {OUTPUT}", f"right {INPUT + OUTPUT}", f"right {INPUT + OUTPUT}", "right"],
        ),
        ("anthropic", ANTHROPIC, [f"right {INPUT} {OUTPUT}", f"right {OUTPUT}", f"{INPUT}"]),
    ],
    ids=["openai", "anthropic"],
)
async def test_sdks_work_unchanged(
    bench: Bench, tmp_path: Path, sdks: Path, api: str, program: str, said: list[str]
) -> None:
    bundle = Bundle(sdks, "/opt/test/sdks")
    world = await bench.start(network=Network.GATEWAY_ONLY, bundles=(bundle,))
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/solve.py").write_text(program)
    (tmp_path / "output").mkdir()
    await world.put([PutItem("/app")])
    agent = Command(
        {"command": "python3 /agent/solve.py", "files": "agent", "env": {"PYTHONPATH": bundle.target}}, tmp_path
    )
    models = ScriptedModels([Say("right")])
    async with serving(models, await world.listen()):
        door = Door(models.base_url, TOKEN, "model-1", api, None, 4_000, lambda: models.last_ns)
        turn = Turn(world, "Say it.", "/app", {}, None, tmp_path / "output", 600.0, door=door)
        ended = await agent.act(turn)
    printed = (tmp_path / "output/stdout.txt").read_text()
    if "No module named" in (tmp_path / "output/stderr.txt").read_text():
        pytest.skip("worlds of this host have no Python that the SDKs were made for")
    assert ended.exit_code == 0, (tmp_path / "output/stderr.txt").read_text()
    assert printed.splitlines() == said
    assert {seen.body["model"] for seen in models.seen} == {"model-1"}
    keys = [{name.lower(): value for name, value in seen.headers.items()} for seen in models.seen]
    assert all(TOKEN in (key.get("authorization", "") + key.get("x-api-key", "")) for key in keys)
