"""Every model call of an attempt: bounded, held, sent, read, priced, settled, each on the record.

An exchange's worst case is durable in the journal before its request leaves. Whatever happens then, cancellation and
faults of our own included, it is settled or released exactly once: what may have been sent is charged. Each try is an
exchange of its own. Nothing is recorded, or raised, before secrets are taken out of it.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Mapping

from proctor.budget.lease import EntryWriter, Lease
from proctor.core.clock import Clock
from proctor.core.reasons import Reason
from proctor.core.redact import Redactor
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted
from proctor.core.wires import PRACTICE
from proctor.evidence.runfolder import RunFolder
from proctor.gateway.access import Access
from proctor.gateway.desk import Desk
from proctor.gateway.doors import Opened
from proctor.gateway.exchange import base_url_of
from proctor.gateway.flights import MAX_FREE_BYTES, Flights
from proctor.gateway.http import HttpUpstream
from proctor.gateway.line import Line, Means
from proctor.gateway.passage import Way
from proctor.gateway.practice import Practice
from proctor.gateway.rates import Rate, Sleep
from proctor.gateway.wire.formats import WIRES
from proctor.study.actors import ModelDesign


class Gateway:
    """Makes the access to models that attempts are handed; for one event loop.

    Args:
        keys: values by the name of their variable.
        sleep: waits for seconds.
        chance: a number from 0 to 1, for the spread of retries.
    """

    def __init__(
        self,
        admitted: Admitted,
        keys: Mapping[str, str],
        clock: Clock,
        *,
        sleep: Sleep = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.means = Means(Redactor(keys.values()), clock, sleep, chance)
        self._admitted = admitted
        self._keys = keys
        self._lines: dict[str, Line] = {}

    @property
    def redactor(self) -> Redactor:
        """What takes the run's keys out."""
        return self.means.redactor

    def access(self, model: ModelDesign, lease: Lease, writer: EntryWriter, attempt: str) -> Access:
        """The model of one attempt, for an agent outside of the sandbox; its exchanges are numbered from 0.

        Raises:
            Refusal: `key_missing`: the variable that should hold the model's key is none of `keys`;
                `key_rejected`: no header can hold it; `invalid_value`: its base URL is none.
        """
        return Access(self.means, model, self._line(model), Flights(lease, writer, attempt))

    async def open(
        self, model: ModelDesign, lease: Lease, writer: EntryWriter, attempt: str, sock: socket.socket
    ) -> Opened:
        """The model of one attempt, for an agent inside of the sandbox: over HTTP, on a socket that listens there.

        Args:
            sock: closed by `Opened.close`.

        Raises: as `access`.
        """
        flights = Flights(lease, writer, attempt, most_free=MAX_FREE_BYTES)
        run = RunFolder(self._admitted.run_dir)
        opened = Opened(self.means, model, self._line(model), flights, run, sock)
        await opened.listen()
        return opened

    def desk(self, model: ModelDesign, flights: Flights) -> Desk:
        """Where requests for a model are served that come by some other way than a door. Raises: as `access`."""
        run = RunFolder(self._admitted.run_dir)
        return Desk(Way(self.means, model, self._line(model), flights, run, lambda: None))

    async def close(self) -> None:
        """Close all connections. Every access, and what was opened, is closed before."""
        lines, self._lines = self._lines, {}
        for line in lines.values():
            await line.upstream.close()

    def _line(self, model: ModelDesign) -> Line:
        line = self._lines.get(model.name)
        if line is None:
            line = self._lines[model.name] = self._new_line(model)
        return line

    def _new_line(self, model: ModelDesign) -> Line:
        wire = WIRES[model.api]
        rate = Rate(model.rpm, model.tpm, self.means.clock, self.means.sleep)
        if model.api == PRACTICE:
            return Line(wire, Practice(), rate)
        auth = None
        if model.api_key_env is not None:
            key = self._keys.get(model.api_key_env)
            if not key:
                raise Refusal(Reason.KEY_MISSING, f"the key of `{model.name}` is missing", required=model.api_key_env)
            if not key.isprintable():
                raise Refusal(Reason.KEY_REJECTED, f"the key of `{model.name}` has characters that no header can hold")
            auth = wire.auth_header(key)
        try:
            upstream = HttpUpstream(self._admitted, base_url_of(model), auth, self.means.clock)
        except ValueError as error:
            path = f"models.{model.name}.base_url"
            raise Refusal(Reason.INVALID_VALUE, "a base URL cannot be read as one", path=path) from error
        return Line(wire, upstream, rate)
