"""The runner's end of the launcher: requests that can be cancelled, each with a deadline."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
import subprocess
import sys
import weakref
from pathlib import Path

import proctor
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish
from proctor.sandbox.namespace import answers
from proctor.sandbox.namespace.launcher import wire

_SOURCES = Path(proctor.__file__).resolve().parent.parent
_SEND_SEC = 5.0
# Longer than any clean-up inside takes, so that a cancelled request returns only when nothing of it is left.
_CLEANUP_SEC = 40.0
_BOOT = "; ".join(
    (
        "import sys",
        "sys.path.insert(0, sys.argv[2])",
        "from proctor.sandbox.namespace.launcher.{module} import main",
        "sys.exit(main(int(sys.argv[1]), *sys.argv[3:]))",
    )
)


class Channel:
    """A server's socket: the launcher itself, or the keeper of one world."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._busy: set[socket.socket] = set()
        self._idle = asyncio.Event()

    @property
    def alive(self) -> bool:
        """Whether the other side still holds its end."""
        poller = select.poll()  # which takes any number that a descriptor may have
        poller.register(self._sock, select.POLLIN)
        return not poller.poll(0)

    async def call(self, request: wire.Message, deadline_sec: float) -> wire.Message:
        """One request and its answer, which has a form that `answers` knows.

        Raises:
            Refusal: SANDBOX_LOST when the other side ends, stays silent beyond the deadline or answers anything else.
        """
        sock = self._open()
        try:
            return await self._converse(sock, request, deadline_sec)
        finally:
            self._done(sock)
            sock.close()

    async def call_for_socket(
        self, request: wire.Message, deadline_sec: float
    ) -> tuple[wire.Message, socket.socket | None]:
        """One request, its answer, and the socket that comes after it: None where the answer is a refusal.

        Raises:
            Refusal: SANDBOX_LOST, also when no socket comes.
        """
        sock = self._open()
        try:
            answer = await self._converse(sock, request, deadline_sec)
            return answer, None if "refused" in answer else await _attached(sock)
        finally:
            self._done(sock)
            sock.close()

    async def open(self, request: wire.Message, deadline_sec: float) -> tuple[wire.Message, Channel]:
        """A request whose socket becomes a server of its own after the answer.

        Raises:
            Refusal: SANDBOX_LOST.
        """
        sock = self._open()
        try:
            answer = await self._converse(sock, request, deadline_sec)
        except BaseException:
            sock.close()
            raise
        finally:
            self._done(sock)
        return answer, Channel(sock)

    def call_now(self, request: wire.Message, deadline_sec: float) -> wire.Message:
        """The same without an event loop, for probes; what the request started has ended when this returns.

        Raises:
            Refusal: SANDBOX_LOST.
        """
        with self._open() as sock:
            self._done(sock)
            sock.settimeout(deadline_sec)
            try:
                wire.send(sock, request)
                answer = wire.receive(sock, answers.most_bytes(request))
                _hang_up(sock)
                while sock.recv(1 << 16):
                    pass
            except TimeoutError:
                raise _lost(f"no answer within {deadline_sec:g} s") from None
            except wire.Malformed as fault:
                raise _lost(str(fault)) from fault
            except ConnectionError as fault:
                raise _lost("it ended meanwhile") from fault
        if answer is None:
            raise _lost("the launcher ended without an answer")
        return _checked(request, answer)

    async def close(self) -> None:
        """Hang up, and wait until the other side has cleaned up and is gone. Never raises for what is gone."""
        for sock in self._busy:
            _hang_up(sock)
        try:
            # Requests end first: each has the other side clean up, which its own end would cut short.
            async with asyncio.timeout(_CLEANUP_SEC):
                while self._busy:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            pass  # the keeper's own end takes them with it
        try:
            _hang_up(self._sock)
            await _drain(self._sock)
        finally:
            self._sock.close()

    def _done(self, sock: socket.socket) -> None:
        self._busy.discard(sock)
        self._idle.set()

    def _open(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        try:
            self._sock.settimeout(_SEND_SEC)
            socket.send_fds(self._sock, [b"r"], [theirs.fileno()])
            self._sock.setblocking(False)
        except OSError as fault:
            ours.close()
            raise _lost("it ended, or takes no requests any more") from fault
        finally:
            theirs.close()
        ours.setblocking(False)
        self._busy.add(ours)
        return ours

    async def _converse(self, sock: socket.socket, request: wire.Message, deadline_sec: float) -> wire.Message:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(deadline_sec):
                await loop.sock_sendall(sock, wire.pack(request))
                head = await _exactly(sock, wire.HEADER.size)
                text_size, data_size = wire.sizes(head, answers.most_bytes(request))
                text = await _exactly(sock, text_size)
                return _checked(request, wire.unpack(text, await _exactly(sock, data_size)))
        except TimeoutError:
            await _abandon(sock)
            raise _lost(f"no answer within {deadline_sec:g} s") from None
        except (EOFError, ConnectionError) as fault:
            raise _lost("it ended without an answer") from fault
        except wire.Malformed as fault:
            raise _lost(str(fault)) from fault
        except asyncio.CancelledError:
            await _abandon(sock)
            raise


def launch(*words: str) -> Channel:
    """Start a launcher, with further words for its `main`; it ends with this process, or when the channel is garbage.

    Raises:
        Refusal: SANDBOX_UNAVAILABLE when this interpreter cannot be started.
    """
    ours, theirs = socket.socketpair()
    command = (*_command("server", theirs.fileno()), *words)
    try:
        process = subprocess.Popen(
            command,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,  # a Ctrl-C at the terminal is for the runner to handle
        )
    except OSError as fault:
        ours.close()
        raise Refusal(Reason.SANDBOX_UNAVAILABLE, "the launcher could not be started", observed=str(fault)) from fault
    finally:
        theirs.close()
    channel = Channel(ours)
    weakref.finalize(channel, _end, ours, process)
    return channel


def shell_command(pid: int) -> tuple[str, ...]:
    """A command for an operator's shell in the world whose PID 1 is the host's process `pid`."""
    return _command("shell", pid)


def _command(module: str, number: int) -> tuple[str, ...]:
    boot = _BOOT.format(module=module)
    return (sys.executable, "-I", "-S", "-X", "utf8", "-c", boot, str(number), str(_SOURCES))


def _end(sock: socket.socket, process: subprocess.Popen[bytes]) -> None:
    sock.close()
    try:
        process.wait(_SEND_SEC)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _checked(request: wire.Message, answer: wire.Message) -> wire.Message:
    wrong = answers.what_is_wrong(request, answer)
    if wrong is not None:
        raise _lost(wrong)
    return answer


def _lost(what: str) -> Refusal:
    return Refusal(Reason.SANDBOX_LOST, f"the sandbox's keeper is lost: {what}")


def _hang_up(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError as fault:
        if fault.errno not in (errno.ENOTCONN, errno.EBADF):
            raise


async def _abandon(sock: socket.socket) -> None:
    """Have the other side end what it does for `sock`, and wait for it even when cancelled again."""
    _hang_up(sock)
    await finish(_drain(sock))


async def _drain(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    sock.setblocking(False)
    try:
        async with asyncio.timeout(_CLEANUP_SEC):
            while await loop.sock_recv(sock, 1 << 16):
                pass
    except (TimeoutError, ConnectionError):
        pass


async def _attached(sock: socket.socket) -> socket.socket:
    """The one socket that the other side attaches to its next byte. Raises Refusal (SANDBOX_LOST)."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(sock, readable.set)
    try:
        async with asyncio.timeout(_SEND_SEC):
            await readable.wait()
    except TimeoutError:
        raise _lost(f"no socket within {_SEND_SEC:g} s") from None
    finally:
        loop.remove_reader(sock)
    try:
        fds = wire.taken(sock) or []
    except ConnectionError as fault:
        raise _lost("it ended without a socket") from fault
    try:
        (found,) = [socket.socket(fileno=fd) for fd in fds]
    except (OSError, ValueError) as fault:
        raise _lost("what it sent is not one socket") from fault
    return found


async def _exactly(sock: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    pieces: list[bytes] = []
    while size:
        piece = await loop.sock_recv(sock, min(size, 1 << 20))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
