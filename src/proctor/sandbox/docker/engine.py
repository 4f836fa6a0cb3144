"""One Docker engine, asked over its API. Every question has a deadline, and every failure one type."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.docker.endpoint import address
from proctor.sandbox.docker.hijack import Hijacked, NotUpgraded, hijack

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

CALL_SEC = 60.0
# a hostile world may have any number of changed files; what is said of them stays in memory
_MOST_ANSWER = 64 << 20
_MOST_FAULT = 4_000


class EngineError(Exception):
    """The engine said no (`status`), or could not be asked (`status` is None)."""

    def __init__(self, status: int | None, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text[:_MOST_FAULT]

    @property
    def gone(self) -> bool:
        """Whether what was asked about is not there."""
        return self.status == 404


@dataclass(frozen=True)
class Where:
    """An engine: its endpoint, and the version of its API to be spoken; the engine's own choice where it is None."""

    endpoint: str
    api: str | None

    @property
    def prefix(self) -> str:
        """How paths of the API begin."""
        return "" if self.api is None else f"/v{self.api}"


class Engine:
    """A client of one engine, for one event loop. Closed by `close`, or as a context manager."""

    def __init__(self, where: Where) -> None:
        import aiodocker

        self.where = where
        self._client = aiodocker.Docker(url=where.endpoint)

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        deadline_sec: float = CALL_SEC,
    ) -> Any:
        """Ask once; the JSON answer, or None for an empty one. Raises EngineError."""
        data = None if body is None else io.BytesIO(json.dumps(body).encode())
        async with self.answer(method, path, params=params, data=data, deadline_sec=deadline_sec) as response:
            said = await response.content.read(_MOST_ANSWER + 1)
            while len(said) <= _MOST_ANSWER and (more := await response.content.read(_MOST_ANSWER)):
                said += more
        if len(said) > _MOST_ANSWER:
            raise EngineError(None, f"the engine's answer has over {_MOST_ANSWER:,} bytes")
        return json.loads(said) if said.strip() else None

    async def head(self, path: str, params: Mapping[str, str]) -> Mapping[str, str] | None:
        """The headers of an answer; None where it is about nothing that is there. Raises EngineError."""
        try:
            async with self.answer("HEAD", path, params=params) as response:
                return response.headers
        except EngineError as error:
            if error.gone:
                return None
            raise

    @contextlib.asynccontextmanager
    async def answer(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        data: io.BytesIO | AsyncIterator[bytes] | None = None,
        content_type: str = "application/json",
        deadline_sec: float = CALL_SEC,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask, and read the answer as a stream within the deadline. Raises EngineError, also from the block."""
        import aiohttp

        if self._client.session.closed:
            raise EngineError(None, "the connection to the engine was closed before")
        url = f"{self._client.docker_host}{self.where.prefix}/{path}"
        headers = {"Content-Type": content_type}
        try:
            async with (
                asyncio.timeout(deadline_sec),
                self._client.session.request(method, url, params=params, data=data, headers=headers) as response,
            ):
                if response.status >= 400:
                    raise EngineError(response.status, _message(await response.content.read(_MOST_FAULT)))
                yield response
        except (TimeoutError, aiohttp.ClientError, ConnectionError) as fault:
            text = str(fault) or f"no answer within {deadline_sec:g} s"
            raise EngineError(None, f"the engine at {self.where.endpoint} could not be asked: {text}") from fault

    async def connect(self, path: str, body: Any = None, *, deadline_sec: float = CALL_SEC) -> Hijacked:
        """Open a two-way stream to a container or an exec. Raises EngineError."""
        try:
            return await hijack(
                address(self.where.endpoint),
                f"{self.where.prefix}/{path}",
                json.dumps(body or {}).encode(),
                deadline_sec,
            )
        except NotUpgraded as fault:
            raise EngineError(fault.status, _message(fault.body)) from fault
        except (OSError, EOFError, ValueError) as fault:  # a deadline that is over is an OSError too
            raise EngineError(None, f"the engine at {self.where.endpoint} could not be asked: {fault}") from fault


def named(text: str) -> str:
    """A name as part of a path of the API."""
    return quote(text, safe="")


def lost(error: EngineError) -> Refusal:
    """What a world whose engine cannot do something for it is."""
    return Refusal(Reason.SANDBOX_LOST, f"the sandbox is gone, or its engine: {error.text}", observed=error.status)


def unavailable(error: EngineError) -> Refusal:
    """What an engine is that cannot be asked."""
    return Refusal(Reason.DOCKER_UNAVAILABLE, error.text, observed=error.status)


def now(work: Coroutine[Any, Any, T]) -> T:
    """Do this in a loop of its own, for callers that are not async, wherever they run. Raises what it raises."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


def _message(said: bytes) -> str:
    try:
        value = json.loads(said)
    except (ValueError, RecursionError):
        return said.decode("utf-8", "replace")
    message = value.get("message") if isinstance(value, dict) else None
    return message if isinstance(message, str) else said.decode("utf-8", "replace")
