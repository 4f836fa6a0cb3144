"""What is taken for an answer of a keeper, and what is not."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.namespace import answers
from proctor.sandbox.namespace.channel import Channel
from proctor.sandbox.namespace.launcher import wire

ENDED = {
    "exit_code": 0,
    "signal": None,
    "timed_out": False,
    "duration_ns": 1,
    "output_bytes": 0,
    "output_dropped": 0,
    "leftovers": 0,
    "limit_hit": None,
    "start_error": None,
}
REFUSED = {"refused": "fault", "text": "what happened", "errno": 5}
GET = {"op": "get", "paths": ["/logs", "/a/b"], "cap_files": 10}


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ({"op": "exec"}, ENDED),
        ({"op": "exec"}, ENDED | {"exit_code": None, "signal": 9, "timed_out": True, "leftovers": 3}),
        ({"op": "exec"}, ENDED | {"exit_code": None, "start_error": "no such program", "limit_hit": "memory"}),
        ({"op": "exec"}, REFUSED),
        ({"op": "start"}, {"pid": 7}),
        ({"op": "start"}, {"failed": "bwrap", "errno": 0, "text": "said something"}),
        ({"op": "probe"}, {"stage": None, "errno": 0}),
        ({"op": "mounted"}, {"pid": 7, "errno": 0, "text": ""}),
        ({"op": "signal"}, {"count": None}),
        ({"op": "put"}, {"done": True}),
        ({"op": "listen"}, {"port": 47600}),
        (GET, {"fetched": [["/logs", 0, "not there"], ["/a/b/c", 7, None], ["/a/b/\udcff", 0, "name is no UTF-8"]]}),
    ],
)
def test_answers_are_taken(request_: dict[str, Any], answer: dict[str, Any]) -> None:
    assert answers.what_is_wrong(request_, answer) is None


BAD_ENDS: list[dict[str, Any]] = [
    {"exit_code": "zero"},
    {"exit_code": 256},
    {"exit_code": -1},
    {"exit_code": True},
    {"exit_code": 0.0},
    {"signal": 0},
    {"signal": 3.5},
    {"signal": 9},
    {"exit_code": None},
    {"start_error": "it never ran"},
    {"timed_out": "no"},
    {"timed_out": 1},
    {"duration_ns": -5},
    {"duration_ns": 2**63},
    {"output_bytes": None},
    {"output_bytes": 2**63},
    {"output_dropped": []},
    {"leftovers": "x" * 100_000},
    {"leftovers": -1},
    {"limit_hit": "\ud800"},
    {"limit_hit": "time"},
    {"start_error": {"1": 2}, "exit_code": None},
    {"start_error": "\ud800", "exit_code": None},
    {"start_error": "x" * 5_000, "exit_code": None},
    {"another": 1},
]


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        *(({"op": "exec"}, ENDED | change) for change in BAD_ENDS),
        *(({"op": "exec"}, {key: ENDED[key] for key in ENDED if key != left_out}) for left_out in ENDED),
        ({"op": "exec"}, {}),
        ({"op": "exec"}, REFUSED | {"refused": "sorry"}),
        ({"op": "exec"}, REFUSED | {"refused": ["fault"]}),
        ({"op": "exec"}, REFUSED | {"errno": None}),
        ({"op": "exec"}, REFUSED | {"text": "x" * 2_001}),
        ({"op": "exec"}, REFUSED | ENDED),
        ({"op": "exec"}, {"pid": 7}),
        ({"op": "exec"}, {"broke": "TypeError in f, line 3"}),
        ({"op": "start"}, {"pid": 0}),
        ({"op": "start"}, {"pid": "7"}),
        ({"op": "signal"}, {"count": -1}),
        ({"op": "put"}, {"done": 1}),
        *(({"op": "listen"}, {"port": port}) for port in (0, 65_536, "80", None)),
        ({"op": "listen"}, {}),
        ({"op": "put"}, {"done": True, "data": b""}),
        (GET, {"fetched": {}}),
        (GET, {"fetched": [["/logs", 0]]}),
        (GET, {"fetched": [["/logs/f", -1, None]]}),
        (GET, {"fetched": [["/logs/f", True, None]]}),
        (GET, {"fetched": [["/logs/\udcff", 0, None]]}),
        (GET, {"fetched": [["/logs/" + "x" * 5_000, 0, None]]}),
        *(
            (GET, {"fetched": [[path, 0, None]]})
            for path in ("/logs/../etc/f", "/logsf", "/a", "logs/f", "/logs//f", "/")
        ),
    ],
)
def test_nothing_else_is_taken(request_: dict[str, Any], answer: dict[str, Any]) -> None:
    assert answers.what_is_wrong(request_, answer) is not None


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(
        [{"op": "exec"}, {"op": "start"}, {"op": "probe"}, {"op": "signal"}, {"op": "put"}, {"op": "listen"}, GET]
    ),
    st.dictionaries(
        st.sampled_from([*ENDED, *REFUSED, "pid", "failed", "stage", "count", "fetched", "done", "port"]), anything
    ),
)
def test_any_answer_is_taken_or_refused(request_: dict[str, Any], answer: dict[str, Any]) -> None:
    wrong = answers.what_is_wrong(request_, answer)
    assert wrong is None or wrong
    assert answers.what_is_wrong(request_, answer | {"no": "such key"}) is not None


@given(st.lists(st.tuples(anything, anything, anything).map(list), max_size=4))
def test_any_row_of_a_get_is_taken_or_refused(rows: list[list[Any]]) -> None:
    if answers.what_is_wrong(GET, {"fetched": rows}) is None:
        assert all(path.startswith(("/logs", "/a/b")) for path, _, _ in rows)


def frame(text: bytes, data: bytes = b"") -> bytes:
    return struct.pack("!II", len(text), len(data)) + text + data


FORGED = {
    "a frame without end": b"\xff" * 8 + bytes(100_000),
    "a long frame": struct.pack("!II", 1 << 17, 0) + bytes(1 << 17),
    "no JSON": frame(b"\xff\xff\xff\xff"),
    "a number": frame(b"5"),
    "nested without end": frame(b"[" * 60_000),
    "nothing in it": frame(b"{}"),
    "a refusal of no kind": frame(b'{"refused": "sorry", "text": "", "errno": 28}'),
    "data": frame(b'{"data": null}', b"x"),
    "half a frame": struct.pack("!II", 100, 0) + b"{",
    "half a header": b"\0\0",
    "nothing": b"",
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("waits", [True, False])
async def test_a_forged_frame_is_a_lost_sandbox(forged: bytes, waits: bool) -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)

    def play() -> None:
        with theirs:
            _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
            with socket.socket(fileno=fds[0]) as peer:
                wire.receive(peer)
                try:
                    peer.sendall(forged)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # who will not hear all of it hangs up

    playing = asyncio.ensure_future(asyncio.to_thread(play))
    with pytest.raises(Refusal) as refused:
        if waits:
            await channel.call({"op": "exec"}, 20)
        else:
            await asyncio.to_thread(channel.call_now, {"op": "exec"}, 20)
    assert refused.value.reason is Reason.SANDBOX_LOST
    await playing
    await channel.close()


def pipe_end() -> int:
    ends = os.pipe()
    os.close(ends[1])
    return ends[0]


@pytest.mark.parametrize("sent", ["nothing", "a byte alone", "a pipe", "a socket"])
async def test_what_is_no_socket_is_a_lost_sandbox(sent: str) -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)

    def play() -> None:
        with theirs:
            _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
            with socket.socket(fileno=fds[0]) as peer, socket.socket() as other:
                wire.receive(peer)
                wire.send(peer, {"port": 47600})
                if sent == "a byte alone":
                    peer.sendall(b"s")
                elif sent != "nothing":
                    fd = pipe_end() if sent == "a pipe" else os.dup(other.fileno())
                    wire.attach(peer, fd)
                    os.close(fd)

    playing = asyncio.ensure_future(asyncio.to_thread(play))
    asking = channel.call_for_socket({"op": "listen"}, 20)
    if sent == "a socket":
        answer, sock = await asking
        assert answer == {"port": 47600} and sock is not None
        sock.close()
    else:
        with pytest.raises(Refusal) as refused:
            await asking
        assert refused.value.reason is Reason.SANDBOX_LOST
    await playing
    await channel.close()
