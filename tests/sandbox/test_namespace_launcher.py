"""The small parts below the launcher: its frames, the holder, users, and a launcher that lives and dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proctor
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.namespace.channel import launch
from proctor.sandbox.namespace.launcher import confine, holder, output, wire

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(st.characters())
    | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), values), st.none() | st.binary())
def test_frames_carry_any_value_and_any_name(message: wire.Message, data: bytes | None) -> None:
    message = message | {"data": data} if data is not None else {key: message[key] for key in message if key != "data"}
    frame = wire.pack(message)
    head, body = frame[: wire.HEADER.size], frame[wire.HEADER.size :]
    text, raw = wire.sizes(head, len(body))
    assert text + raw == len(body)
    assert wire.unpack(body[:text], body[text:]) == message
    with pytest.raises(wire.Malformed):
        wire.sizes(head, len(body) - 1)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (b"", b""),
        (b"{", b""),
        (b"5", b""),
        (b"[]", b""),
        (b"\xff", b""),
        (b"[" * 100_000, b""),
        (b"1" * 5_000, b""),
        (b"{}", b"data that no message has"),
        (b'{"data": 5}', b""),
    ],
)
def test_what_is_no_frame_is_refused(text: bytes, data: bytes) -> None:
    with pytest.raises(wire.Malformed):
        wire.unpack(text, data)


def test_the_holder_says_one_byte_and_ends_with_its_input(tmp_path: Path) -> None:
    program = tmp_path / "h"
    program.write_bytes(holder.image())
    program.chmod(0o755)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.read() == b"\x01"  # and its end: the holder keeps no descriptor but the first
        process.stdin.write(b"anything")
        process.stdin.flush()
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(600) == 0


def test_the_holder_has_orphans_reaped_before_it_says_that_anything_may_start(tmp_path: Path) -> None:
    program = tmp_path / "h"
    program.write_bytes(holder.image())
    program.chmod(0o755)
    for _ in range(50):
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdin is not None
            assert process.stdout.read(1) == b"\x01"
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
            ignored = int(status.split("SigIgn:")[1].split()[0], 16)
            assert ignored >> (signal.SIGCHLD - 1) & 1
            process.stdin.close()
            assert process.wait(600) == 0


@pytest.mark.parametrize("machine", holder.machines())
def test_the_holder_is_a_small_static_program(machine: str) -> None:
    image = holder.image(machine)
    assert image[:5] == b"\x7fELF\x02" and len(image) < 300


def test_users_are_found_by_name_and_number() -> None:
    assert confine.find_user(None) == confine.find_user("root") == confine.find_user("0")
    assert confine.find_user(None)[:3] == ("root", 0, 0)
    nameless = confine.find_user("54321")
    assert (nameless.uid, nameless.gid, nameless.home) == (54321, 0, "/")
    assert confine.find_user("54321:77").groups == (77,)


@pytest.mark.parametrize("wanted", ["no-such-user", "-1", "4294967295", "root:no-such-group", "١", "0x0", " "])
def test_users_that_are_none_are_refused(wanted: str) -> None:
    with pytest.raises(confine.StartError):
        confine.find_user(wanted)


def test_output_that_somebody_else_read_away_is_not_waited_for(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        stream = output.Output(file.fileno(), 3)
        assert stream.pump()  # nothing there, though a poll said so
        os.write(stream.writer, b"four")
        assert stream.pump() and (stream.kept, stream.dropped) == (3, 1)
        os.close(stream.writer)
        assert not stream.pump()
        os.close(stream.source)
    assert (tmp_path / "out").read_bytes() == b"fou"


async def test_a_launcher_that_ended_is_a_typed_refusal() -> None:
    launcher = launch()
    assert launcher.alive
    await launcher.close()
    with pytest.raises(Refusal) as refused:
        await launcher.call({"op": "probe", "many_users": False}, 5)
    assert refused.value.reason is Reason.SANDBOX_LOST


async def test_a_request_answers_or_says_that_it_was_lost() -> None:
    launcher = launch()
    answer = await launcher.call({"op": "probe", "many_users": False}, 20)
    assert set(answer) == {"stage", "errno"}
    with pytest.raises(Refusal) as refused:
        await launcher.call({"op": "probe", "many_users": False}, 0.0)
    assert refused.value.reason is Reason.SANDBOX_LOST
    assert launcher.alive
    await launcher.close()


def test_what_enters_worlds_loads_no_more_than_it_needs() -> None:
    boot = "import sys; sys.path.insert(0, sys.argv[1]); import proctor.sandbox.namespace.launcher.server"
    command = [sys.executable, "-I", "-S", "-c", f"{boot}; print(*sorted(sys.modules))"]
    sources = str(Path(proctor.__file__).parent.parent)
    loaded = set(subprocess.run([*command, sources], capture_output=True, text=True, check=True).stdout.split())
    allowed = ("proctor", "proctor.sandbox", "proctor.sandbox.namespace")
    own = {name for name in loaded if name.startswith("proctor") and name not in allowed}
    assert all(name.startswith(("proctor.sandbox.namespace.launcher", "proctor.sandbox.linux")) for name in own)
    assert not loaded & {"asyncio", "dataclasses", "subprocess", "inspect", "tempfile", "importlib.util"}
