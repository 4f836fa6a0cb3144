"""Running one command in a world: its supervisor stays outside, and when it is done nothing of the command is left."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from proctor.sandbox.linux import watch
from proctor.sandbox.namespace.launcher import confine, output, wire

if TYPE_CHECKING:
    from proctor.sandbox.namespace.launcher.world import World

_SWEEP_SEC = 10.0
_HELPER_SEC = 1.0
# polls count milliseconds in 31 bits
_LONGEST_POLL_SEC = 3600.0
# The host's OOM killer takes a command before it takes what supervises it.
_OOM_SCORE = b"500"


def supervise(job: dict[str, Any], peer: socket.socket, world: World) -> None:
    """Run the command of `job` and answer how it ended; a peer that hangs up ends it at once.

    The job: `argv`, `env`, `cwd`, `user`, `data` (for its standard input), `stdout`, `stderr` (host paths), `cap`,
    `deadline` (seconds), `leave_running`, `rlimits`, `groups` (host paths of files that take a pid), and what to watch,
    or None: `memory` and `storage` (bytes), `pids`. The answer has the fields of `Ended`, or `refused`: `unopened`
    when a host file could not be opened, `output` when the host did not take output, `fault` when the world could not
    be entered.

    With `leave_running` nothing is ended where the command ends by itself, and what stays may go on to write: this
    process reads it away until the last writer is gone, for a server that finds its pipe closed would end.
    """
    stage = "unopened"
    try:
        prepared = _Prepared(job)
        stage = "fault"
        watcher = watch.Watch(job["memory"], job["storage"], job["pids"], world.uppers)
        world.enter(processes=True)
        stage = "output"
        answer, held = _supervised(job, world, peer, prepared, watcher)
    except OSError as fault:
        if stage == "output":
            _sweep(world)
        answer, held = {"refused": stage, "text": wire.said(fault), "errno": fault.errno or 0}, []
    wire.send(peer, answer)
    peer.close()
    output.drop(held, until=world.pidfd)


class _Prepared:
    """What must be opened while the host's files are in sight. Raises OSError."""

    def __init__(self, job: dict[str, Any]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        paths = [path for path in (job["stdout"], job["stderr"]) if path]
        self.outputs = [output.Output(os.open(path, flags, 0o644), job["cap"]) for path in paths]
        self.standard = (_stdin(job["data"]), self.outputs[0].writer, self.outputs[-1].writer)
        self.groups = [os.open(path, os.O_WRONLY) for path in job["groups"]]
        self.score = os.open("/proc/self/oom_score_adj", os.O_RDWR)


def _supervised(
    job: dict[str, Any], world: World, peer: socket.socket, prepared: _Prepared, watcher: watch.Watch
) -> tuple[wire.Message, list[output.Output]]:
    """The answer, and the outputs that processes which stay hold."""
    outputs, standard, score = prepared.outputs, prepared.standard, prepared.score
    trouble_r, trouble_w = os.pipe()
    before = os.pread(score, 16, 0)
    _set_score(score, _OOM_SCORE)
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(job | {"many_users": world.many_users}, prepared.groups, standard, trouble_w)
    _set_score(score, before)
    for fd in (*set(standard), trouble_w):
        os.close(fd)

    answer: wire.Message = {"timed_out": False, "limit_hit": None}
    child_fd = os.pidfd_open(child)
    sources: dict[int, Callable[[], bool]] = {stream.source: stream.pump for stream in outputs}
    poller = select.poll()
    for fd in (*sources, child_fd, peer.fileno()):
        poller.register(fd, select.POLLIN)
    deadline = started + job["deadline"]
    gone = False
    while not gone:
        now = time.monotonic()
        if now >= deadline:
            answer["timed_out"] = True
            break
        wait = min(deadline - now, watcher.interval_sec or _LONGEST_POLL_SEC)
        ready = [fd for fd, _ in poller.poll(wait * 1000 + 1)]
        if peer.fileno() in ready:
            break
        for fd in ready:
            if fd == child_fd:
                gone = True
            elif fd in sources and not sources[fd]():
                poller.unregister(fd)
                del sources[fd]
        answer["limit_hit"] = watcher.over()
        if answer["limit_hit"]:
            break
    answer["duration_ns"] = int((time.monotonic() - started) * 1e9)
    if not gone:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    stays = gone and job["leave_running"] and not answer["limit_hit"]
    answer["leftovers"] = 0 if stays else _sweep(world)
    held = [stream for stream in outputs if stream.source in sources and stream.pump_out() and stays]
    for stream in held:
        stream.seal()
    trouble = os.read(trouble_r, 4096).decode("utf-8", "replace")
    answer["start_error"] = trouble or None
    answer["exit_code"] = os.WEXITSTATUS(status) if os.WIFEXITED(status) and not trouble else None
    answer["signal"] = os.WTERMSIG(status) if os.WIFSIGNALED(status) and not trouble else None
    answer["output_bytes"] = sum(stream.kept for stream in outputs)
    answer["output_dropped"] = sum(stream.dropped for stream in outputs)
    return answer, held


def signal_all(request: wire.Message, peer: socket.socket, world: World) -> None:
    """Send a signal to everything inside but PID 1; answers how many there were, None when some would not go."""
    try:
        world.enter(processes=True)
        if request["wait"]:
            wire.send(peer, {"count": _sweep(world)})
        else:
            wire.send(peer, {"count": _signal_once(request["signal"])})
    except OSError as fault:
        wire.send(peer, {"refused": "fault", "text": wire.said(fault), "errno": fault.errno or 0})


def _become(job: dict[str, Any], groups: list[int], standard: tuple[int, int, int], trouble: int) -> None:
    try:
        for fd in groups:
            os.write(fd, b"0")
        for number, fd in enumerate(standard):
            os.dup2(fd, number)
        confine.become(job)
    except confine.StartError as fault:
        os.write(trouble, str(fault).encode("utf-8", "replace")[:4000])
    except (OSError, ValueError) as fault:
        os.write(trouble, f"confinement failed: {fault}".encode("utf-8", "replace")[:4000])
    finally:
        os._exit(127)


def _stdin(data: bytes) -> int:
    if not data:
        return os.open("/dev/null", os.O_RDONLY)
    writable = os.memfd_create("stdin")
    view = memoryview(data)
    while view:
        view = view[os.write(writable, view) :]
    return os.open(f"/proc/self/fd/{writable}", os.O_RDONLY)


def _set_score(fd: int, score: bytes) -> None:
    try:
        os.pwrite(fd, score, 0)
    except OSError:
        pass  # a host that forbids it keeps its own order


def _signal_once(number: int) -> int:
    """Signal every process inside but PID 1 once; how many there were. For a process that entered. Raises OSError."""
    count = len(watch.processes())
    if not count:
        return 0
    helper = os.fork()
    if helper == 0:
        try:
            if os.getppid() == 0:  # our parent is out of sight only in a world: never signal all of the host
                os.kill(-1, number)
        except ProcessLookupError:
            pass
        finally:
            os._exit(0)
    helper_fd = os.pidfd_open(helper)
    try:
        poller = select.poll()
        poller.register(helper_fd, select.POLLIN)
        done = poller.poll(_HELPER_SEC * 1000)
        if not done:
            os.kill(helper, signal.SIGKILL)
        if os.waitpid(helper, 0)[1] != 0 or not done:
            raise InterruptedError("what is inside shares the helper's user, and stopped or ended it")
    finally:
        os.close(helper_fd)
    return count


def _signal_each(number: int) -> int:
    """Signal the processes inside but PID 1 one by one, without a helper; how many there were."""
    inside = watch.processes()
    for pid in inside:
        try:
            fd = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            pass
        finally:
            os.close(fd)
    return len(inside)


def _reap() -> None:
    """Take the statuses of our own dead children, which else stand in the world's process list until we end."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _sweep(world: World) -> int | None:
    """Kill everything inside but PID 1 and see it gone: how many there were, None when some would not go.

    In that case the whole world is ended.
    """
    found = 0
    deadline = time.monotonic() + _SWEEP_SEC
    pause = 0.0002
    while time.monotonic() < deadline:
        _reap()
        try:
            found = max(found, _signal_once(signal.SIGKILL))
        except OSError:  # a fork bomb has every number that the helper could get; what stands still forks no more
            found = max(found, _signal_each(signal.SIGSTOP), _signal_each(signal.SIGKILL))
        if not watch.processes():
            return found
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    try:
        signal.pidfd_send_signal(world.pidfd, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended already, and with it what was inside
    return None
