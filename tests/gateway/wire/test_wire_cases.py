"""Recorded traffic of real providers: whole, and split at every byte, it reads as its index says."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.core.models import Finish
from proctor.gateway.wire.base import Flag, Reply
from proctor.gateway.wire.formats import WIRES

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "wire"
FOLDERS = sorted(
    folder.parent for folder in CASES.glob("*/expected.json") if json.loads(folder.read_text())["api"] in WIRES
)

if not FOLDERS:
    pytest.skip("the shared cases of wire formats are not beside this repository", allow_module_level=True)

EXPECTED_FLAGS = {
    "anthropic-cache-read-compaction": (),
    "chat-openrouter-error-midstream": (Flag.PART_EXCEEDS_WHOLE,),
    "chat-snowflake-no-finish-reason": (Flag.NO_FINISH,),
    "chunks-anthropic-duplicate-message-start": (Flag.RESTARTED,),
    "chunks-anthropic-fallback": (Flag.SEVERAL_MODELS,),
    "chunks-anthropic-spliced-message-start": (Flag.RESTARTED,),
    "responses-websearch-annotations": (Flag.UNPRICED_UNITS,),
}


def body_of(folder: Path) -> bytes:
    payloads = folder / "payloads.jsonl"
    if payloads.exists():
        lines = payloads.read_bytes().splitlines()
        events = b"".join(b"data: " + line + b"\n\n" for line in lines)
        return events
    (body,) = folder.glob("response.*")
    return gzip.decompress(body.read_bytes()) if body.suffix == ".gz" else body.read_bytes()


def read(expected: dict[str, Any], pieces: list[bytes]) -> Reply:
    reader = WIRES[expected["api"]].reader(stream=expected["stream"])
    for piece in pieces:
        reader.feed(piece)
    return reader.close()


def sha256(text: str) -> str | None:
    return hashlib.sha256(text.encode()).hexdigest() if text else None


def buckets_of(expected: dict[str, Any]) -> dict[str, int] | None:
    billed = expected.get("billed_over_iterations")
    if billed is not None:
        given = {
            "input": billed["input_tokens"],
            "cache_read": billed["cache_read_input_tokens"],
            "cache_write": billed["cache_creation_input_tokens"],
            "output": billed["output_tokens"],
        }
    else:
        given = expected.get("buckets")
    if given is None:
        return None
    return {name: count for name, count in given.items() if count > 0}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_recording_reads_as_its_index_says(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    body = body_of(folder)
    reply = read(expected, [body])
    assert read(expected, [body[i : i + 1] for i in range(len(body))]) == reply

    if "non_json_events" in expected:
        assert Flag.UNREADABLE in reply.flags
        assert not reply.whole
        return
    error = expected.get("error")
    if error is not None and "error" in error:
        error = error["error"]
    if error is None:
        assert reply.error is None
    else:
        assert reply.error is not None
        assert reply.error.message == error["message"]
        assert reply.error.kind == (error.get("type") or error.get("status"))
        assert reply.error.code == (str(error["code"]) if "code" in error else None)
        assert not reply.whole
    if expected["http_status"] != 200:
        assert reply.usage is None
        return

    assert reply.model == expected["model"]
    assert [reply.raw_finish] == [expected["finish"][0] or expected.get("block_reason")]
    assert len(reply.text) == expected["text_chars"]
    assert sha256(reply.text) == expected["text_sha256"]
    for shown in ("reasoning", "thought"):
        if f"{shown}_sha256" in expected:
            assert sha256(reply.thoughts) == expected[f"{shown}_sha256"]
    assert reply.flags == EXPECTED_FLAGS.get(folder.name, ())
    assert (None if reply.usage is None else reply.usage.as_record()) == buckets_of(expected)
    if expected.get("buckets_sum_equals_total") and folder.name != "chat-openrouter-error-midstream":
        assert reply.usage is not None
        assert reply.usage.total == expected["total_reported"]
    check_calls(expected, reply)


def check_calls(expected: dict[str, Any], reply: Reply) -> None:
    own = [call for call in expected["tool_calls"] if not call.get("id", "").startswith("srvtoolu_")]
    assert [call.name for call in reply.calls] == [call["name"] for call in own]
    for call, wanted in zip(reply.calls, own, strict=True):
        if isinstance(wanted["arguments"], str):
            assert (call.id, call.raw or "{}") == (wanted["id"], wanted["arguments"] or "{}")
            custom = expected["api"] == "responses" and "custom_tool_call" in expected["output_types"]
            assert call.arguments == (None if custom else json.loads(wanted["arguments"] or "{}"))
        else:
            assert call.arguments == wanted["arguments"]
    if own:
        assert reply.finish is Finish.TOOLS


@pytest.mark.parametrize(
    "folder", [f for f in FOLDERS if (f / "request.json").exists()], ids=lambda folder: folder.name
)
def test_a_recorded_request_reads_back_and_has_a_digest(folder: Path) -> None:
    wire = WIRES[json.loads((folder / "expected.json").read_text())["api"]]
    body = (folder / "request.json").read_bytes()
    value = json.loads(body)
    assert wire.conversation(body)
    assert wire.digest(body) == wire.digest(json.dumps(value, indent=1).encode())
    said = next(name for name in ("contents", "messages", "input") if name in value)
    del value["tools" if value.get("tools") else said]
    assert wire.digest(body) != wire.digest(json.dumps(value).encode())
