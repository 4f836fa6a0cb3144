"""RFC 3161: that bytes existed at a time, by the word of an authority. Asked over HTTP, checked before it is kept."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import aiohttp
from cryptography import x509

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.attestation import of_the_extra

MAX_ANSWER_BYTES = 1_048_576
DEADLINE_SEC = 30.0

_CHUNK = 65_536
_OTHER_ROOTS = "Name a file of certificates in PEM with --timestamp-root."
_PACKAGE = "rfc3161-client"


@dataclass(frozen=True)
class Stamped:
    """An authority's answer (DER) that holds for the data, and its time."""

    time: datetime
    answer: bytes


def roots_of(pem: bytes, path: str) -> list[x509.Certificate]:
    """The certificates that are trusted.

    Raises:
        Refusal: `timestamp_failed` where the file holds none.
    """
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise _failed("the file of root certificates holds none in PEM", path, str(error), _OTHER_ROOTS) from error


def stamp(data: bytes, url: str, roots: list[x509.Certificate]) -> Stamped:
    """Ask the authority at `url` about `data`, and check its answer against the roots. Blocks for 30 seconds at most.

    Raises:
        Refusal: `timestamp_failed`: it does not answer, or not with a timestamp of this data that leads to a root;
            `extra_missing`.
    """
    client = of_the_extra("rfc3161_client", _PACKAGE)
    request = client.TimestampRequestBuilder().data(data).hash_algorithm(client.HashAlgorithm.SHA256).build()
    return checked(asyncio.run(_asked(url, request.as_bytes())), data, url, roots, request)


def checked(answer: bytes, data: bytes, where: str, roots: list[x509.Certificate], request: Any = None) -> Stamped:
    """An authority's answer, held against the data, the roots and, where it is there, the request.

    Raises:
        Refusal: as `stamp`.
    """
    client = of_the_extra("rfc3161_client", _PACKAGE)
    builder = client.VerifierBuilder() if request is None else client.VerifierBuilder.from_request(request)
    for root in dict.fromkeys(roots):
        builder = builder.add_root_certificate(root)
    try:
        response = client.decode_timestamp_response(answer)
        builder.build().verify_message(response, data)
        time = response.tst_info.gen_time
    except (ValueError, client.VerificationError) as error:
        raise _failed("the authority's answer does not hold", where, str(error)) from error
    return Stamped(time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC), answer)


async def _asked(url: str, request: bytes) -> bytes:
    headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
    limit = aiohttp.ClientTimeout(total=DEADLINE_SEC)
    answer = bytearray()
    try:
        async with (
            aiohttp.ClientSession(timeout=limit, trust_env=True) as session,
            # nobody is asked but whom the person named
            session.post(url, data=request, headers=headers, allow_redirects=False) as reply,
        ):
            if reply.status != HTTPStatus.OK:
                raise _failed("the authority gave no answer", url, f"HTTP status {reply.status}")
            async for chunk in reply.content.iter_chunked(_CHUNK):
                answer += chunk
                if len(answer) > MAX_ANSWER_BYTES:
                    raise _failed("the authority's answer is too long", url, f"more than {MAX_ANSWER_BYTES:,} bytes")
    except TimeoutError as error:
        raise _failed("the authority gave no answer", url, f"none within {DEADLINE_SEC:g} seconds") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise _failed("the authority gave no answer", url, f"{type(error).__name__}: {error}") from error
    return bytes(answer)


def _failed(message: str, where: str, observed: str, remedy: str | None = None) -> Refusal:
    return Refusal(Reason.TIMESTAMP_FAILED, message, path=where, observed=observed[:400], remedy=remedy)
