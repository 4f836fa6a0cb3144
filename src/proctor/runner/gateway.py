"""A gateway on its own, from what was typed to its exit status: admit, serve, drain, settle, end on the record."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proctor.admission.finish import (
    Ending,
    Interrupted,
    Stop,
    admit_or_stop,
    end_of_hearing,
    listen_again,
    run_to_the_end,
)
from proctor.admission.standalone import AdmittedGateway, admit_gateway
from proctor.admission.standalone_models import GatewayRequest
from proctor.agents.environment import DIRECT, variables
from proctor.budget.authority import Authority
from proctor.budget.ceiling import Limits
from proctor.core.clock import SystemClock
from proctor.core.exits import Exit
from proctor.core.money import ZERO
from proctor.core.open_files import allow_many
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import first_of
from proctor.gateway.gateway import Gateway
from proctor.gateway.listening import BACKLOG
from proctor.gateway.standalone import Standalone
from proctor.report.calls import CallsShown, as_record

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Serving:
    """A gateway that takes requests: where, by which token, and the variables that point programs at it."""

    base_url: str
    token: str
    variables: Mapping[str, str]
    record: str

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "base_url": self.base_url,
            "token": self.token,
            "variables": dict(self.variables),
            "record": self.record,
        }


@dataclass(frozen=True)
class Served:
    """How it ended; `calls` is what its record amounts to, None where it was refused."""

    exit: Exit
    refusals: tuple[Refusal, ...] = ()
    reason: Reason | None = None
    message: str | None = None
    calls: Mapping[str, Any] | None = None


def own_record(runs: Path) -> Path:
    """Where the record of this process goes that names none; nothing is made."""
    return runs / "gateway" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.jsonl"


@dataclass(frozen=True)
class _Bound:
    """An admitted gateway, and the socket on which it is to listen."""

    gateway: AdmittedGateway
    sock: socket.socket


def serve(request: GatewayRequest, ready: Callable[[Serving], None], *, quiet: bool) -> Served:
    """Serve until a signal ends it; `ready` is told once requests are taken."""
    listen_again()
    allow_many()
    return asyncio.run(_serve(request, ready, quiet))


async def _serve(request: GatewayRequest, ready: Callable[[Serving], None], quiet: bool) -> Served:
    stop = Stop()
    try:
        admitted = await admit_or_stop(lambda _: _admit(request), stop)
    except Interrupted:
        return Served(stop.exit or Exit.INTERRUPTED, reason=Reason.INTERRUPTED, message=stop.cause)
    if not isinstance(admitted, _Bound):
        end_of_hearing()
        return Served(Exit.REFUSED, admitted)
    session = _Session(admitted, request, ready, quiet)
    try:
        status = await run_to_the_end(session.work, session.close, stop)
    except Refusal as refusal:
        return Served(Exit.INFRASTRUCTURE, reason=refusal.reason, message=str(refusal))
    calls = as_record(admitted.gateway.record.state, admitted.gateway.budget)
    return Served(status, reason=session.ending.reason, message=session.ending.message, calls=calls)


async def _admit(request: GatewayRequest) -> _Bound | tuple[Refusal, ...]:
    """With the port taken, so that nothing is put on the record where it cannot be had."""
    try:
        sock = _listening(request.port)
    except Refusal as refusal:
        return (refusal,)
    try:
        admitted = await admit_gateway(request, os.environ)
    except Refusal as refusal:
        sock.close()
        return (refusal,)
    except BaseException:
        sock.close()
        raise
    if isinstance(admitted, tuple):
        sock.close()
        return admitted
    return _Bound(admitted, sock)


def _listening(port: int) -> socket.socket:
    try:
        sock = socket.create_server((LOOPBACK, port), backlog=BACKLOG)
    except OSError as error:
        message = f"the port cannot be listened on: {error.strerror}"
        raise Refusal(Reason.PORT_UNAVAILABLE, message, path="--port", observed=port) from error
    sock.setblocking(False)
    return sock


class _Session:
    """A gateway while it serves."""

    def __init__(
        self,
        bound: _Bound,
        request: GatewayRequest,
        ready: Callable[[Serving], None],
        quiet: bool,
    ) -> None:
        self.ending = Ending(Exit.DONE)
        self._admitted = admitted = bound.gateway
        self._request = request
        self._sock = bound.sock
        self._ready = ready
        self._shown = CallsShown(sys.stderr, admitted.record.state, admitted.budget, quiet=quiet)
        self._gateway: Gateway | None = None
        self._standalone: Standalone | None = None

    async def work(self, stop: Stop) -> Exit:
        """Serve until nothing new may start, and then until nothing is in flight."""
        admitted = self._admitted
        limits = Limits(spent_before=ZERO, cap=admitted.budget, margin=ZERO)
        authority = Authority(admitted.token, limits, admitted.record, admitted.record.state)
        self._gateway = Gateway(admitted.token, admitted.keys, SystemClock())
        standalone = self._standalone = Standalone(
            self._gateway, authority, admitted.record, admitted.models, self._sock
        )
        await standalone.listen()
        with self._shown:
            self._ready(self._serving(standalone))
            while not stop.draining.is_set() and not standalone.faulted.is_set():
                self._shown.tick()
                await self._a_while(stop, standalone)
            drained = asyncio.ensure_future(standalone.drain())
            # it has begun by the time that anybody reads of it
            await asyncio.sleep(0)
            self._shown.drains()
            try:
                while not drained.done():
                    self._shown.tick()
                    await asyncio.wait([drained], timeout=self._shown.every_sec)
            finally:
                drained.cancel()
        if standalone.fault is not None:
            raise standalone.fault
        return Exit.DONE

    async def close(self, ending: Ending) -> Exit:
        """Settle what is left, write the last entry, and show the sum."""
        try:
            if self._standalone is not None:
                await self._standalone.close()
            if self._gateway is not None:
                await self._gateway.close()
        finally:
            self._sock.close()
            self.ending = ending
            reason = ending.reason.id if ending.reason else None
            totals = as_record(self._admitted.record.state, self._admitted.budget)
            await self._admitted.record.close({"exit_status": int(ending.exit), "reason": reason, "totals": totals})
        self._shown.end()
        return ending.exit

    async def _a_while(self, stop: Stop, standalone: Standalone) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (stop.draining, standalone.faulted)]
        await first_of(*waits, asyncio.ensure_future(asyncio.sleep(self._shown.every_sec)))

    def _serving(self, standalone: Standalone) -> Serving:
        names = self._request.models
        named = variables(
            self._admitted.models.api,
            standalone.base_url,
            standalone.token,
            names[0] if len(names) == 1 else None,
        )
        for name in DIRECT:
            # what a person reaches without a proxy stays so
            named[name] = ",".join(filter(None, (os.environ.get(name), named[name])))
        return Serving(standalone.base_url, standalone.token, named, str(self._request.record))
